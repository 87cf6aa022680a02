"""Tasks of families, agents, files and traces: what is asked, and that right answers and only those are accepted."""

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mezzotint.bench.agent import agent_workload
from mezzotint.bench.families import family_workload
from mezzotint.bench.files import file_workload
from mezzotint.bench.inspect import inspect
from mezzotint.bench.prose import cut, read_prose
from mezzotint.bench.task import Hop
from mezzotint.bench.traces import Arrival, TraceConfig, find_trace, measure_tokens, read_trace, trace_workload
from mezzotint.evaluate.verify import make_verifier
from mezzotint.server.history import read_history
from mezzotint.tasks import FAMILIES, Example
from mezzotint.tasks.message import write_messages
from mezzotint.types import Verifier
from tests.bench.records import played, request
from tests.bench.scripted import Says

CHATS = [name for name in FAMILIES if name != "infill"]


def verdict(hop: Hop, answer: Mapping[str, Any]) -> bool | None:
    return asyncio.run(hop.verifier.verify(hop.messages, answer)).accepted


def message_of(example: Example) -> dict[str, Any]:
    """The right reply, as a server writes it."""
    calls = [
        {"id": str(at), "type": "function", "function": {"name": call.name, "arguments": json.dumps(call.arguments)}}
        for at, call in enumerate(example.calls)
    ]
    message: dict[str, Any] = {"role": "assistant", "content": example.answer}
    return message | ({"tool_calls": calls} if calls else {}) | {"reasoning_content": example.reasoning}


@pytest.mark.parametrize("name", CHATS)
def test_the_right_answer_of_a_family_is_accepted_and_another_is_not(name: str) -> None:
    workload = family_workload([name], seed=3)
    for index in range(6):
        example = FAMILIES[name].generate(3_000_000 + index, "test")
        [hop] = workload.task(index).hops
        assert verdict(hop, message_of(example)) is True
        assert verdict(hop, {"role": "assistant", "content": f"{example.answer} and more"}) is False
        assert verdict(hop, message_of(example) | {"faults": ["It is badly written."]}) is (
            name not in ("call", "chat")
        )


def test_a_history_of_calls_reads_at_the_server_as_the_family_wrote_it() -> None:
    found = 0
    for seed in range(40):
        example = FAMILIES["call"].generate(seed, "test")
        found += len(example.messages) > 1
        read = read_history(write_messages(example.messages))
        assert read == [dict(message) for message in example.messages]
    assert found > 3


def test_families_take_turns_with_prompts_of_the_seed_and_thoughts_are_asked_for_where_they_are_due() -> None:
    workload = family_workload(["chat", "choose"], seed=2)
    tasks = [workload.task(index) for index in range(24)]
    assert [task.family for task in tasks[:4]] == ["chat", "choose"] * 2
    for index, task in enumerate(tasks):
        example = FAMILIES[task.family].generate(2_000_000 + index, "test")
        assert list(task.hops[0].messages) == list(example.messages)
        wanted = {"chat_template_kwargs": {"enable_thinking": True}} if example.thinking else {}
        assert task.hops[0].extra == wanted
    assert any(task.hops[0].extra for task in tasks)
    assert len({task.seed for task in tasks}) == 24


@pytest.mark.parametrize("name", ["infill", "chess"])
def test_what_chats_cannot_ask_is_refused(name: str) -> None:
    with pytest.raises(
        ValueError, match=f"task is '{name}', which is no family that chats can ask; choose from extract"
    ):
        family_workload([name], seed=0)


