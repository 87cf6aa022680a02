"""A new process answers soon; its processors' time is bounded, for on a busy machine it waits for them."""

from pathlib import Path

import pytest

from benchmarks.cold_start import LIMIT_S, main, start_once
from tests.model.compiler import needs_compiler


def test_a_first_answer_takes_less_than_ten_seconds() -> None:
    start = start_once([])
    assert '"due":"2057-03-11"' in start.text
    assert 0.1 < start.processor_s < LIMIT_S


@pytest.mark.slow
@needs_compiler
def test_a_first_answer_takes_less_than_ten_seconds_even_where_nothing_is_compiled_yet(tmp_path: Path) -> None:
    start = start_once(["--compile"], {"XDG_CACHE_HOME": str(tmp_path)})
    assert '"due":"2057-03-11"' in start.text
    assert list(tmp_path.rglob("*.so"))
    assert start.processor_s < LIMIT_S


def test_no_round_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--rounds", "0"])
    assert "--rounds is 0; give 1 or more" in capsys.readouterr().err
