"""One answer of a chat as it grows: content, thoughts and calls apart, from final tokens only; chunks are chat's."""

import json
import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from mezzotint.llm.entry import Asked
from mezzotint.llm.events import BlockEvent
from mezzotint.text.call import ToolCall
from mezzotint.text.grammar import Grammar
from mezzotint.text.parse import Reply, ReplyParser, encode_reply
from mezzotint.text.tokenizer import Tokenizer
from mezzotint.types import Score

_WRONG = "The call of {} is of no declared tool, or its arguments are not as declared."


class Said(NamedTuple):
    """What one event adds. calls: each once and whole."""

    content: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()


class Talk:
    """A reply, read from token ids up to where a stop string ends it.

    faults: sentences on what is not written as it should be. thoughts: tokens that were reasoning.
    """

    def __init__(self, asked: Asked, tokenizer: Tokenizer, opened: Sequence[int], judge: Grammar | None = None) -> None:
        """opened: what of the prompt the answer goes on in the midst of. judge: the grammar of right calls."""
        self._tokenizer, self._judge = tokenizer, judge
        self._scanner = None if asked.stop is None else asked.stop.restart()
        self._parser = ReplyParser(tokenizer)
        self._parser.push(opened)
        self.faults: list[str] = []
        self.calls = self.thoughts = 0

    def push(self, event: BlockEvent) -> Said:
        """Take final tokens. Returns: what no later token can change."""
        ids = event.token_ids if self._scanner is None else self._scanner.push(event.token_ids)
        said = self._note(self._parser.push(ids))
        self.thoughts += len(event.token_ids) if said.reasoning and not said.content and not said.calls else 0
        return said

    def flush(self) -> Said:
        """End the reply. Returns: what was held back."""
        rest = self._note(self._parser.push([] if self._scanner is None else self._scanner.flush()))
        last = self._note(_without_half_a_call(self._parser.flush()))
        return Said(rest.content + last.content, rest.reasoning + last.reasoning, rest.calls + last.calls)

    def _note(self, reply: Reply) -> Said:
        self.faults += reply.faults
        self.calls += len(reply.calls)
        self.faults += [_WRONG.format(call.name) for call in reply.calls if not self._is_right(call)]
        return Said(reply.content, reply.reasoning, reply.calls)

    def _is_right(self, call: ToolCall) -> bool:
        """Whether a call is one of a declared tool, with arguments as declared."""
        if self._judge is None:
            return True
        place, ids = self._judge.start(), encode_reply(Reply(calls=(call,)), self._tokenizer)
        if place.count_valid(ids) < len(ids):
            return False
        place.consume(ids)
        return place.is_accepting


def _without_half_a_call(reply: Reply) -> Reply:
    """A call that was cut short is nothing that a reader should see; that it was is told as a fault."""
    if "A call has no end." not in reply.faults or reply.calls:
        return reply
    return replace(reply, content=reply.content.partition("<|tool_call>")[0])


def name_call(call: ToolCall) -> dict[str, Any]:
    """A call as clients read it, under an id of its own."""
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {
        "id": f"call_{secrets.token_hex(12)}",
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def tell_scores(event: BlockEvent, tokenizer: Tokenizer) -> list[dict[str, Any]]:
    """The log-probabilities of a block's tokens, control tokens left out, with the denoiser's own doubt beside them."""
    if event.scores is None:
        return []
    doubts = event.uncertainty or (None,) * len(event.token_ids)
    told = zip(event.token_ids, event.scores, doubts, strict=True)
    return [_tell(*each, tokenizer) for each in told if each[0] not in tokenizer.control_ids]


def _tell(id: int, score: Score, doubt: float | None, tokenizer: Tokenizer) -> dict[str, Any]:
    top = [_spell(other, logprob, tokenizer) for other, logprob in score.top]
    own = {} if doubt is None else {"denoiser_entropy": doubt}
    return {**_spell(id, score.logprob, tokenizer), "top_logprobs": top, **own}


def _spell(id: int, logprob: float, tokenizer: Tokenizer) -> dict[str, Any]:
    raw = spell(id, tokenizer)
    # −∞ is no JSON; −9999 is what OpenAI's own servers write.
    return {"token": raw.decode(errors="replace"), "logprob": max(logprob, -9999.0), "bytes": list(raw)}


def spell(id: int, tokenizer: Tokenizer) -> bytes:
    """The bytes of a token; of a control token its name."""
    if id in tokenizer.control_ids:
        return tokenizer.decode([id], keep_control=True).encode()
    try:
        return tokenizer.token_bytes(id)
    except ValueError:  # a hole of the vocabulary
        return b""