def test_an_agent_has_dozens_of_hops_and_waits_for_the_tools_between_them() -> None:
    workload = agent_workload(hops=24, tool_wait_s=0.2, seed=1)
    task = workload.task(0)
    assert 24 <= len(task.hops) < 28
    assert {(hop.kind, hop.wait_s) for hop in task.hops} == {("plan", 0.0), ("tool", 0.2)}
    assert task.hops[0].kind == "plan"
    assert task.hops != workload.task(1).hops
    assert [hop.messages for hop in task.hops] == [hop.messages for hop in workload.task(0).hops]
    for before, behind in zip(task.hops, task.hops[1:], strict=False):
        goes_on = behind.messages[: len(before.messages)] == before.messages
        assert goes_on == (behind.kind == "tool")
    with pytest.raises(ValueError, match="hops is 0"):
        agent_workload(hops=0, tool_wait_s=0.2, seed=1)


def write(path: Path, *lines: object) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return path


ASK = [{"role": "user", "content": "Say yes."}]


def test_a_users_file_has_messages_and_a_verifier_a_line(tmp_path: Path) -> None:
    checked = {"messages": ASK, "verifier": {"type": "exact", "value": "yes"}, "id": "first", "max_tokens": 5}
    workload = file_workload(write(tmp_path / "mine.jsonl", checked, "", {"messages": ASK}), make_verifier, seed=4)
    assert (workload.size, workload.name) == (2, "mine")
    assert "1 of them without one: any text is" in workload.note
    first, second = workload.task(0), workload.task(1)
    assert (first.id, second.id, first.hops[0].max_tokens) == ("first", "1", 5)
    assert verdict(first.hops[0], {"content": "yes"}) is True
    assert verdict(first.hops[0], {"content": "no"}) is False
    assert [verdict(second.hops[0], {"content": text}) for text in ("no", " ", None)] == [True, False, False]
    assert first.seed != second.seed
    other = file_workload(write(tmp_path / "mine.jsonl", checked), make_verifier, seed=4)
    assert other.digest != workload.digest


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "line 2 is no JSON"),
        ({"prompt": "x"}, "line 2 has no messages; write"),
        ({"messages": ASK, "verifer": {}}, "line 2 has verifer; known are id, messages"),
        ({"messages": ASK, "verifier": {"type": "magic"}}, "line 2 has a verifier that cannot be had"),
    ],
)
def test_a_line_that_is_wrong_is_named(line: object, told: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=told):
        file_workload(write(tmp_path / "mine.jsonl", {"messages": ASK}, line), make_verifier, seed=0)


AZURE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n"
)
MOONCAKE = [
    {"timestamp": 3000, "input_length": 1500, "output_length": 50, "hash_ids": [0, 1, 2]},
    {"timestamp": 1000, "input_length": 1024, "output_length": 10, "hash_ids": [0, 1]},
]


def test_arrivals_and_lengths_of_azures_trace_are_kept_and_scaled(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(AZURE)
    workload = trace_workload(TraceConfig(name="azure-conv", file=path, scale=0.5), 0.25, seed=0)
    assert workload.arrivals == pytest.approx([0.0, 4.314579], abs=1e-6)
    [hop] = workload.task(1).hops
    assert hop.max_tokens == 54  # 109 / 2
    assert len(hop.messages[0]["content"]) == 396 / 2 / 0.25
    assert hop.messages[0]["content"] in read_prose(None), "its words are real text"
    assert hop.extra == {}
    whole = trace_workload(TraceConfig(name="azure-conv", file=path, ignore_eos=True, most_prompt=9), 0.25, seed=0)
    assert whole.task(0).hops[0].extra == {"ignore_eos": True}
    assert len(whole.task(0).hops[0].messages[0]["content"]) == 36


def test_requests_of_mooncakes_trace_that_share_blocks_begin_with_the_same_text(tmp_path: Path) -> None:
    path = write(tmp_path / "trace.jsonl", *MOONCAKE)
    assert read_trace(path)[0] == Arrival(1.0, 1024, 10, (0, 1))
    workload = trace_workload(TraceConfig(name="mooncake", file=path, scale=0.1), 0.25, seed=0)
    assert workload.arrivals == [0, 2]
    short, long = (workload.task(at).hops[0].messages[0]["content"] for at in (0, 1))
    assert len(long) > len(short) > 350
    assert long.startswith(short)


def test_a_text_can_be_named_and_is_cut_by_its_tokens(tmp_path: Path) -> None:
    text = "".join(f"word{number} " for number in range(4000))
    path = tmp_path / "prose.txt"
    path.write_text(text)
    share = measure_tokens(path)
    assert 0.1 < share < 1
    piece = cut(read_prose(path), 12345, 100, share)
    assert piece in text
    assert len(piece) == pytest.approx(100 / share, abs=1)
    short = tmp_path / "short.txt"
    short.write_text("few words")
    with pytest.raises(ValueError, match="has 9 characters; name a text of 10,000"):
        read_prose(short)


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("azure-code", "https://github.com/Azure/AzurePublicDataset"),
        ("mooncake", "https://github.com/kvcache-ai/Mooncake"),
    ],
)
def test_where_a_trace_is_absent_its_public_source_is_named(name: str, source: str, tmp_path: Path) -> None:
    for config in (
        TraceConfig(name=name),
        TraceConfig(name=name, folder=tmp_path),
        TraceConfig(name=name, file=tmp_path / "no"),
    ):
        with pytest.raises(ValueError, match=source):
            find_trace(config)


