"""A drafter as machine code, with its target's kernels: its layers in one call, and a guess of many rows at once.

Must equal `assistant` up to rounding. A drafter's layer is its target's without keys and values of its own, so that
its query behind L tokens is that of an encoded token L − 1, turned by one position more:

    tokens of the context    0 1 … L−1 | L = the known token
    what the query sees      x x … x   |
"""

from collections.abc import Callable, Sequence
from ctypes import Array, byref

import torch
from torch import Tensor

from mezzotint.model import abi
from mezzotint.model.assistant import Assistant, AssistantLayer, Guessed
from mezzotint.model.compiled import EVERYTHING, TABLE_BELOW, Turns, check_finite
from mezzotint.model.fused import fold, fuses, scale_of
from mezzotint.model.kv import KV
from mezzotint.model.packing import KINDS, Shelf, pack_mlp
from mezzotint.model.ragged import RowContext, Span
from mezzotint.model.seats import SPAN, Seats, seat_rows, seat_spans
from mezzotint.types import ContextPairs, Guess


def compile_assistant(assistant: Assistant) -> Assistant:
    """Let a drafter whose target is compiled run as machine code too; its weights must not change afterwards.

    Costs about as much memory again as its weights have. Returns: the drafter.
    Raises: ValueError naming what stands in the way, and the remedy.
    """
    if assistant.target.compiled is None:
        raise ValueError("the drafter's target is not compiled; compile that first, or leave both as they are")
    if not fuses(size := sum(parameter.nbytes for parameter in assistant.network.layers.parameters())):
        raise ValueError(
            f"compiled code holds a drafter's layers twice, which is not done for {size:,} bytes; leave compiled out"
        )
    assistant.compiled = CompiledAssistant(assistant)
    return assistant


class CompiledAssistant:
    """The weights of one drafter as its target's kernels read them. Raises: FloatingPointError as Compiled does."""

    def __init__(self, assistant: Assistant) -> None:
        network, target = assistant.network, assistant.target
        assert target.compiled is not None
        self._network, self._target, self._compiled = network, target, target.compiled
        config, self._shelf = network.config, Shelf()
        self._sources = [assistant.sources[shape.kind] for shape in config.layers]
        self._reach = assistant.reach - 1  # from the token before the query's own
        self._layers = (abi.Layer * len(config.layers))()
        for packed, layer, shape in zip(self._layers, network.layers, config.layers, strict=True):
            assert isinstance(layer, AssistantLayer)
            _pack_layer(packed, layer, self._shelf)
            packed.kv_heads, packed.kind = shape.kv_heads, KINDS.index(shape.kind)
        self._stack = abi.Stack(
            layers=self._layers,
            norm=self._shelf.address(scale_of(network.norm)),
            eps=config.rms_norm_eps,
            size=len(config.layers),
            width=config.hidden_size,
            heads=config.num_heads,
        )
        self._turns = Turns(config.layers, ahead=1)
        self._enter = self._pack(network.pre_projection.weight)
        self._leave = self._pack(network.post_projection.weight)
        table = network.embed_tokens.weight
        self._head = None if config.centroids or table.nbytes >= TABLE_BELOW else self._pack(table)

    def start(self, needs: Sequence[Guess], contexts: Sequence[ContextPairs]) -> Callable[[Tensor, Tensor], Guessed]:
        """What one step of a round makes of tokens [1, R] and states [1, R, target_width] of R rows.

        Raises: TypeError for contexts that are neither one KV nor rows of one store, ValueError for what is not held.
        """
        slots, seats = self._find(needs, contexts)

        def step(token: Tensor, hidden: Tensor) -> Guessed:
            embedded = self._target.embed(token)
            x = self._multiply(self._enter, torch.cat((embedded, hidden), -1)).to(embedded.dtype)
            state = self._run(x, slots, seats)
            best = self._network.best(state) if self._head is None else self._multiply(self._head, state).argmax(-1)
            return Guessed(best, state, self._multiply(self._leave, state).to(embedded.dtype))

        return step

    def _find(self, needs: Sequence[Guess], contexts: Sequence[ContextPairs]) -> tuple["Array[abi.Slots]", Seats]:
        """The slots that each layer reads, and where the rows stand."""
        first = contexts[0]
        if isinstance(first, KV) and len(needs) == 1:
            at = needs[0].at
            if at > first.length:
                raise ValueError(f"a guess behind {at} tokens was asked of a context of {first.length}")
            slots, seats = self._compiled.slots_of(first, first.slots(0)), seat_rows([at - 1], at - 1, 1)
        else:
            rows = [context for context in contexts if isinstance(context, RowContext)]
            if len(rows) < len(contexts) or any(row.store is not rows[0].store for row in rows):
                raise TypeError("a compiled drafter reads one KV, or rows of one store, and was given others")
            slots = self._compiled.slots_of(rows[0].store, rows[0].store.pairs)
            spans = [Span(need.at - 1, 1, row.pages) for need, row in zip(needs, rows, strict=True)]
            seats = seat_spans(spans, self._reach)
        return (abi.Slots * len(self._sources))(*(slots[source] for source in self._sources)), seats

    def _run(self, x: Tensor, slots: "Array[abi.Slots]", seats: Seats) -> Tensor:
        """All layers and the final norm on x [1, R, D]."""
        state, turned = torch.empty_like(x), self._turns.until(seats.end, x)
        call = abi.Call(
            input=x.data_ptr(),
            hidden=state.data_ptr(),
            slots=slots,
            spans=seats.spans.buffer_info()[0],
            pages=seats.pages.buffer_info()[0],
            angles=turned.angles,
            reach=(EVERYTHING, self._reach),
            tokens=x.shape[1],
            size=len(seats.spans) // SPAN,
            threads=torch.get_num_threads(),
        )
        check_finite(self._compiled.library.run_layers(byref(self._stack), byref(call)))
        return state

    def _pack(self, weight: Tensor) -> abi.Head:
        """A matrix [out, in] as a vocabulary without a softcap, whose logits are its product."""
        return abi.Head(scores=self._shelf.matrix(weight))

    def _multiply(self, matrix: abi.Head, x: Tensor) -> Tensor:
        """x [..., in] → [..., out], float32 or wider."""
        x, rows = x.contiguous(), x.numel() // x.shape[-1]
        product = x.new_empty(*x.shape[:-1], matrix.scores.out, dtype=torch.promote_types(x.dtype, torch.float32))
        threads, full_logits = torch.get_num_threads(), self._compiled.library.full_logits
        check_finite(full_logits(byref(matrix), x.data_ptr(), rows, threads, product.data_ptr()))
        return product


def _pack_layer(packed: abi.Layer, layer: AssistantLayer, shelf: Shelf) -> None:
    """Fill in the weights of one layer, which has queries alone."""
    attention = layer.self_attn
    heads = attention.q_proj.weight.shape[0] // attention.head_dim
    packed.qkv = shelf.matrix(fold(attention.q_proj.weight, layer.input_layernorm))
    packed.out = shelf.matrix(attention.o_proj.weight)
    packed.head_scale = shelf.address(scale_of(attention.q_norm).expand(heads, -1))
    packed.after_attention = shelf.address(scale_of(layer.post_attention_layernorm))
    pack_mlp(packed, layer, shelf)
    packed.encode_scalar = packed.denoise_scalar = float(layer.layer_scalar)
    packed.head_dim = attention.head_dim
