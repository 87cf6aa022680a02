"""Every field that OpenAI's package knows is honoured, inert or refused by name; nothing is accepted and ignored."""

import inspect
from typing import Any

import pytest
from openai.types import completion_create_params
from openai.types.chat import completion_create_params as chat_create_params
from openai.types.responses import response_create_params
from pydantic import ValidationError

from mezzotint.server import chat, completions, job, protocol, responses, routes, routing
from mezzotint.server.protocol import Body, ChatBody, CompletionBody, ResponsesBody

HELLO = {"model": "lab", "messages": [{"role": "user", "content": "Hello"}]}
KNOWN = {
    ChatBody: chat_create_params.CompletionCreateParamsBase,
    CompletionBody: completion_create_params.CompletionCreateParamsBase,
    ResponsesBody: response_create_params.ResponseCreateParamsBase,
}
SEEN = {**vars(protocol), **vars(routing)}.values()
BODIES = [each for each in SEEN if inspect.isclass(each) and issubclass(each, Body)]


@pytest.mark.parametrize("body", KNOWN, ids=lambda body: body.__name__)
def test_every_field_of_openais_types_is_in_exactly_one_list(body: type[Body]) -> None:
    known = {*KNOWN[body].__annotations__, "stream"}
    assert known <= body.model_fields.keys()
    assert not body.inert & body.refused.keys()
    assert body.inert | body.refused.keys() <= body.model_fields.keys()


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_an_honoured_field_is_read_somewhere_and_no_other_is(body: type[Body]) -> None:
    readers = [job, routes, chat, completions, responses, routing]
    source = "".join(inspect.getsource(module) for module in readers)
    for name in body.honoured():
        assert f"body.{name}" in source or f'"{name}"' in source or f" {name} " in source.replace('"', " "), name
    for name in body.inert | body.refused.keys():
        assert f"body.{name}" not in source.replace("body.metadata", "").replace("body.prompt", ""), name


@pytest.mark.parametrize("name", sorted(ChatBody.refused))
def test_a_refused_field_passes_only_where_it_says_what_is_done_anyway(name: str) -> None:
    refusal = ChatBody.refused[name]
    for value in (*refusal.neutral, None):
        ChatBody.model_validate({**HELLO, name: value})
    with pytest.raises(ValidationError, match=f"{name} is 'x7'; "):
        ChatBody.model_validate({**HELLO, name: "x7"})


@pytest.mark.parametrize("name", sorted(ChatBody.inert))
def test_an_inert_field_may_hold_anything(name: str) -> None:
    ChatBody.model_validate({**HELLO, name: {"any": ["thing"]}})


@pytest.mark.parametrize("where", [{}, {"x_diffusion": {"steps": 3}}, {"x_route": {}}, {"stream_options": {}}])
def test_an_unknown_name_is_refused_inside_our_extensions_too(where: dict[str, Any]) -> None:
    ChatBody.model_validate({**HELLO, **where})
    wrong: dict[str, Any] = {name: {**value, "frobnicate": 1} for name, value in where.items()} or {"frobnicate": 1}
    with pytest.raises(ValidationError, match="frobnicate"):
        ChatBody.model_validate({**HELLO, **wrong})
