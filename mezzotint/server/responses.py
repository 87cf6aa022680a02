"""POST /v1/responses: the same answers as a chat's, told in items and typed events; nothing is decoded or stored."""

import secrets
from collections.abc import AsyncGenerator, AsyncIterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from mezzotint.server.chat import Chunk
from mezzotint.server.errors import ApiError
from mezzotint.server.protocol import ChatBody, ResponsesBody
from mezzotint.server.sse import write_event

Event = dict[str, Any]


def read_responses(body: ResponsesBody) -> ChatBody:
    """The chat that asks for the same. Raises: ApiError naming the field, value and remedy."""
    messages = [] if body.instructions is None else [{"role": "system", "content": body.instructions}]
    items = [{"role": "user", "content": body.input}] if isinstance(body.input, str) else body.input
    for index, item in enumerate(items):
        _read_item(item, messages, f"input[{index}]")
    reasoning = dict(body.reasoning or {})
    effort = reasoning.pop("effort", None)
    if told := [name for name, value in reasoning.items() if value is not None]:
        raise ApiError(400, f"reasoning has {told[0]!r}; it knows effort, and thoughts come whole", param="reasoning")
    asked: dict[str, Any] = {
        "model": body.model,
        "messages": messages,
        "max_completion_tokens": body.max_output_tokens,
        "temperature": body.temperature,
        "top_p": body.top_p,
        "logprobs": None if body.top_logprobs is None else True,
        "top_logprobs": body.top_logprobs,
        "response_format": _read_format(body.text),
        "tools": None if body.tools is None else [_read_tool(tool, at) for at, tool in enumerate(body.tools)],
        "tool_choice": body.tool_choice,
        "parallel_tool_calls": body.parallel_tool_calls,
        "reasoning_effort": effort,
        "x_diffusion": body.x_diffusion,
        "x_route": body.x_route,
    }
    try:
        return ChatBody.model_validate({name: value for name, value in asked.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        raise ApiError(400, f"the request cannot be read: {first['loc'][0]}: {first['msg']}") from error


def _read_item(item: Any, messages: list[dict[str, Any]], where: str) -> None:
    kind = item.get("type", "message") if isinstance(item, Mapping) else item
    match kind:
        case "message":
            messages.append({"role": item.get("role"), "content": item.get("content")})
        case "function_call":
            if not messages or "tool_calls" not in messages[-1]:
                messages.append({"role": "assistant", "content": None, "tool_calls": []})
            function = {"name": item.get("name"), "arguments": item.get("arguments")}
            messages[-1]["tool_calls"].append({"id": item.get("call_id"), "type": "function", "function": function})
        case "function_call_output":
            messages.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")})
        case "reasoning":
            pass  # templates leave the thoughts of earlier turns out
        case _:
            told = "message, function_call, function_call_output, reasoning"
            raise ApiError(400, f"{where} is of type {kind!r}; known are {told}", param="input")


def _read_format(text: Mapping[str, Any] | None) -> dict[str, Any] | None:
    said = {name: value for name, value in (text or {}).items() if value is not None}
    if said.pop("verbosity", "medium") != "medium":
        told = "text.verbosity is given, and the model has no such dial; say in the prompt how long answers are"
        raise ApiError(400, told, param="text.verbosity")
    given: Any = said.pop("format", None)
    if said:
        raise ApiError(400, f"text has the field {next(iter(said))!r}; it knows format", param="text")
    if given is not None and not isinstance(given, Mapping):
        raise ApiError(400, f"text.format is {given!r}; send an object with a type", param="text.format")
    if given is not None and given.get("type") == "json_schema":
        return {"type": "json_schema", "json_schema": {name: value for name, value in given.items() if name != "type"}}
    return None if given is None else dict(given)


def _read_tool(tool: Mapping[str, Any], at: int) -> dict[str, Any]:
    if tool.get("type") != "function":
        told = f"tools[{at}] is of type {tool.get('type')!r}; functions alone are known here: declare one"
        raise ApiError(400, told, param="tools")
    return {"type": "function", "function": {name: value for name, value in tool.items() if name != "type"}}


async def stream_responses(chunks: AsyncGenerator[Chunk, None], body: ResponsesBody) -> AsyncGenerator[Event, None]:
    """The events of a reply, from the chunks of the chat that asks for the same. Raises: ApiError."""
    told = _Told(body)
    try:
        async for chunk in chunks:
            for event in told.push(chunk):
                yield event
        for event in told.finish():
            yield event
    finally:
        await chunks.aclose()


def write(event: Event) -> bytes:
    """An event as it leaves, under its own name."""
    return write_event(event, event["type"])


async def fold_responses(events: AsyncIterable[Event]) -> dict[str, Any]:
    """The whole reply: the response that the last event holds."""
    last: Event = {}
    async for event in events:
        last = event
    whole: dict[str, Any] = last["response"]
    return whole


class _Told:
    """One reply as it grows: its items, of which the last may be open."""

    def __init__(self, body: ResponsesBody) -> None:
        self._body, self._count = body, -1
        self._items: list[dict[str, Any]] = []
        self._open = ""  # the kind of delta that the last item takes
        self._ended: Chunk = {}
        self._response: dict[str, Any] = {}

    def push(self, chunk: Chunk) -> Iterator[Event]:
        if not self._response:
            self._response = self._begin(chunk)
            yield self._event("response.created", response=dict(self._response))
            yield self._event("response.in_progress", response=dict(self._response))
        if "x_diffusion" in chunk:
            yield self._event("response.x_diffusion.draft", x_diffusion=chunk["x_diffusion"])
        for choice in chunk["choices"]:
            delta = choice["delta"]
            scores = (choice["logprobs"] or {}).get("content", [])
            if delta.get("reasoning_content"):
                yield from self._say("reasoning", delta["reasoning_content"], [])
            if delta.get("content"):
                yield from self._say("message", delta["content"], scores)
            for call in delta.get("tool_calls", ()):
                yield from self._close()
                yield from self._call(call)
            if choice["finish_reason"]:
                self._ended = choice
        for name in ("usage", "metrics"):
            if name in chunk:
                self._response[name] = _read_usage(chunk[name]) if name == "usage" else chunk[name]

    def finish(self) -> Iterator[Event]:
        yield from self._close()
        is_cut = self._ended["finish_reason"] == "length"
        self._response["output"] = self._items
        self._response["status"] = "incomplete" if is_cut else "completed"
        self._response["incomplete_details"] = {"reason": "max_output_tokens"} if is_cut else None
        kind = "response.incomplete" if is_cut else "response.completed"
        yield self._event(kind, response=self._response)

    def _begin(self, chunk: Chunk) -> dict[str, Any]:
        body = self._body
        return {
            "id": f"resp_{secrets.token_hex(12)}",
            "object": "response",
            "created_at": chunk["created"],
            "status": "in_progress",
            "model": body.model,
            "output": [],
            "error": None,
            "incomplete_details": None,
            "instructions": body.instructions,
            "max_output_tokens": body.max_output_tokens,
            "metadata": _read_labels(body.metadata),
            "parallel_tool_calls": body.parallel_tool_calls is not False,
            "previous_response_id": None,
            "reasoning": {"effort": (body.reasoning or {}).get("effort"), "summary": None},
            "store": False,
            "temperature": body.temperature,
            "text": body.text or {"format": {"type": "text"}},
            "tool_choice": body.tool_choice or "auto",
            "tools": body.tools or [],
            "top_p": body.top_p,
            "truncation": "disabled",
            "usage": None,
        }

    def _event(self, kind: str, **more: Any) -> Event:
        self._count += 1
        return {"type": kind, "sequence_number": self._count, **more}

    def _say(self, kind: str, text: str, scores: Sequence[dict[str, Any]]) -> Iterator[Event]:
        if self._open != kind:
            yield from self._close()
            yield from self._begin_item(kind)
        item, part = self._items[-1], self._items[-1]["content"][0]
        part["text"] += text
        if kind == "message":
            part["logprobs"] += scores
            more: dict[str, Any] = {"logprobs": list(scores)}
        else:
            more = {}
        name = "output_text" if kind == "message" else "reasoning_text"
        yield self._event(f"response.{name}.delta", **self._place(item), content_index=0, delta=text, **more)

    def _begin_item(self, kind: str) -> Iterator[Event]:
        self._open = kind
        part: dict[str, Any]
        item: dict[str, Any]
        if kind == "message":
            part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            item = {"id": _id("msg"), "type": "message", "role": "assistant", "status": "in_progress", "content": []}
        else:
            part = {"type": "reasoning_text", "text": ""}
            item = {"id": _id("rs"), "type": "reasoning", "status": "in_progress", "summary": [], "content": []}
        self._items.append(item)
        begun = {**item, "content": []}
        yield self._event("response.output_item.added", output_index=len(self._items) - 1, item=begun)
        item["content"] = [part]
        yield self._event("response.content_part.added", **self._place(item), content_index=0, part=dict(part))

    def _close(self) -> Iterator[Event]:
        """End the item that is open, if one is."""
        if not self._open:
            return
        item = self._items[-1]
        part, place = item["content"][0], self._place(item)
        if self._open == "message":
            told = {"text": part["text"], "logprobs": part["logprobs"]}
            yield self._event("response.output_text.done", **place, content_index=0, **told)
        else:
            yield self._event("response.reasoning_text.done", **place, content_index=0, text=part["text"])
        yield self._event("response.content_part.done", **place, content_index=0, part=part)
        item["status"], self._open = "completed", ""
        yield self._event("response.output_item.done", output_index=place["output_index"], item=item)

    def _call(self, call: Mapping[str, Any]) -> Iterator[Event]:
        function = call["function"]
        item = {"id": _id("fc"), "type": "function_call", "call_id": call["id"], "name": function["name"]}
        self._items.append({**item, "arguments": function["arguments"], "status": "completed"})
        place = self._place(item)
        begun = {**item, "arguments": "", "status": "in_progress"}
        yield self._event("response.output_item.added", output_index=place["output_index"], item=begun)
        yield self._event("response.function_call_arguments.delta", **place, delta=function["arguments"])
        told = {"arguments": function["arguments"], "name": function["name"]}
        yield self._event("response.function_call_arguments.done", **place, **told)
        yield self._event("response.output_item.done", output_index=place["output_index"], item=self._items[-1])

    def _place(self, item: Mapping[str, Any]) -> dict[str, Any]:
        return {"item_id": item["id"], "output_index": len(self._items) - 1}


def _read_labels(metadata: Any) -> dict[str, str]:
    """What of `metadata` are labels; the rest changes nothing and is not repeated."""
    pairs = metadata.items() if isinstance(metadata, Mapping) else ()
    return {name: value for name, value in pairs if isinstance(value, str)}


def _id(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(12)}"


def _read_usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "input_tokens": usage["prompt_tokens"],
        "input_tokens_details": usage["prompt_tokens_details"],
        "output_tokens": usage["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": usage["completion_tokens_details"]["reasoning_tokens"]},
        "total_tokens": usage["total_tokens"],
    }
