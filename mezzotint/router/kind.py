"""What of a chat a decision is made from: its class of task, sizes, needs and limits; nothing is decided here."""

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from mezzotint.router.record import Ask, Goal

_GOALS = {f"auto:{goal}": goal for goal in get_args(Goal) if goal != "balanced"} | {"auto": "balanced"}
_SHORT, _MEDIUM = 32, 128  # tokens of an answer
_LEAF, _CHOICE, _CALL, _REPLY = 14, 6, 32, 16  # tokens that a leaf of a schema, a label, a call, a word on it take
_CODE = re.compile(
    r"^\s*(?:(?:async )?def \w+\(|class \w+[:(]|import \w+|from [\w.]+ import |return\b|for .+:\s*$|if .+:\s*$"
    r"|#include|(?:public|private|static|const|let|var|function|func|fn|package) \w)|^(?: {4}|\t)\S|```",
    re.MULTILINE,
)
_BLANK = re.compile(r"_{3,}|\[blank\]|<blank>", re.IGNORECASE)
_FRAME_WORDS = 2
_DEADLINE_S = 600.0


def read_ask(body: Mapping[str, Any], *, prompt_tokens: int, default_max_tokens: int) -> Ask:
    """Read what a decision needs of a chat's body in OpenAI's form, which its protocol has checked.

    prompt_tokens: counted or estimated. default_max_tokens: of an answer whose request names no bound.
    A model name other than `auto` or `auto:GOAL` is the name of the arm that has to answer.
    Returns: the ask; its session is what a later turn of the same talk has too.
    """
    route = body.get("x_route") or {}
    most = body.get("max_completion_tokens") or body.get("max_tokens")
    goal: Goal = _GOALS.get(body["model"], "balanced")
    given: dict[str, Any] = {
        name: route[name] for name in ("max_cost_usd", "max_attempts", "risk", "explore") if route.get(name) is not None
    }
    if route.get("deadline_ms") is not None:
        given["deadline_s"] = route["deadline_ms"] / 1000.0
    return Ask(
        kind=classify(body, prompt_tokens),
        prompt_tokens=prompt_tokens,
        most_tokens=most or default_max_tokens,
        needs=frozenset(_needs(body)),
        session=_session(body["messages"]),
        goal=goal,
        verifies=route.get("accept") is not None,
        **given,
    )


def classify(body: Mapping[str, Any], prompt_tokens: int) -> str:
    """Tell a chat's class of task from what it carries: FORM-LENGTH, and #FRAME where its prompt has one.

    FORM: choice, schema, grammar, call, told (a tool has answered), go-on (the answer is begun), fill (the
    prompt has blanks), code, talk or text.
    LENGTH: short, medium or long, of the expected answer; any where nothing tells it.
    FRAME: a hash of how the prompt begins, that requests written by one program share; what is known of the class
    without it stands in for a new one.
    """
    messages = body["messages"]
    form, expected = _form(body, messages, prompt_tokens)
    most = body.get("max_completion_tokens") or body.get("max_tokens")
    known = [size for size in (expected, most) if size is not None]
    size = min(known) if known else None
    length = "any" if size is None else "short" if size <= _SHORT else "medium" if size <= _MEDIUM else "long"
    frame = _frame(messages)
    return f"{form}-{length}" + (f"#{zlib.crc32(frame.encode()):08x}" if frame else "")


def _form(body: Mapping[str, Any], messages: Sequence[Mapping[str, Any]], prompt_tokens: int) -> tuple[str, int | None]:
    """The form of an answer, and the tokens it should take as far as the form tells."""
    schema, choices, grammar = _declared(body)
    last = messages[-1]
    if choices:
        return "choice", max(_CHOICE, *(len(choice) // 3 for choice in choices))
    if schema is not None:
        labels = schema.get("enum") if isinstance(schema, dict) else None
        return ("choice", _CHOICE) if labels else ("schema", _LEAF * _count_leaves(schema))
    if grammar:
        return "grammar", None
    if last["role"] == "tool" or last.get("tool_responses"):
        return "told", _REPLY
    if body.get("tools") and body.get("tool_choice") != "none":
        return "call", _CALL
    if last["role"] == "assistant":
        return "go-on", None
    if _BLANK.search(_text(last)):
        return "fill", None
    if _CODE.search(_text(last)):
        return "code", prompt_tokens
    return ("talk" if any(message["role"] == "assistant" for message in messages) else "text"), None


def _declared(body: Mapping[str, Any]) -> tuple[Any, list[str] | None, bool]:
    """The JSON Schema, the choices, and whether another grammar, that an answer is to follow."""
    told = body.get("response_format") or {}
    structured = body.get("structured_outputs") or {}
    schema = (told.get("json_schema") or {}).get("schema", {}) if told.get("type") == "json_schema" else None
    if told.get("type") == "json_object":
        schema = {}
    if (under := structured.get("json")) is not None:
        schema = under
    return schema, structured.get("choice"), bool(structured.get("regex") or structured.get("grammar"))


def _count_leaves(schema: Any) -> int:
    """Values that an answer to a schema has, an array's as of three items, its depth bounded."""
    return max(1, _leaves(schema, 8))


def _leaves(schema: Any, depth: int) -> int:
    if not isinstance(schema, dict) or not depth:
        return 1
    if "properties" in schema:
        return sum(_leaves(value, depth - 1) for value in schema["properties"].values())
    if "items" in schema:
        return 3 * _leaves(schema["items"], depth - 1)
    return 1


def _frame(messages: Sequence[Mapping[str, Any]]) -> str:
    """What requests of one program begin with: their system prompt, or the first words above the data; else empty.

    A prompt of one line is what a person wrote, and has none.
    """
    first = messages[0]
    if first["role"] in ("system", "developer"):
        return _text(first)
    line, _, rest = _text(first).partition("\n")
    if not rest.strip():
        return ""
    words = re.findall(r"\w+", re.split(r"[:;.,!?({\[]", line, maxsplit=1)[0].lower())[:_FRAME_WORDS]
    return " ".join(re.sub(r"\d+", "0", word) for word in words)


def _session(messages: Sequence[Mapping[str, Any]]) -> str:
    """What all turns of a talk have in common: everything up to its first question."""
    first = next((index for index, message in enumerate(messages) if message["role"] == "user"), 0)
    begun = [[message["role"], _text(message)] for message in messages[: first + 1]]
    return f"{zlib.crc32(json.dumps(begun).encode()):08x}"


def _needs(body: Mapping[str, Any]) -> Iterator[str]:
    schema, choices, grammar = _declared(body)
    route, told = body.get("x_route") or {}, body.get("chat_template_kwargs") or {}
    if body["model"] not in _GOALS:
        yield f"arm:{body['model']}"
    if route.get("decoder"):
        yield f"decoder:{route['decoder']}"
    if body.get("tools") and body.get("tool_choice") != "none":
        yield "tools"
    if schema is not None:
        yield "schema"
    if choices or grammar:
        yield "grammar"
    if body.get("logprobs"):
        yield "logprobs"
    if body.get("seed") is not None:
        yield "seed"
    if told.get("enable_thinking") or (body.get("reasoning_effort") or "none") != "none":
        yield "thinking"


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))
