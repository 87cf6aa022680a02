"""Files of requests: every line is answered once, and a second start goes on where the first was."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mezzotint.server.backend import Backend
from mezzotint.server.batch import Progress, read_lines, run_batch
from tests.server.running import make_backend

CHAT = {"model": "lab", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 16, "seed": 1}


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    made = make_backend()
    made.start()
    yield made
    made.stop()


def write(file: Path, *lines: Any) -> Path:
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def line(id: str, url: str = "/v1/chat/completions", **body: Any) -> dict[str, Any]:
    return {"custom_id": id, "method": "POST", "url": url, "body": body or CHAT}


def run(backend: Backend, requests: Path, output: Path) -> tuple[Progress, list[Progress]]:
    shown: list[Progress] = []
    return asyncio.run(run_batch(backend, read_lines(requests), output, 3, shown.append)), shown


def answers(output: Path) -> dict[str, Any]:
    told = [json.loads(text) for text in output.read_text().splitlines()]
    assert len({each["custom_id"] for each in told}) == len(told)
    return {each["custom_id"]: each for each in told}


def test_every_line_is_answered_and_what_is_wrong_with_one_is_told_in_its_place(
    backend: Backend, tmp_path: Path
) -> None:
    requests = write(
        tmp_path / "r.jsonl",
        line("a"),
        line("b", "/v1/completions", model="lab:ar", prompt="abc", max_tokens=3),
        line("c", "/v1/responses", model="lab", input="Hello", max_output_tokens=16),
        line("d", model="lab", messages=[], max_tokens=4),
        line("e", model="lab", frobnicate=1, messages=[]),
        line("f", "/v1/completions", model="lab", prompt="a", suffix="b", max_tokens=4),
    )
    ended, shown = run(backend, requests, tmp_path / "out.jsonl")
    assert ended == Progress(6, 6, 2)
    assert [progress.written for progress in shown] == list(range(7))
    told = answers(tmp_path / "out.jsonl")
    assert {id: each["response"]["status_code"] for id, each in told.items()} == {
        "a": 200, "b": 200, "c": 200, "d": 400, "e": 400, "f": 200,
    }  # fmt: skip
    assert told["a"]["response"]["body"]["object"] == "chat.completion"
    assert told["c"]["response"]["body"]["object"] == "response"
    assert "frobnicate" in told["e"]["error"]["message"]


def test_a_second_start_answers_what_a_kill_left(backend: Backend, tmp_path: Path) -> None:
    requests, output = write(tmp_path / "r.jsonl", *(line(str(at)) for at in range(5))), tmp_path / "out.jsonl"
    run(backend, requests, output)
    kept = output.read_text().splitlines(keepends=True)
    failed = json.loads(kept[3])
    failed["response"]["status_code"] = 503
    output.write_text("".join(kept[:2]) + json.dumps(failed) + "\n" + kept[4][:40])
    ended, shown = run(backend, requests, output)
    assert shown[0].written == 2
    assert ended == Progress(5, 5, 0)
    assert output.read_text().startswith("".join(kept[:2]))
    assert answers(output).keys() == set("01234")


def test_answers_to_other_requests_are_not_mixed_in(backend: Backend, tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    run(backend, write(tmp_path / "r.jsonl", line("a")), output)
    with pytest.raises(ValueError, match=r"holds an answer to 'a'.*another --output"):
        run(backend, write(tmp_path / "s.jsonl", line("b")), output)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "line 1 is no JSON"),
        ("[]", "has no custom_id"),
        (json.dumps({**line("a"), "url": "/v1/files"}), "asks for POST /v1/files"),
        (json.dumps({**line("a"), "body": 1}), "has the body 1"),
        (f"{json.dumps(line('a'))}\n{json.dumps(line('a'))}", "line 2 has the custom_id 'a'"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_before_any_work(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "r.jsonl"
    file.write_text(text)
    with pytest.raises(ValueError, match=told):
        read_lines(file)


def test_an_output_that_holds_anything_else_is_not_touched(backend: Backend, tmp_path: Path) -> None:
    output = tmp_path / "notes.txt"
    for notes in ("my notes\nof years\n", "my notes", '{"id": "mine"}'):
        output.write_text(notes)
        with pytest.raises(ValueError, match=r"holds .*which is no answer"):
            run(backend, write(tmp_path / "r.jsonl", line("a")), output)
        assert output.read_text() == notes


def test_a_line_that_breaks_what_reads_it_fails_alone_and_odd_ids_come_back(backend: Backend, tmp_path: Path) -> None:
    odd = {"model": "lab", "messages": [{"role": "assistant", "tool_calls": 5}]}
    requests = tmp_path / "r.jsonl"
    lines = [
        line("a\u2028b"),
        line("\ud83d"),
        line("odd", **odd),
        line("s", **CHAT, stream=True),
        line("n", **CHAT, n=50),
    ]
    requests.write_text(
        "\ufeff" + "\r\n".join(json.dumps(each, ensure_ascii=each["custom_id"] != "a\u2028b") for each in lines)
    )
    ended, _ = run(backend, requests, tmp_path / "out.jsonl")
    assert ended == Progress(5, 5, 3)
    again, shown = run(backend, requests, tmp_path / "out.jsonl")
    assert (again, shown[0].written) == (ended, 5)
    told = {id: each["response"] for id, each in answers(tmp_path / "out.jsonl").items()}
    assert [told[id]["status_code"] for id in ("a\u2028b", "\ud83d", "odd", "s", "n")] == [200, 200, 400, 400, 400]
