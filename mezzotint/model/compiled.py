"""Both forwards as machine code: all layers in one call, self-conditioning, and a vocabulary that a cache holds.

Must equal `diffusion_gemma` and `vocabulary` up to rounding; what runs is the C++ in kernels. Activations stay in
float32 between products, so results lie nearer to exact ones than those of either layer by layer.
"""

from collections.abc import Mapping, Sequence
from ctypes import Array, byref
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from mezzotint.model import abi
from mezzotint.model.attention import ContextMixer, Mixer, View
from mezzotint.model.config import LayerKind
from mezzotint.model.diffusion_gemma import DiffusionGemma, Layer
from mezzotint.model.fused import fuses, layer_bytes, scale_of
from mezzotint.model.kv import KV
from mezzotint.model.layers import Angles
from mezzotint.model.native import check_compiled, load_kernels
from mezzotint.model.packing import KINDS, Shelf, pack_conditioning, pack_head, pack_layer
from mezzotint.types import Reading

_TABLE_BELOW = 1 << 26  # bytes of an embedding table that is held three times for speed


def compile_model(model: DiffusionGemma) -> DiffusionGemma:
    """Let `model` run as machine code from now on; its own weights must not change afterwards.

    The first time on a machine this takes some seconds. It costs about as much memory again as the layers have, and
    twice that of a small embedding table. Nothing that runs so can be differentiated.
    Returns: the model. Raises: ValueError naming what stands in the way, and the remedy.
    """
    check_compiled(compiled=True, device=model.device)
    if not fuses(size := layer_bytes(model)):
        raise ValueError(
            f"compiled code holds the layers twice, which is not done for layers of {size:,} bytes; leave compiled out"
        )
    model.compiled = Compiled(model)
    return model


