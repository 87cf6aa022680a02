"""What a figure is, what each one means, and which are refused; what they come to is added up in tally."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mezzotint.bench.interval import Interval
from mezzotint.bench.record import Request, Semantics

ENOUGH_FOR_P95 = 200
_DECODE = ("itl", "tpot")

# Each with its unit and its definition. s: the scheduled arrival, zero of all times but those said to be otherwise.
MEANINGS: dict[str, tuple[str, str]] = {
    "acceptance_rate": ("%", "tasks accepted ÷ tasks that arrived, Wilson interval"),
    "first_try_rate": ("%", "tasks accepted without any second attempt ÷ tasks that arrived, Wilson interval"),
    "rescue_rate": ("%", "tasks accepted thanks to a second attempt ÷ tasks that arrived, Wilson interval"),
    "tta_p50": ("s", "accepted − s, over accepted tasks: median"),
    "tta_p95": ("s", "accepted − s, over accepted tasks: 95th percentile"),
    "tta_censored_p50": (
        "s",
        "the same over all tasks; without acceptance the deadline at least: median",
    ),
    "tta_censored_p95": ("s", "the same over all tasks, with deadlines: 95th percentile"),
    "expected_tta": ("s", "time of all tasks ÷ tasks accepted"),
    "hop_tta_p50": ("s", "a hop accepted − when it could begin, its tool's wait included, over accepted hops: median"),
    "plan_tta_p50": ("s", "the same over hops that read a request and decide: median"),
    "tool_tta_p50": ("s", "the same over hops that go on with what a tool gave back: median"),
    "verification_share": ("%", "reading and judging answers ÷ time of all tasks"),
    "residual_share": ("%", "time of tasks that no part claims ÷ their time"),
    "e2e_p50": ("s", "last byte − s, of a retry or later hop − its sending: median of requests that did not fail"),
    "e2e_p95": ("s", "the same: 95th percentile"),
    "ttfc_p50": ("s", "first committed chunk − s, of a retry or later hop − its sending: median"),
    "ttfc_p95": ("s", "the same: 95th percentile"),
    "usable_p50": ("s", "first moment at which what had come was right − s, over accepted texts: median"),
    "icl_p50": ("s", "gap between committed chunks, all pooled: median"),
    "icl_p95": ("s", "gap between committed chunks, all pooled: 95th percentile"),
    "ntpot_p50": ("s", "e2e ÷ output tokens of a request: median; comparable between all decoders"),
    "e2e_rate_p50": ("tokens/s", "output tokens ÷ e2e of a request: median"),
    "tpot_p50": ("s", "(last chunk − first) ÷ (output tokens − 1): median; of tokens that come one by one only"),
    "block_latency": ("s", "generation as the server tells it ÷ blocks, over all requests"),
    "dispatch_p50": ("s", "first thing done for a task − s: median"),
    "dispatch_p95": ("s", "first thing done for a task − s: 95th percentile"),
    "dispatch_share": ("%", "dispatch delays ÷ time of all tasks; above 2 % the client was measured too"),
    "accepted_goodput": (
        "tasks/s",
        "accepted tasks that kept to all goals, a second; closed loops by Little's law",
    ),
    "task_rate": ("tasks/s", "tasks that ended, a second; of a closed loop by Little's law"),
    "output_rate": ("tokens/s", "output tokens of all attempts, a second; of a closed loop by Little's law"),
    "prompt_tokens": ("tokens", "of a request, from the server's usage: mean"),
    "output_tokens": ("tokens", "of a task, failed attempts included, from the server's usage: mean"),
    "cached_share": ("%", "prompt tokens that a prefix seen before spared ÷ prompt tokens"),
    "attempts_per_accepted": ("", "attempts, failed ones included ÷ hops accepted"),
    "cost_per_accepted": ("$", "all that was spent, failed attempts included ÷ tasks accepted"),
    "tpf": ("tokens", "output tokens ÷ forwards after prefill, over all requests; 1 for ar, but for forced tokens"),
    "blocks": ("", "blocks of a request: mean"),
    "canvas_utilisation": ("%", "output tokens ÷ (blocks × canvas)"),
    "steps_p50": ("", "denoising steps of a block: median"),
    "steps_p95": ("", "denoising steps of a block: 95th percentile"),
    "budget_hit_rate": ("%", "blocks that used their whole step budget"),
    "early_halt_rate": ("%", "blocks that converged before their step budget was used"),
    "retry_rate": ("%", "attempts beyond the first at their hop ÷ attempts"),
    "error_rate": ("%", "attempts that failed as requests ÷ attempts"),
    "timeout_rate": ("%", "tasks given up at their deadline ÷ tasks"),
    "drop_rate": ("%", "tasks dropped on arrival, too many being unfinished ÷ tasks"),
    "malformed_rate": ("%", "answers in which the server found faults ÷ answers"),
    "empty_rate": ("%", "answers that should have said something and did not ÷ answers"),
    "truncation_rate": ("%", "answers cut off at max_tokens ÷ answers"),
    "stutter_rate": ("%", "answers that say a word or phrase twice at once ÷ answers"),
    "loop_rate": ("%", "answers that end in the same over and over ÷ answers"),
    "control_leak_rate": ("%", "answers with a control token as text ÷ answers"),
    "pad_flood_rate": ("%", "answers with placeholders or blank space without end ÷ answers"),
    "bracket_rate": ("%", "answers with a bracket without a partner ÷ answers"),
}
_TIMED = "tta expected hop plan tool e2e ttfc usable icl ntpot tpot block".split()
LATENCIES = frozenset(name for name in MEANINGS if name.split("_")[0] in _TIMED)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One number with all that it must stand beside.

    n: values behind it. step_budget: of the canvases behind a latency, `-` where there are none. note: what to mind.
    """

    name: str
    value: float
    semantics: Semantics
    n: int
    interval: Interval | None = None
    step_budget: str = "-"
    note: str = ""

    @property
    def unit(self) -> str:
        """Of value and interval; shares are told as they are, and shown as %."""
        return MEANINGS[self.name][0]

    def __post_init__(self) -> None:
        if self.name in LATENCIES and self.semantics == "canvas" and self.step_budget == "-":
            raise ValueError(
                f"{self.name} is asked of canvases whose step budget is not known, and no latency stands without it: "
                "ask a server that tells metrics.diffusion.step_budget"
            )


