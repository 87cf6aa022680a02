"""Compiled forwards equal the plain ones, whatever runs beside, and refuse what C++ would not notice."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from mezzotint.model import compiled
from mezzotint.model.compiled import compile_model
from mezzotint.model.config import parse_config
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.fused import fuse
from mezzotint.model.ragged import encode_spans
from mezzotint.model.vocabulary import read_logits
from mezzotint.types import Reading
from tests.model.compiler import needs_compiler
from tests.model.rows import CONTEXTS, CUTS, LAYOUTS, House, Layout, denoise_alone, encode_alone, soft_of
from tests.model.test_fused import CONFIGS, diffusion, random_model, trace

pytestmark = needs_compiler

WIDE = [(torch.float64, 1e-10), (torch.float32, 1e-4)]
CANVASES = [name for name, raw in CONFIGS.items() if raw["model_type"] == "diffusion_gemma"]
# Sizes that fill no panel: of the vocabulary, the MLP, the heads' group and the number of experts.
ODD = diffusion("half of the experts")
ODD["text_config"] = ODD["text_config"] | {
    "vocab_size": 97,
    "intermediate_size": 38,
    "num_attention_heads": 6,
    "num_experts": 5,
    "top_k_experts": 3,
    "moe_intermediate_size": 10,
    "final_logit_softcapping": None,
}
ALL_CONFIGS = CONFIGS | {"odd sizes, no softcap": ODD}


def near(own: Tensor, expected: Tensor, tolerance: float) -> bool:
    return bool((own - expected).abs().max() <= tolerance * expected.abs().max())


def ids(*shape: int, seed: int = 7) -> Tensor:
    return torch.randint(83, shape, generator=torch.Generator().manual_seed(seed))


def uniforms(rows: int) -> Tensor:
    return torch.rand(rows, dtype=torch.float64, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize(("dtype", "tolerance"), WIDE)
@pytest.mark.parametrize("name", ALL_CONFIGS)
@torch.inference_mode()
def test_compiled_forwards_equal_plain_and_fused_ones(name: str, dtype: torch.dtype, tolerance: float) -> None:
    model = random_model(ALL_CONFIGS[name], dtype)
    plain = long_trace(model)
    fused = long_trace(fuse(model))
    own = long_trace(compile_model(model))
    assert all(near(a, b, tolerance) and near(a, c, tolerance) for a, b, c in zip(own, plain, fused, strict=True))


def long_trace(model: DiffusionGemma) -> list[Tensor]:
    """Logits as `trace` has them, then those of a prefill without a mask, tokens behind it, and two rows at once."""
    kv, both = model.new_kv(1, 90), model.new_kv(2, 90)
    hidden = [model.encode(ids(1, 5), kv), model.encode(ids(1, 70), kv), model.encode(ids(2, 9), both)]
    return trace(model) + [model.logits(states) for states in hidden]


@torch.inference_mode()
def test_in_bfloat16_compiled_forwards_lie_nearer_to_float64_than_plain_ones() -> None:
    # With every expert chosen no near-tie can flip one, so what is left is rounding.
    raw = diffusion("half of the experts")
    raw["text_config"] = raw["text_config"] | {"top_k_experts": 4}
    exact = trace(random_model(raw, torch.float64))
    rounded = random_model(raw, torch.bfloat16)
    plain = [(a - b).norm() / b.norm() for a, b in zip(trace(rounded), exact, strict=True)]
    own = [(a - b).norm() / b.norm() for a, b in zip(trace(compile_model(rounded)), exact, strict=True)]
    assert sum(own) <= sum(plain)


@pytest.mark.parametrize("name", CANVASES)
@torch.inference_mode()
def test_canvases_of_rows_with_contexts_of_their_own_length_are_those_of_the_plain_model(name: str) -> None:
    model = random_model(CONFIGS[name], torch.float64)
    soft = torch.randn(2, 8, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(3))

    def hidden() -> Tensor:
        kv = model.new_kv(2, 40)
        model.encode(ids(2, 14), kv)
        return model.denoise(ids(2, 8), kv, soft, lengths=torch.tensor([14, 9]))

    plain = hidden()
    compile_model(model)
    assert near(hidden(), plain, 1e-10)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("name", ALL_CONFIGS)
@torch.inference_mode()
def test_rows_in_pages_encoded_together_are_the_plain_models(
    name: str, cuts: Sequence[Sequence[int]], layout: Layout
) -> None:
    for dtype, tolerance in WIDE:
        model = random_model(ALL_CONFIGS[name], dtype)
        plain = House(model, layout).encode(cuts)
        own = House(compile_model(model), layout).encode(cuts)
        assert all(near(a, b, tolerance) for a, b in zip(own, plain, strict=True))


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("name", CANVASES)
@torch.inference_mode()
def test_canvases_in_pages_denoised_together_are_the_plain_models(name: str, layout: Layout) -> None:
    for dtype, tolerance in WIDE:
        model = random_model(CONFIGS[name], dtype)
        soft = [soft_of(0, model), None, soft_of(2, model)]
        found = []
        for each in (model, compile_model(random_model(CONFIGS[name], dtype))):
            house = House(each, layout)
            house.encode(CUTS["in pieces"])
            found.append([*house.denoise(soft), *house.denoise([None] * 3)])
        assert all(near(a, b, tolerance) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("name", ALL_CONFIGS)
@torch.inference_mode()
def test_a_row_has_the_same_bits_in_pages_and_pieces_beside_others_and_alone(
    name: str, layout: Layout, dtype: torch.dtype
) -> None:
    model = compile_model(random_model(ALL_CONFIGS[name], dtype))
    expected = [encode_alone(model, row) for row in range(len(CONTEXTS))]
    for cuts in CUTS.values():
        house = House(model, layout)
        assert all(map(torch.equal, house.encode(cuts), expected))
    if model.config.family == "diffusion_gemma":
        soft = [soft_of(0, model), None, soft_of(2, model)]
        alone = [denoise_alone(model, row, soft[row]) for row in range(len(CONTEXTS))]
        assert all(map(torch.equal, house.denoise(soft), alone))


@torch.inference_mode()
def test_pages_that_do_not_hold_what_is_seen_are_refused() -> None:
    house = House(compile_model(random_model(CONFIGS["half of the experts"], torch.float32)), LAYOUTS["ring"])
    house.encode(CUTS["whole"])
    span = house.span(2, 18)
    with pytest.raises(ValueError, match="positions 0 to 41 are seen and 0 to 40 held; reserve them first"):
        encode_spans(house.model, ids(18), [span], house.store)
    with pytest.raises(ValueError, match="positions 12 to 18 are seen and 18 to 40 held"):
        encode_spans(house.model, ids(1), [span._replace(start=17, size=1)], house.store)
    with pytest.raises(ValueError, match="spans of 2 tokens in all were given 3; give as many"):
        encode_spans(house.model, ids(3), [span._replace(size=2)], house.store)


class Recorder:
    """A cache that compiled code knows nothing of."""

    length = 0


@torch.inference_mode()
def test_a_cache_of_another_kind_of_other_rows_or_shorter_than_is_said_is_refused() -> None:
    model = compile_model(random_model(CONFIGS["half of the experts"], torch.float32))
    with pytest.raises(TypeError, match="takes keys and values from a KV, and was given a Recorder"):
        model.encode(ids(1, 4), Recorder())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a KV cache of 2 rows was given 3; allocate one of as many"):
        model.encode(ids(3, 4), model.new_kv(2, 8))
    kv = model.new_kv(2, 20)
    model.encode(ids(2, 4), kv)
    for lengths in ([4, 5], [-1, 4], [4]):
        with pytest.raises(ValueError, match=r"lengths are \[.*\]; give each of 2 rows 0 to 4 tokens of context"):
            model.denoise(ids(2, 8), kv, lengths=torch.tensor(lengths))


@torch.inference_mode()
def test_no_soft_embedding_is_one_of_zero() -> None:
    model = compile_model(random_model(CONFIGS["half of the experts"], torch.bfloat16))
    x = model.embed(ids(1, 8))
    assert torch.equal(model.condition(x, None), model.condition(x, torch.zeros_like(x)))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@torch.inference_mode()
def test_a_token_is_the_same_whatever_is_computed_beside_it(dtype: torch.dtype) -> None:
    model = compile_model(random_model(CONFIGS["a quarter of the experts"], dtype))
    states = torch.randn(21, 32, generator=torch.Generator().manual_seed(4)).to(dtype)
    together, alone = model.new_kv(3, 20), model.new_kv(1, 20)
    hidden = model.encode(ids(3, 7), together)
    assert torch.equal(hidden[1:2], model.encode(ids(3, 7)[1:2], alone))
    assert torch.equal(model.logits(states)[5], model.logits(states[5]))
    whole, part = read(model, states, 0.6, 0.6, uniforms(21)), read(model, states[20:], 0.6, 0.6, uniforms(21)[20:])
    assert all(torch.equal(a[20:], b) for a, b in zip(whole, part, strict=True))


@torch.inference_mode()
def test_threads_change_nothing() -> None:
    model = compile_model(random_model(CONFIGS["a quarter of the experts"], torch.float32))
    states = torch.randn(21, 32, generator=torch.Generator().manual_seed(4))
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            found.append([*trace(model), *read(model, states, 0.6, 0.3, uniforms(21))])
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def read(
    model: DiffusionGemma, states: Tensor, temperature: float | Tensor, proposal: float | Tensor, draws: Tensor
) -> list[Tensor]:
    reading = model.read(states, temperature=temperature, proposal_temperature=proposal, uniforms=draws, with_soft=True)
    return [part for part in reading if part is not None]


@pytest.mark.parametrize(("dtype", "tolerance"), WIDE)
@pytest.mark.parametrize("proposal", [0.6, 0.9, 0.2, 0.0])
@pytest.mark.parametrize("name", ["half of the experts", "odd sizes, no softcap"])
@torch.inference_mode()
def test_a_compiled_reading_is_the_plain_one(name: str, proposal: float, dtype: torch.dtype, tolerance: float) -> None:
    model = random_model(ALL_CONFIGS[name], dtype)
    states = 0.5 * torch.randn(40, 32, generator=torch.Generator().manual_seed(4), dtype=torch.float64).to(dtype)
    options: dict[str, Any] = {"temperature": 0.6, "proposal_temperature": proposal, "uniforms": uniforms(40)}
    expected = read_logits(model.head, model.logits(states), **options, with_soft=True)
    compile_model(model)
    found = model.read(states, **options, with_soft=True)
    assert torch.equal(found.argmax, expected.argmax)
    assert torch.equal(found.proposal, expected.proposal)
    assert len(found.proposal.unique()) > 5
    for own, plain in zip(found[2:5], expected[2:5], strict=True):
        assert own is not None
        assert plain is not None
        assert own.dtype == plain.dtype
        assert near(own, plain, tolerance)
    assert model.read(states, **options, with_soft=False).soft is None


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@torch.inference_mode()
def test_rows_of_any_temperatures_are_read_in_one_pass_as_each_is_alone(dtype: torch.dtype) -> None:
    model = compile_model(random_model(CONFIGS["half of the experts"], dtype))
    states = torch.randn(6, 32, generator=torch.Generator().manual_seed(4)).to(dtype)
    warm, drawn_at = [0.8, 0.8, 0.4, 0.4, 1.7, 0.8], [0.8, 0.0, 1.2, 0.0, 0.3, 0.8]
    given = [torch.tensor(each, dtype=torch.float64) for each in (warm, drawn_at)]
    together = read(model, states, *given, uniforms(6))
    for row in range(6):
        one = slice(row, row + 1)
        alone = read(model, states[one], warm[row], drawn_at[row], uniforms(6)[one])
        assert all(torch.equal(mixed[one], own) for mixed, own in zip(together, alone, strict=True))
    with pytest.raises(ValueError, match=r"6 rows were given temperatures \[5\]"):
        read(model, states, given[0][:5], 0.8, uniforms(6))


@torch.inference_mode()
def test_embeddings_are_the_plain_models_and_an_id_without_one_is_refused() -> None:
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        model = random_model(CONFIGS["half of the experts"], dtype)
        plain = model.embed(ids(2, 9))
        assert torch.equal(compile_model(model).embed(ids(2, 9)), plain)
    for id in (96, -1):
        with pytest.raises(IndexError, match=f"token id {id} has no embedding; ids go from 0 to 95"):
            model.embed(torch.tensor([[3, id]]))


@torch.inference_mode()
def test_what_is_not_finite_is_told_by_the_forward_that_made_it() -> None:
    model = random_model(ODD, torch.float32)
    model.embed_tokens.weight[5] = torch.nan
    model.embed_tokens.weight[6] = 3e38
    compile_model(model)
    kv, bad = model.new_kv(1, 20), torch.tensor([[1, 2, 5]])
    for forward in (lambda: model.encode(bad, kv), lambda: model.denoise(bad, kv)):
        with pytest.raises(FloatingPointError, match="the model's output is not finite; the weights or their dtype"):
            forward()
    assert kv.length == 0
    with pytest.raises(FloatingPointError, match="not finite"):
        model.logits(torch.full((2, 32), 100.0))


@torch.inference_mode()
def test_the_argmax_is_the_lowest_of_equals_and_far_logits_do_no_harm() -> None:
    model = random_model(ODD, torch.float32)
    model.embed_tokens.weight.zero_()
    model.embed_tokens.weight[[7, 70], 0] = 500.0
    compile_model(model)
    states = torch.zeros(2, 32)
    states[:, 0] = torch.tensor([1.0, -1.0])
    reading: Reading = model.read(
        states, temperature=0.5, proposal_temperature=0.5, uniforms=torch.tensor([0.75, 0.0]).double(), with_soft=True
    )
    assert reading.argmax.tolist() == [7, 0]
    assert reading.proposal.tolist() == [70, 0]
    assert torch.allclose(reading.entropy, torch.tensor([2.0, 95.0]).log())
    assert model.logits(states).argmax(-1).tolist() == [7, 0]


@torch.inference_mode()
def test_a_vocabulary_that_no_cache_holds_is_read_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(CONFIGS["half of the experts"], torch.float32)
    states = torch.randn(4, 32, generator=torch.Generator().manual_seed(4))
    plain = [model.logits(states), *read(model, states, 0.6, 0.6, uniforms(4))]
    monkeypatch.setattr(compiled, "TABLE_BELOW", model.embed_tokens.weight.nbytes)
    compile_model(model)
    found = [model.logits(states), *read(model, states, 0.6, 0.6, uniforms(4))]
    assert all(torch.equal(a, b) for a, b in zip(found, plain, strict=True))


@torch.inference_mode()
def test_a_token_without_a_slot_is_refused_and_nothing_is_written() -> None:
    model = compile_model(random_model(CONFIGS["half of the experts"], torch.float32))
    kv = model.new_kv(1, 10)
    model.encode(ids(1, 4), kv)
    with pytest.raises(ValueError, match="12 tokens do not fit into a KV cache of 10"):
        model.denoise(ids(1, 8), kv)
    assert kv.length == 4


@pytest.mark.parametrize(
    ("states", "words"),
    [
        (torch.zeros(1, 2, 32, dtype=torch.float64), r"torch\.float32 of width 32 .* given torch\.float64 of width 32"),
        (torch.zeros(1, 2, 31), "given torch.float32 of width 31"),
        (torch.zeros(1, 2, 32, device="meta"), "on meta"),
    ],
)
@torch.inference_mode()
def test_states_of_another_kind_are_refused(states: Tensor, words: str) -> None:
    model = compile_model(random_model(CONFIGS["half of the experts"], torch.float32))
    refused: Sequence[Any] = (
        lambda: model.logits(states),
        lambda: model.condition(states, None),
        lambda: model.condition(torch.zeros(1, 2, 32), states),
        lambda: model.compiled and model.compiled.run(states, model.new_kv(1, 4), denoising=False),
        lambda: read(model, states[0], 1.0, 1.0, uniforms(2)),
    )
    for call in refused:
        with pytest.raises(TypeError, match=words):
            call()


def test_layers_that_should_not_be_held_twice_are_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(CONFIGS["half of the experts"], torch.float32)
    monkeypatch.setattr(compiled, "layer_bytes", lambda model: 2**30)
    with pytest.raises(ValueError, match=r"not done for layers of 1,073,741,824 bytes; leave compiled out"):
        compile_model(model)
    assert model.compiled is None


def test_an_odd_width_is_refused_in_bfloat16_alone() -> None:
    raw = {
        "model_type": "gemma4_text",
        "hidden_size_per_layer_input": 0,
        **CONFIGS["no experts, own V"],
        "hidden_size": 31,
    }
    model = DiffusionGemma(parse_config(raw)).eval()
    assert compile_model(model).compiled
    with pytest.raises(ValueError, match="a matrix has 31; leave compiled out, or choose dtype float32"):
        compile_model(DiffusionGemma(parse_config(raw)).to(torch.bfloat16))
