"""A document as it is filled: what the next canvas holds and its prompt says, and what came out of the last one."""

import codecs
from collections.abc import Iterable
from typing import NamedTuple

from mezzotint.decoding.gap import Gap, Seam, Slot, count_places, plan_canvas
from mezzotint.decoding.infill import Filled
from mezzotint.llm.checkpoint import Checkpoint
from mezzotint.text.document import Parts, quote_rest, write_request
from mezzotint.text.prompt import Chat
from mezzotint.text.seam import find_borders
from mezzotint.types import FinishReason

_SEAM_SHARE = 8  # a seam has at most a canvas ÷ this many ids
_QUOTE_SHARE = 4  # of what lies beyond the canvas at most a context ÷ this many tokens are quoted


class Sheet(NamedTuple):
    """A canvas to fill behind `prompt`: the first len(sizes) gaps, each with at most as many tokens.

    is_last: whether no blank follows behind them.
    """

    prompt: list[int]
    gaps: list[Gap]
    sizes: list[int]
    is_last: bool


class Unfinished:
    """The text so far, from the left, and the blanks that are left."""

    def __init__(self, parts: Parts, most: list[int], width: int, checkpoint: Checkpoint, *, raw: bool) -> None:
        """most: tokens of each blank. width: of a canvas. raw: without chat template."""
        assert checkpoint.tokenizer is not None
        self._parts, self._left, self._width = parts, list(most), width
        self._checkpoint, self._tokenizer, self._raw = checkpoint, checkpoint.tokenizer, raw
        self._at = 0
        self.middles = [""] * len(most)
        self.tokens = [0] * len(most)
        self.reasons: list[FinishReason] = ["length"] * len(most)

    @property
    def is_done(self) -> bool:
        """Whether no blank is left."""
        return self._at == len(self._left)

    def lay(self) -> Sheet:
        """What the next canvas holds: as many of the blanks that are left as fit, and of the text behind."""
        before = find_borders(self._text(), self._tokenizer, follows=False, precedes=True, most=self._most_loose)
        gaps, ends = self._list_gaps(Seam(*before.end))
        sizes = plan_canvas(gaps, self._width)
        count = len(sizes)
        last = self._at + count - 1
        is_last = last + 1 == len(self._left)
        gap = gaps[count - 1]
        gaps[count - 1] = gap._replace(behind=(*gap.behind, *ends[count - 1]))
        prompt = self._write_prompt(last, self._quote(gaps[:count], sizes, last))
        return Sheet([*prompt, *before.fixed], gaps[:count], sizes, is_last)

    def take(self, sheet: Sheet, filled: tuple[Filled, ...]) -> list[int]:
        """Write down what fills the gaps of a canvas. Returns: the ids that came to what was given."""
        if sheet.sizes[0] < self._left[self._at] and filled[0].is_full:
            return self._go_on(sheet.gaps[0], filled[0])
        kept = list[int]()
        for gap, one in zip(sheet.gaps, filled, strict=True):
            spelled = self._spell((*one.before, *one.tokens, *one.after))
            end = len(spelled) - len(self._spell(gap.after.ids))
            self.middles[self._at] += spelled[len(self._spell(gap.before.ids)) : end].decode(errors="replace")
            self.reasons[self._at] = "length" if one.is_full else "stop"
            kept += self._count(_list_new(gap, one, one.tokens))
            self._at += 1
        return kept

    def _go_on(self, gap: Gap, one: Filled) -> list[int]:
        """Keep the left of a blank that is longer than its canvas, up to a line break if there is one."""
        most = max(1, len(one.tokens) * 3 // 4)
        breaks = (n for n in range(most, most // 2, -1) if b"\n" in self._spell(one.tokens[n - 1 : n]))
        kept = one.tokens[: next(breaks, most)]
        spelled = self._spell((*one.before, *kept))[len(self._spell(gap.before.ids)) :]
        # What is left of a character at the end is not kept.
        self.middles[self._at] += codecs.getincrementaldecoder("utf-8")(errors="replace").decode(spelled)
        new = self._count(_list_new(gap, one._replace(after=gap.after.ids), kept))
        self._left[self._at] -= max(1, len(new))
        return new

    def _count(self, ids: list[int]) -> list[int]:
        self.tokens[self._at] += len(ids)
        return ids

    @property
    def _most_loose(self) -> int:
        return self._width // _SEAM_SHARE

    def _text(self) -> str:
        """What stands before the first blank that is left, and what is in it already."""
        given = self._parts.texts[: self._at + 1]
        return Parts(given, []).join(self.middles[: self._at]) + self.middles[self._at]

    def _list_gaps(self, before: Seam) -> tuple[list[Gap], list[tuple[int, ...]]]:
        """The blanks that are left, up to a canvas's width, and the loose ids at each text's end, or what ends all."""
        gaps, ends, used = list[Gap](), list[tuple[int, ...]](), 0
        for index in range(self._at, len(self._left)):
            is_last = index + 1 == len(self._left)
            text = self._parts.texts[index + 1]
            border = find_borders(text, self._tokenizer, follows=True, precedes=not is_last, most=self._most_loose)
            gaps.append(Gap(self._left[index], before, Seam(*border.start), border.fixed))
            ends.append((self._end_id,) if is_last else border.end.ids)
            before = Seam(*border.end)
            used += self._left[index] + len(border.fixed)
            if used > self._width:
                break
        return gaps, ends

    @property
    def _end_id(self) -> int:
        tokenizer = self._tokenizer
        return tokenizer.eos_id if self._raw else tokenizer.control.get("<turn|>", tokenizer.eos_id)

    def _quote(self, gaps: list[Gap], sizes: list[int], last: int) -> str:
        """What follows the canvas, as far as a request quotes it."""
        slots = [Slot(g.before.ids, size, g.after.ids, g.behind) for g, size in zip(gaps, sizes, strict=True)]
        beyond = gaps[-1].behind[self._width - count_places(slots) :]
        spelled = self._spell(id for id in beyond if id not in self._tokenizer.control_ids)
        far = quote_rest([spelled.decode(errors="ignore"), *self._parts.texts[last + 2 :]])
        most = self._checkpoint.limits.max_positions // _QUOTE_SHARE
        ids = self._tokenizer.encode_text(far)
        return far if len(ids) <= most else self._spell(ids[:most]).decode(errors="ignore")

    def _write_prompt(self, last: int, far: str) -> list[int]:
        if self._raw:
            return [self._tokenizer.bos_id]
        hints = [blank.hint for blank in self._parts.blanks[self._at : last + 1]]
        return self._checkpoint.encode(Chat(messages=[{"role": "user", "content": write_request(hints, far)}]))

    def _spell(self, ids: Iterable[int]) -> bytes:
        return b"".join(map(self._tokenizer.token_bytes, ids))


def _list_new(gap: Gap, one: Filled, tokens: tuple[int, ...]) -> list[int]:
    """Ids that hold something of a middle: `tokens`, and those of seams that are written otherwise than given."""
    before = one.before[-1:] if one.before != gap.before.ids else ()
    after = one.after[:1] if one.after != gap.after.ids else ()
    return [*before, *tokens, *after]