class Compiled:
    """The weights of one model as its kernels read them. reads: whether the vocabulary is small enough to be there."""

    def __init__(self, model: DiffusionGemma) -> None:
        config, self._dtype = model.config, model.dtype
        self._library, self._shelf = abi.declare(load_kernels(model.dtype)), Shelf()
        self._layers = (abi.Layer * len(config.layers))()
        for packed, layer in zip(self._layers, model.layers, strict=True):
            assert isinstance(layer, Layer)
            pack_layer(packed, layer, self._shelf)
        self._stack = abi.Stack(
            layers=self._layers,
            norm=self._shelf.address(scale_of(model.norm)),
            eps=config.rms_norm_eps,
            size=len(config.layers),
            width=config.hidden_size,
            heads=config.num_heads,
            experts=config.num_experts,
            top_k=config.top_k_experts if config.num_experts else 0,
        )
        self._kinds = [shape.kind for shape in config.layers]
        self._mixed_size = config.num_heads * max(shape.head_dim for shape in config.layers)
        self._conditioning = None
        if config.family == "diffusion_gemma":
            self._conditioning = pack_conditioning(model.self_conditioning, config.rms_norm_eps, self._shelf)
        self.reads = model.embed_tokens.weight.nbytes < _TABLE_BELOW
        self._head = pack_head(model, self._shelf) if self.reads else None
        self._slots: WeakKeyDictionary[KV, Array[abi.Slots]] = WeakKeyDictionary()

    def run(
        self, x: Tensor, angles: Mapping[LayerKind, Angles], mixers: Mapping[LayerKind, Mixer], *, denoising: bool
    ) -> Tensor:
        """See DiffusionGemma.run. Behind one contiguous context attention is machine code, too."""
        x = self._take(x)
        hidden, normed = torch.empty_like(x), torch.empty_like(x)
        stream = x.new_empty(x.shape, dtype=_wide(x.dtype))
        queries, mixed = x.new_empty(2, x.shape[0] * x.shape[1] * self._mixed_size)
        call = abi.Call(
            input=x.data_ptr(),
            hidden=hidden.data_ptr(),
            x=stream.data_ptr(),
            normed=normed.data_ptr(),
            queries=queries.data_ptr(),
            mixed=mixed.data_ptr(),
            rows=x.shape[0],
            tokens=x.shape[1],
            denoising=denoising,
            threads=torch.get_num_threads(),
        )
        kept: list[object] = [_set_angles(call.views[KINDS.index(kind)], each) for kind, each in angles.items()]
        if (kv := _shared_context(mixers)) is None:
            self._run_between(call, x, queries, mixers)
            return hidden
        call.length, call.slots = kv.length, self._slots_of(kv, x.shape[1])
        for kind, mixer in mixers.items():
            assert isinstance(mixer, ContextMixer)
            kept.append(_set_view(call.views[KINDS.index(kind)], mixer.view))
        self._library.run_layers(byref(self._stack), byref(call))
        return hidden

    def condition(self, x: Tensor, soft: Tensor | None) -> Tensor:
        """See SelfConditioning."""
        x, soft = self._take(x), None if soft is None else self._take(soft)
        conditioned = torch.empty_like(x)
        belief = abi.Belief(
            x=x.data_ptr(),
            soft=None if soft is None else soft.data_ptr(),
            to=conditioned.data_ptr(),
            rows=x.numel() // x.shape[-1],
            threads=torch.get_num_threads(),
        )
        assert self._conditioning is not None
        self._library.condition(byref(self._conditioning), byref(belief))
        return conditioned

    def logits(self, hidden: Tensor) -> Tensor:
        """See DiffusionGemma.logits."""
        assert self._head is not None
        hidden = self._take(hidden)
        logits = hidden.new_empty(*hidden.shape[:-1], self._head.scores.out, dtype=_wide(hidden.dtype))
        rows = hidden.numel() // hidden.shape[-1]
        self._library.full_logits(
            byref(self._head), hidden.data_ptr(), rows, torch.get_num_threads(), logits.data_ptr()
        )
        return logits

    def read(
        self,
        hidden: Tensor,
        *,
        temperature: float,
        proposal_temperature: float,
        uniforms: Tensor,
        with_soft: bool,
    ) -> Reading:
        """See DiffusionGemma.read."""
        assert self._head is not None
        hidden, uniforms, rows = self._take(hidden), uniforms.double().contiguous(), len(hidden)
        argmax, proposal = hidden.new_empty(2, rows, dtype=torch.long)
        entropy, log_prob = hidden.new_empty(2, rows, dtype=_wide(hidden.dtype))
        soft = torch.empty_like(hidden) if with_soft else None
        question = abi.Question(
            hidden=hidden.data_ptr(),
            uniforms=uniforms.data_ptr(),
            argmax=argmax.data_ptr(),
            proposal=proposal.data_ptr(),
            entropy=entropy.data_ptr(),
            log_prob=log_prob.data_ptr(),
            soft=None if soft is None else soft.data_ptr(),
            temperature=temperature,
            proposal_temperature=proposal_temperature,
            rows=rows,
            threads=torch.get_num_threads(),
        )
        self._library.read_vocabulary(byref(self._head), byref(question))
        return Reading(argmax, proposal, entropy, log_prob, soft)

    def _take(self, states: Tensor) -> Tensor:
        """States [..., D] as C++ reads them, which would not notice what torch refuses."""
        if states.dtype != self._dtype or states.device.type != "cpu" or states.shape[-1] != self._stack.width:
            raise TypeError(
                f"compiled code for {self._dtype} of width {self._stack.width} on the CPU was given {states.dtype} of "
                f"width {states.shape[-1]} on {states.device}"
            )
        return states.contiguous()

    def _run_between(self, call: abi.Call, x: Tensor, queries: Tensor, mixers: Mapping[LayerKind, Mixer]) -> None:
        """Run all but attention, which is the mixers'."""
        rows, tokens, _ = x.shape
        for index, kind in enumerate(self._kinds):
            layer = self._layers[index]
            k, v = x.new_empty(2, rows, layer.kv_heads, tokens, layer.head_dim)
            call.slots = _slots_array([(k, v)] * len(self._kinds))
            self._library.open_layer(byref(self._stack), byref(call), index)
            size = rows * tokens * self._stack.heads * layer.head_dim
            q = queries[:size].view(rows, tokens, self._stack.heads, layer.head_dim).transpose(1, 2)
            mixed = mixers[kind](index, q, k, v).transpose(1, 2).contiguous()
            call.mixed = mixed.data_ptr()
            self._library.close_layer(byref(self._stack), byref(call), index)

    def _slots_of(self, kv: KV, count: int) -> Array[abi.Slots]:
        pairs = kv.slots(count)
        if kv not in self._slots:
            self._slots[kv] = _slots_array(pairs)
        return self._slots[kv]


def _shared_context(mixers: Mapping[LayerKind, Mixer]) -> KV | None:
    """The contiguous cache that all mixers stand before, if it is one."""
    caches = [mixer.kv if isinstance(mixer, ContextMixer) else None for mixer in mixers.values()]
    first = caches[0]
    return first if isinstance(first, KV) and all(kv is first for kv in caches) else None


def _slots_array(pairs: Sequence[tuple[Tensor, Tensor]]) -> Array[abi.Slots]:
    slots = [abi.Slots(k.data_ptr(), v.data_ptr(), *k.stride()[:3]) for k, v in pairs]
    return (abi.Slots * len(slots))(*slots)


def _set_angles(view: abi.View, angles: Angles) -> Angles:
    """Returns: what must live as long as the view."""
    cos, sin = angles.cos.contiguous(), angles.sin.contiguous()
    view.cos, view.sin = cos.data_ptr(), sin.data_ptr()
    view.angle_row_stride = cos.stride(0) if cos.ndim == 3 else 0
    return Angles(cos, sin)


def _set_view(view: abi.View, seen: View) -> Tensor | None:
    """Returns: what must live as long as the view."""
    view.first, view.causal = seen.first, seen.causal
    if seen.mask is None:
        return None
    mask = seen.mask.contiguous()
    view.mask = mask.data_ptr()
    if mask.ndim == 2:
        view.mask_query_stride = mask.shape[1]
    else:
        view.mask_row_stride = mask.shape[-1]
    return mask


def _wide(dtype: torch.dtype) -> torch.dtype:
    """What numbers of `dtype` are computed in."""
    return torch.promote_types(dtype, torch.float32)
