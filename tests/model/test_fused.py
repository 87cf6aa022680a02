"""Fused layers equal the plain ones on the same input."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mezzotint.model.config import parse_config
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.fused import fuse, fuses, layer_bytes
from mezzotint.model.product import Product

SIZES: dict[str, Any] = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 24,
    "num_hidden_layers": 3,
    "layer_types": ["sliding_attention", "full_attention", "full_attention"],
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_global_key_value_heads": 1,
    "head_dim": 8,
    "global_head_dim": 16,
    "sliding_window": 6,
    "final_logit_softcapping": 30.0,
}
EXPERTS: dict[str, dict[str, Any]] = {
    "half of the experts": {"num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 12},
    "a quarter of the experts": {"num_experts": 8, "top_k_experts": 2, "moe_intermediate_size": 12},
}


def diffusion(experts: str) -> dict[str, Any]:
    return {"model_type": "diffusion_gemma", "canvas_length": 8, "text_config": SIZES | EXPERTS[experts]}


CONFIGS = {experts: diffusion(experts) for experts in EXPERTS} | {
    "no experts, own V": {"model_type": "gemma4_text", "hidden_size_per_layer_input": 0} | SIZES,
}


def random_model(raw: dict[str, Any], dtype: torch.dtype) -> DiffusionGemma:
    """Weights that differ everywhere, norms and both layer scalars too."""
    generator = torch.Generator().manual_seed(5)
    model = DiffusionGemma(parse_config(raw)).to(torch.float64)
    with torch.no_grad():
        for parameter in model.parameters():
            spread = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.copy_(1 + 0.3 * spread if parameter.ndim == 1 else 0.3 * spread)
        for layer in model.layers:
            layer.layer_scalar.fill_(0.8)
            layer.encoder_layer_scalar.fill_(1.2)
    return model.to(dtype).eval()


def trace(model: DiffusionGemma) -> list[Tensor]:
    """Logits of a prefill longer than the window, a step of one token, and (where it has one) a conditioned canvas."""
    generator = torch.Generator().manual_seed(7)
    kv = model.new_kv(1, 40)
    ids = torch.randint(96, (1, 15), generator=generator)
    hidden = [model.encode(ids[:, :14], kv), model.encode(ids[:, 14:], kv)]
    if model.config.family == "diffusion_gemma":
        soft = torch.randn(1, 8, 32, generator=generator).to(model.dtype)
        hidden.append(model.denoise(ids[:, :8], kv, soft))
    return [model.logits(states) for states in hidden]


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-4)])
@pytest.mark.parametrize("name", CONFIGS)
@torch.inference_mode()
def test_fused_layers_equal_plain_ones(name: str, dtype: torch.dtype, tolerance: float) -> None:
    model = random_model(CONFIGS[name], dtype)
    plain = trace(model)
    fused = trace(fuse(model))
    for own, expected in zip(fused, plain, strict=True):
        assert (own - expected).abs().max() <= tolerance * expected.abs().max()


@torch.inference_mode()
def test_in_bfloat16_fused_layers_stray_no_further_from_float64_than_plain_ones() -> None:
    # With every expert chosen no near-tie can flip one, so what is left is rounding.
    raw = diffusion("half of the experts")
    raw["text_config"] = raw["text_config"] | {"top_k_experts": 4}
    exact = trace(random_model(raw, torch.float64))
    rounded = random_model(raw, torch.bfloat16)
    plain = [(a - b).norm() / b.norm() for a, b in zip(trace(rounded), exact, strict=True)]
    fused = [(a - b).norm() / b.norm() for a, b in zip(trace(fuse(rounded)), exact, strict=True)]
    assert sum(fused) <= 1.5 * sum(plain)


def test_fused_layers_run_in_place_of_the_plain_ones_and_keep_the_checkpoint() -> None:
    model = random_model(CONFIGS["half of the experts"], torch.float32)
    names = set(model.state_dict())
    assert list(model.runners) == list(model.layers)
    fuse(model)
    assert not set(map(id, model.runners)) & set(map(id, model.layers))
    assert set(model.state_dict()) == names


def test_layer_bytes_count_layers_and_not_the_table() -> None:
    model = random_model(CONFIGS["half of the experts"], torch.float32)
    whole = sum(parameter.nbytes for parameter in model.parameters())
    outside = sum(p.nbytes for n, p in model.named_parameters() if not n.startswith("layers."))
    assert layer_bytes(model) == whole - outside


def held(owner: Any) -> Iterator[Tensor]:
    """Every tensor that a fused layer keeps, its products' and experts' too."""
    for value in vars(owner).values():
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, nn.Module):
            yield from value.parameters()
        elif isinstance(value, Product):
            yield from held(value)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", CONFIGS)
def test_fused_copies_take_no_more_memory_than_the_layers(name: str, dtype: torch.dtype) -> None:
    model = random_model(CONFIGS[name], dtype)
    own = {parameter.data_ptr() for parameter in model.parameters()}
    fuse(model)
    copies = [tensor for runner in model.runners for tensor in held(runner)]
    # A packed tensor shows no address, and is always a copy.
    new = [each for each in copies if each.layout != torch.strided or each.data_ptr() not in own]
    assert 0 < sum(each.numel() * each.itemsize for each in new) <= layer_bytes(model)


def test_layers_are_held_twice_below_a_gibibyte() -> None:
    assert fuses(2**30 - 1)
    assert not fuses(2**30)
