"""Suites: their own solutions are accepted and broken ones are not, where files are absent that is told, and draws."""

import asyncio
import json
from pathlib import Path

import pytest

from mezzotint.evaluate.local import write_message
from mezzotint.evaluate.question import Question
from mezzotint.evaluate.sandbox import SandboxError, check_sandbox
from mezzotint.evaluate.suites import SUITES, read_suite
from mezzotint.evaluate.suites.families import CHATS
from mezzotint.evaluate.suites.oracle import write_oracle
from mezzotint.evaluate.verify import make_verifier
from mezzotint.tasks import FAMILIES
from mezzotint.tasks.message import read_message
from mezzotint.types import Verdict

CODE = ("humaneval", "humaneval+", "mbpp", "mbpp+", "infilling-single", "infilling-multi")
FEW = 3


@pytest.fixture(scope="module")
def usable() -> None:
    try:
        check_sandbox()
    except SandboxError as error:
        pytest.skip(str(error))


def judge(question: Question, content: str) -> Verdict:
    return asyncio.run(question.verifier.verify(question.messages, {"role": "assistant", "content": content}))


@pytest.mark.usefixtures("usable")
@pytest.mark.parametrize("name", CODE)
def test_own_solutions_are_accepted_and_broken_ones_are_not(data_dir: Path, name: str) -> None:
    for question in read_suite(name, data=data_dir, n=FEW, seed=0).questions:
        is_blank = question.around is not None
        right = question.right if is_blank else f"Sure:\n```python\n{question.right}\n```"
        assert judge(question, right) == Verdict(accepted=True)
        broken = "    )" if is_blank else right.replace("return ", "return 'wrong', ")
        assert judge(question, broken).accepted is False


def test_suites_have_their_published_sizes_less_what_is_left_out(data_dir: Path) -> None:
    suites = {name: read_suite(name, data=data_dir, walls=False) for name in SUITES if name not in ("gsm8k", *CHATS)}
    assert {name: len(suite.questions) for name, suite in suites.items()} == {
        "humaneval": 164,
        "humaneval+": 164,
        "mbpp": 499,
        "mbpp-all": 972,
        "mbpp+": 377,
        "infilling-single": 1033,
        "infilling-multi": 5815,
        "gsm8k-train": 7473,
    }
    reason = "its own solution fails its own tests under Python 3.11"
    assert suites["mbpp-all"].skipped == {"367": reason, "927": reason}
    assert suites["mbpp"].skipped == {"367": reason}
    for suite in suites.values():
        assert len({question.id for question in suite.questions}) == len(suite.questions)


def test_sums_are_judged_by_their_number(data_dir: Path) -> None:
    suite = read_suite("gsm8k-train", data=data_dir, n=40)
    assert "a model may have learnt them" in suite.note
    for question in suite.questions:
        assert judge(question, question.right).accepted is True
        assert judge(question, question.right + "1").accepted is False


def test_the_hidden_parts_of_a_benchmark_are_not_in_its_questions(data_dir: Path) -> None:
    for name in ("humaneval+", "mbpp+"):
        for question in read_suite(name, data=data_dir, n=20).questions:
            [message] = question.messages
            assert question.right.strip() not in message["content"]


def test_a_file_that_is_absent_is_told_with_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"holds no gsm8k_test\.jsonl\.gz; get gsm8k_test\.jsonl from https://github"):
        read_suite("gsm8k", data=tmp_path)
    with pytest.raises(ValueError, match=r"no folder of data is named; get mbpp\.jsonl from https://.*--data or MEZZO"):
        read_suite("mbpp", data=None)
    (tmp_path / "gsm8k_test.jsonl").write_text('{"question": "1 + 1?", "answer": "so #### 2"}\n')
    [question] = read_suite("gsm8k", data=tmp_path).questions
    assert judge(question, "#### 2").accepted is True
    (tmp_path / "gsm8k_test.jsonl").write_text("nothing\n")
    with pytest.raises(ValueError, match="line 1 is no JSON"):
        read_suite("gsm8k", data=tmp_path)


def test_a_larger_draw_holds_the_smaller_one() -> None:
    few, more = (read_suite("extract", data=None, n=n, seed=2).questions for n in (3, 6))
    assert [question.id for question in more[:3]] == [question.id for question in few]
    assert read_suite("extract", data=None, n=3, seed=3).questions[0].id != few[0].id


