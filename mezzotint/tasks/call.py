"""`call`: ask declared tools for what a request wants, call by call, and tell in words what came back.

A loop is one request played to its end: calls and responses in turn, then an answer; an example is one turn of
it. Test declares tools that train never does (see `tools`) and holds values out (see `values`); at its odd seeds
every wording is held out too (see `requests`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from mezzotint.tasks.family import Example, Family, Split, example_random
from mezzotint.tasks.requests import ask, chain, report
from mezzotint.tasks.tools import BASES, Tool, base_parameter, declare, draw_tools
from mezzotint.text.parse import Reply, ToolCall

_UNKNOWN = {"error": "unknown call"}
# Loops of one call, of one with at most one argument, of two in one turn, of two in turn; how often each is drawn.
_KINDS = ("single", "brief", "pair", "chain")
_KINDS_OF = {"first": (7, 0, 2, 1), "next": (0, 0, 0, 1), "answer": (2, 6, 1, 1)}


class Exchange(NamedTuple):
    """Calls made in one turn, and what came back for each."""

    calls: tuple[ToolCall, ...]
    responses: tuple[dict[str, Any], ...]


@dataclass(frozen=True, kw_only=True)
class Loop:
    """One request to its end.

    turns: an example for each thing that the model has to write, the last in words, with the right history.
    exchanges: the right calls and their responses. To play a model's own history, begin with the messages of the
    first turn and add `record(calls, responses)` for each reply with calls, the responses by `respond`.
    """

    turns: tuple[Example, ...]
    exchanges: tuple[Exchange, ...]

    def respond(self, call: ToolCall) -> Mapping[str, Any]:
        """What the tool gives back for `call`, wherever in the loop it is made.

        Returns: the response; an object with `error` for a call that is not right.
        """
        for calls, responses in self.exchanges:
            for right, response in zip(calls, responses, strict=True):
                if is_same_call(call, right):
                    return response
        return _UNKNOWN


def play(seed: int, split: Split) -> Loop:
    """Draw a whole loop.

    Returns: a loop, a pure function of seed and split.
    Raises: ValueError for an unknown split.
    """
    rng = example_random("call loop", split, seed)
    return _draw_loop(rng, rng.choice(_KINDS), split, "test" if split == "test" and seed % 2 else "train")


def generate(seed: int, split: Split) -> Example:
    """Draw one turn of a loop; its variant is `first`, `next` or `answer`.

    Returns: the example; a pure function of seed and split.
    Raises: ValueError for an unknown split.
    """
    rng = example_random("call", split, seed)
    wording: Split = "test" if split == "test" and seed % 2 else "train"
    variant = rng.choices(("first", "next", "answer"), (13, 3, 4))[0]
    loop = _draw_loop(rng, rng.choices(_KINDS, _KINDS_OF[variant])[0], split, wording)
    return next(turn for turn in loop.turns if turn.variant == variant)


def record(calls: Sequence[ToolCall], responses: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Write calls and their responses as the message that a chat's history holds.

    Returns: one assistant message; the model's turn stays open behind it.
    """
    made = [{"function": {"name": call.name, "arguments": dict(call.arguments)}} for call in calls]
    given = [{"name": call.name, "response": dict(back)} for call, back in zip(calls, responses, strict=True)]
    return {"role": "assistant", "tool_calls": made, "tool_responses": given}


def accept(example: Example, reply: Reply) -> bool:
    """Check that `reply` makes exactly the right calls in order, or says the right words; nothing else beside them.

    Arguments are compared by key, value and JSON type; a number that is no integer by its value (3 is 3.0).
    White space around words is allowed. Any fault in how the reply is written refuses it.
    Returns: true for the right reply only.
    """
    return (
        not reply.faults
        and not reply.reasoning
        and reply.content.strip() == example.answer
        and len(reply.calls) == len(example.calls)
        and all(map(is_same_call, reply.calls, example.calls))
    )


def is_same_call(found: ToolCall, right: ToolCall) -> bool:
    """Whether two calls name the same tool and give it the same arguments, compared as `accept` says.

    Returns: true if they are the same.
    """
    return (
        found.name == right.name
        and found.arguments.keys() == right.arguments.keys()
        and all(_is_same(found.arguments[key], right.arguments[key]) for key in right.arguments)
    )


def _is_same(found: Any, right: Any) -> bool:
    if isinstance(right, float):
        return type(found) in (int, float) and bool(found == right)
    return type(found) is type(right) and bool(found == right)


