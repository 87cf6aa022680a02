"""What other servers send, in our form."""

from collections.abc import Mapping
from typing import Any

import pytest

from mezzotint.router.foreign import Foreign
from mezzotint.types import ArmError

ASKED = {"messages": [{"role": "user", "content": "x" * 400}]}


def read(*raws: Any) -> list[dict[str, Any]]:
    foreign = Foreign("far", ASKED)
    chunks = [chunk for raw in raws for chunk in foreign.push(raw)]
    return [*chunks, *foreign.end()]


def raw(reason: str | None = None, usage: Mapping[str, Any] | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}], "usage": usage}


def test_thoughts_have_one_name_whatever_a_server_calls_them() -> None:
    for name in ("reasoning", "reasoning_content"):
        chunks = read(raw(**{name: "hm"}), raw("stop", content="yes"))
        deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
        assert deltas == [{"role": "assistant", "content": ""}, {"reasoning_content": "hm"}, {"content": "yes"}, {}]


def test_every_chunk_has_what_our_own_have() -> None:
    scores = {"content": [{"token": "yes", "logprob": -0.1}]}
    given = raw("stop", content="yes")
    given["choices"][0]["logprobs"] = scores
    chunks = read(given)
    assert len({(chunk["id"], chunk["model"], chunk["object"]) for chunk in chunks}) == 1
    assert chunks[0]["model"] == "far"
    for chunk in chunks[:-1]:
        assert chunk["choices"][0].keys() == {"index", "delta", "logprobs", "finish_reason"}
    assert chunks[1]["choices"][0]["logprobs"] == scores
    assert chunks[-1]["usage"].keys() >= {"prompt_tokens_details", "completion_tokens_details", "total_tokens"}


@pytest.mark.parametrize("told", [40, 100, 400, 1600])
def test_a_count_that_can_be_true_is_believed(told: int) -> None:
    usage = {"prompt_tokens": told, "completion_tokens": told, "total_tokens": 2 * told}
    last = read(raw("stop", usage, content="y" * 1600))[-1]
    assert last["usage"]["completion_tokens"] == (told if 84 <= told <= 1616 else 400)
    assert ("completion_tokens" in last["metrics"].get("usage_mismatch", {})) == (told < 84)


def test_thoughts_that_nobody_sees_may_be_counted() -> None:
    details = {"reasoning_tokens": 5000}
    usage = {"prompt_tokens": 100, "completion_tokens": 5010, "completion_tokens_details": details}
    last = read(raw("stop", usage, content="y" * 40))[-1]
    assert last["usage"]["completion_tokens"] == 5010
    assert "usage_mismatch" not in last["metrics"]


@pytest.mark.parametrize("usage", [{"prompt_tokens": "many"}, {"completion_tokens": -3}, {"completion_tokens": True}])
def test_a_count_that_is_no_number_is_not_believed(usage: dict[str, Any]) -> None:
    last = read(raw("stop", usage, content="y" * 40))[-1]
    assert last["usage"]["completion_tokens"] == 10


@pytest.mark.parametrize(
    "bad",
    [
        None,
        [],
        "text",
        {"choices": None},
        {"choices": [3]},
        {"choices": [{"index": 0, "delta": None}]},
        {"choices": [{"index": 1, "delta": {}}]},
        raw(content=3),
        raw(tool_calls=[3]),
        raw(tool_calls=[{"index": 0, "function": {"name": "f", "arguments": {"a": 1}}}]),
        raw(tool_calls=[{"index": "0", "function": {"name": "f", "arguments": "{}"}}]),
        raw("tool_calls", tool_calls=[{"index": 0, "function": {"name": "f", "arguments": "[" * 100_000}}]),
    ],
)
def test_what_is_no_chunk_is_garbage(bad: Any) -> None:
    with pytest.raises(ArmError) as error:
        read(bad)
    assert error.value.kind == "garbage"


def test_an_answer_without_an_end_was_broken_off_and_no_chunk_at_all_is_garbage() -> None:
    with pytest.raises(ArmError) as cut:
        read(raw(content="half"))
    assert cut.value.kind == "broken"
    with pytest.raises(ArmError) as nothing:
        read()
    assert nothing.value.kind == "garbage"


def test_numbers_that_are_none_are_not_told_on() -> None:
    given = raw("stop", content="yes")
    given["choices"][0]["logprobs"] = {"content": [{"token": "yes", "logprob": float("-inf")}]}
    given["metrics"] = {"queue_time_ms": float("nan")}
    chunks = read(given)
    assert chunks[1]["choices"][0]["logprobs"] is None
    assert chunks[-1]["metrics"] == {}
