"""The Gemma 4 assistant, a small network that guesses the next tokens of a larger one, its target.

    target's embedding of the last token ┐
    target's state before it ────────────┴ pre_projection ► layers ► head ► next token
                                 ▲                            │
                                 └──────── post_projection ◄──┘

It owns no keys and values: its queries attend those of the target's last layer of each kind, and all guesses of a
round stand at one position. Module names are those of the checkpoint, see names.assistant_name.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mezzotint.model.assistant_config import AssistantConfig
from mezzotint.model.attention import View, attend
from mezzotint.model.config import LayerKind, LayerShape, ModelConfig
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.fields import CheckpointError
from mezzotint.model.layers import MLP, Angles, RMSNorm, RotaryTable, rotate
from mezzotint.model.ordered_head import OrderedHead
from mezzotint.types import ContextPairs, Guess

if TYPE_CHECKING:
    from mezzotint.model.compiled_assistant import CompiledAssistant


class Context(Protocol):
    """What queries attend."""

    def attend(self, q: Tensor) -> Tensor:
        """q [B, heads, T, head_dim] → [B, heads, T, head_dim]."""


class Seen(NamedTuple):
    """What the queries of one layer kind see: the target's k, v [B, KV heads, S, head_dim].

    mask: [B, 1, T, S] where rows and queries differ, True = visible; None = everything.
    """

    k: Tensor
    v: Tensor
    mask: Tensor | None

    def attend(self, q: Tensor) -> Tensor:
        """See Context."""
        return attend(q, self.k, self.v, View(0, self.mask, causal=False))


class SeenEach(NamedTuple):
    """What each of T queries sees, whose contexts differ."""

    parts: Sequence[Seen]

    def attend(self, q: Tensor) -> Tensor:
        """See Context; B is 1."""
        return torch.cat([part.attend(own) for part, own in zip(self.parts, q.split(1, 2), strict=True)], 2)


class CrossAttention(nn.Module):
    """Grouped-query attention of normed, rotated queries over keys and values that are given."""

    def __init__(self, config: AssistantConfig, shape: LayerShape) -> None:
        super().__init__()
        self.head_dim = shape.head_dim
        self.q_proj = nn.Linear(config.hidden_size, config.num_heads * shape.head_dim, bias=False)
        self.q_norm = RMSNorm(shape.head_dim, config.rms_norm_eps)
        self.o_proj = nn.Linear(config.num_heads * shape.head_dim, config.hidden_size, bias=False)

    def forward(self, x: Tensor, angles: Angles, seen: Context) -> Tensor:
        """x [B, T, D] → [B, T, D]."""
        heads = F.linear(x, self.q_proj.weight).view(*x.shape[:2], -1, self.head_dim)
        q = rotate(self.q_norm(heads), angles).transpose(1, 2)
        mixed = seen.attend(q)
        return F.linear(mixed.transpose(1, 2).flatten(2), self.o_proj.weight)


class AssistantLayer(nn.Module):
    """Attention over the target's context, then a dense MLP; the whole residual stream is scaled at the end."""

    layer_scalar: Tensor

    def __init__(self, config: AssistantConfig, shape: LayerShape) -> None:
        super().__init__()
        width, eps = config.hidden_size, config.rms_norm_eps
        self.self_attn = CrossAttention(config, shape)
        self.mlp = MLP(width, config.intermediate_size)
        self.input_layernorm = RMSNorm(width, eps)
        self.post_attention_layernorm = RMSNorm(width, eps)
        self.pre_feedforward_layernorm = RMSNorm(width, eps)
        self.post_feedforward_layernorm = RMSNorm(width, eps)
        self.register_buffer("layer_scalar", torch.ones(1))

    def forward(self, x: Tensor, angles: Angles, seen: Context) -> Tensor:
        """x [B, T, D] → [B, T, D]."""
        x = x + self.post_attention_layernorm(self.self_attn(self.input_layernorm(x), angles, seen))
        y = self.post_feedforward_layernorm(self.mlp(self.pre_feedforward_layernorm(x)))
        scaled: Tensor = (x + y) * self.layer_scalar
        return scaled


