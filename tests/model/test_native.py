"""Kernels are compiled once, for what they are and where they run; whatever prevents that is told."""

import ctypes
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from mezzotint.model import native
from mezzotint.model.native import check_compiled, load_kernels
from tests.model.compiler import needs_compiler

CPU = torch.device("cpu")


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of kernels that compiles at once, and an empty cache."""
    folder = tmp_path / "kernels"
    folder.mkdir()
    (folder / "number.h").write_text("struct bf16 { short bits; };\n")
    (folder / "size.cpp").write_text('#include "number.h"\nextern "C" int size() { return sizeof(WEIGHT); }\n')
    monkeypatch.setattr(native, "KERNELS", folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def libraries(kernels: Path) -> set[Path]:
    return set((kernels.parent / "cache" / "mezzotint").iterdir())


def size(dtype: torch.dtype = torch.float32) -> int:
    """What the kernel says. A library that was opened once stays: each test has a folder of its own."""
    library: ctypes.CDLL = load_kernels(dtype)
    return int(library.size())


@needs_compiler
def test_each_type_of_weights_has_a_library(kernels: Path) -> None:
    assert [size(dtype) for dtype in (torch.bfloat16, torch.float32, torch.float64)] == [2, 4, 8]
    assert len(libraries(kernels)) == 3


@needs_compiler
def test_what_was_compiled_once_is_not_compiled_again(kernels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size()
    monkeypatch.setattr(native, "_build", lambda *arguments: pytest.fail("compiled again"))
    assert size() == 4


CHANGES: dict[str, Callable[[Path, pytest.MonkeyPatch], object]] = {
    "a source": lambda folder, patch: (folder / "more.cpp").write_text("// new\n"),
    "a header": lambda folder, patch: (folder / "number.h").write_text("struct bf16 { short all; };\n"),
    "the processor": lambda folder, patch: patch.setattr(native, "_processor", lambda: "another"),
    "the compiler's flags": lambda folder, patch: patch.setattr(native, "_FLAGS", [*native._FLAGS, "-g"]),
}


@needs_compiler
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_another_library_is_made_when_anything_changes(
    kernels: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path, pytest.MonkeyPatch], object]
) -> None:
    size()
    change(kernels, monkeypatch)
    size()
    assert len(libraries(kernels)) == 2


def test_without_a_compiler_the_error_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(native, "which", lambda name: None)
    for refused in (lambda: check_compiled(compiled=True, device=CPU), lambda: load_kernels(torch.float32)):
        with pytest.raises(ValueError, match=r"^compiling takes a C\+\+ compiler, and g\+\+ is not installed; install"):
            refused()
    check_compiled(compiled=False, device=CPU)


def test_a_named_compiler_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler -v")
    with pytest.raises(ValueError, match=r"and no-such-compiler -v is not installed; .* environment variable CXX"):
        check_compiled(compiled=True, device=CPU)


@needs_compiler
def test_what_the_compiler_refuses_is_told_and_leaves_nothing(kernels: Path) -> None:
    (kernels / "size.cpp").write_text("#error this is no C++\n")
    with pytest.raises(ValueError, match=r"cannot compile .*this is no C\+\+.*; install g\+\+") as caught:
        size()
    assert "\n" not in str(caught.value)
    assert libraries(kernels) == set()


@needs_compiler
def test_a_cache_that_cannot_be_written_is_named(kernels: Path) -> None:
    (kernels.parent / "cache").write_text("no folder")
    with pytest.raises(
        ValueError, match=rf"cannot be kept in {re.escape(str(kernels.parent / 'cache'))}.*XDG_CACHE_HOME"
    ):
        size()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"compiled": "yes", "device": CPU}, "compiled is 'yes'; give True or False"),
        (
            {"compiled": True, "device": torch.device("cuda:0")},
            "compiled code runs on the CPU, and device is 'cuda:0'; leave out one of the two",
        ),
    ],
)
def test_what_cannot_be_honoured_is_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        check_compiled(**options)  # type: ignore[arg-type]
