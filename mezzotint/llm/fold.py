"""A decoder's events folded into an answer with text; who runs the decoder, alone or among others, does not matter."""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple, TypeVar

from mezzotint.decoding import program
from mezzotint.decoding.blank import Blank
from mezzotint.decoding.policy import Costs
from mezzotint.decoding.receipt import step_budget, write_receipt
from mezzotint.decoding.thoughts import open_thoughts
from mezzotint.llm.checkpoint import Checkpoint
from mezzotint.llm.entry import Asked
from mezzotint.llm.events import BlockEvent, Completion, DraftEvent
from mezzotint.text.detokenize import Detokenizer
from mezzotint.types import Receipt, Score

T = TypeVar("T")


class Spent(NamedTuple):
    """What only whoever ran a decoder knows of its cost, as a Receipt has it."""

    cached_tokens: int = 0
    queue_s: float = 0.0
    prefill_s: float = 0.0
    generation_s: float = 0.0


def spent(receipt: Receipt) -> Spent:
    """The same of what an engine says that a request cost."""
    return Spent(receipt.cached_tokens, receipt.queue_s, receipt.prefill_s, receipt.generation_s)


class Fold:
    """One answer as it grows."""

    def __init__(self, asked: Asked, checkpoint: Checkpoint, costs: Costs | None) -> None:
        """costs: what decoder `verified` weighs, else None."""
        params, tokenizer = asked.params, checkpoint.tokenizer
        self._asked, self._checkpoint, self._costs = asked, checkpoint, costs
        self._sampler = checkpoint.sampler(params) if params.decoder in ("diffusion", "verified") else None
        self._budget = step_budget(params, self._sampler)
        self._surplus = {checkpoint.model.config.pad_id, *checkpoint.limits.end_ids}
        self._detokenizer = None if tokenizer is None else Detokenizer(tokenizer)
        self._scanner = None if asked.stop is None else asked.stop.restart()
        self._blocks: list[program.Block] = []
        self._pieces: list[str] = []
        self._prompt_scores: tuple[Score | None, ...] | None = None
        self._finished: program.Finished | None = None

    def push(self, event: program.Event) -> list[DraftEvent | BlockEvent]:
        """Take the next event of the decoder. Returns: what a reader is told of it."""
        match event:
            case program.Prefilled():
                self._prompt_scores = event.scores
                return []
            case program.Draft():
                return [DraftEvent(event.block, event.step, self._budget, *event[2:])]
            case program.Block():
                return [self._settle(event)]
            case program.Finished():
                self._finished = event
                return self._flush()

    def complete(self, spent: Spent) -> Completion:
        """The whole answer, after its last event."""
        asked, finished = self._asked, self._finished
        assert finished is not None  # whoever runs a decoder runs it to its end
        receipt = write_receipt(
            len(asked.ids),
            self._blocks,
            finished,
            asked.params,
            self._sampler,
            asked.seed,
            self._checkpoint.limits.of(asked.params).canvas_length,
            self._costs,
        )
        return Completion(
            text="".join(self._pieces),
            token_ids=[token for block in self._blocks for token in block.tokens],
            finish_reason=finished.reason,
            receipt=replace(receipt, **spent._asdict()),
            stop_reason=None if self._scanner is None else self._scanner.found,
            opened=tuple(open_thoughts(asked.ids, self._checkpoint.limits)),
            scores=_join(block.scores for block in self._blocks),
            uncertainty=_join(block.uncertainty for block in self._blocks),
            prompt_scores=self._prompt_scores,
        )

    def _settle(self, block: program.Block) -> BlockEvent:
        if self._asked.blank is not None:
            block = self._keep(block, self._asked.blank)
        self._blocks.append(block)
        self._pieces.append(self._read(block.tokens if self._scanner is None else self._scanner.push(block.tokens)))
        return BlockEvent(block.block, block.steps, block.tokens, self._pieces[-1], block.scores, block.uncertainty)

    def _read(self, ids: list[int]) -> str:
        return "" if self._detokenizer is None else self._detokenizer.push(ids)

    def _keep(self, block: program.Block, blank: Blank) -> program.Block:
        """What of a block fills the blank."""
        places = blank.places(block.tokens, self._surplus)
        return block._replace(
            tokens=[block.tokens[place] for place in places],
            scores=None if block.scores is None else tuple(block.scores[place] for place in places),
            uncertainty=None if block.uncertainty is None else tuple(block.uncertainty[place] for place in places),
        )

    def _flush(self) -> list[DraftEvent | BlockEvent]:
        """What is left of a character when its answer ends, and what was no stop string."""
        rest = "" if self._scanner is None else self._read(self._scanner.flush())
        rest += "" if self._detokenizer is None else self._detokenizer.flush()
        self._pieces.append(rest)
        return [BlockEvent(self._blocks[-1].block, 0, [], rest)] if rest else []


def _join(parts: Iterable[tuple[T, ...] | None]) -> tuple[T, ...] | None:
    """What blocks tell of their tokens, one block behind another; None where they tell nothing."""
    known = [part for part in parts if part is not None]
    return tuple(each for part in known for each in part) if known else None