class AssistantNetwork(nn.Module):
    """The weights alone: one step of a guess, for any number of queries at once."""

    def __init__(self, config: AssistantConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(AssistantLayer(config, shape) for shape in config.layers)
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.pre_projection = nn.Linear(2 * config.target_width, config.hidden_size, bias=False)
        self.post_projection = nn.Linear(config.hidden_size, config.target_width, bias=False)
        if config.centroids:
            sizes = (config.hidden_size, config.vocab_size, config.centroids, config.top_centroids)
            self.masked_embedding = OrderedHead(*sizes)

    @property
    def dtype(self) -> torch.dtype:
        """Dtype of the weights and of every activation."""
        return self.embed_tokens.weight.dtype

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return self.embed_tokens.weight.device

    def forward(
        self,
        embedded: Tensor,
        hidden: Tensor,
        angles: Mapping[LayerKind, Angles],
        seen: Mapping[LayerKind, Context],
    ) -> Tensor:
        """One step: the target's scaled embeddings and states [B, T, target_width] → own states [B, T, D], normed."""
        x = F.linear(torch.cat((embedded, hidden), -1), self.pre_projection.weight)
        for layer, shape in zip(self.layers, self.config.layers, strict=True):
            x = layer(x, angles[shape.kind], seen[shape.kind])
        state: Tensor = self.norm(x)
        return state

    def next_hidden(self, state: Tensor) -> Tensor:
        """What the next step takes in place of the target's state, [..., target_width] of own states [..., D]."""
        return F.linear(state, self.post_projection.weight)

    def best(self, state: Tensor) -> Tensor:
        """The likeliest id [...] of own states [..., D]."""
        if self.config.centroids:
            return self.masked_embedding.best(state, self.embed_tokens.weight)
        return F.linear(state, self.embed_tokens.weight).argmax(-1)

    def logits(self, state: Tensor) -> Tensor:
        """Logits [..., V] of own states [..., D], without a softcap."""
        if self.config.centroids:
            return self.masked_embedding.logits(state, self.embed_tokens.weight)
        return F.linear(state, self.embed_tokens.weight)


class Guessed(NamedTuple):
    """One guess of each of R rows: ids [1, R], and the states [1, R, D] that say them.

    hidden: [1, R, target_width] what the next step takes in place of the target's states.
    """

    token: Tensor
    state: Tensor
    hidden: Tensor


class Assistant:
    """A network beside its target; see decoding.program.Drafter."""

    def __init__(self, network: AssistantNetwork, target: DiffusionGemma) -> None:
        """Take a network whose sizes, dtype and device are those of `target`.

        Raises: CheckpointError naming what differs.
        """
        _check_equal("dtype", network.dtype, target.dtype)
        _check_equal("device", network.device, target.device)
        self.network, self.target = network, target
        self.sources = source_layers(network.config, target.config)
        self._rotary = {shape.kind: RotaryTable(shape) for shape in network.config.layers}
        # The same as machine code, once model.compiled_assistant has put it here.
        self.compiled: CompiledAssistant | None = None

    @property
    def reach(self) -> int:
        """How many of the context's last tokens it reads in sliding layers."""
        return drafter_reach(self.network.config)

    def guess(self, need: Guess, kv: ContextPairs) -> list[int]:
        """The likeliest `need.size` tokens, one after another. Source: spec of the released assistants."""
        return self.guess_all([need], [kv])[0]

    def guess_all(self, needs: Sequence[Guess], contexts: Sequence[ContextPairs]) -> list[list[int]]:
        """The same of several rows, a guess of each in one forward: as many forwards as the longest needs."""
        tokens = [guessed.token[0] for guessed in self.unroll(needs, contexts)]
        rows: list[list[int]] = torch.stack(tokens, 1).tolist() if tokens else [[] for _ in needs]
        return [row[: need.size] for row, need in zip(rows, needs, strict=True)]

    @torch.no_grad()
    def unroll(self, needs: Sequence[Guess], contexts: Sequence[ContextPairs]) -> Iterator[Guessed]:
        """The guesses of `guess_all` as they are made; each is fed to the next."""
        token = torch.tensor([[need.token for need in needs]])
        hidden = torch.stack([need.hidden for need in needs])[None]
        step = self._step(needs, contexts) if self.compiled is None else self.compiled.start(needs, contexts)
        for _ in range(max(need.size for need in needs)):
            guessed = step(token, hidden)
            yield guessed
            token, hidden = guessed.token, guessed.hidden

    def _step(self, needs: Sequence[Guess], contexts: Sequence[ContextPairs]) -> Callable[[Tensor, Tensor], Guessed]:
        """What one step of a round makes of tokens [1, R] and states [1, R, target_width]."""
        parts = {
            kind: [table.at(need.at, 1, needs[0].hidden) for need in needs] for kind, table in self._rotary.items()
        }
        angles = {kind: Angles(*map(torch.cat, zip(*each, strict=True))) for kind, each in parts.items()}
        seen = {kind: self._see(kind, layer, needs, contexts) for kind, layer in self.sources.items()}

        def step(token: Tensor, hidden: Tensor) -> Guessed:
            state = self.network(self.target.embed(token), hidden, angles, seen)
            return Guessed(self.network.best(state), state, self.network.next_hidden(state))

        return step

    def _see(self, kind: LayerKind, layer: int, needs: Sequence[Guess], contexts: Sequence[ContextPairs]) -> Context:
        """What the rows' queries see in layers of one kind."""
        own = zip(needs, contexts, strict=True)
        parts = [Seen(*kv.pair(layer, self._first(kind, need.at), need.at), None) for need, kv in own]
        return parts[0] if len(parts) == 1 else SeenEach(parts)

    def _first(self, kind: LayerKind, at: int) -> int:
        return max(0, at - self.reach) if kind == "sliding_attention" else 0


def drafter_reach(config: AssistantConfig) -> int:
    """How many of the context's last tokens sliding layers see.

    Source: the reference's bidirectional mask, at most sliding_window away from the newest key, counted backwards.
    """
    return config.sliding_window + 1


def source_layers(config: AssistantConfig, target: ModelConfig) -> dict[LayerKind, int]:
    """For each layer kind of an assistant the target's layer whose keys and values it attends: the last of the kind.

    Raises: CheckpointError where sizes of the two differ.
    """
    _check_equal("backbone_hidden_size", config.target_width, target.hidden_size)
    _check_equal("vocab_size", config.vocab_size, target.vocab_size)
    last = {shape.kind: index for index, shape in enumerate(target.layers)}
    for index, shape in enumerate(config.layers):
        if shape.kind not in last:
            raise CheckpointError(
                f"layer {index} of the drafter is {shape.kind}, and the target has no such layer; "
                "use the drafter that was trained for it"
            )
        theirs = target.layers[last[shape.kind]]
        _check_equal(f"head_dim of layer {index}", shape.head_dim, theirs.head_dim)
        _check_equal(f"num_key_value_heads of layer {index}", shape.kv_heads, theirs.kv_heads)
    kinds = {shape.kind for shape in config.layers}
    return {kind: last[kind] for kind in kinds}


def _check_equal(name: str, own: object, target: object) -> None:
    if own != target:
        raise CheckpointError(
            f"{name} is {own} in the drafter and {target} in the target; use the drafter that was trained for it"
        )
