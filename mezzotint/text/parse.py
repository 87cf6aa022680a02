"""What a model said in its turn: thoughts, calls of tools and content, from ids and back; `call` reads one call.

    <|channel>thought\\nTHOUGHTS<channel|>CONTENT<|tool_call>call:NAME{key:value}<tool_call|>

Only the id of a control token is a control token: what spells one is text (contract 12).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby

from mezzotint.text.call import QUOTE, ToolCall, read_call, write_call
from mezzotint.text.detokenize import Detokenizer
from mezzotint.text.tokenizer import Tokenizer
from mezzotint.types import Channel

__all__ = ["Reply", "ReplyParser", "ToolCall", "encode_reply", "end_of_reply", "find_channel", "parse_reply"]

_THOUGHT, _THOUGHT_END = "<|channel>", "<channel|>"
_CALL, _CALL_END = "<|tool_call>", "<tool_call|>"
_STRING, _RESPONSE, _TURN_END = '<|"|>', "<|tool_response>", "<turn|>"
_LABEL = "thought\n"
_ANY_LABEL = re.compile(r"\Athought(\s|\Z)")


@dataclass(frozen=True)
class Reply:
    """One turn of a model, its kinds of text apart.

    content: what a reader sees. reasoning: the thoughts before it. calls: in the order written.
    faults: one sentence for each thing that is not written as it should be; what it meant stays in content.
    """

    content: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    faults: tuple[str, ...] = field(default=(), compare=False)


def parse_reply(ids: Iterable[int], tokenizer: Tokenizer, begun: Iterable[int] = ()) -> Reply:
    """Read a whole turn; end tokens and padding behind it say nothing. No sequence of ids is refused.

    What cannot be understood as a call is content, control tokens spelled out.
    begun: what of the turn stands before `ids`; it is read and not told.
    Returns: the reply, with a fault for each form that a model should not write.
    """
    parser = ReplyParser(tokenizer)
    parser.push(begun)
    pieces = [parser.push(ids), parser.flush()]
    return Reply(
        "".join(piece.content for piece in pieces),
        "".join(piece.reasoning for piece in pieces),
        sum((piece.calls for piece in pieces), ()),
        sum((piece.faults for piece in pieces), ()),
    )


def encode_reply(reply: Reply, tokenizer: Tokenizer) -> list[int]:
    """Write a reply as a model should: thoughts if any, content, calls; `end_of_reply` gives the end behind it.

    `parse_reply` reads the same reply from it, and chat templates write calls alone, or words alone, with the same ids.
    Returns: ids.
    Raises: ValueError for a call that cannot be written, half a surrogate pair, or a tokenizer that lacks a control
    token.
    """
    ids: list[int] = []
    if reply.reasoning:
        begin, end = _control(tokenizer, _THOUGHT), _control(tokenizer, _THOUGHT_END)
        ids += [begin, *tokenizer.encode_text(_LABEL + reply.reasoning), end]
    ids += tokenizer.encode_text(reply.content)
    for call in reply.calls:
        ids += _encode_call(call, tokenizer)
    return ids


def end_of_reply(reply: Reply, tokenizer: Tokenizer) -> int:
    """Say which token ends a reply: one with calls waits for their responses, any other ends the turn.

    Returns: an id.
    Raises: ValueError for a tokenizer that lacks it.
    """
    return _control(tokenizer, _RESPONSE if reply.calls else _TURN_END)


def find_channel(tokenizer: Tokenizer) -> Channel | None:
    """The ids of a thinking channel, which a call of a tool leaves too; None for a tokenizer without them."""
    if not {_THOUGHT, _THOUGHT_END} <= tokenizer.control.keys():
        return None
    leaving = [tokenizer.control[name] for name in (_CALL,) if name in tokenizer.control]
    return Channel(tokenizer.control[_THOUGHT], tokenizer.control[_THOUGHT_END], tuple(leaving))


class ReplyParser:
    """One turn of a model as it arrives: text as soon as it is settled, each call once and whole when it has ended.

    The pieces that push and flush give, joined, are what `parse_reply` reads from all ids.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._spelled = {id: name for name, id in tokenizer.control.items()}
        self._ends = {_RESPONSE, _TURN_END, self._spelled[tokenizer.eos_id]}
        self._padding = self._spelled[tokenizer.pad_id]
        self._text = Detokenizer(tokenizer)
        self._inside = ""  # the control token that opened what is being read
        self._label: str | None = None  # the beginning of thoughts, while it may still be their label
        self._call: list[int] = []
        self._began = self._ended = self._has_thoughts = False
        self._content, self._reasoning = "", ""
        self._calls: list[ToolCall] = []
        self._faults: dict[str, bool] = {}  # in order, each once; whether it was given out

    def push(self, ids: Iterable[int]) -> Reply:
        """Take the next ids and give what no later id can change.

        Returns: what is new in content, reasoning, calls and faults.
        """
        for id in ids:
            self._push(id)
        return self._take()

    def flush(self) -> Reply:
        """End the turn.

        Returns: what was held back: half a character, thoughts or a call without an end.
        """
        self._close()
        return self._take()

    def _push(self, id: int) -> None:
        name = self._spelled.get(id)
        if name in self._ends:
            self._close()
            self._ended = True
            return
        if self._ended and name == self._padding:
            return
        if self._ended:
            self._fault("Something stands behind the end of the reply.")
        if name in (_THOUGHT, _CALL):
            self._open(name)
        elif (self._inside, name) in ((_THOUGHT, _THOUGHT_END), (_CALL, _CALL_END)):
            self._close(ended=True)
        elif name is None or (self._inside, name) == (_CALL, _STRING):
            self._add(id)
        else:
            self._fault(f"The control token {name} stands where it does not belong.")
        self._began = True

    def _open(self, name: str) -> None:
        self._close()
        self._inside = name
        if name == _THOUGHT:
            self._label = ""
            if self._began:
                self._fault("Thoughts do not stand at the beginning.")

    def _add(self, id: int) -> None:
        try:
            self._tokenizer.token_bytes(id)
        except ValueError as error:
            self._fault(f"{str(error).capitalize()}.")
            return
        if self._inside == _CALL:
            self._call.append(id)
        else:
            self._say(self._text.push([id]))

    def _close(self, *, ended: bool = False) -> None:
        """End what is being read; `ended` says that its own end token has come."""
        if self._inside and not ended:
            self._fault("A call has no end." if self._inside == _CALL else "The thoughts have no end.")
        if self._inside == _CALL:
            self._close_call(ended)
        else:
            self._say(self._text.flush())
            self._text = Detokenizer(self._tokenizer)
        if self._label is not None:
            self._end_label(self._label)
        self._inside = ""

    def _close_call(self, ended: bool) -> None:
        understood = read_call(_call_text(self._call, self._tokenizer))
        if understood:
            self._calls.append(understood.call)
            for fault in understood.faults:
                self._fault(fault)
        else:
            written = self._tokenizer.decode(self._call, keep_control=True)
            self._content += _CALL + written + (_CALL_END if ended else "")
            self._fault("A call cannot be understood.")
        self._call = []

    def _say(self, text: str) -> None:
        if self._inside != _THOUGHT:
            self._content += text
        elif self._label is None:
            self._reasoning += text
        else:
            self._label += text
            if self._label == _LABEL or not _LABEL.startswith(self._label):
                self._end_label(self._label)

    def _end_label(self, text: str) -> None:
        if not text.startswith(_LABEL):
            self._fault("Thoughts do not begin with thought and a new line.")
        thoughts = "" if _LABEL.startswith(text) else _ANY_LABEL.sub("", text)  # a label may have been cut short
        self._reasoning += "\n" * self._has_thoughts + thoughts
        self._has_thoughts, self._label = True, None

    def _fault(self, sentence: str) -> None:
        self._faults.setdefault(sentence, False)

    def _take(self) -> Reply:
        faults = tuple(sentence for sentence, given in self._faults.items() if not given)
        new = Reply(self._content, self._reasoning, tuple(self._calls), faults)
        self._content, self._reasoning, self._calls = "", "", []
        self._faults = dict.fromkeys(self._faults, True)
        return new


def _encode_call(call: ToolCall, tokenizer: Tokenizer) -> list[int]:
    string = _control(tokenizer, _STRING)
    ids = [_control(tokenizer, _CALL)]
    for index, text in enumerate(write_call(call).split(QUOTE)):
        ids += [string] * (index > 0) + tokenizer.encode_text(text)
    return [*ids, _control(tokenizer, _CALL_END)]


def _call_text(ids: list[int], tokenizer: Tokenizer) -> str:
    string = tokenizer.control.get(_STRING)
    runs = ((quotes, list(run)) for quotes, run in groupby(ids, lambda id: id == string))
    return "".join(QUOTE * len(run) if quotes else tokenizer.decode(run) for quotes, run in runs)


def _control(tokenizer: Tokenizer, name: str) -> int:
    if name not in tokenizer.control:
        raise ValueError(f"this tokenizer has no control token {name}; use a checkpoint that writes such replies")
    return tokenizer.control[name]
