"""Stop strings: the text that leaves ends before the first of them, and nothing leaves that may belong to one."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mezzotint.text.detokenize import Detokenizer
from mezzotint.text.stop import StopScanner, check_stops
from mezzotint.text.tokenizer import Tokenizer
from tests.text.conftest import Checkpoint

# Few letters, so that stop strings and their beginnings are frequent; characters of one to four bytes among them.
TEXT = st.text(st.sampled_from("aab é☃𝄞"), max_size=12)
STOPS = st.lists(st.text(st.sampled_from("aab é☃𝄞"), min_size=1, max_size=4), min_size=1, max_size=4)
CUTS = st.lists(st.integers(0, 60), max_size=6)


@st.composite
def answers(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Pieces of an answer: words that are encoded each for itself, single bytes, and control tokens."""
    kinds = st.sampled_from(["text", "bytes", "control"])
    return [(draw(kinds), draw(TEXT)) for _ in range(draw(st.integers(0, 6)))]


def spell(pieces: Sequence[tuple[str, str]], tokenizer: Tokenizer) -> list[int]:
    others = [id for id in reversed(range(tokenizer.vocab_size)) if id not in tokenizer.control_ids]
    byte = {tokenizer.token_bytes(id): id for id in others}
    ids: list[int] = []
    for kind, text in pieces:
        if kind == "control":
            ids += [tokenizer.control["<channel|>"], tokenizer.control["<turn|>"]][: len(text) % 3]
        elif kind == "bytes":
            ids += [byte[bytes([value])] for value in text.encode()]
        else:
            ids += tokenizer.encode_text(text)
    return ids


def expect(text: str, stops: Sequence[str]) -> tuple[str, str | None]:
    """The text before the stop string that is complete first, and of several complete there the longest."""
    for end in range(len(text) + 1):
        complete = [stop for stop in stops if text[:end].endswith(stop)]
        if complete:
            found = max(complete, key=len)
            return text[: end - len(found)], found
    return text, None


def settled(text: str, stops: Sequence[str]) -> str:
    """What of a text without a stop string cannot become the beginning of one."""
    held = max(size for size in range(len(text) + 1) if not size or any(s.startswith(text[-size:]) for s in stops))
    return text[: len(text) - held]


def test_of_any_answer_the_text_before_the_first_stop_string_leaves(lab: Checkpoint) -> None:
    @given(pieces=answers(), stops=STOPS, cuts=CUTS)
    @example(pieces=[("text", "aab")], stops=["b", "aab", "ab"], cuts=[])
    @example(pieces=[("text", "aaba")], stops=["aabab", "ba", "ab"], cuts=[1])
    def check(pieces: list[tuple[str, str]], stops: list[str], cuts: list[int]) -> None:
        ids = spell(pieces, lab.tokenizer)
        text = lab.tokenizer.decode(ids)
        before, found = expect(text, stops)
        scanner, bounds = StopScanner(lab.tokenizer, stops), [0, *sorted(min(cut, len(ids)) for cut in cuts), len(ids)]
        told = [lab.tokenizer.decode(scanner.push(ids[start:end])) for start, end in pairwise(bounds)]
        told.append(lab.tokenizer.decode(scanner.flush()))
        assert "".join(told) == before
        assert scanner.found == found
        if len(stops) == 1:
            assert before == text.split(stops[0])[0]

    check()


def test_text_leaves_as_soon_as_it_cannot_belong_to_a_stop_string_and_no_sooner(lab: Checkpoint) -> None:
    @given(pieces=answers(), stops=STOPS)
    def check(pieces: list[tuple[str, str]], stops: list[str]) -> None:
        scanner, stream, sent, seen = StopScanner(lab.tokenizer, stops), Detokenizer(lab.tokenizer), "", ""
        for id in spell(pieces, lab.tokenizer):
            sent += lab.tokenizer.decode(scanner.push([id]))
            seen += stream.push([id])
            before, found = expect(seen, stops)
            assert sent == (settled(seen, stops) if found is None else before)

    check()


