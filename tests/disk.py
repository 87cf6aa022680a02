"""What is on disk in this project, for the tests of the house; no test lives here."""

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]


@cache
def files() -> tuple[Path, ...]:
    """Every file of the project: what git tracks or would add."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(file for name in sorted(listing.stdout.split("\0")) if name and (file := ROOT / name).is_file())


def files_under(*folders: str) -> list[Path]:
    """The files in some folders of the project, at any depth."""
    parents = {ROOT / folder for folder in folders}
    return [file for file in files() if parents & set(file.parents)]


def code_under(*folders: str) -> list[Path]:
    """The Python files in some folders of the project."""
    return [file for file in files_under(*folders) if file.suffix == ".py"]


def document(name: str) -> str:
    """The text of a file that must be there."""
    path = ROOT / name
    assert path.is_file(), f"{name} is missing"
    return path.read_text()


def short(file: Path) -> str:
    """The path of a file as one would type it at the root of the project."""
    return file.relative_to(ROOT).as_posix()
