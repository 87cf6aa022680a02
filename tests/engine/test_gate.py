"""Behind a gate a request's tokens are its plain loop's too, whatever is taken back on the way."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from mezzotint.decoding.alarms import GateLimits
from mezzotint.decoding.gate import generate_gated
from mezzotint.decoding.program import Block, Draft, Event, Finished
from mezzotint.engine.request import Request
from mezzotint.types import Alarm
from tests.engine.tiny import DEFAULTS, DIFFUSION, LIMITS, Run, Runs, engine, model, request, settled, tokens_of

BOUNDS = GateLimits(doubt=1e9, surprise=4.0, spike=1e9)
ASKED = {
    "default": DIFFUSION,
    "endless": replace(DIFFUSION, ignore_eos=True, max_tokens=40),
    "scored": replace(DIFFUSION, ignore_eos=True, max_tokens=25, logprobs=1),
    "thoughtful": replace(DIFFUSION, ignore_eos=True, max_tokens=30, thinking_budget=3, answer_reserve=5),
    "narrow": replace(DIFFUSION, ignore_eos=True, max_tokens=20, canvas_length=5, sampler="jax", min_tokens=3),
    "dropped": replace(DIFFUSION, max_tokens=25, drop_after_end=True, steps=5),
}


@dataclass(frozen=True)
class Multiples:
    """Alarms at the first multiple of a number in a block; so a canvas is trimmed, rolled again and given up on."""

    of: int

    def inspect(
        self, settled: Sequence[int], borders: Sequence[int], block: Sequence[int], *, is_whole: bool
    ) -> list[Alarm]:
        assert [*borders] == sorted({*borders})
        return [Alarm("stutter", place) for place, id in enumerate(block) if id % self.of == 0][:1]


def gated(id: str, prompt: Any, way: str, gate: str, of: int, **given: Any) -> Request:
    params = replace(ASKED[way], gate=gate)  # type: ignore[arg-type]
    return request(id, prompt, params, inspector=Multiples(of), bounds=BOUNDS, **given)


@torch.inference_mode()
def alone(asked: Request) -> list[Event]:
    assert asked.params.seed is not None
    assert asked.inspector is not None
    given = (model(), list(asked.prompt), asked.params, asked.params.seed, LIMITS, asked.inspector)
    return list(generate_gated(*given, defaults=DEFAULTS, stopper=asked.stopper, bounds=BOUNDS))


RUNS = Runs(6)
STEM = tokens_of(99, 24)
CONFIGS: list[dict[str, Any]] = [
    {"page_size": 1, "chunk_tokens": 5},
    {"page_size": 4, "max_rows": 2},
]


@pytest.mark.parametrize("gate", ["text", "causal"])
@pytest.mark.parametrize("config", CONFIGS)
def test_a_gated_request_among_others_tells_what_it_tells_alone(config: dict[str, Any], gate: str) -> None:
    asked = [
        gated(f"{way} {of}", STEM[:12] + tokens_of(index, 6), way, gate, of, stopper=RUNS if way == "dropped" else None)
        for index, way in enumerate(ASKED)
        for of in (3 + 2 * (index % 2),)
    ]
    asked.append(replace(asked[0], id="again"))  # finds what the first has settled
    run = Run(engine(**config))
    run.submit(*asked)
    run.finish()
    actions = set()
    for each in asked:
        assert each.id in run.done, run.failed
        told, expected = run.told[each.id], alone(each)
        assert unscored(told) == unscored(expected)
        assert logprobs(told) == pytest.approx(logprobs(expected))
        finished, receipt = expected[-1], run.done[each.id]
        assert isinstance(finished, Finished)
        assert receipt.interventions == finished.interventions
        assert receipt.forwards == finished.encodes + sum(e.steps for e in expected if isinstance(e, Block))
        actions |= {mended.action for mended in receipt.interventions}
    assert actions == {"trim", "reroll", "ar" if gate == "text" else "verified"}


def unscored(events: Sequence[Event]) -> list[Event]:
    """What was told, without drafts and what is compared by itself."""
    bare = [e._replace(scores=None, uncertainty=None) if isinstance(e, Block) else e for e in settled(events)]
    return [event for event in bare if not isinstance(event, Draft)]


def logprobs(events: Sequence[Event]) -> list[float]:
    """The scores, and how unsure a canvas was."""
    blocks = [event for event in events if isinstance(event, Block)]
    scores = [score.logprob for block in blocks for score in block.scores or ()]
    return scores + [doubt for block in blocks for doubt in block.uncertainty or ()]


def test_a_gate_without_an_inspector_is_refused() -> None:
    asked = request("id", 5, replace(DIFFUSION, gate="text"))
    with pytest.raises(ValueError, match="gate is 'text', but nobody inspects the text"):
        engine().submit(asked)
