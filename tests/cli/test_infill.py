"""A file filled on the command line: the whole text on standard output, its cost beside it, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from mezzotint import LLM, SamplingParams
from mezzotint.llm import Blank

Cli = Callable[..., Result]
SEED = ("--seed", "3")
PARAMS = SamplingParams(seed=3)
TEXT = "def add(a, b):\r\n    total = a + b\r\n    return total  # é\n"


@pytest.fixture(scope="module")
def llm(tiny: Path) -> LLM:
    return LLM(str(tiny))


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], str]:
    def write(text: str) -> str:
        place = tmp_path / "given.py"
        place.write_bytes(text.encode())
        return str(place)

    return write


def test_blanks_are_filled_and_the_rest_is_written_as_it_was(cli: Cli, file: Any, llm: LLM) -> None:
    result = cli("infill", file(TEXT.replace("a + b", "<blank:3>").replace("# é", "# <blank>")), *SEED)
    assert result.exit_code == 0
    before, _, rest = TEXT.partition("a + b")
    between, _, behind = rest.partition("é")
    done = llm.infill([before, Blank(max_tokens=3), between, Blank(), behind], PARAMS)
    assert result.stdout_bytes == done.text.encode()
    assert done.text.startswith(before)
    assert result.stderr.startswith("— diffusion report · ")


def test_json_tells_each_middle_and_the_cost(cli: Cli, file: Any, llm: LLM) -> None:
    found = json.loads(cli("infill", file("a = [] + []\n"), "--blank", "[]", "--json", *SEED).stdout)
    done = llm.infill(["a = ", Blank(), " + ", Blank(), "\n"], PARAMS)
    assert found["text"] == done.text
    assert found["middles"] == [middle._asdict() for middle in done.middles]
    assert found["usage"]["completion_tokens"] == sum(middle.tokens for middle in done.middles)
    assert found["metrics"]["diffusion"]["forwards"] == done.receipt.forwards


def test_lines_or_a_span_are_written_anew(cli: Cli, file: Any, llm: LLM) -> None:
    by_lines = cli("infill", file(TEXT), "--lines", "2:2", "--max-tokens", "3", *SEED).stdout_bytes.decode()
    first, second, third = TEXT.splitlines(keepends=True)
    assert by_lines == llm.infill([first, Blank(max_tokens=3), "\n" + third], PARAMS).text
    start = TEXT.index("a + b")
    by_span = cli("infill", file(TEXT), "--span", f"{start}:{start + 5}", "--max-tokens", "3", *SEED).stdout_bytes
    assert by_span.decode() == llm.infill([TEXT[:start], Blank(max_tokens=3), TEXT[start + 5 :]], PARAMS).text
    assert len(second) > 5


def test_standard_input_hints_raw_and_lengths_are_honoured(cli: Cli, llm: LLM) -> None:
    def run(*arguments: str) -> str:
        return cli("infill", "-", *arguments, *SEED, input="x = <blank:3>\n").stdout_bytes.decode()

    plain: list[str | Blank] = ["x = ", Blank(max_tokens=3), "\n"]
    assert run() == llm.infill(plain, PARAMS).text
    assert run("--raw") == llm.infill(plain, PARAMS, raw=True).text
    assert run("--lengths", "candidates") == llm.infill(plain, PARAMS, lengths="candidates").text
    hinted = llm.infill(["x = ", Blank(max_tokens=3, hint="a number"), "\n"], PARAMS)
    assert run("--hint", "a number") == hinted.text
    told = json.loads(run("--hint", "a number", "--json"))
    assert told["usage"]["prompt_tokens"] == hinted.receipt.prompt_tokens


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        ("a = 1\n", [], "no blank is marked: '<blank>' does not occur"),
        ("a = <blank>\n", ["--blank", "__"], "'__' does not occur"),
        ("a = <blank>\n", ["--blank", "__", "--lines", "1:1"], "--blank and --lines each say where the blanks are"),
        ("a = 1\n", ["--lines", "2:3"], "lines 2:3 do not lie in a text of 1 lines"),
        ("a = 1\n", ["--lines", "2"], "--lines is '2'; write two whole numbers"),
        ("a = 1\n", ["--span", "0:99"], "span 0:99 does not lie in a text of 6 characters"),
        ("a = 1\n", ["--span", "0:1", "--hint", "x", "--hint", "y"], "2 hints are given, but --span makes one blank"),
        ("<blank>\n", ["--hint", "x", "--hint", "y"], "2 hints are given for 1 blanks"),
        ("<blank>\n", ["--hint", "x", "--raw"], "blank 1 has a hint"),
        ("<blank>\n", ["--decoder", "ar"], "decoder is 'ar', which sees only what stands before a blank"),
        ("<blank>\n", ["--lengths", "all"], "lengths is 'all'; choose one of"),
        ("<blank:5>\n", ["--lengths", "candidates"], "a blank may have 5 tokens"),
        ("a = 1\n" * 300 + "<blank>\n", [], "exceed the context of 512"),
        ("<blank>\n", ["--ignore-eos"], "ignore_eos is True, which blanks do not use"),
    ],
)
def test_what_cannot_be_filled_is_one_line_on_standard_error(
    cli: Cli, file: Any, text: str, arguments: list[str], words: str
) -> None:
    result = cli("infill", file(text), *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("flag", ["--schema", "--regex", "--grammar"])
def test_a_grammar_inside_a_blank_is_not_offered(cli: Cli, file: Any, flag: str) -> None:
    result = cli("infill", file("<blank>\n"), flag, "x")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"No such option: {flag}" in result.stderr


def test_a_file_that_is_missing_or_no_text_is_refused(cli: Cli, tmp_path: Path) -> None:
    assert "missing.py" in cli("infill", str(tmp_path / "missing.py")).stderr
    (tmp_path / "image").write_bytes(b"ab\xff<blank>")
    assert "is no UTF-8 from byte 2 on" in cli("infill", str(tmp_path / "image")).stderr
