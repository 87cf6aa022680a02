"""DiffusionGemma (and Gemma 4 text, its autoregressive half): one weight set, two forwards.

Module names are those of the checkpoint below `model.decoder.`, so a tensor's name is its place.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mezzotint.model.attention import Attention, ContextMixer, Mixer, View, denoise_view, encode_view
from mezzotint.model.config import LayerKind, ModelConfig
from mezzotint.model.device import is_awaited, send
from mezzotint.model.experts import Experts, Router
from mezzotint.model.kv import KV
from mezzotint.model.layers import MLP, Angles, RMSNorm, RotaryTable, gelu, rotary_angles
from mezzotint.model.vocabulary import Head, full_logits, read_logits, read_vocabulary
from mezzotint.types import KeyValues, Reading

if TYPE_CHECKING:
    from mezzotint.model.compiled import Compiled


class Layer(nn.Module):
    """Attention, then a dense MLP in parallel with experts; the whole residual stream is scaled at the end.

    The scale is stored twice, for encode and for denoise; they may differ.
    """

    layer_scalar: Tensor
    encoder_layer_scalar: Tensor

    def __init__(self, config: ModelConfig, index: int) -> None:
        super().__init__()
        width, eps = config.hidden_size, config.rms_norm_eps
        self.self_attn = Attention(config, index)
        self.mlp = MLP(width, config.intermediate_size)
        self.input_layernorm = RMSNorm(width, eps)
        self.post_attention_layernorm = RMSNorm(width, eps)
        self.pre_feedforward_layernorm = RMSNorm(width, eps)
        self.post_feedforward_layernorm = RMSNorm(width, eps)
        self.has_experts = config.num_experts > 0
        if self.has_experts:
            self.router = Router(width, config.num_experts, config.top_k_experts, eps)
            self.experts = Experts(width, config.moe_intermediate_size, config.num_experts)
            self.post_feedforward_layernorm_1 = RMSNorm(width, eps)
            self.post_feedforward_layernorm_2 = RMSNorm(width, eps)
            self.pre_feedforward_layernorm_2 = RMSNorm(width, eps)
        self.register_buffer("layer_scalar", torch.ones(1))
        self.register_buffer("encoder_layer_scalar", torch.ones(1))

    def forward(self, x: Tensor, angles: Angles, mix: Mixer, *, denoising: bool) -> Tensor:
        """x [B, T, D] → [B, T, D]."""
        attended = self.self_attn(self.input_layernorm(x), angles, mix)
        x = x + self.post_attention_layernorm(attended)
        y = self.mlp(self.pre_feedforward_layernorm(x))
        if self.has_experts:
            y = self.post_feedforward_layernorm_1(y) + self.post_feedforward_layernorm_2(self._mix(x))
        scale = self.layer_scalar if denoising else self.encoder_layer_scalar
        scaled: Tensor = (x + self.post_feedforward_layernorm(y)) * scale
        return scaled

    def _mix(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, x.shape[-1])
        mixed: Tensor = self.experts(self.pre_feedforward_layernorm_2(flat), self.router(flat))
        return mixed.view(x.shape)


class SelfConditioning(nn.Module):
    """Adds what the previous step believed, a soft embedding, to the canvas embedding."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.pre_norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.post_norm = RMSNorm(config.hidden_size, config.rms_norm_eps, scaled=False)
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x: Tensor, soft: Tensor | None) -> Tensor:
        """x, soft [B, C, D] → [B, C, D]; None is the zero signal of the first step, whose contribution is exactly 0."""
        if soft is not None:
            n = self.pre_norm(soft)
            gated = gelu(F.linear(n, self.gate_proj.weight)) * F.linear(n, self.up_proj.weight)
            x = x + F.linear(gated, self.down_proj.weight)
        normed: Tensor = self.post_norm(x)
        return normed


