"""The documents: every link leads somewhere, and every clause of the contract names a test that exists."""

import ast
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.disk import ROOT, document, files, short


class Clause(NamedTuple):
    """One numbered clause of docs/contract.md and the tests that it names."""

    number: int
    tests: list[str]


def test_every_relative_link_resolves() -> None:
    broken = []
    for file in files():
        if file.suffix == ".md":
            links = re.findall(r"\]\(([^)\s]+)\)", without_code(file.read_text()))
            broken += [f"{short(file)}: {link}" for link in links if not resolves(file, link)]
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("link", ["nowhere.md", "README.md#no-such-heading", "#no-such-heading"])
def test_a_link_to_nowhere_is_found(link: str) -> None:
    assert not resolves(ROOT / "ARCHITECTURE.md", link)


@pytest.mark.parametrize("link", ["CONTRIBUTING.md", "#rooms", "LICENSE", "https://example.org/#x"])
def test_a_link_to_somewhere_is_left_alone(link: str) -> None:
    assert resolves(ROOT / "ARCHITECTURE.md", link)


def test_every_clause_of_the_contract_names_a_test_that_exists() -> None:
    clauses = clauses_of(document("docs/contract.md"))
    assert [clause.number for clause in clauses] == list(range(1, len(clauses) + 1)), "clauses count up from 1"
    assert clauses, "docs/contract.md has no numbered clause"
    for clause in clauses:
        assert clause.tests, f"clause {clause.number} names no test"
        missing = [name for name in clause.tests if not exists(name)]
        assert not missing, f"clause {clause.number} names {missing}, which do not exist"


def test_the_contract_reader_tells_a_clause_without_a_test() -> None:
    text = "## 1. One\n`tests/test_repo.py::test_x`\n\n2. **Two.** untested\n| 3 | `tests/a.py` |\n"
    assert clauses_of(text) == [
        Clause(1, ["tests/test_repo.py::test_x"]),
        Clause(2, []),
        Clause(3, ["tests/a.py"]),
    ]
    assert exists("tests/test_documents.py::test_the_contract_reader_tells_a_clause_without_a_test")
    assert not exists("tests/test_repo.py::test_x")
    assert not exists("tests/a.py")


def without_code(text: str) -> str:
    """Markdown without its fenced blocks."""
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def resolves(file: Path, link: str) -> bool:
    """Whether a link in a file leads to a file, and to a heading if it names one; other sites are trusted."""
    path, _, anchor = link.partition("#")
    target = file.parent / path if path else file
    return ":" in path or (target.exists() and (not anchor or anchor in anchors_of(target)))


def anchors_of(file: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a Markdown file."""
    headings = re.findall(r"^#+ (.+)$", file.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def clauses_of(text: str) -> list[Clause]:
    """The clauses of a contract: headings, table rows or list items that open with a number."""
    starts = list(re.finditer(r"^(?:#+ |\| ?)?\**(\d+)(?:[.)]| \|)", text, re.MULTILINE))
    ends = [start.start() for start in starts[1:]] + [len(text)]
    return [
        Clause(int(start[1]), re.findall(r"`(tests/[\w/]+\.py(?:::\w+)*)`", text[start.start() : end]))
        for start, end in zip(starts, ends, strict=True)
    ]


def exists(name: str) -> bool:
    """Whether a node id, or a test file, is on disk."""
    path, *nodes = name.split("::")
    if not (ROOT / path).is_file():
        return False
    tree: ast.Module | ast.ClassDef | ast.FunctionDef = ast.parse((ROOT / path).read_text())
    for node in nodes:
        found = [n for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef) and n.name == node]
        if not found:
            return False
        tree = found[0]
    return True
