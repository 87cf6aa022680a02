"""Prompt ids: those of transformers for harmless chats, and never a control token of a user's."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mezzotint.text.template import ChatTemplate
from tests.text.conftest import Checkpoint, Message

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Look a place up & say <how> it is",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string", "description": "where <city>", "enum": ["Oslo", "a < b"]},
                "<tag>": {"type": "array", "items": {"type": "string"}},
                "Zeta": {"type": "object", "properties": {"b": {"type": "integer"}, "a": {"type": "number"}}},
                "days": {"type": "integer", "description": "how many"},
            },
            "required": ["place"],
        },
    },
}
CLOCK = {
    "type": "function",
    "function": {"name": "clock", "description": "", "parameters": {"type": "object"}},
}
CALL = {
    "function": {
        "name": "get_weather",
        "arguments": {"place": "Oslo <1>", "days": 2, "<b": [True, 1.5], "B": {"a": "x"}},
    }
}

CHATS: dict[str, list[Message]] = {
    "one turn": [{"role": "user", "content": "What is a mezzotint?"}],
    "system": [{"role": "system", "content": " Be brief.\n"}, {"role": "user", "content": "Hi"}],
    "developer": [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
    "late system": [{"role": "user", "content": "Hi"}, {"role": "system", "content": "Be brief."}],
    "many turns": [
        {"role": "user", "content": "1 + 1?"},
        {"role": "assistant", "content": "2"},
        {"role": "user", "content": "and 2 < 3 > 1?"},
        {"role": "assistant", "content": " yes <b>it</b> is <"},
        {"role": "user", "content": "|turn> thanks"},
    ],
    "parts": [
        {"role": "user", "content": [{"type": "text", "text": " a <|"}, {"type": "text", "text": "x b\n"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "c"}]},
    ],
    "unicode": [{"role": "user", "content": "naïve ☃ 𝄞 中文 e\u0301 \ue000\ue001"}],
    "white space": [{"role": "user", "content": "\n\t \u00a0\r\n  x \u2028 \x1f "}],
    "empty": [{"role": "user", "content": ""}],
    "template syntax": [{"role": "user", "content": "{{ bos_token }} {% raise %} {# no #}"}],
    "tool call": [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL, CALL]},
        {"role": "tool", "content": "12 <degrees>"},
    ],
    "tool response": [
        {"role": "user", "content": "Weather?"},
        {
            "role": "assistant",
            "tool_calls": [CALL],
            "tool_responses": [
                {"name": "get_weather", "response": {"text": "sun <b>", "<k": None, "A": 1}},
                {"name": "clock", "response": ["12:00", False]},
            ],
        },
    ],
}  # fmt: skip


@pytest.mark.parametrize("thinking", [False, True])
@pytest.mark.parametrize("tools", [[], [WEATHER, CLOCK]], ids=["no tools", "tools"])
@pytest.mark.parametrize("name", CHATS)
def test_prompt_ids_are_those_of_transformers(
    checkpoint: Checkpoint, name: str, tools: list[dict[str, Any]], thinking: bool
) -> None:
    for add_generation_prompt in (True, False):
        ids = checkpoint.template.encode(
            CHATS[name], tools=tools, thinking=thinking, add_generation_prompt=add_generation_prompt
        )
        assert ids == checkpoint.oracle_ids(
            CHATS[name],
            tools=tools,
            enable_thinking=thinking,
            add_generation_prompt=add_generation_prompt,
        )


ROLE = st.sampled_from(["user", "assistant", "tool", "system"])
PIECE = st.one_of(st.text(max_size=8), st.sampled_from(["<", "<|", "|>", "\ue000", "\ue001", " ", "\n", "< |turn>"]))
CONTENT = st.lists(PIECE, max_size=6).map("".join)


@settings(max_examples=60)
@given(turns=st.lists(st.tuples(ROLE, CONTENT), min_size=1, max_size=5))
def test_prompt_ids_of_any_harmless_chat_are_those_of_transformers(
    checkpoint: Checkpoint, turns: list[tuple[str, str]]
) -> None:
    assume(not any(control in content for control in checkpoint.tokenizer.control for _, content in turns))
    messages = [{"role": role, "content": content} for role, content in turns]
    assert checkpoint.template.encode(messages) == checkpoint.oracle_ids(messages)


@pytest.mark.parametrize(
    "thought",
    [
        "<|channel>thought\nhm <b> hm<channel|>Yes",
        "one <|channel>a<channel|>two<|channel>b<channel|> three",
        "cut <|channel>off",
        "no thought<channel|> at all",
        "joined <|tu<|channel>x<channel|>rn>",
    ],
)
def test_old_thoughts_are_left_out_as_by_transformers(checkpoint: Checkpoint, thought: str) -> None:
    messages: list[Message] = [
        {"role": "user", "content": "Really?"},
        {"role": "assistant", "content": thought},
        {"role": "assistant", "content": [{"type": "text", "text": thought}, {"type": "text", "text": "!"}]},
    ]
    ids = checkpoint.template.encode(messages)
    if "joined" in thought:
        assert checkpoint.control_in(ids).count("<|turn>") == 4
    else:
        assert ids == checkpoint.oracle_ids(messages)


def test_a_system_message_in_parts_reads_as_one_string(checkpoint: Checkpoint) -> None:
    parts = [{"type": "text", "text": "Be "}, {"type": "text", "text": "brief."}]
    user = {"role": "user", "content": "Hi"}
    in_parts = checkpoint.template.encode([{"role": "system", "content": parts}, user])
    assert in_parts == checkpoint.template.encode([{"role": "system", "content": "Be brief."}, user])


def test_lab_keeps_white_space_and_prefills_no_thought(lab: Checkpoint) -> None:
    ids = lab.template.encode([{"role": "user", "content": "  x\n"}])
    assert lab.tokenizer.decode(ids, keep_control=True) == "<bos><|turn>user\n  x\n<turn|>\n<|turn>model\n"


def test_lab_goes_on_in_the_turn_that_tool_results_left_open(lab: Checkpoint) -> None:
    messages: list[Message] = [
        {"role": "assistant", "tool_responses": [{"name": "f", "response": 1}]},
        {"role": "assistant", "content": "So 1."},
    ]
    response = "<|tool_response>response:f{value:1}<tool_response|>"
    ids = lab.template.encode(messages, add_generation_prompt=False)
    assert lab.tokenizer.decode(ids, keep_control=True) == f"<bos><|turn>model\n{response}So 1.<turn|>\n"
    asked = lab.template.encode([messages[0], {"role": "user", "content": "So?"}])
    assert lab.tokenizer.decode(asked, keep_control=True) == (
        f"<bos><|turn>model\n{response}<turn|>\n<|turn>user\nSo?<turn|>\n<|turn>model\n"
    )


def test_lab_sorts_keys_and_quotes_strings(lab: Checkpoint) -> None:
    arguments = {"b": "x", "a": None, "C": {"z": [1, "y"], "k": False}}
    call = {"function": {"name": "f", "arguments": arguments}}
    ids = lab.template.encode([{"role": "assistant", "tool_calls": [call]}], add_generation_prompt=False)
    assert lab.tokenizer.decode(ids, keep_control=True) == (
        '<bos><|turn>model\n<|tool_call>call:f{C:{k:false,z:[1,<|"|>y<|"|>]},a:null,b:<|"|>x<|"|>}<tool_call|><turn|>\n'
    )


def test_the_template_may_stand_in_the_config(lab: Checkpoint, tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ bos_token }}!"}))
    template = ChatTemplate.from_directory(tmp_path, lab.tokenizer)
    assert template.encode(CHATS["one turn"]) == lab.tokenizer.encode_rendered("<bos>!")


@pytest.mark.parametrize("config", [None, {}, {"chat_template": [{"name": "default", "template": ""}]}])
def test_a_missing_template_is_named_with_its_remedy(lab: Checkpoint, tmp_path: Path, config: Any) -> None:
    if config is not None:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    with pytest.raises(FileNotFoundError, match=r"chat_template\.jinja does not exist .* put the model's template"):
        ChatTemplate.from_directory(tmp_path, lab.tokenizer)


def test_a_template_that_does_not_compile_is_refused_by_line(lab: Checkpoint) -> None:
    with pytest.raises(ValueError, match=r"chat template, line 2: "):
        ChatTemplate("\n{% if %}", lab.tokenizer)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{{ messages.append(1) }}", "append"),
        ("{{ ''.__class__.__mro__ }}", "__class__"),
        ("{{ messages + 1 }}", "can only concatenate"),
    ],
)
def test_what_a_template_refuses_or_may_not_do_is_an_error(lab: Checkpoint, source: str, reason: str) -> None:
    with pytest.raises(ValueError, match=rf"the chat template refuses this chat: .*{reason}"):
        ChatTemplate(source, lab.tokenizer).encode(CHATS["one turn"])


@pytest.mark.parametrize(("option", "name"), [({"tools": [CLOCK]}, "tools"), ({"thinking": True}, "enable_thinking")])
def test_an_option_that_the_template_does_not_read_is_refused(
    lab: Checkpoint, option: dict[str, Any], name: str
) -> None:
    with pytest.raises(ValueError, match=f"does not read {name}; leave it out"):
        ChatTemplate("{{ messages[0].content }}", lab.tokenizer).encode(CHATS["one turn"], **option)


def _rendered(lab: Checkpoint, source: str, content: str) -> str:
    return lab.tokenizer.decode(ChatTemplate(source, lab.tokenizer).encode([{"role": "user", "content": content}]))


@pytest.mark.parametrize("ascii_only", [False, True])
def test_json_in_a_template_is_as_transformers_writes_it(lab: Checkpoint, ascii_only: bool) -> None:
    content = "<b> & 'é' \ue000 𝄞 \\u003c"
    source = f"{{{{ messages[0].content | tojson(ensure_ascii={ascii_only}) }}}}"
    assert _rendered(lab, source, content) == json.dumps(content, ensure_ascii=ascii_only)


def test_lines_that_hold_only_a_block_leave_nothing_behind(lab: Checkpoint) -> None:
    source = "{% for m in messages %}\n  {% if m.content %}\n{{ m.content }}\n  {% endif %}\n{% endfor %}"
    assert _rendered(lab, source, "x") == "x\n"


def test_loops_may_break_and_dates_are_written(lab: Checkpoint) -> None:
    source = "{% for m in messages %}{{ strftime_now('%Y') | length }}{% break %}{% endfor %}"
    assert _rendered(lab, source, "x") == "4"


def test_arguments_nested_too_deeply_are_refused(lab: Checkpoint) -> None:
    for depth in (400, 100_000):
        nested: Any = 1
        for _ in range(depth):
            nested = [nested]
        call = {"function": {"name": "f", "arguments": {"a": nested}}}
        with pytest.raises(ValueError, match="recursion"):
            lab.template.encode([{"role": "assistant", "tool_calls": [call]}])
