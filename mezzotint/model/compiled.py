"""Both forwards as machine code: all layers in one call, self-conditioning, and a vocabulary that a cache holds.

Must equal `diffusion_gemma` and `vocabulary` up to rounding; what runs is the C++ in kernels. Activations stay in
float32 between products, so results lie nearer to exact ones than those of either layer by layer.
"""

from collections.abc import Iterable, Sequence
from ctypes import Array, byref
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from mezzotint.model import abi
from mezzotint.model.config import LayerShape
from mezzotint.model.diffusion_gemma import DiffusionGemma, Layer
from mezzotint.model.fused import fuses, layer_bytes, scale_of
from mezzotint.model.kv import KV, Pair
from mezzotint.model.layers import Angles, RotaryTable
from mezzotint.model.native import check_compiled, load_kernels
from mezzotint.model.packing import KINDS, Shelf, pack_conditioning, pack_head, pack_layer
from mezzotint.model.ragged import Span, Store
from mezzotint.model.seats import SPAN, Seats, seat_rows, seat_spans
from mezzotint.model.vocabulary import each_row
from mezzotint.types import KeyValues, Reading

TABLE_BELOW = 1 << 26  # bytes of an embedding table that is held three times for speed
EVERYTHING = 1 << 40  # further back than any context goes


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
    """The weights of one model as its kernels read them. reads: whether the vocabulary is small enough to be there.

    States and logits that are not finite raise FloatingPointError, for looking while they are made costs nothing.
    """

    def __init__(self, model: DiffusionGemma) -> None:
        config, self._dtype, self._wide = model.config, model.dtype, torch.promote_types(model.dtype, torch.float32)
        self.library, self._shelf = abi.declare(load_kernels(model.dtype)), Shelf()
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
        self._embedding = abi.Embedding(
            self._shelf.address(model.embed_tokens.weight), model.embedding_scale, config.vocab_size, config.hidden_size
        )
        self._near = config.sliding_window - 1
        self._turns = Turns(config.layers)
        self._conditioning = None
        if config.family == "diffusion_gemma":
            self._conditioning = pack_conditioning(model.self_conditioning, config.rms_norm_eps, self._shelf)
        self.reads = model.embed_tokens.weight.nbytes < TABLE_BELOW
        self._head = pack_head(model, self._shelf) if self.reads else None
        self._slots: WeakKeyDictionary[KV | Store, Array[abi.Slots]] = WeakKeyDictionary()

    def run(
        self, x: Tensor, kv: KeyValues, *, near: int | None = None, lengths: Tensor | None = None, denoising: bool
    ) -> Tensor:
        """All layers and the final norm on x [B, T, D] behind a context; near, lengths: see DiffusionGemma.denoise.

        Raises: TypeError for a cache of another kind, ValueError for one that is too small, or lengths beyond it.
        """
        rows, count, _ = x.shape
        kv = _check_cache(kv, rows)
        slots, start = self.slots_of(kv, kv.slots(count)), kv.length
        contexts = [start] * rows if lengths is None else lengths.tolist()
        if len(contexts) != rows or not 0 <= min(contexts) <= max(contexts) <= start:
            raise ValueError(f"lengths are {contexts}; give each of {rows} rows 0 to {start} tokens of context")
        seats = seat_rows(contexts, start, count)
        return self._forward(x, slots, seats, self._near if near is None else near, denoising=denoising)

    def run_spans(self, x: Tensor, spans: Sequence[Span], store: Store, *, denoising: bool) -> Tensor:
        """The same on x [T, D], the tokens of all spans; see ragged. Raises: ValueError for what is not held."""
        if (tokens := sum(span.size for span in spans)) != len(x):
            raise ValueError(f"spans of {tokens} tokens in all were given {len(x)}; give as many")
        slots, seats = self.slots_of(store, store.pairs), seat_spans(spans, self._near)
        return self._forward(x, slots, seats, self._near, denoising=denoising)

    def embed(self, ids: Tensor) -> Tensor:
        """See DiffusionGemma.embed. Raises: IndexError for an id without an embedding."""
        ids = ids.to(torch.long).contiguous()
        embedded = torch.empty(*ids.shape, self._stack.width, dtype=self._dtype)
        done = self.library.embed(byref(self._embedding), ids.data_ptr(), ids.numel(), embedded.data_ptr())
        if done < ids.numel():
            found, size = int(ids.flatten()[done]), self._embedding.size
            raise IndexError(f"token id {found} has no embedding; ids go from 0 to {size - 1}")
        return embedded

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
        self.library.condition(byref(self._conditioning), byref(belief))
        return conditioned

    def logits(self, hidden: Tensor) -> Tensor:
        """See DiffusionGemma.logits."""
        assert self._head is not None
        hidden = self._take(hidden)
        logits = hidden.new_empty(*hidden.shape[:-1], self._head.scores.out, dtype=self._wide)
        rows, threads = hidden.numel() // hidden.shape[-1], torch.get_num_threads()
        full_logits = self.library.full_logits
        check_finite(full_logits(byref(self._head), hidden.data_ptr(), rows, threads, logits.data_ptr()))
        return logits

    def read(
        self,
        hidden: Tensor,
        *,
        temperature: float | Tensor,
        proposal_temperature: float | Tensor,
        uniforms: Tensor,
        with_soft: bool,
    ) -> Reading:
        """See DiffusionGemma.read."""
        assert self._head is not None
        hidden, uniforms, rows = self._take(hidden), uniforms.double().contiguous(), len(hidden)
        warm, cold = each_row(temperature, rows), each_row(proposal_temperature, rows)
        argmax, proposal = hidden.new_empty(2, rows, dtype=torch.long)
        entropy, log_prob = hidden.new_empty(2, rows, dtype=self._wide)
        soft = torch.empty_like(hidden) if with_soft else None
        question = abi.Question(
            hidden=hidden.data_ptr(),
            uniforms=uniforms.data_ptr(),
            temperature=warm.data_ptr(),
            proposal_temperature=cold.data_ptr(),
            argmax=argmax.data_ptr(),
            proposal=proposal.data_ptr(),
            entropy=entropy.data_ptr(),
            log_prob=log_prob.data_ptr(),
            soft=None if soft is None else soft.data_ptr(),
            rows=rows,
            threads=torch.get_num_threads(),
        )
        self.library.read_vocabulary(byref(self._head), byref(question))
        return Reading(argmax, proposal, entropy, log_prob, soft)

    def _take(self, states: Tensor) -> Tensor:
        """States [..., D] as C++ reads them, which would not notice what torch refuses."""
        if states.dtype != self._dtype or states.device.type != "cpu" or states.shape[-1] != self._stack.width:
            raise TypeError(
                f"compiled code for {self._dtype} of width {self._stack.width} on the CPU was given {states.dtype} of "
                f"width {states.shape[-1]} on {states.device}"
            )
        return states.contiguous()

    def _forward(self, x: Tensor, slots: "Array[abi.Slots]", seats: Seats, near: int, *, denoising: bool) -> Tensor:
        x = self._take(x)
        hidden, tokens = torch.empty_like(x), x.numel() // x.shape[-1]
        if not tokens:
            return hidden
        turned = self._turns.until(seats.end, x)  # held until all have run, whatever others put in its place
        call = abi.Call(
            input=x.data_ptr(),
            hidden=hidden.data_ptr(),
            slots=slots,
            spans=seats.spans.buffer_info()[0],
            pages=seats.pages.buffer_info()[0],
            angles=turned.angles,
            reach=(EVERYTHING, near),
            tokens=tokens,
            size=len(seats.spans) // SPAN,
            denoising=denoising,
            threads=torch.get_num_threads(),
        )
        check_finite(self.library.run_layers(byref(self._stack), byref(call)))
        return hidden

    def slots_of(self, owner: KV | Store, pairs: Iterable[Pair]) -> "Array[abi.Slots]":
        """Where each layer of a cache or a store has its slots, which never move."""
        known = self._slots.get(owner)
        if known is None:
            strides = [(0, *k.stride())[-4:-1] for k, _ in pairs]  # a store has no rows
            slots = [abi.Slots(k.data_ptr(), v.data_ptr(), *own) for (k, v), own in zip(pairs, strides, strict=True)]
            known = self._slots[owner] = (abi.Slots * len(slots))(*slots)
        return known