def _draw_loop(rng: Random, kind: str, split: Split, wording: Split) -> Loop:
    handed = rng.choice(list(BASES)) if kind == "chain" else ""
    tools = draw_tools(rng, split, _draw_sizes(rng, kind), handed)
    first = _draw_call(rng, tools[0], split, 3 if kind == "single" else 1)
    if kind == "chain":
        value = base_parameter(handed).draw(rng, split)
        last = ToolCall(tools[1].name, {handed: value})
        exchanges = [Exchange((first,), ({handed: value},)), _exchange(rng, [last], split)]
        request = [ask(rng, tools[0], first.arguments, wording), chain(rng, tools[1], handed, wording)]
    else:
        made = [(tools[0], first), *([_draw_second(rng, tools, first, split)] if kind == "pair" else [])]
        exchanges = [_exchange(rng, [call for _, call in made], split)]
        request = [ask(rng, tool, call.arguments, wording) for tool, call in made]
    asked = _draw_asked(rng, exchanges[-1].responses)
    if asked:
        request.append(report(rng, asked, wording))
    return _tell_loop(" ".join(request), _declare(rng, tools, exchanges), exchanges, asked)


def _draw_sizes(rng: Random, kind: str) -> tuple[int, ...]:
    if kind != "single":
        return rng.choice(((1, 1), (1, 1), (2, 1), (1, 2)))
    sizes = ((1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (1, 1, 1), (2, 1, 1), (1, 1, 1, 1))
    return rng.choices(sizes, (8, 8, 6, 4, 2, 4, 2, 1))[0]


def _draw_call(rng: Random, tool: Tool, split: Split, most: int) -> ToolCall:
    size = min(most, len(tool.parameters))
    given = rng.sample(tool.parameters, size if rng.random() < 0.7 else rng.randint(0, size))
    return ToolCall(tool.name, {it.key: it.draw(rng, split) for it in sorted(given, key=lambda it: it.key)})


def _draw_second(rng: Random, tools: Sequence[Tool], first: ToolCall, split: Split) -> tuple[Tool, ToolCall]:
    """Draw another call beside the first: of the second tool, or of the first one with other arguments."""
    tool = tools[0] if rng.random() < 0.3 else tools[1]
    call = _draw_call(rng, tool, split, 1)
    return (tool, call) if call != first else _draw_second(rng, tools, first, split)


def _exchange(rng: Random, calls: Sequence[ToolCall], split: Split) -> Exchange:
    """Give each call a response of one field, a lone one sometimes two, keys sorted as templates write them."""
    size = 2 if len(calls) == 1 and rng.random() < 0.3 else 1
    responses = []
    for call in calls:
        keys = sorted(rng.sample([key for key in BASES if key not in call.arguments], size))
        responses.append({key: base_parameter(key).draw(rng, split) for key in keys})
    return Exchange(tuple(calls), tuple(responses))


def _draw_asked(rng: Random, responses: Sequence[Mapping[str, Any]]) -> list[str]:
    if len(responses) > 1 or rng.random() < 0.5:
        return []
    return rng.sample(list(responses[0]), rng.randint(1, len(responses[0])))


def _declare(rng: Random, tools: Sequence[Tool], exchanges: Sequence[Exchange]) -> tuple[dict[str, Any], ...]:
    """Declare tools in any order, in a tenth of the sets with descriptions, in a tenth with required keys."""
    style = rng.random()
    calls = [call for exchange in exchanges for call in exchange.calls]
    declared = []
    for tool in tools:
        keys = [
            it.key
            for it in tool.parameters
            if all(it.key in call.arguments for call in calls if call.name == tool.name)
        ]
        declared.append(declare(tool, described=style < 0.1, required=keys[:1] if style > 0.9 else ()))
    return tuple(rng.sample(declared, len(declared)))


def _say(responses: Sequence[Mapping[str, Any]], asked: Sequence[str]) -> str:
    """Tell the fields asked for, or else all of them: one sentence a response."""
    told = [" and ".join(f"the {key} is {back[key]}" for key in asked or sorted(back)) for back in responses]
    return " ".join(f"{text[0].upper()}{text[1:]}." for text in told)


def _tell_loop(
    request: str, tools: tuple[dict[str, Any], ...], exchanges: Sequence[Exchange], asked: Sequence[str]
) -> Loop:
    messages: tuple[dict[str, Any], ...] = ({"role": "user", "content": request},)
    turns = []
    for index, exchange in enumerate(exchanges):
        turns.append(
            Example(
                family="call",
                messages=messages,
                answer="",
                calls=exchange.calls,
                tools=tools,
                variant="next" if index else "first",
            )
        )
        messages = (*messages, record(exchange.calls, exchange.responses))
    answer = _say(exchanges[-1].responses, asked)
    turns.append(Example(family="call", messages=messages, answer=answer, tools=tools, variant="answer"))
    return Loop(turns=tuple(turns), exchanges=tuple(exchanges))


CALL = Family("call", generate, accept)
