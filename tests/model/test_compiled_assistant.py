"""A compiled drafter guesses what the plain one guesses, for one row or many, wherever their contexts stand."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from mezzotint.model import compiled_assistant
from mezzotint.model.assistant import Assistant
from mezzotint.model.assistant_config import AssistantConfig
from mezzotint.model.compiled import compile_model
from mezzotint.model.compiled_assistant import compile_assistant
from mezzotint.model.ragged import RowContext
from mezzotint.types import Guess
from tests.model.checkpoints import random_model
from tests.model.compiler import needs_compiler
from tests.model.rows import CONTEXTS, CUTS, LAYOUTS, House, Layout
from tests.model.test_assistant import CONFIG, ORDERED, TARGET, random_network

IN_PLACE = {name: layout for name, layout in LAYOUTS.items() if not layout.ring}
SIZES = (3, 1, 5)  # of the rows' rounds


def drafter(config: AssistantConfig, dtype: torch.dtype, *, compiled: bool) -> Assistant:
    target = random_model(replace(TARGET, vocab_size=config.vocab_size)).to(dtype)
    made = Assistant(random_network(config).to(dtype), target)
    if compiled:
        compile_model(made.target)
        compile_assistant(made)
    return made


def state_of(row: int, like: Tensor) -> Tensor:
    return torch.randn(TARGET.hidden_size, generator=torch.Generator().manual_seed(row)).to(like.dtype)


def unrolled(made: Assistant, at: int) -> tuple[list[int], Tensor]:
    """What is guessed behind `at` tokens of a longer context, and the states that say it."""
    kv = made.target.new_kv(1, 24)
    made.target.encode(torch.arange(20)[None], kv)
    need = Guess(token=at, hidden=state_of(at, made.target.embed_tokens.weight), at=at, size=4)
    states = [guessed.state for guessed in made.unroll([need], [kv])]
    return made.guess(need, kv), torch.cat(states, 1)


@needs_compiler
@pytest.mark.parametrize("at", [1, 2, 3, 4, 5, 9, 20])
@pytest.mark.parametrize("config", [CONFIG, ORDERED], ids=["whole head", "ordered head"])
@torch.inference_mode()
def test_compiled_guesses_are_the_plain_ones(config: AssistantConfig, at: int) -> None:
    for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 1e-4)):
        expected, plain = unrolled(drafter(config, dtype, compiled=False), at)
        said, own = unrolled(drafter(config, dtype, compiled=True), at)
        assert said == expected
        assert (own - plain).abs().max() <= tolerance * plain.abs().max()


# Eager products in bfloat16 round differently in batches of another size.
@pytest.mark.parametrize(
    ("dtype", "compiled"),
    [
        (torch.float64, False),
        pytest.param(torch.float64, True, marks=needs_compiler),
        pytest.param(torch.bfloat16, True, marks=needs_compiler),
    ],
)
@pytest.mark.parametrize("layout", IN_PLACE.values(), ids=IN_PLACE)
@torch.inference_mode()
def test_rows_that_guess_together_get_what_each_gets_alone(dtype: torch.dtype, layout: Layout, compiled: bool) -> None:
    made = drafter(replace(CONFIG, vocab_size=96), dtype, compiled=compiled)
    house, kinds = House(made.target, layout), [shape.kind for shape in TARGET.layers]
    house.encode(CUTS["whole"])
    contexts = [RowContext(house.store, pages, kinds) for pages in house.rows]
    needs = [
        Guess(token=row, hidden=state_of(row, made.target.embed_tokens.weight), at=length, size=SIZES[row])
        for row, length in enumerate(CONTEXTS)
    ]
    alone = [made.guess(need, context) for need, context in zip(needs, contexts, strict=True)]
    assert [len(row) for row in alone] == list(SIZES)
    assert made.guess_all(needs, contexts) == alone
    together = [guessed.state for guessed in made.unroll(needs, contexts)]
    for row, (need, context) in enumerate(zip(needs, contexts, strict=True)):
        for step, guessed in enumerate(made.unroll([need], [context])):
            own, beside = guessed.state[0, 0], together[step][0, row]
            assert torch.equal(own, beside) if compiled else torch.allclose(own, beside, rtol=1e-10)


@needs_compiler
@torch.inference_mode()
def test_a_guess_sees_nothing_beyond_its_reach_nor_behind_what_is_settled() -> None:
    made = drafter(CONFIG, torch.float32, compiled=True)
    at, kv = 12, made.target.new_kv(1, 24)
    made.target.encode(torch.arange(20)[None], kv)
    need = Guess(token=3, hidden=state_of(0, made.target.embed_tokens.weight), at=at, size=2)
    said = [guessed.state for guessed in made.unroll([need], [kv])]
    for layer, shape in enumerate(TARGET.layers):
        for states in kv.slots(0)[layer]:
            states[:, :, at:] = torch.nan
            if shape.kind == "sliding_attention":
                states[:, :, : at - made.reach] = torch.nan
    assert all(map(torch.equal, said, [guessed.state for guessed in made.unroll([need], [kv])]))


@needs_compiler
@torch.inference_mode()
def test_what_a_compiled_drafter_cannot_read_is_refused() -> None:
    made = drafter(CONFIG, torch.float32, compiled=True)
    kv = made.target.new_kv(1, 24)
    made.target.encode(torch.arange(8)[None], kv)
    need = Guess(token=3, hidden=state_of(0, made.target.embed_tokens.weight), at=8, size=2)
    with pytest.raises(TypeError, match="reads one KV, or rows of one store"):
        made.guess_all([need, need], [kv, kv])
    with pytest.raises(ValueError, match="a guess behind 9 tokens was asked of a context of 8"):
        made.guess(need._replace(at=9), kv)


@needs_compiler
def test_a_drafter_is_compiled_behind_its_target_and_only_if_it_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="the drafter's target is not compiled; compile that first"):
        compile_assistant(drafter(CONFIG, torch.float32, compiled=False))
    made = drafter(replace(CONFIG, hidden_size=12), torch.float32, compiled=True)
    monkeypatch.setattr(compiled_assistant, "fuses", lambda size: False)
    with pytest.raises(ValueError, match="holds a drafter's layers twice, which is not done"):
        compile_assistant(made)