class Turns:
    """Rotary tables by kind of layer, grown as positions come. ahead: what is added to every position."""

    def __init__(self, layers: Iterable[LayerShape], ahead: int = 0) -> None:
        self._rotary, self._ahead = {shape.kind: RotaryTable(shape) for shape in layers}, ahead
        self._turned = Turned(0, (abi.Angles * len(KINDS))(), [])

    def until(self, end: int, like: Tensor) -> "Turned":
        """The tables of the positions before `end`, and of some more."""
        if self._turned.end < end:
            tables = {kind: table.at(self._ahead, 2 * end, like) for kind, table in self._rotary.items()}
            pointers = [_point_to(tables.get(kind)) for kind in KINDS]
            self._turned = Turned(2 * end, (abi.Angles * len(KINDS))(*pointers), list(tables.values()))
        return self._turned


class Turned(NamedTuple):
    """Rotary tables of the positions before `end` of each kind, and what holds their memory."""

    end: int
    angles: "Array[abi.Angles]"
    kept: list[Angles]


def _point_to(table: Angles | None) -> abi.Angles:
    return abi.Angles() if table is None else abi.Angles(table.cos.data_ptr(), table.sin.data_ptr())


def check_finite(is_finite: int) -> None:
    """Raise FloatingPointError for what is no number."""
    if not is_finite:
        raise FloatingPointError("the model's output is not finite; the weights or their dtype do not suit this input")


def _check_cache(kv: KeyValues, rows: int) -> KV:
    if not isinstance(kv, KV):
        raise TypeError(f"compiled code takes keys and values from a KV, and was given a {type(kv).__name__}")
    if (held := len(kv.slots(0)[0].k)) != rows:
        raise ValueError(f"a KV cache of {held} rows was given {rows}; allocate one of as many")
    return kv
