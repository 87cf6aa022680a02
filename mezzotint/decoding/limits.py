"""What a checkpoint fixes, and what a request may touch within it; nothing runs here."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from mezzotint.decoding.canvas import Pins
from mezzotint.decoding.params import SamplingParams
from mezzotint.types import Channel


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What the checkpoint fixes: sizes in tokens, and the ids that end a turn.

    turn_id: the one that is written where a grammar leaves nothing else; None takes the first. channel: what thoughts
    open and close with; None where the checkpoint writes none.
    """

    vocab_size: int
    canvas_length: int
    max_positions: int
    end_ids: Collection[int]
    turn_id: int | None = None
    channel: Channel | None = None

    @property
    def written_end(self) -> int:
        """The end of turn to write where nobody else chooses one."""
        return next(iter(self.end_ids), 0) if self.turn_id is None else self.turn_id

    def of(self, params: SamplingParams) -> "Limits":
        """These with the canvas that a request asks for. Raises: ValueError if it is wider than the checkpoint's."""
        asked = params.canvas_length
        if asked is None:
            return self
        if asked > self.canvas_length:
            told = f"canvas_length is {asked}, and this checkpoint's canvas has {self.canvas_length} tokens"
            raise ValueError(f"{told}; ask for at most so many, or leave it at None")
        return replace(self, canvas_length=asked)


def required_positions(
    prompt_tokens: int, params: SamplingParams, limits: Limits, *, is_constrained: bool = False
) -> int:
    """Positions that a request may touch: whole canvases under diffusion, else max_tokens.

    is_constrained: by a grammar, under which a canvas begins behind whatever the one before has settled; so it may
    behind one that was narrowed, cut where thoughts had to close, or trimmed by a gate.
    Raises: ValueError if they exceed the context, or the prompt is empty.
    """
    if not prompt_tokens:
        raise ValueError("the prompt has 0 tokens; give at least 1 (chat templates begin with <bos>)")
    width = limits.of(params).canvas_length if params.decoder == "diffusion" else 1
    reserved = -(-params.max_tokens // width) * width
    begins_anywhere = is_constrained or params.drop_after_end or params.bounds_thinking or params.gate != "off"
    if begins_anywhere and params.decoder == "diffusion":
        reserved = params.max_tokens + width - 1
    if prompt_tokens + reserved > limits.max_positions:
        raise ValueError(
            f"prompt of {prompt_tokens} tokens + {reserved} for max_tokens {params.max_tokens} exceed "
            f"the context of {limits.max_positions}; shorten the prompt or ask for fewer tokens"
        )
    return prompt_tokens + reserved


def check_pins(pins: Mapping[int, Pins], *, blocks: int, limits: Limits) -> None:
    """Refuse pins of canvases that a request does not have, or of another width, or outside the vocabulary.

    Raises: ValueError naming the block and the remedy.
    """
    width, vocab_size = limits.canvas_length, limits.vocab_size
    for block, given in pins.items():
        if not 0 <= block < blocks:
            raise ValueError(f"block {block} has pins, but max_tokens makes {blocks} (from 0 on); raise max_tokens")
        if len(given.mask) != width:
            raise ValueError(f"pins of block {block} span {len(given.mask)} tokens; a canvas has {width}")
        for token in given.tokens[given.mask].tolist():
            if not 0 <= token < vocab_size:
                raise ValueError(f"block {block} pins token id {token}; ids go from 0 to {vocab_size - 1}")