def test_a_draw_of_a_file_is_by_seed_and_grows(tmp_path: Path) -> None:
    lines = [json.dumps({"question": f"{i}?", "answer": f"#### {i}"}) for i in range(50)]
    (tmp_path / "gsm8k_test.jsonl").write_text("\n".join(lines))
    ids = [
        [question.id for question in read_suite("gsm8k", data=tmp_path, n=n, seed=seed).questions]
        for n, seed in ((5, 1), (20, 1), (5, 2), (99, 1))
    ]
    assert set(ids[0]) < set(ids[1])
    assert ids[0] != ids[2]
    assert len(ids[3]) == 50


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"name": "chess"}, "suite is 'chess'; choose from humaneval, "),
        ({"name": "extract", "n": 0}, "n is 0; ask for at least 1"),
        ({"name": "extract", "n": 2, "max_tokens": 0}, "max_tokens is 0; give at least 1"),
    ],
)
def test_what_there_is_not_is_refused(options: dict[str, int], told: str) -> None:
    with pytest.raises(ValueError, match="; ") as error:
        read_suite(**{"data": None, **options})  # type: ignore[arg-type]
    assert told in str(error.value)


def test_the_limit_of_answers_can_be_set() -> None:
    assert {q.max_tokens for q in read_suite("extract", data=None, n=2, max_tokens=7).questions} == {7}


@pytest.mark.parametrize("name", [name for name in CHATS if name != "repair"])  # whose library takes seconds to read
def test_a_family_takes_its_own_answers_in_openais_form_and_no_others(name: str) -> None:
    for question in read_suite(name, data=None, n=2, seed=1).questions:
        example = FAMILIES[name].generate(int(question.id), "test")
        message = write_message(example.reply)
        assert read_message(message) == example.reply
        verify = question.verifier.verify
        assert asyncio.run(verify(question.messages, message)).accepted is True
        assert asyncio.run(verify(question.messages, {"content": "I cannot say."})).accepted is False


def test_a_call_that_cannot_be_read_is_not_right() -> None:
    [question] = read_suite("call", data=None, n=1).questions
    call = {"function": {"name": "f", "arguments": "{"}}
    verdict = asyncio.run(question.verifier.verify((), {"content": None, "tool_calls": [call]}))
    assert verdict.accepted is False
    assert "The arguments of f are no JSON object." in verdict.reason


def check_oracle(name: str, solution: str, answer: str, inputs: object, tolerance: float = 0) -> bool | None:
    tests = write_oracle(name, solution, json.dumps(inputs), tolerance)
    verifier = make_verifier({"type": "python_tests", "tests": tests})
    return asyncio.run(verifier.verify([], {"content": answer})).accepted


@pytest.mark.usefixtures("usable")
def test_an_answer_must_say_what_the_reference_says_to_every_input() -> None:
    half = "def f(x):\n    return [x / 2, 'a']"
    assert check_oracle("f", half, "def f(x):\n    return [x * 0.5 + 1e-9, 'a']", [[1], [2]]) is True
    assert check_oracle("f", half, "def f(x):\n    return [x * 0.5 + 1e-3, 'a']", [[1], [2]]) is False
    assert check_oracle("f", half, "def f(x):\n    return [x * 0.5 + 1e-3, 'a']", [[1], [2]], 0.01) is True
    assert check_oracle("f", half, "def f(x):\n    return (x / 2, 'a')", [[1]]) is False
    assert check_oracle("f", half, "def f(x):\n    return [0.5, 'a']", [[1], [2]]) is False
    growing = "def f(x):\n    x.append(1)\n    return len(x)"
    assert check_oracle("f", growing, growing, [[[]], [[1]]]) is True  # nobody sees what another did to an input
    partly = "def f(x):\n    return 1 // x"
    assert check_oracle("f", partly, "def f(x):\n    return 1", [[0], [1]]) is True
    assert check_oracle("f", partly, partly, [[0], [1]]) is True


@pytest.mark.usefixtures("usable")
def test_some_functions_are_compared_by_what_their_tasks_leave_open() -> None:
    same = "def similar_elements(a, b):\n    return tuple(sorted(set(a) & set(b)))"
    turned = "def similar_elements(a, b):\n    return list(set(a) & set(b))[::-1]"
    assert check_oracle("similar_elements", same, turned, [[[1, 2, 3], [3, 2]]]) is True
    found = "import re\ndef check_str(x):\n    return re.search('a', x)"
    assert check_oracle("check_str", found, "def check_str(x):\n    return 'a' in x", [["a"], ["b"]]) is True
    assert check_oracle("check_str", found, "def check_str(x):\n    return True", [["a"], ["b"]]) is False
