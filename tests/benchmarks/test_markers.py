"""A program rewrites its part of a document and nothing else."""

from pathlib import Path

import pytest

from benchmarks.markers import rewrite, rewrite_document
from tests.disk import document

PAGE = "# Page\n\n<!-- part: begin -->\nold\n<!-- part: end -->\n\nBelow, <!-- other: begin --> <!-- other: end -->\n"


def test_what_stands_between_the_markers_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    rewrite_document(path, "part", "| new |\n")
    written = PAGE.replace("\nold\n", "\n\n| new |\n\n")
    assert path.read_text() == written
    rewrite_document(path, "part", "| new |")
    assert path.read_text() == written


@pytest.mark.parametrize(
    "page",
    [
        PAGE.replace("<!-- part: begin -->", ""),
        PAGE.replace("<!-- part: end -->", ""),
        PAGE + PAGE,
        "<!-- part: end --> <!-- part: begin -->",
    ],
)
def test_a_document_without_one_pair_of_markers_is_refused(page: str) -> None:
    with pytest.raises(
        ValueError, match=r"page\.md must hold '<!-- part: begin -->' once, and '<!-- part: end -->' once"
    ):
        rewrite(page, "part", "new", where="page.md")


@pytest.mark.parametrize("name", ["report", "ablations"])
def test_the_page_of_lab_has_a_place_for_what_is_written_there(name: str) -> None:
    assert "new" in rewrite(document("docs/lab.md"), name, "new", where="docs/lab.md")
