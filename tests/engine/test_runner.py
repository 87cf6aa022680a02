from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor

from mezzotint.decoding.canvas import Pins, no_pins
from mezzotint.decoding.program import Denoise, Encode, Encoded, run_denoise, run_encode
from mezzotint.engine.pages import PagePool
from mezzotint.engine.runner import Piece, Runner, Step, Wonder
from mezzotint.engine.table import PageTable, Pools
from mezzotint.model.compiled import compile_model
from mezzotint.model.config import LayerKind
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.ragged import Pages, RowContext, Store
from mezzotint.types import Guess, Reading
from tests.engine.tiny import CANVAS, CONTEXT, PINS, V, drafter, model, tokens_of
from tests.model.compiler import needs_compiler

PAGE, PAGES = 3, 40
CONTEXTS = [list(tokens_of(row, length)) for row, length in enumerate((17, 1, 8))]


class House:
    """A runner, and the pages of some rows, woven into each other so that none lies in one piece."""

    def __init__(self, network: DiffusionGemma | None = None) -> None:
        network = network or model()
        slots = {"full_attention": PAGES * PAGE, "sliding_attention": PAGES * PAGE}
        self.store = Store(network.config, slots, dtype=network.dtype, device=network.device)  # type: ignore[arg-type]
        self.runner = Runner(network, self.store, drafter())
        pools = Pools(PagePool(PAGES), PagePool(PAGES))
        self.tables = [PageTable(pools, PAGE) for _ in CONTEXTS]
        for tokens in range(PAGE, 30, PAGE):
            for table in self.tables:
                assert table.reserve(tokens) is None

    def pieces(self, sizes: tuple[int, ...], *, start: int = 0, read: int = 0) -> list[Piece]:
        return [
            Piece(table, tokens[start : start + size], start, min(read, size))
            for table, tokens, size in zip(self.tables, CONTEXTS, sizes, strict=True)
        ]


def canvas(row: int, *, soft: Tensor | None = None, pins: Pins | None = None, **changes: Any) -> Denoise:
    generator = torch.Generator().manual_seed(row)
    given: dict[str, Any] = {"temperature": 0.7, "proposal_temperature": 0.5, "with_soft": True, **changes}
    return Denoise(
        canvas=torch.randint(V, (CANVAS,), generator=generator),
        at=len(CONTEXTS[row]),
        soft=soft,
        uniforms=torch.rand(CANVAS, generator=generator, dtype=torch.float64),
        pins=pins or no_pins(CANVAS),
        window=None,
        **given,
    )


def alone(row: int, need: Denoise | None = None, network: DiffusionGemma | None = None) -> Reading | Encoded | None:
    """What the model says of a row on a cache of its own: of a need, or of its last three tokens."""
    network = network or model()
    kv, tokens = network.new_kv(1, CONTEXT), CONTEXTS[row]
    encoded = run_encode(Encode(tokens, 0, min(3, len(tokens))), network, kv)
    return encoded if need is None else run_denoise(need, network, kv)


def same(own: Tensor | None, expected: Tensor | None) -> bool:
    return own is expected if own is None or expected is None else torch.equal(own, expected)


def near(own: Tensor | None, expected: Tensor | None) -> bool:
    if own is None or expected is None:
        return own is expected
    return own.shape == expected.shape and bool((own - expected).abs().max() <= 1e-10)


@torch.inference_mode()
def test_what_is_read_of_pieces_encoded_together_is_what_each_says_alone() -> None:
    house = House()
    assert house.runner.encode(house.pieces((17, 1, 8))) == [None] * 3
    told = house.runner.encode(house.pieces((17, 1, 8), read=3))
    for row, own in enumerate(told):
        expected = alone(row)
        assert isinstance(own, Encoded)
        assert isinstance(expected, Encoded)
        assert near(own.logits, expected.logits)
        assert near(own.hidden, expected.hidden)


@torch.inference_mode()
def test_of_pieces_only_those_that_are_read_are_told_of() -> None:
    house = House()
    first, second, third = house.pieces((17, 1, 8))
    told = house.runner.encode([first, second._replace(read=1), third])
    assert [answer is None for answer in told] == [True, False, True]


