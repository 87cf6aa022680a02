"""Made-up scores of a model that meets whatever is asked of it; no test lives here."""

from benchmarks.gates import Key
from benchmarks.lab_scores import Kernels, Scored
from mezzotint.evaluate.interval import Interval, wilson_interval
from mezzotint.evaluate.score import Row
from mezzotint.tasks import FAMILIES

BUDGETS = (4, 8, 16, 48)


def scored(
    task: str,
    decoder: str,
    budget: int = 0,
    *,
    passed: int,
    n: int = 200,
    rate: float = 9.0,
    seconds: float | None = None,
    kernels: Kernels = "compiled",
) -> Scored:
    """An arm that passes at its first `passed` prompts; rate: tokens per forward; one answer in 20 stutters."""
    seconds = seconds or (0.05 if decoder == "diffusion" else 0.1)
    row = Row(
        task=task,
        decoder=decoder,
        sampler="report" if decoder == "diffusion" else None,
        temperature=1.0,
        form="free",
        step_budget=budget,
        n=n,
        pass_rate=passed / n,
        interval=wilson_interval(passed, n),
        tokens_per_forward=rate,
        tokens_per_forward_interval=Interval(rate - 0.5, rate + 0.5),
        steps=4.25,
        seconds=seconds,
        prefill_s=0.0,
        generation_s=seconds,
        output_tokens=30.0,
        overridden=0.0,
        forced=0.0,
        budget_hits=0.0,
        stutters=0.05,
        seams=0.1,
        loops=0.15,
        empty=0.2,
        truncated=0.25,
    )
    accepted = tuple(prompt < passed for prompt in range(n))
    return Scored(kernels, row, accepted, (seconds,) * n)


def good_arms() -> dict[Key, Scored]:
    """Every arm of a full run."""
    arms: dict[Key, Scored] = {}
    for task in FAMILIES:
        for budget in BUDGETS:
            few = task == "sequential_rule" and budget == 4
            passed = 100 if few else 198
            arms[Key(task, "diffusion", budget)] = scored(task, "diffusion", budget, passed=passed)
        arms[Key(task, "ar", 0)] = scored(task, "ar", passed=100 if task == "infill" else 198, rate=1.0)
    for decoder, budget in (("diffusion", 16), ("ar", 0)):
        key = Key("extract", decoder, budget, "eager")
        arms[key] = scored("extract", decoder, budget, passed=198, kernels="eager")
    return arms
