"""A layer in half the operations, for checkpoints small enough to hold a second copy of their layers.

Must equal `diffusion_gemma.Layer`: norm weights and router scale are folded into the products behind them, products of
one input become one, and where half of the experts or more are chosen anyway all of them are computed.

    x ─ norm ─ [q k v] ─ norm, rotate ─ attention ─ out ─ norm ─ + ─ norm ─ [gate up | experts' gate up | router] ─ …
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from mezzotint.model.attention import Mixer
from mezzotint.model.config import ModelConfig
from mezzotint.model.diffusion_gemma import DiffusionGemma, Layer
from mezzotint.model.experts import Experts, Router, Routing
from mezzotint.model.layers import Angles, RMSNorm, gelu, rotate
from mezzotint.model.product import Product

_FUSED_BELOW = 1 << 30  # bytes of layers that may be held twice for speed


def fuses(size: int) -> bool:
    """Whether layers of `size` bytes are small enough to be held twice."""
    return size < _FUSED_BELOW


def fuse(model: DiffusionGemma) -> DiffusionGemma:
    """Let `model` run on fused copies of its layers from now on; its own weights must not change afterwards.

    Costs at most as much memory again as the layers have, and while it runs one matrix at a time in float64.
    Returns: the model.
    """
    model.runners = [FusedLayer(layer, model.config) for layer in model.layers if isinstance(layer, Layer)]
    return model


def layer_bytes(model: DiffusionGemma) -> int:
    """Memory of the layers' weights in bytes, which is the most that fuse costs."""
    return sum(parameter.nbytes for parameter in model.layers.parameters())


