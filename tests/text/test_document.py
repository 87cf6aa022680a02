"""Documents with blanks: taken apart and put together, marked, cut, and told to a model."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mezzotint.text.document import Blank, cut_lines, cut_marked, cut_span, quote_rest, take_apart, write_request

TEXT = "one\ntwo\nthree\n"


@given(st.lists(st.text(min_size=1), min_size=2, max_size=5))
def test_a_document_with_its_middles_is_what_it_was_cut_from(pieces: list[str]) -> None:
    document: list[str | Blank] = [pieces[0]]
    for piece in pieces[1:]:
        document += [Blank(), piece]
    parts = take_apart(document)
    middles = [str(number) for number in range(len(parts.blanks))]
    expected = pieces[0] + "".join(f"{middle}{piece}" for middle, piece in zip(middles, pieces[1:], strict=True))
    assert parts.join(middles) == expected


def test_texts_side_by_side_are_one_and_a_blank_may_begin_or_end_a_document() -> None:
    assert take_apart(["a", "b", Blank(), "c"]).texts == ["ab", "c"]
    assert take_apart([Blank(), "c"]).texts == ["", "c"]
    assert take_apart(["a", Blank()]).texts == ["a", ""]


def test_each_marker_is_a_blank_with_its_own_length_and_hint() -> None:
    document = cut_marked("a <blank:24> b <blank>", hints=["first"])
    assert document == ["a ", Blank(max_tokens=24, hint="first"), " b ", Blank(), ""]
    assert cut_marked("f(__) <blank>", "__") == ["f(", Blank(), ") <blank>"]
    assert cut_marked("a <x:3>", "<x>") == ["a ", Blank(max_tokens=3), ""]


def test_a_span_and_lines_become_a_blank() -> None:
    assert cut_span(TEXT, 4, 7) == ["one\n", Blank(), "\nthree\n"]
    assert cut_lines(TEXT, 2, 2, Blank(max_tokens=3)) == ["one\n", Blank(max_tokens=3), "\nthree\n"]
    assert cut_lines(TEXT, 1, 3) == ["", Blank(), "\n"]
    assert cut_lines("one\ntwo", 2, 2) == ["one\n", Blank(), ""]
    assert cut_lines("one\n\ntwo", 2, 2) == ["one\n", Blank(), "\ntwo"]


def test_a_request_is_worded_as_the_bundled_model_learnt_it() -> None:
    assert write_request([None], "") == "Fill in the blank."
    assert write_request([None], "far") == "Fill in the blank.\nIt ends with:\nfar"


def test_hints_are_told_and_numbered_where_there_are_several() -> None:
    assert write_request(["a sum"], "") == "Fill in the blank.\nHint: a sum"
    assert write_request([None, "x"], "far") == "Fill in the blanks.\nHint for blank 2: x\nIt ends with:\nfar"
    assert quote_rest(["a", "b"]) == "a____b"


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: take_apart(["a"]), "the document has no blank"),
        (lambda: take_apart(["a", Blank(), "", Blank()]), "blanks 1 and 2 have nothing between them"),
        (lambda: take_apart("a <blank>"), "a document is a list of texts and blanks"),
        (lambda: take_apart(["a", 3]), "a document is a list of texts and blanks"),  # type: ignore[list-item]
        (lambda: cut_marked("a"), "no blank is marked: '<blank>' does not occur"),
        (lambda: cut_marked("a", ""), "the marker of a blank is empty"),
        (lambda: cut_marked("<blank>", hints=["a", "b"]), "2 hints are given for 1 blanks"),
        (lambda: cut_marked("<blank:0>"), "max_tokens of a blank is 0"),
        (lambda: cut_span(TEXT, 3, 99), "span 3:99 does not lie in a text of 14 characters"),
        (lambda: cut_span(TEXT, 3, 2), "span 3:2"),
        (lambda: cut_lines(TEXT, 0, 1), "lines 0:1 do not lie in a text of 3 lines"),
        (lambda: cut_lines(TEXT, 2, 4), "lines 2:4"),
        (lambda: Blank(max_tokens=True), "max_tokens of a blank is True"),
        (lambda: Blank(hint=""), "hint of a blank is ''"),
    ],
)
def test_what_is_no_document_is_refused(make: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        make()
