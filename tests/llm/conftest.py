"""The tiny checkpoint, loaded, and a watch over what it runs."""

from pathlib import Path

import pytest

from mezzotint import LLM
from mezzotint.decoding.policy import SMALL_MODEL
from tests.llm.tiny import watch, write


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("llm"))


@pytest.fixture(scope="session")
def llm(folder: Path) -> LLM:
    return LLM(str(folder), costs=SMALL_MODEL)


@pytest.fixture
def forwards(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The forwards that `llm` has run since the test began, in order."""
    return watch(llm, monkeypatch)