class FusedLayer:
    """Folded weights of one layer, callable like it."""

    def __init__(self, layer: Layer, config: ModelConfig) -> None:
        attention, shape = layer.self_attn, layer.self_attn.shape
        self._index, self._eps, self._width = attention.index, config.rms_norm_eps, config.hidden_size
        self._heads, self._kv_heads, self._head_dim = config.num_heads, shape.kv_heads, shape.head_dim
        self._shares_kv = attention.v_proj is None
        own = [] if attention.v_proj is None else [attention.v_proj.weight]
        qkv = torch.cat([attention.q_proj.weight, attention.k_proj.weight, *own])
        self._qkv = Product(fold(qkv, layer.input_layernorm))
        self._head_scale = torch.cat(
            [
                scale_of(attention.q_norm).expand(self._heads, -1),
                scale_of(attention.k_norm).expand(self._kv_heads, -1),
            ]
        )
        self._out = Product(attention.o_proj.weight.detach())
        self._after_attention = scale_of(layer.post_attention_layernorm)
        self._after_feedforward = scale_of(layer.post_feedforward_layernorm)
        self._scalars: dict[bool, Tensor | None] = {
            denoising: None if bool((scalar == 1).all()) else scalar
            for denoising, scalar in ((True, layer.layer_scalar), (False, layer.encoder_layer_scalar))
        }
        self._set_feedforward(layer, config)

    def _set_feedforward(self, layer: Layer, config: ModelConfig) -> None:
        mlp = torch.cat([layer.mlp.gate_proj.weight, layer.mlp.up_proj.weight])
        wide = [fold(mlp, layer.pre_feedforward_layernorm)]
        self._inner, self._down = config.intermediate_size, Product(layer.mlp.down_proj.weight.detach())
        self._experts, self._top_k = config.num_experts, config.top_k_experts
        self._all_experts = self._experts <= 2 * self._top_k
        if self._experts:
            router, experts = layer.router, layer.experts
            self._after_mlp = scale_of(layer.post_feedforward_layernorm_1)
            self._after_experts = scale_of(layer.post_feedforward_layernorm_2)
            self._per_expert = router.per_expert_scale
            gate_up = fold(experts.gate_up_proj, layer.pre_feedforward_layernorm_2)
            if self._all_experts:
                wide.append(gate_up.flatten(0, 1))
                self._experts_down = Product(experts.down_proj.detach().permute(1, 0, 2).flatten(1))
            else:
                self._sorted = Experts.of(gate_up, experts.down_proj)
            wide.append(fold_router(router))
        self._wide = Product(torch.cat(wide))

    def __call__(self, x: Tensor, angles: Angles, mix: Mixer, *, denoising: bool) -> Tensor:
        """x [B, T, D] → [B, T, D]; see Layer.forward."""
        x = x + self._norm(self._attend(x, angles, mix), self._after_attention)
        parts = self._wide(self._norm(x)).split(self._splits(), -1)
        y = self._down(gelu(parts[0]) * parts[1])
        if self._experts:
            mixed = self._mix_all(parts[2], parts[3]) if self._all_experts else self._mix_sorted(x, parts[2])
            y = self._norm(y, self._after_mlp) + self._norm(mixed, self._after_experts)
        x = x + self._norm(y, self._after_feedforward)
        scalar = self._scalars[denoising]
        return x if scalar is None else x * scalar

    def _splits(self) -> list[int]:
        rest = self._wide.size - 2 * self._inner - self._experts
        sizes = [self._inner, self._inner, rest, self._experts]
        return [size for size in sizes if size]

    def _norm(self, x: Tensor, weight: Tensor | None = None) -> Tensor:
        return F.rms_norm(x, (self._width,), weight, self._eps)

    def _attend(self, x: Tensor, angles: Angles, mix: Mixer) -> Tensor:
        rows, count, _ = x.shape
        raw = self._qkv(self._norm(x)).view(rows, count, -1, self._head_dim)
        normed = F.rms_norm(raw, (self._head_dim,), None, self._eps)
        turned = rotate(normed[:, :, : self._heads + self._kv_heads] * self._head_scale, angles).transpose(1, 2)
        first_value = self._heads if self._shares_kv else self._heads + self._kv_heads
        values = normed[:, :, first_value : first_value + self._kv_heads].transpose(1, 2)
        mixed = mix(self._index, turned[:, : self._heads], turned[:, self._heads :], values)
        return self._out(mixed.transpose(1, 2).reshape(rows, count, -1))

    def _route(self, scores: Tensor) -> Routing:
        wide = torch.promote_types(scores.dtype, torch.float32)
        top = F.softmax(scores, -1, dtype=wide).topk(self._top_k, -1)
        weights = top.values / top.values.sum(-1, keepdim=True)
        return Routing(top.indices, weights * self._per_expert[top.indices])

    def _mix_all(self, hidden: Tensor, scores: Tensor) -> Tensor:
        """Every expert on every token, those not chosen with weight 0: two products and no sorting."""
        routing = self._route(scores)
        weights = torch.zeros_like(scores).scatter(-1, routing.chosen, routing.weights.to(scores.dtype))
        gate, up = hidden.unflatten(-1, (self._experts, 2, -1)).unbind(-2)
        return self._experts_down((gelu(gate) * up * weights.unsqueeze(-1)).flatten(-2))

    def _mix_sorted(self, x: Tensor, scores: Tensor) -> Tensor:
        routing = self._route(scores.flatten(0, 1))
        mixed: Tensor = self._sorted(self._norm(x).flatten(0, 1), routing)
        return mixed.view(x.shape)


def scale_of(norm: RMSNorm) -> Tensor:
    """The weight [D] of a norm that has one."""
    assert norm.weight is not None
    return norm.weight.detach()


def fold(matrix: Tensor, norm: RMSNorm) -> Tensor:
    """Take matrix [..., D] with the norm's weight [D] multiplied into its columns, rounded once."""
    return (matrix.detach().double() * scale_of(norm).double()).to(matrix.dtype)


def fold_router(router: Router) -> Tensor:
    """The router's matrix [experts, D] with all that stands between it and a bare norm multiplied in, rounded once."""
    weight = router.proj.weight.detach()
    folded: Tensor = weight.double() * router.scale.detach().double() * weight.shape[1] ** -0.5
    return folded.to(weight.dtype)