def test_a_file_that_is_no_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is no trace of Azure or Mooncake"):
        read_trace(write(tmp_path / "other.jsonl", {"hello": 1}))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"name": "gpt"}, "trace is 'gpt'; choose from azure-code"),
        ({"name": "mooncake", "scale": 0.0}, "scale is 0"),
        ({"name": "mooncake", "most_prompt": 0}, "most_prompt is 0"),
        ({"name": "mooncake", "skip": -1}, "skip is -1"),
    ],
)
def test_a_trace_that_makes_no_sense_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        TraceConfig(**options)


@pytest.mark.parametrize(("name", "count"), [("azure-code", 8819), ("azure-conv", 19366), ("mooncake", 12031)])
def test_the_real_traces_are_read(name: str, count: int) -> None:
    folder = os.environ.get("MEZZOTINT_DATA")
    if not folder:
        pytest.skip("MEZZOTINT_DATA names no folder of traces")
    arrivals = read_trace(find_trace(TraceConfig(name=name, folder=Path(folder))))
    assert len(arrivals) == count
    assert arrivals[0].at_s == 0
    assert all(arrival.prompt_tokens >= 0 for arrival in arrivals)


def test_an_answer_is_usable_from_the_first_chunk_by_which_it_is_right_and_signs_are_told() -> None:
    [hop] = family_workload(["repeat"], seed=0).task(0).hops
    task = family_workload(["repeat"], seed=0).task(0)
    right = FAMILIES["repeat"].generate(0, "test").answer
    lengths = (len(right) - 1, len(right), len(right) + 1)
    told = request(3.0, arrivals=(1.0, 2.0, 3.0), lengths=lengths, text=f"{right} ")
    [seen] = asyncio.run(inspect(played(0, told), task)).requests
    assert seen.usable_s == 2.0
    assert seen.findings == ()
    looping = request(3.0, arrivals=(3.0,), lengths=(400,), text="on and on " * 40, outcome="rejected")
    [seen] = asyncio.run(inspect(played(0, looping), task)).requests
    assert (seen.usable_s, "loop" in seen.findings) == (None, True)
    call = request(3.0, text="", finish_reason="tool_calls")
    [seen] = asyncio.run(inspect(played(0, call), task)).requests
    assert seen.findings == ()
    assert verdict(hop, {"content": right}) is True


def test_verifiers_that_may_cost_something_are_not_tried_piece_by_piece() -> None:
    dear: Verifier = Says("yes")
    task = family_workload(["repeat"], seed=0).task(0)
    other = task.__class__(id="x", family="x", seed=0, hops=(Hop(messages=({"content": "?"},), verifier=dear),))
    [seen] = asyncio.run(inspect(played(0, request(1.0, lengths=(3,), text="yes")), other)).requests
    assert seen.usable_s is None