@torch.inference_mode()
def test_canvases_of_any_step_and_temperature_are_read_as_each_is_alone() -> None:
    house = House()
    house.runner.encode(house.pieces((17, 1, 8)))
    soft = torch.randn(CANVAS, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    needs = [
        canvas(0, soft=soft, pins=PINS[0]),
        canvas(1, temperature=0.4),
        canvas(2, soft=-soft, with_soft=False, proposal_temperature=0.0),
    ]
    for order in ((0, 1, 2), (2, 0, 1)):
        steps = [Step(house.tables[row], needs[row]) for row in order]
        for row, own in zip(order, house.runner.denoise(steps), strict=True):
            expected = alone(row, needs[row])
            assert isinstance(expected, Reading)
            assert [near(*pair) for pair in zip(own, expected, strict=True)] == [True] * 6


@needs_compiler
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@torch.inference_mode()
def test_compiled_canvases_of_any_step_and_temperature_are_read_bit_for_bit_as_each_is_alone(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, passes = compile_model(deepcopy(model()).to(dtype)), list[int]()
    read = network.read

    def count(hidden: Tensor, **options: Any) -> Reading:
        passes.append(len(hidden))
        return read(hidden, **options)

    monkeypatch.setattr(network, "read", count)
    house = House(network)
    house.runner.encode(house.pieces((17, 1, 8)))
    soft = torch.randn(CANVAS, 16, generator=torch.Generator().manual_seed(5)).to(dtype)
    needs = [
        canvas(0, soft=soft, pins=PINS[0]),
        canvas(1, temperature=0.4, logits_at=(2, 5)),
        canvas(2, soft=-soft, with_soft=False, proposal_temperature=0.0),
    ]
    together = house.runner.denoise([Step(table, need) for table, need in zip(house.tables, needs, strict=True)])
    assert passes == [3 * CANVAS]
    for row, own in enumerate(together):
        expected = alone(row, needs[row], network)
        assert isinstance(expected, Reading)
        assert [same(*pair) for pair in zip(own, expected, strict=True)] == [True] * 6


@torch.inference_mode()
def test_a_drafter_reads_the_context_of_a_row_wherever_it_stands() -> None:
    house, network = House(), model()
    house.runner.encode(house.pieces((17, 1, 8)))
    rounds, expected = list[Wonder](), list[list[int]]()
    for row, tokens in enumerate(CONTEXTS):
        kv = network.new_kv(1, CONTEXT)
        encoded = run_encode(Encode(tokens, 0, 1), network, kv)
        assert encoded is not None
        need = Guess(token=9, hidden=encoded.hidden[-1], at=len(tokens), size=8 - row)
        rounds.append(Wonder(house.tables[row], need))
        expected.append(drafter().guess(need, kv))
        assert house.runner.guess(rounds[-1:]) == expected[-1:]
        pages: dict[LayerKind, Pages] = {
            "full_attention": house.tables[row].full,
            "sliding_attention": house.tables[row].sliding,
        }
        for layer in range(2):
            read = RowContext(house.store, pages, ["sliding_attention", "full_attention"])
            first = len(tokens) // 2
            pairs = zip(read.pair(layer, first, len(tokens)), kv.pair(layer, first, len(tokens)), strict=True)
            assert all(near(own, plain) for own, plain in pairs)
    sizes: list[int] = []
    with drafter().assistant.network.register_forward_pre_hook(lambda _, given: sizes.append(given[0].shape[1])):
        assert house.runner.guess(rounds) == expected, "whoever guesses beside"
    assert sizes == [len(rounds)] * 8, "a guess of every row in one forward, as often as the longest round needs"


@pytest.mark.parametrize("name", ["embed", "logits", "read"])
@torch.inference_mode()
def test_an_output_that_is_not_finite_fails_the_forward(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    house, plain = House(), getattr(model(), name)
    house.runner.encode(house.pieces((17, 1, 8)))

    def broken(given: Tensor, **options: Any) -> Any:
        found = plain(given, **options)
        numbers = found.entropy if isinstance(found, Reading) else found
        numbers[-1] = torch.nan
        return found

    monkeypatch.setattr(model(), name, broken)
    pieces, steps = house.pieces((17, 1, 8), read=int(name == "logits")), [Step(house.tables[0], canvas(0))]
    with pytest.raises(FloatingPointError, match="not finite"):
        house.runner.denoise(steps) if name == "read" else house.runner.encode(pieces)
