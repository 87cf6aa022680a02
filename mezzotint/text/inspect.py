"""What of the signs that detect finds a block of ids is to blame for, from which token on; what follows is a gate's.

The text is what ids say, thoughts and calls too. A control token that a reply may hold stands there as a border, or as
the quotation mark that it is in a call; any other one is a leak, and padding is padding, which ids show best.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby

from mezzotint.text.detect import detect
from mezzotint.text.detokenize import Detokenizer
from mezzotint.text.parse import parse_reply
from mezzotint.text.tokenizer import Tokenizer
from mezzotint.types import Alarm

_IN_REPLIES = ("<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<turn|>")
_QUOTE = '<|"|>'
_BORDER = "\n"
_FLOOD = 3  # pads in a row


class TextInspector:
    """Reads one growing answer behind one prompt. It implements `types.Inspector`."""

    def __init__(
        self, tokenizer: Tokenizer, prompt: Sequence[int], *, opened: Sequence[int] = (), is_turn: bool
    ) -> None:
        """Before any block.

        opened: what of the prompt the answer goes on in the midst of, as Completion has it. is_turn: whether the answer
        is a turn of its own: what goes on in the midst of text may close brackets that it did not open.
        """
        self._tokenizer, self._opened, self._is_turn = tokenizer, opened, is_turn
        self._known = tokenizer.decode(prompt)
        self._quote = tokenizer.control.get(_QUOTE)
        named = (tokenizer.control[name] for name in (*_IN_REPLIES, _QUOTE) if name in tokenizer.control)
        self._allowed = {tokenizer.eos_id, *named}

    def inspect(
        self, settled: Sequence[int], borders: Sequence[int], block: Sequence[int], *, is_whole: bool
    ) -> list[Alarm]:
        """See types.Inspector; the kinds are those of detect, and `void`. Brackets and emptiness count at the end."""
        alarms = [*self._find_control(block)]
        pieces = self._spell([*settled, *block])
        ends = [0, *accumulate(map(len, pieces))]  # of the text before each token
        first = len(settled)
        seams = [ends[border] for border in (*borders, first) if border]
        for finding in detect("".join(pieces), seams=seams, known=self._known):
            is_bracket = finding.kind == "bracket"
            counts = is_whole and self._is_turn if is_bracket else finding.end > ends[first]
            if counts and finding.kind != "empty":
                alarms.append(Alarm(finding.kind, max(0, bisect_right(ends, finding.start) - 1 - first)))
        if is_whole and self._says_nothing([*settled, *block]):
            alarms.append(Alarm("empty", 0))
        return sorted(alarms, key=lambda alarm: alarm.offset)

    def _find_control(self, block: Sequence[int]) -> Iterator[Alarm]:
        tokenizer = self._tokenizer
        if tokenizer.pad_id in block and {*block} <= {tokenizer.pad_id, *tokenizer.control_ids}:
            yield Alarm("void", 0)
        for is_pad, run in groupby(enumerate(block), lambda pair: pair[1] == tokenizer.pad_id):
            places = [(place, id) for place, id in run if id in tokenizer.control_ids]
            if is_pad:
                yield Alarm("pad" if len(places) >= _FLOOD else "control", places[0][0])
            else:
                yield from (Alarm("control", place) for place, id in places if id not in self._allowed)

    def _spell(self, ids: Sequence[int]) -> list[str]:
        """The text of each id; of a character that several spell, the last has it."""
        text, pieces = Detokenizer(self._tokenizer), list[str]()
        for id in ids:
            if id in self._tokenizer.control_ids:
                pieces.append(text.flush() + ('"' if id == self._quote else _BORDER))
                text = Detokenizer(self._tokenizer)
            else:
                pieces.append(text.push([id]))
        return pieces

    def _says_nothing(self, ids: Sequence[int]) -> bool:
        """Whether a reader would see nothing of a whole reply, and no tool is called."""
        reply = parse_reply(ids, self._tokenizer, self._opened)
        return not reply.calls and not reply.content.strip()
