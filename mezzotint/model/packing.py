"""Weights as the C++ in kernels reads them: matrices in panels of outputs that stand side by side, norms folded in."""

import torch
from torch import Tensor
from torch.nn import functional as F

from mezzotint.model.abi import Conditioning, Head, Layer, Matrix
from mezzotint.model.assistant import AssistantLayer
from mezzotint.model.config import LayerKind
from mezzotint.model.diffusion_gemma import DiffusionGemma, SelfConditioning
from mezzotint.model.diffusion_gemma import Layer as PlainLayer
from mezzotint.model.draw import bins_of
from mezzotint.model.fused import fold, fold_router, scale_of

LANES = 32  # as in products.h
KINDS: tuple[LayerKind, ...] = ("full_attention", "sliding_attention")  # in the order of Call.views


class Shelf:
    """Packed matrices and vectors whose addresses C++ has been given: they live as long as this does."""

    def __init__(self) -> None:
        self._kept: list[Tensor] = []

    def address(self, tensor: Tensor) -> int:
        """Where a tensor's elements stand, one behind another, from now on."""
        self._kept.append(tensor.detach().contiguous())
        return self._kept[-1].data_ptr()

    def matrix(self, weight: Tensor) -> Matrix:
        """Pack [..., out, in]; leading dimensions are matrices one behind another."""
        return Matrix(self.address(pack(weight)), *weight.shape[-2:])

    def gated(self, gate: Tensor, up: Tensor) -> Matrix:
        """Pack two [..., inner, in] for a product gelu(gate x) · (up x): their panels stand in turn."""
        both = torch.stack([pack(gate), pack(up)], -4)
        return Matrix(self.address(both), both.shape[-5] * 2 * LANES, gate.shape[-1])

    def down(self, weight: Tensor) -> Matrix:
        """Pack [..., out, inner], whose inputs are a gated product's outputs, with those that fill its last panel."""
        return self.matrix(F.pad(weight, (0, -weight.shape[-1] % LANES)))


def pack_layer(packed: Layer, layer: PlainLayer, shelf: Shelf) -> None:
    """Fill in the weights of one layer; those of experts stay empty where there are none."""
    attention, shape = layer.self_attn, layer.self_attn.shape
    own = [] if attention.v_proj is None else [attention.v_proj.weight]
    qkv = torch.cat([attention.q_proj.weight, attention.k_proj.weight, *own])
    heads = attention.q_proj.weight.shape[0] // shape.head_dim
    scales = [scale_of(attention.q_norm).expand(heads, -1), scale_of(attention.k_norm).expand(shape.kv_heads, -1)]
    packed.qkv = shelf.matrix(fold(qkv, layer.input_layernorm))
    packed.out = shelf.matrix(attention.o_proj.weight)
    packed.head_scale = shelf.address(torch.cat(scales))
    packed.after_attention = shelf.address(scale_of(layer.post_attention_layernorm))
    pack_mlp(packed, layer, shelf)
    packed.encode_scalar, packed.denoise_scalar = float(layer.encoder_layer_scalar), float(layer.layer_scalar)
    packed.kv_heads, packed.head_dim, packed.shares_kv = shape.kv_heads, shape.head_dim, attention.v_proj is None
    packed.kind = KINDS.index(shape.kind)
    if layer.has_experts:
        gate, up = fold(layer.experts.gate_up_proj, layer.pre_feedforward_layernorm_2).chunk(2, 1)
        packed.expert_gate_up = shelf.gated(gate, up)
        packed.expert_down = shelf.down(layer.experts.down_proj)
        packed.after_mlp = shelf.address(scale_of(layer.post_feedforward_layernorm_1))
        packed.after_experts = shelf.address(scale_of(layer.post_feedforward_layernorm_2))
        packed.router = shelf.address(fold_router(layer.router))
        packed.per_expert = shelf.address(layer.router.per_expert_scale)


def pack_mlp(packed: Layer, layer: PlainLayer | AssistantLayer, shelf: Shelf) -> None:
    """Fill in the dense MLP of a layer, and the norms around it."""
    before = layer.pre_feedforward_layernorm
    packed.gate_up = shelf.gated(fold(layer.mlp.gate_proj.weight, before), fold(layer.mlp.up_proj.weight, before))
    packed.down = shelf.down(layer.mlp.down_proj.weight)
    packed.after_feedforward = shelf.address(scale_of(layer.post_feedforward_layernorm))


def pack_conditioning(layer: SelfConditioning, eps: float, shelf: Shelf) -> Conditioning:
    """The weights of self-conditioning."""
    gate, up = (fold(projection.weight, layer.pre_norm) for projection in (layer.gate_proj, layer.up_proj))
    return Conditioning(gate_up=shelf.gated(gate, up), down=shelf.down(layer.down_proj.weight), eps=eps)


def pack_head(model: DiffusionGemma, shelf: Shelf) -> Head:
    """The embedding table, twice: for scores, and turned for the soft embedding."""
    table, head = model.embed_tokens.weight.detach(), model.head
    mix = F.pad(table.T, (0, len(table) % 2))  # ids in pairs
    return Head(
        scores=shelf.matrix(table),
        mix=shelf.matrix(mix),
        softcap=head.softcap,
        scale=head.scale,
        bin=bins_of(len(table)).width,
    )


def pack(weight: Tensor) -> Tensor:
    """[..., out, in] → [..., panels, in ÷ pair, LANES, pair]; the last panel is filled up with zeros.

    Raises: ValueError in bfloat16 for an odd number of inputs, whose products take them in pairs.
    """
    size, inputs = weight.shape[-2:]
    pair = 2 if weight.dtype == torch.bfloat16 else 1
    if inputs % pair:
        raise ValueError(
            f"compiled products in bfloat16 take inputs in pairs, and a matrix has {inputs}; "
            "leave compiled out, or choose dtype float32"
        )
    filled = F.pad(weight.detach(), (0, 0, 0, -size % LANES))
    panels: Tensor = filled.unflatten(-1, (-1, pair)).unflatten(-3, (-1, LANES)).transpose(-3, -2)
    return panels.contiguous()
