"""A checkpoint that runs as machine code writes what the others write, and is refused where it cannot."""

from pathlib import Path

import pytest

from mezzotint import LLM
from mezzotint.decoding.policy import SMALL_MODEL
from mezzotint.model import native
from tests.llm.tiny import ASKED, CHAT, answer
from tests.model.compiler import needs_compiler


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_compiled_checkpoint_writes_what_the_plain_one_writes(folder: Path, dtype: str) -> None:
    plain, compiled = (LLM(str(folder), dtype=dtype, compiled=fast, costs=SMALL_MODEL) for fast in (False, True))
    assert compiled.model.compiled
    assert not plain.model.compiled
    for params in ASKED.values():
        assert answer(compiled, CHAT, params) == answer(plain, CHAT, params)


def test_without_a_compiler_nothing_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "which", lambda name: None)
    with pytest.raises(ValueError, match=r"compiling takes a C\+\+ compiler"):
        LLM("nowhere", compiled=True)


def test_compiled_is_yes_or_no() -> None:
    with pytest.raises(ValueError, match=r"^compiled is 1; give True or False$"):
        LLM("nowhere", compiled=1)  # type: ignore[arg-type]
