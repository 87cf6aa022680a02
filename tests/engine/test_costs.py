"""Costs are measured by the clock of the plain loop, once for a number of threads, and change no token."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from mezzotint.decoding.policy import SMALL_MODEL, Costs
from mezzotint.engine import costs as costs_module
from mezzotint.engine.config import EngineConfig
from mezzotint.engine.costs import CostBook, measure_costs
from mezzotint.engine.engine import Engine
from mezzotint.model.diffusion_gemma import DiffusionGemma
from tests.engine.tiny import ASKED, DEFAULTS, LIMITS, Run, alone, model, request

VERIFIED = ASKED["verified, greedy"]


class Timed:
    """The tiny model, whose forwards take as long as `costs` says: the time passes on a clock of its own."""

    def __init__(self, costs: Costs, token_s: float) -> None:
        self.costs, self.token_s, self.now, self.forwards = costs, token_s, 0.0, 0
        self.model = model()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def clock(self) -> float:
        return self.now

    def encode(self, ids: Tensor, kv: Any) -> Tensor:
        # A row more costs as much as a token more: `encode_token`, not a forward.
        self._spend(1 + self.costs.encode_token * (ids.numel() - 1))
        return self.model.encode(ids, kv)

    def denoise(self, canvas: Tensor, kv: Any, soft: Tensor | None, *, window: int | None) -> Tensor:
        self._spend(self.costs.denoise + self.costs.denoise_token * canvas.numel())
        return self.model.denoise(canvas, kv, soft, window=window)

    def _spend(self, steps: float) -> None:
        self.now += steps * self.token_s
        self.forwards += 1


@pytest.mark.parametrize(
    "real", [Costs(denoise=2.0, denoise_token=0.3, encode_token=0.2), SMALL_MODEL, Costs(denoise=39, encode_token=0)]
)
@pytest.mark.parametrize("token_s", [0.004, 2.0])
def test_what_forwards_take_is_what_is_measured(real: Costs, token_s: float) -> None:
    network = Timed(real, token_s)
    found = measure_costs(network, LIMITS, network.clock)
    for name in ("denoise", "denoise_token", "encode_token"):
        assert getattr(found, name) == pytest.approx(getattr(real, name), abs=1e-9)
    assert network.forwards <= 24, "a handful"


@pytest.mark.parametrize("rows", [2, 8])
def test_a_row_among_others_pays_its_share_of_what_they_share(rows: int) -> None:
    real = Costs(denoise=2.0, denoise_token=0.3, encode_token=0.2)
    network = Timed(real, 0.5)
    found = measure_costs(network, LIMITS, network.clock, rows=rows)
    token = (1 + real.encode_token * (rows - 1)) / rows  # a row's share of a token of each
    assert found.denoise == pytest.approx(real.denoise / rows / token)
    assert found.denoise_token == pytest.approx(real.denoise_token / token)
    assert found.encode_token == pytest.approx(real.encode_token / token)
    assert found.round(8, 1) > real.round(8, 1), "what pays alone may not pay here"
    assert network.forwards <= 70


def test_a_forward_that_is_slow_once_is_not_counted() -> None:
    network = Timed(SMALL_MODEL, 1.0)
    spend = network._spend
    # The first token behind the prompt, and of each width the first denoising step.
    network._spend = lambda steps: spend(500.0 if network.forwards in (1, 7, 14) else steps)  # type: ignore[method-assign]
    found = measure_costs(network, LIMITS, network.clock)
    assert network.now > 1500, "they were slow"
    assert (found.denoise, found.denoise_token) == pytest.approx((SMALL_MODEL.denoise, SMALL_MODEL.denoise_token))
    assert found.encode_token == pytest.approx(SMALL_MODEL.encode_token)


@pytest.mark.parametrize(("canvas", "positions"), [(1, 96), (8, 7)])
def test_where_no_draft_has_room_nothing_is_measured(canvas: int, positions: int) -> None:
    network = Timed(SMALL_MODEL, 1.0)
    limits = replace(LIMITS, canvas_length=canvas, max_positions=positions)
    assert measure_costs(network, limits, network.clock) == SMALL_MODEL
    assert network.forwards == 0


@pytest.mark.parametrize(("canvas", "positions"), [(2, 96), (3, 96), (8, 8), (8, 20), (64, 96)])
def test_the_smallest_checkpoints_are_measured_too(canvas: int, positions: int) -> None:
    limits = replace(LIMITS, canvas_length=canvas, max_positions=positions)
    measure_costs(model(), limits)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[DiffusionGemma]:
    """The networks that were measured; each is found to cost what drafting never pays for."""
    found: list[DiffusionGemma] = []

    def measure(network: DiffusionGemma, limits: object, *, rows: int) -> Costs:
        found.append(network)
        return Costs(denoise=40.0 + len(found), encode_token=rows)

    monkeypatch.setattr(costs_module, "measure_costs", measure)
    return found


def test_a_book_measures_once_for_a_number_of_threads(
    measured: list[DiffusionGemma], monkeypatch: pytest.MonkeyPatch
) -> None:
    book = CostBook(model(), LIMITS)
    assert measured == []
    assert [book.read().denoise for _ in range(3)] == [41.0] * 3
    assert [book.read(rows).encode_token for rows in (0, 1, 2, 3, 4, 7, 8, 64, 2)] == [1, 1, 2, 2, 4, 4, 8, 8, 2]
    assert len(measured) == 4, "a number of rows is measured once, too"
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    assert [book.read().denoise for _ in range(2)] == [45.0] * 2
    monkeypatch.undo()
    assert CostBook(model(), LIMITS, SMALL_MODEL).read(8) == SMALL_MODEL


def test_a_draft_that_pays_alone_is_not_made_among_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(network: DiffusionGemma, limits: object, *, rows: int) -> Costs:
        return SMALL_MODEL if rows < 4 else Costs(denoise=40)

    monkeypatch.setattr(costs_module, "measure_costs", measure)
    drafted = {}
    for count in (1, 6):
        made = Engine(model(), LIMITS, EngineConfig(memory_bytes=2**20, page_size=4), defaults=DEFAULTS)
        run = Run(made)
        asked = [request(f"verified {index}", 10, replace(VERIFIED, seed=index)) for index in range(count)]
        run.submit(*asked)
        run.finish()
        assert [run.answer(each.id).tokens for each in asked] == [alone(each).tokens for each in asked]
        drafted[count] = sum(run.done[each.id].drafted_tokens for each in asked)
    assert drafted[1] > drafted[6] == 0


def test_an_engine_measures_before_its_first_draft_and_no_token_depends_on_it(measured: list[DiffusionGemma]) -> None:
    made = Engine(model(), LIMITS, EngineConfig(memory_bytes=2**20, page_size=4), defaults=DEFAULTS)
    run = Run(made)
    run.submit(request("ar", 10, ASKED["ar"]))
    assert measured == []
    asked = [request(f"verified {index}", 10, replace(VERIFIED, seed=index)) for index in range(3)]
    run.submit(*asked)
    assert len(measured) == 1
    run.finish()
    for each in asked:
        assert run.answer(each.id).tokens == alone(each).tokens
        receipt = run.done[each.id]
        assert (receipt.drafted_tokens, receipt.break_even) == (0, 1.0), "at such costs nothing is drafted"
        assert alone(each).receipt.drafted_tokens > 0
    assert run.done["ar"].break_even is None
