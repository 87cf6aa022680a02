"""The examples run, on a checkpoint that is named or on the bundled one."""

import runpy
from pathlib import Path

import pytest

from tests.disk import ROOT

WORDS = {
    "demo": ["denoising 1 of 6", "diffusion: ", "ar: ", "parallel_rule", "tokens/forward"],
    "infill": [
        "filled with ",
        "written anew as ",
        "def __init__(self, name, value):\n    self.name",
        "red: ",
        "blue: ",
    ],
    "offline": ["64 tokens in ", "seed 1"],
    "samplers": ["report: ", "hf: ", "jax: ", "refine: ", "ddim: ", "of 48 steps"],
    "stream": ["step 1 of 6", "block 0 is final after 6 steps", "the whole answer, which ended by length"],
}


def test_every_example_is_run_here() -> None:
    assert {file.stem for file in (ROOT / "examples").glob("*.py")} == set(WORDS)


@pytest.mark.parametrize("name", WORDS)
def test_an_example_runs(
    name: str, wide: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", [f"{name}.py", str(wide)])
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    out = capsys.readouterr().out
    assert not [words for words in WORDS[name] if words not in out]