def test_the_ids_that_stand_end_with_the_one_that_completes_the_string(lab: Checkpoint) -> None:
    @given(pieces=answers(), stops=STOPS, cuts=CUTS)
    def check(pieces: list[tuple[str, str]], stops: list[str], cuts: list[int]) -> None:
        ids, stream = spell(pieces, lab.tokenizer), Detokenizer(lab.tokenizer)
        seen = list(accumulate(stream.push([id]) for id in ids))
        first = next((index + 1 for index, text in enumerate(seen) if expect(text, stops)[1] is not None), None)
        used = StopScanner(lab.tokenizer, stops)
        used.count_kept(ids)
        scanner, kept = used.restart(), 0
        for start, end in pairwise([0, *sorted(min(cut, len(ids)) for cut in cuts), len(ids)]):
            count = scanner.count_kept(ids[start:end])
            if count is not None:
                assert kept + count == first
                return
            kept += end - start
        assert first is None

    check()


@given(text=TEXT, stop=st.text(st.sampled_from("ab é☃𝄞"), min_size=1, max_size=3))
@example(text="abab", stop="abab")
@example(text="aaab", stop="aab")
@example(text="a☃b", stop="☃")
def test_both_vocabularies_cut_at_the_same_place(checkpoint: Checkpoint, text: str, stop: str) -> None:
    scanner = StopScanner(checkpoint.tokenizer, stop)
    ids = [*scanner.push(checkpoint.tokenizer.encode_text(text)), *scanner.flush()]
    assert checkpoint.tokenizer.decode(ids) == text.split(stop)[0]


def test_control_tokens_part_no_string_and_those_before_it_stay(lab: Checkpoint) -> None:
    def cut(text: str, stop: str) -> str:
        scanner = StopScanner(lab.tokenizer, stop)
        ids = [*scanner.push(lab.tokenizer.encode_rendered(text)), *scanner.flush()]
        return lab.tokenizer.decode(ids, keep_control=True)

    assert cut("<|channel>ab<channel|>cd", "bc") == "<|channel>a"
    assert cut("<|channel>ab<channel|>cd", "cd") == "<|channel>ab<channel|>"
    assert cut("<|channel>ab<channel|>cd<turn|>", "bcde") == "<|channel>ab<channel|>cd<turn|>"
    assert cut("a<channel|>b", "<channel|>") == "a<channel|>b", "what is spelled in a stop string is text"


def test_half_a_character_at_the_end_leaves_as_a_mark(lab: Checkpoint) -> None:
    scanner = StopScanner(lab.tokenizer, ["b"])
    assert lab.tokenizer.decode(scanner.push(lab.tokenizer.encode_text("a𝄞")[:-1])) == "a"
    assert lab.tokenizer.decode(scanner.flush()) == "\ufffd"


@pytest.mark.parametrize(
    ("stops", "told"),
    [
        ("", "stop holds an empty string, with which every answer would end at once"),
        (["a", ""], "stop holds an empty string"),
        (["a"] * 17, "stop has 17 strings; give at most 16"),
        (["a" * 257], "stop holds a string of 257 characters; give at most 256"),
        (["a", 3], "stop holds 3; give strings"),
        (3, "stop is 3; give a string or several"),
        (None, "stop is None; give a string or several"),
        ("a\ud800", r"stop holds 'a\\ud800', of which a part is no whole character"),
        ("\ufffd", r"stop holds '\\ufffd', of which a part is no whole character"),
    ],
)
def test_what_can_be_no_stop_string_is_refused(stops: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        check_stops(stops)


def test_stop_strings_at_the_limits_are_taken() -> None:
    assert check_stops("\n") == ("\n",)
    assert check_stops([]) == ()
    assert check_stops([*"abcdefghijklmno", "x" * 256]) == (*"abcdefghijklmno", "x" * 256)
