"""Records with known figures; no test."""

from typing import Any

from mezzotint.bench.arm import read_arm
from mezzotint.bench.arrival import Load
from mezzotint.bench.config import BenchConfig
from mezzotint.bench.point import Done
from mezzotint.bench.record import Parts, Played, Request
from mezzotint.bench.tally import Group

CANVAS: dict[str, Any] = {"semantics": "canvas", "canvas": 8, "steps": (4,), "step_budget": 6, "sampler": "report"}
TOKEN: dict[str, Any] = {"semantics": "token"}


def request(seconds: float = 1.0, **told: Any) -> Request:
    """One that was due and sent at 0, and whose answer came in one piece at its end."""
    plain: dict[str, Any] = {
        "hop": 0,
        "attempt": 0,
        "kind": "",
        "model": "m",
        "seed": 0,
        "outcome": "accepted",
        "due_s": 0.0,
        "sent_s": 0.0,
        "ended_s": seconds,
        "judged_s": seconds,
        "arrivals": (seconds,),
        "finish_reason": "stop",
        "output_tokens": 8,
        "prompt_tokens": 20,
        "forwards": 5,
    }
    return Request(**{**plain, **told})


def played(task: int, *requests: Request, seconds: float | None = None, **told: Any) -> Played:
    """A task of one hop that was due at 0, and ended with its last request unless said otherwise."""
    last = requests[-1]
    ended_s = last.ended_s if seconds is None else seconds
    plain: dict[str, Any] = {
        "task": task,
        "id": f"task {task}",
        "family": "test",
        "outcome": last.outcome,
        "due_s": 0.0,
        "ended_s": ended_s,
        "hops": 1,
        "accepted_hops": (ended_s,) if last.outcome == "accepted" else (),
        "parts": Parts(generation=ended_s),
        "requests": requests,
    }
    return Played(**{**plain, **told})


def group(*tasks: Played, load: float = 1, arm: str = "a") -> Group:
    window_s = max(each.ended_s for each in tasks) - min(each.due_s for each in tasks)
    return Group(arm, Load(kind="closed", value=load), (Done(tasks, window_s),))


def config(arms: str = "a", **options: Any) -> BenchConfig:
    return BenchConfig(
        target="test",
        arms=tuple(map(read_arm, arms.split())),
        loads=options.pop("loads", (Load(kind="closed", value=1),)),
        **options,
    )