def find_semantics(requests: Sequence[Request]) -> Semantics:
    """How answers came: canvas if any did; token if all came so; chunk where who knows."""
    told = {request.semantics for request in requests if not request.category}
    if "canvas" in told:
        return "canvas"
    return "token" if told == {"token"} else "chunk"


def find_budget(requests: Sequence[Request]) -> str:
    """The step budgets of canvases, `-` if there are none or a server does not tell."""
    budgets = {request.step_budget for request in requests if request.semantics == "canvas" and request.step_budget}
    return ",".join(map(str, sorted(budgets))) or "-"


def time_per_token(requests: Sequence[Request]) -> list[float]:
    """(Last chunk − first) ÷ (output tokens − 1) of each request with two tokens or more, in seconds.

    Raises: ValueError where answers come a block, or who knows how many tokens, at a time.
    """
    refuse_decode_rate("tpot", requests)
    return [
        (request.arrivals[-1] - request.arrivals[0]) / (request.output_tokens - 1)
        for request in requests
        if request.output_tokens > 1 and request.arrivals
    ]


def refuse_decode_rate(name: str, requests: Sequence[Request]) -> None:
    """Raises: ValueError naming figures that mean something, where answers do not come token by token."""
    semantics = find_semantics(requests)
    if semantics != "token":
        how = "a block at a time" if semantics == "canvas" else "in chunks of who knows how many tokens"
        raise ValueError(
            f"{name} is asked of answers that come {how} (semantics {semantics}), of which it says nothing; "
            "take ttfc, icl, e2e or ntpot"
        )


def check_goals(goals: Mapping[str, float], requests: Sequence[Request]) -> None:
    """Raises: ValueError for a goal that these answers give no meaning to."""
    for name in _DECODE:
        if name in goals and any(not request.category for request in requests):
            refuse_decode_rate(name, requests)
