"""What fails in a forward, or is no number, ends the one request that it belongs to."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from mezzotint.decoding.generate import seeded_blocks
from mezzotint.engine.runner import Piece, Runner, Step
from mezzotint.types import Reading
from tests.engine.tiny import AR, DIFFUSION, LIMITS, Run, alone, engine, model, request

BAD = 39  # a token that one prompt holds
ODD = (*range(2, 14), BAD, *range(14, 22))
SEED = 77
NEIGHBOURS = [request("diffusion", 12), request("ar", 15, AR), request("odd beginning", ODD[:12])]


def run_beside(run: Run, *asked: Any) -> None:
    """Run requests together with neighbours, who must not notice."""
    run.submit(NEIGHBOURS[0], *asked, *NEIGHBOURS[1:])
    run.finish()
    for each in NEIGHBOURS:
        assert run.answer(each.id) == alone(each)
    assert run.engine.stats().failed == {"error": len(asked)}


@pytest.mark.parametrize("params", [DIFFUSION, AR], ids=["diffusion", "ar"])
def test_a_prompt_that_gives_no_number_fails_alone_and_its_pages_are_not_shared(
    params: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, run = model().embed, Run(engine(page_size=2))
    asked = request("odd", ODD, params)

    def embed(ids: Tensor) -> Tensor:
        spoilt = (ids == BAD) & (len(ids) > 12)  # as a prompt's token, not as the noise of a canvas
        return torch.where(spoilt[..., None], torch.nan, plain(ids))

    with monkeypatch.context() as patch:
        patch.setattr(model(), "embed", embed)
        run_beside(run, asked)
    assert run.failed["odd"].reason.startswith("FloatingPointError: the model's output is not finite")
    again = replace(asked, id="again")
    run.submit(again)
    run.finish()
    assert run.answer("again") == alone(again)
    assert run.done["again"].cached_tokens <= 12


def spoils(uniforms: Tensor, block: int, step: int) -> Tensor:
    """Where the numbers of one request at one step stand among others' [N]."""
    own = seeded_blocks(SEED, LIMITS)(block).uniforms(step)
    return torch.isin(uniforms, own)


@pytest.mark.parametrize(("block", "step"), [(0, 0), (1, 2)])
def test_a_reading_that_is_no_number_fails_its_own_row(block: int, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = model().read

    def read(hidden: Tensor, **options: Any) -> Reading:
        found = plain(hidden, **options)
        return found._replace(entropy=found.entropy.masked_fill(spoils(options["uniforms"], block, step), torch.nan))

    monkeypatch.setattr(model(), "read", read)
    run = Run(engine())
    asked = request("odd", 12, replace(DIFFUSION, seed=SEED, ignore_eos=True))
    run_beside(run, asked)
    assert "not finite" in run.failed["odd"].reason
    monkeypatch.undo()
    told, whole = tuple(run.told["odd"]), alone(asked).events
    assert told == whole[: len(told)]
    assert len(told) == 1 + block * 5 + step  # Prefilled, then four steps and a block each


def test_a_forward_that_cannot_hold_one_row_runs_the_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, calls = Runner.denoise, list[int]()

    def denoise(self: Runner, steps: Sequence[Step]) -> list[Reading]:
        calls.append(len(steps))
        if any(bool(spoils(step.need.uniforms, 0, 1).any()) for step in steps):
            raise RuntimeError("out of memory")
        return plain(self, steps)

    monkeypatch.setattr(Runner, "denoise", denoise)
    run = Run(engine())
    run_beside(run, request("odd", 12, replace(DIFFUSION, seed=SEED)))
    assert run.failed["odd"].reason == "RuntimeError: out of memory"
    assert calls[:6] == [3, 3, 1, 1, 1, 2]


def test_an_encode_that_fails_for_one_row_fails_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Runner.encode

    def encode(self: Runner, pieces: Sequence[Piece]) -> Any:
        if any(tuple(piece.tokens) in ((BAD,), ODD) for piece in pieces if not piece.start):
            raise IndexError("no such id")
        return plain(self, pieces)

    monkeypatch.setattr(Runner, "encode", encode)
    run = Run(engine())
    asked = [request("odd", ODD), request("odd too", (BAD,), AR)]
    run_beside(run, *asked)
    assert {failed.reason for failed in run.failed.values()} == {"IndexError: no such id"}