class DiffusionGemma(nn.Module):
    """The network. Both forwards return hidden states after the final norm; model.vocabulary turns them into tokens."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config, index) for index in range(len(config.layers)))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        # What runs: the layers themselves, until model.fused puts its copies in their place.
        self.runners: Sequence[Callable[..., Tensor]] = list(self.layers)
        # All of it as machine code instead, once model.compiled has put it here.
        self.compiled: Compiled | None = None
        self._rotary = {shape.kind: RotaryTable(shape) for shape in config.layers}
        if config.family == "diffusion_gemma":
            self.self_conditioning = SelfConditioning(config)

    @property
    def dtype(self) -> torch.dtype:
        """Dtype of the weights and of every activation."""
        return self.embed_tokens.weight.dtype

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return self.embed_tokens.weight.device

    @property
    def embedding_scale(self) -> float:
        """√D rounded to the weights' dtype, as the checkpoints were trained (53.0 for D 2816 in bfloat16)."""
        return _scale(self.config.hidden_size, self.dtype)

    @property
    def head(self) -> Head:
        """The tied table with what the vocabulary pass needs beside it."""
        return Head(self.embed_tokens.weight, self.embedding_scale, self.config.softcap)

    def new_kv(self, rows: int, capacity: int) -> KV:
        """An empty contiguous cache in the weights' dtype and on their device."""
        return KV(self.config, rows, capacity, dtype=self.dtype, device=self.device)

    def logits(self, hidden: Tensor) -> Tensor:
        """Softcapped logits [..., V] of hidden [..., D], float32 or wider."""
        if self.compiled is not None and self.compiled.reads:
            return self.compiled.logits(hidden)
        return full_logits(self.head, hidden)

    def read(
        self,
        hidden: Tensor,
        *,
        temperature: float | Tensor,
        proposal_temperature: float | Tensor,
        uniforms: Tensor,
        with_soft: bool,
    ) -> Reading:
        """One pass over the vocabulary, see vocabulary.read_vocabulary; all but the soft embedding comes to the host.

        There canvases are kept and updated: [C] numbers a field, beside forwards on whatever device.
        """
        if self.compiled is not None and self.compiled.reads:
            return self.compiled.read(
                hidden,
                temperature=temperature,
                proposal_temperature=proposal_temperature,
                uniforms=uniforms,
                with_soft=with_soft,
            )
        reading = read_vocabulary(
            self.head,
            hidden,
            temperature=temperature,
            proposal_temperature=proposal_temperature,
            uniforms=send(uniforms, self.device),
            with_soft=with_soft,
        )
        return _to_host(reading)

    def read_logits(
        self,
        logits: Tensor,
        *,
        temperature: float | Tensor,
        proposal_temperature: float | Tensor,
        uniforms: Tensor,
        with_soft: bool,
    ) -> Reading:
        """What `read` says of logits [N, V] that may have been shaped; see vocabulary.read_logits."""
        reading = read_logits(
            self.head,
            logits,
            temperature=temperature,
            proposal_temperature=proposal_temperature,
            uniforms=send(uniforms, self.device),
            with_soft=with_soft,
        )
        return _to_host(reading)

    def embed(self, ids: Tensor) -> Tensor:
        """ids [...] int64 → scaled embeddings [..., D]."""
        if self.compiled is not None:
            return self.compiled.embed(ids)
        return F.embedding(send(ids, self.device), self.embed_tokens.weight) * self.embedding_scale

    def encode(self, ids: Tensor, kv: KeyValues) -> Tensor:
        """Causal forward over ids [B, T] behind the context in `kv`, which grows by T.

        Returns: hidden states [B, T, D] after the final norm; position t predicts token t + 1.
        """
        start, count = kv.length, ids.shape[1]
        if self.compiled is not None:
            hidden = self.compiled.run(self.embed(ids), kv, denoising=False)
        else:
            views: dict[LayerKind, View] = {
                "full_attention": encode_view(start, count, None, self.device),
                "sliding_attention": encode_view(start, count, self.config.sliding_window, self.device),
            }
            hidden = self.run(self.embed(ids), self.angles(start, count), _mixers(kv, views), denoising=False)
        kv.advance(count)
        return hidden

    def denoise(
        self,
        canvas: Tensor,
        kv: KeyValues,
        soft: Tensor | None = None,
        *,
        window: int | None = None,
        lengths: Tensor | None = None,
    ) -> Tensor:
        """Bidirectional forward over canvas [B, C] behind the context in `kv`, which stays as it is.

        soft: the previous step's soft embedding [B, C, D], or None on the first step.
        window: context tokens that sliding layers see; default sliding_window − 1, as the reference's dynamic cache.
        lengths: [B] each row's context length where rows differ (the rest of the context up to kv.length is hidden).
        Returns: hidden states [B, C, D] after the final norm.
        """
        x = self.condition(self.embed(canvas), soft)
        if self.compiled is not None:
            return self.compiled.run(x, kv, near=window, lengths=lengths, denoising=True)
        start, count = kv.length, canvas.shape[1]
        near = self.config.sliding_window - 1 if window is None else window
        lengths = None if lengths is None else send(lengths, self.device)
        views: dict[LayerKind, View] = {
            "full_attention": denoise_view(start, count, None, lengths),
            "sliding_attention": denoise_view(start, count, near, lengths),
        }
        return self.run(x, self.angles(start, count, lengths), _mixers(kv, views), denoising=True)

    def condition(self, x: Tensor, soft: Tensor | None) -> Tensor:
        """What the layers of a denoise forward are given for embeddings x [B, C, D]; see SelfConditioning."""
        if self.compiled is not None:
            return self.compiled.condition(x, soft)
        conditioned: Tensor = self.self_conditioning(x, soft)
        return conditioned

    def run(
        self, x: Tensor, angles: dict[LayerKind, Angles], mixers: Mapping[LayerKind, Mixer], *, denoising: bool
    ) -> Tensor:
        """All layers and the final norm on x [B, T, D], with the attention of each layer kind; nothing is compiled."""
        for run, shape in zip(self.runners, self.config.layers, strict=True):
            x = run(x, angles[shape.kind], mixers[shape.kind], denoising=denoising)
        hidden: Tensor = self.norm(x)
        return hidden

    def angles(self, start: int, count: int, lengths: Tensor | None = None) -> dict[LayerKind, Angles]:
        """Tables for `count` positions from `start`, or from each row's own length."""
        like = self.embed_tokens.weight
        if lengths is None:
            return {kind: table.at(start, count, like) for kind, table in self._rotary.items()}
        positions = lengths[:, None] + torch.arange(count, device=lengths.device)
        return {shape.kind: rotary_angles(shape, positions, like.dtype) for shape in dict.fromkeys(self.config.layers)}


@cache
def _scale(width: int, dtype: torch.dtype) -> float:
    return float(torch.tensor(width**0.5, dtype=dtype))


def _mixers(kv: KeyValues, views: dict[LayerKind, View]) -> dict[LayerKind, ContextMixer]:
    return {kind: ContextMixer(kv, view) for kind, view in views.items()}


def _to_host(reading: Reading) -> Reading:
    """A reading whose [N] numbers a field are on the host, the soft embedding where it was.

    They come in one piece, which is all that a step waits for: float64 holds ids and narrower numbers as they are.
    """
    argmax, proposal, entropy, log_prob, soft, _ = reading
    if not is_awaited(entropy):
        return Reading(argmax.cpu(), proposal.cpu(), entropy.cpu(), log_prob.cpu(), soft)
    ids, picked, nats, chances = torch.stack([each.double() for each in (argmax, proposal, entropy, log_prob)]).cpu()
    return Reading(ids.long(), picked.long(), nats.to(entropy.dtype), chances.to(log_prob.dtype), soft)
