"""What a device runs that is not waited for says the same, in shapes that do not depend on any number it holds."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from mezzotint.decoding.canvas import Pins
from mezzotint.model import diffusion_gemma, experts, vocabulary
from mezzotint.model.config import parse_config
from mezzotint.model.device import send
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.experts import Routing
from mezzotint.model.ragged import Span, denoise_spans
from mezzotint.types import Reading
from tests.model.rows import LAYOUTS, House, canvas_of, soft_of
from tests.model.test_experts import case
from tests.model.test_fused import CONFIGS, random_model
from tests.model.test_vocabulary import (
    EXTREME,
    MILD,
    TEMPERATURES,
    TOLERANCE,
    assert_near,
    assert_proposals_fit,
    assert_rows_near,
    read,
    subject,
)

MIXED = "half of the experts"


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """The forms of a device, on the host."""
    for module in (vocabulary, experts, diffusion_gemma):
        monkeypatch.setattr(module, "is_awaited", lambda tensor: True)


@pytest.mark.parametrize("chunk", [None, 50, 700])
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("spread", [MILD, EXTREME])
@pytest.mark.parametrize(("temperature", "proposal_temperature"), TEMPERATURES)
def test_the_vocabulary_says_what_it_says_to_the_host(
    temperature: float,
    proposal_temperature: float,
    spread: float,
    dtype: torch.dtype,
    chunk: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of = subject(997, 60, dtype, spread=spread)
    expected = read(of, temperature, proposal_temperature, chunk=chunk)
    monkeypatch.setattr(vocabulary, "is_awaited", lambda tensor: True)
    found = read(of, temperature, proposal_temperature, chunk=chunk)
    assert torch.equal(found.argmax, expected.argmax)
    assert_near(found.entropy, expected.entropy, TOLERANCE[dtype])
    assert_rows_near(found.soft, expected.soft, TOLERANCE[dtype])
    assert_proposals_fit(of, found, temperature, proposal_temperature)
    if dtype == torch.float64:
        assert torch.equal(found.proposal, expected.proposal)
        assert_near(found.log_prob, expected.log_prob, TOLERANCE[dtype])


@pytest.mark.usefixtures("steady")
def test_rows_of_any_temperatures_are_read_in_one_pass_without_a_soft_embedding() -> None:
    of, some = subject(130, 4), torch.tensor([0.8, 0.4, 0.8, 1.5], dtype=torch.float64)
    drawn = torch.tensor([0.0, 0.4, 0.3, 1.0], dtype=torch.float64)
    together = read(of, some, drawn, with_soft=False)
    assert together.soft is None
    for row in range(4):
        one = type(of)(of.head, of.hidden[row : row + 1], of.uniforms[row : row + 1])
        alone = read(one, float(some[row]), float(drawn[row]), with_soft=False)
        assert alone.proposal[0] == together.proposal[row]
        assert_near(together.log_prob[row : row + 1], alone.log_prob, 1e-12)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 2e-2)]
)
def test_experts_say_what_they_say_to_the_host(dtype: torch.dtype, tolerance: float) -> None:
    own, x, routing = case(dtype)
    for tokens in (len(x), 1):
        some = x[:tokens], Routing(routing.chosen[:tokens], routing.weights[:tokens])
        expected = own(*some)
        found = own.mix_steadily(*some)
        assert found.dtype == dtype
        assert (found - expected).abs().max() <= tolerance * expected.abs().max()


def denoise_and_read(house: House, *, layout_rows: Sequence[int] = (0, 1, 2)) -> tuple[Tensor, Reading]:
    """One denoising step of canvases of three widths, one on its first step, one with a pin, and its reading."""
    model = house.model
    spans: list[Span] = [house.span(row, len(canvas_of(row))) for row in layout_rows]
    softs = [send(soft, model.device) for soft in (soft_of(0, model), 0 * soft_of(1, model), soft_of(2, model))]
    canvases = [canvas_of(row) for row in layout_rows]
    pins = Pins(torch.arange(len(canvases[2])) == 0, canvases[2])
    softs[2] = pins.write_soft(softs[2], model.embed(pins.tokens))
    hidden = denoise_spans(model, torch.cat(canvases), torch.cat(softs), spans, house.store)
    count = len(hidden)
    reading = model.read(
        hidden,
        temperature=torch.linspace(0.4, 0.8, count, dtype=torch.float64),
        proposal_temperature=torch.linspace(0.0, 0.8, count, dtype=torch.float64),
        uniforms=torch.linspace(0, 0.99, count, dtype=torch.float64),
        with_soft=True,
    )
    return hidden, reading


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@torch.inference_mode()
def test_a_step_says_what_it_says_on_the_host(layout: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(random_model(CONFIGS[MIXED], torch.float64), layout)
    hidden, expected = denoise_and_read(house)
    for module in (vocabulary, experts, diffusion_gemma):
        monkeypatch.setattr(module, "is_awaited", lambda tensor: True)
    found_hidden, found = denoise_and_read(house)
    assert (found_hidden - hidden).abs().max() <= 1e-10 * hidden.abs().max()
    assert torch.equal(found.argmax, expected.argmax)
    assert torch.equal(found.proposal, expected.proposal)
    assert_near(found.entropy, expected.entropy, 1e-10)
    assert_near(found.log_prob, expected.log_prob, 1e-10)
    assert_rows_near(found.soft, expected.soft, 1e-10)


class Watch(TorchDispatchMode):
    """The host beside a device that holds no numbers: what would ask it for some fails, but for what it brings."""

    def __init__(self) -> None:
        super().__init__()
        self.brought: list[torch.Size] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name, given = func.overloadpacket.__name__, kwargs or {}
        is_copy = name in ("_to_copy", "to")
        target = [each for each in (*args, *given.values()) if isinstance(each, torch.device)]
        if is_copy and is_of_device(args[0]) and target == [torch.device("cpu")]:
            self.brought.append(args[0].shape)
            return torch.zeros(args[0].shape, dtype=args[0].dtype)
        indices = args[1] if name in ("index", "index_put", "index_put_") else ()
        if is_of_device(args[0] if args else None):
            assert not any(isinstance(each, Tensor) and each.dtype == torch.bool for each in indices), name
        out = func(*args, **given)
        if is_copy and is_of_device(out) and not is_of_device(args[0]):
            assert given.get("non_blocking") or any(each is True for each in args), "a copy that the host waits for"
        return out


def is_of_device(value: Any) -> bool:
    return isinstance(value, Tensor) and value.device.type == "meta"


def far_house(layout: str) -> House:
    with torch.device("meta"):
        model = DiffusionGemma(parse_config(CONFIGS[MIXED]))
    return House(model, LAYOUTS[layout])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_step_brings_its_reading_in_one_piece_and_asks_a_device_for_nothing_else(layout: str) -> None:
    house = far_house(layout)
    with torch.inference_mode(), Watch() as watch:
        hidden, reading = denoise_and_read(house)
    assert is_of_device(hidden)
    assert is_of_device(reading.soft)
    assert not is_of_device(reading.argmax)
    assert watch.brought == [torch.Size([4, len(hidden)])]


@pytest.mark.parametrize("module", [vocabulary, experts])
def test_the_forms_of_the_host_would_ask(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    house = far_house("consecutive")
    monkeypatch.setattr(module, "is_awaited", lambda tensor: False)
    with torch.inference_mode(), pytest.raises((RuntimeError, NotImplementedError, AssertionError)), Watch():
        denoise_and_read(house)
