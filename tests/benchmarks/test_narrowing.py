"""The figures of narrower canvases: every option answers the same prompts, and stands beside the full canvas."""

from pathlib import Path

import pytest

from benchmarks.narrowing import OPTIONS, main


def test_every_option_answers_every_prompt_and_is_compared_with_the_full_canvas(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = tmp_path / "figures.md"
    document.write_text("before\n<!-- narrowing: begin -->\n<!-- narrowing: end -->\n")
    main(["--n", "2", "--tasks", "chat", "--ways", "eager", "--write", str(document)])
    printed = capsys.readouterr().out
    assert printed.strip() in document.read_text()
    rows = {row[2]: row for line in printed.splitlines() if (row := line.strip("| ").split(" | "))[0] == "chat"}
    assert rows.keys() == OPTIONS.keys()
    assert {row[3] for row in rows.values()} == {"2"}
    assert rows["full"][-2:] == ["1.00", "1.00–1.00"]
    blocks = {name: float(row[7]) for name, row in rows.items()}
    assert blocks["canvas_length 16"] >= blocks["full"]


def test_what_cannot_be_measured_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in (["--n", "0"], ["--tasks", "poems"], ["--ways", "fast"]):
        with pytest.raises(SystemExit):
            main(wrong)
    assert "--n is 0; give 1 or more" in capsys.readouterr().err
