"""Seams: given text keeps its bytes at every cut, and the ids called fixed are those that the whole text has there."""

from collections.abc import Iterator

import pytest

from mezzotint.text.seam import Bordered, find_borders, spellings
from mezzotint.text.tokenizer import Tokenizer
from tests.text.conftest import Checkpoint

CODE = 'def lay(self, most: int) -> str:\n    """One."""\n    return f\'{most:>4}\' * 12  # ok\n\n\nclass A_b:\n'
WORDS = "Das naïve Mädchen, 日本語のテスト 🙂🙂 и слова; unreliable returns, 1024 déjà-vu."
SAMPLES = {"code": CODE, "words": WORDS}


def before(text: str, tokenizer: Tokenizer, most: int = 64) -> Bordered:
    return find_borders(text, tokenizer, follows=False, precedes=True, most=most)


def behind(text: str, tokenizer: Tokenizer, most: int = 64) -> Bordered:
    return find_borders(text, tokenizer, follows=True, precedes=False, most=most)


def spell(ids: tuple[int, ...], tokenizer: Tokenizer) -> bytes:
    return b"".join(map(tokenizer.token_bytes, ids))


def cuts(text: str) -> Iterator[tuple[str, str]]:
    return ((text[:place], text[place:]) for place in range(0, len(text) + 1, 2))


@pytest.mark.parametrize("sample", SAMPLES)
def test_what_is_called_fixed_is_what_the_whole_text_has_there(checkpoint: Checkpoint, sample: str) -> None:
    tokenizer, text = checkpoint.tokenizer, SAMPLES[sample]
    whole = tuple(tokenizer.encode_text(text))
    for left, right in cuts(text):
        fixed, kept = before(left, tokenizer).fixed, behind(right, tokenizer).fixed
        assert whole[: len(fixed)] == fixed, left
        assert whole[len(whole) - len(kept) :] == kept, right


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_way_to_write_a_seam_spells_the_given_bytes(lab: Checkpoint, sample: str) -> None:
    tokenizer = lab.tokenizer
    for left, right in cuts(SAMPLES[sample]):
        border, other = before(left, tokenizer), behind(right, tokenizer)
        assert spell(border.fixed + border.end.ids, tokenizer) == left.encode()
        assert spell(other.start.ids + other.fixed, tokenizer) == right.encode()
        for place, ids in enumerate(border.end.covering):
            assert border.end.ids[place] in ids or place + 1 < len(border.end.ids)
            assert all(spell((id,), tokenizer).startswith(spell(border.end.ids[place:], tokenizer)) for id in ids)
        for place, ids in enumerate(other.start.covering):
            part = spell(other.start.ids[: place + 1], tokenizer)
            assert all(spell((id,), tokenizer).endswith(part) for id in ids)


def test_half_a_word_is_loose_and_what_covers_it_may_end_in_the_blank(lab: Checkpoint) -> None:
    border = before("x = retu", lab.tokenizer)
    covered = {
        spell((*border.end.ids[:place], id), lab.tokenizer)
        for place, ids in enumerate(border.end.covering)
        for id in ids
    }
    assert b"return" in covered
    other = behind("urn x", lab.tokenizer)
    assert any(spell((id,), lab.tokenizer) == b"return" for ids in other.start.covering for id in ids)


@pytest.mark.parametrize(("left", "right"), [("addi", "ng"), ("allowe", "d"), ("bes", "ide"), ("autoregr", "essive")])
def test_an_id_that_changes_though_no_token_crosses_from_it_into_the_blank_is_loose(
    lab: Checkpoint, left: str, right: str
) -> None:
    """What follows may undo a merge farther left than any token of it reaches."""
    fixed = before(left, lab.tokenizer).fixed
    assert tuple(lab.tokenizer.encode_text(left + right)[: len(fixed)]) == fixed


def test_no_more_ids_are_loose_than_asked_and_those_next_to_the_blank_are(lab: Checkpoint) -> None:
    every = before("x = strin", lab.tokenizer)
    assert len(every.end.ids) > 1
    one = before("x = strin", lab.tokenizer, 1)
    assert (one.end.ids, one.fixed) == (every.end.ids[-1:], every.fixed + every.end.ids[:-1])
    assert before("x = strin", lab.tokenizer, 0).end == ((), ())


def test_a_long_text_has_the_borders_of_its_end(lab: Checkpoint) -> None:
    long = CODE * 8 + "ret"
    near, far = before(long[-100:], lab.tokenizer), before(long, lab.tokenizer)
    assert near.end == far.end
    assert far.fixed + far.end.ids == tuple(lab.tokenizer.encode_text(long))
    assert behind("urn" + CODE * 8, lab.tokenizer).start == behind("urn" + CODE[:97], lab.tokenizer).start
    unbroken = before("x" * 600, lab.tokenizer)
    assert spell(unbroken.fixed + unbroken.end.ids, lab.tokenizer) == b"x" * 600


def test_where_both_sides_reach_each_other_nothing_is_loose(lab: Checkpoint) -> None:
    border = find_borders("a", lab.tokenizer, follows=True, precedes=True, most=8)
    assert (border.start.ids, border.end.ids) == ((), ())
    assert border.fixed == tuple(lab.tokenizer.encode_text("a"))
    assert find_borders("", lab.tokenizer, follows=True, precedes=True, most=8).fixed == ()


def test_spellings_are_found_by_how_they_begin_and_end(lab: Checkpoint) -> None:
    known, tokenizer = spellings(lab.tokenizer), lab.tokenizer
    text = [id for id in range(tokenizer.vocab_size) if id not in tokenizer.control_ids]
    for part in (b"re", b"\n", b"\xc3", b"\xff", b"zzzz"):
        assert set(known.beginning(part)) == {id for id in text if tokenizer.token_bytes(id).startswith(part)}
        assert set(known.ending(part)) == {id for id in text if tokenizer.token_bytes(id).endswith(part)}
