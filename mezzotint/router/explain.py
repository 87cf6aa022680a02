"""A decision in words, for people; nothing is decided here."""

from mezzotint.router.record import Decision

REASONS = {
    "expected_time": "least expected cost until an answer is accepted",
    "incumbent": "the arm this class has at this load; another one is not clearly better",
    "sticky": "its engine still holds what this talk began with",
    "explore": "little is known of it here",
    "cold": "not all arms are measured yet; the best of those that are",
    "rule": "nothing is measured yet: a canvas below the stated crossover where half of it is filled, else ar",
    "pinned": "the policy pins this class or model name to it",
    "only_one": "no other arm can take the request",
    "none": "no arm can take the request",
}


def explain(decision: Decision) -> str:
    """Write what was asked, the plan and why, and every arm as it was seen, a line each."""
    ask = decision.ask
    lines = [
        f"class {ask.kind}, {ask.prompt_tokens} tokens in, at most {ask.most_tokens} out, goal {ask.goal}",
        f"plan {' → '.join(decision.plan) or 'none'}: {decision.reason}, {REASONS[decision.reason]}",
    ]
    if decision.plan:
        money = f", ${decision.cost_usd:.6f}" if decision.cost_usd else ""
        lines.append(
            f"expected {decision.seconds:.3f} s{money} over the plan; "
            f"{decision.plan[0]} is tried first with probability {decision.propensity:.3f}"
        )
    width = max(len(candidate.arm) for candidate in decision.candidates)
    for seen in decision.candidates:
        money = f"  ${seen.cost_usd:.6f}" if seen.cost_usd else ""
        told = f"  out: {seen.excluded}" if seen.excluded else ""
        lines.append(
            f"  {seen.arm:{width}}  {seen.seconds:8.3f} s  accepted {seen.acceptance:4.0%}"
            f"  {seen.in_flight} in flight{money}{told}"
        )
    return "\n".join(lines)
