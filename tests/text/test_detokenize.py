"""Text as it streams: never half a character, and in the end what decode gives."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mezzotint.text.detokenize import Detokenizer
from tests.text.conftest import Checkpoint


@given(
    ids=st.lists(st.integers(0, 2047), max_size=40),
    cuts=st.lists(st.integers(0, 40), max_size=8),
    keep_control=st.booleans(),
)
def test_pieces_of_any_ids_join_to_what_decode_gives(
    lab: Checkpoint, ids: list[int], cuts: list[int], keep_control: bool
) -> None:
    stream = Detokenizer(lab.tokenizer, keep_control=keep_control)
    bounds = [0, *sorted(cuts), len(ids)]
    pieces = [stream.push(ids[start:end]) for start, end in pairwise(bounds)]
    assert "".join([*pieces, stream.flush()]) == lab.tokenizer.decode(ids, keep_control=keep_control)


def test_pieces_of_random_ids_join_to_what_decode_gives_for_both_vocabularies(checkpoint: Checkpoint) -> None:
    rng = random.Random(0)
    for _ in range(50):
        ids = rng.choices(range(min(600, checkpoint.tokenizer.vocab_size)), k=30)  # Gemma's bytes are among these
        stream = Detokenizer(checkpoint.tokenizer)
        assert "".join([*(stream.push([id]) for id in ids), stream.flush()]) == checkpoint.tokenizer.decode(ids)


@pytest.mark.parametrize("text", ["𝄞", "☃\u0301", "naïve 𐀀𐀁 text"])
def test_a_character_leaves_whole_and_as_soon_as_it_is_complete(checkpoint: Checkpoint, text: str) -> None:
    stream = Detokenizer(checkpoint.tokenizer)
    sent = ""
    spelled = b""
    for id in checkpoint.tokenizer.encode_text(text):
        sent += stream.push([id])
        spelled += checkpoint.tokenizer.token_bytes(id)
        assert sent == spelled.decode(errors="ignore")
    assert sent == text
    assert stream.flush() == ""


def test_lab_splits_a_rare_character_over_tokens_and_nothing_leaves_before_the_last(lab: Checkpoint) -> None:
    stream = Detokenizer(lab.tokenizer)
    assert [stream.push([id]) for id in lab.tokenizer.encode_text("𝄞")] == ["", "", "", "𝄞"]


def test_an_incomplete_character_is_marked_at_the_end(lab: Checkpoint) -> None:
    stream = Detokenizer(lab.tokenizer)
    assert stream.push(lab.tokenizer.encode_text("a𝄞")[:-1]) == "a"
    assert stream.flush() == "\ufffd"


def test_control_tokens_are_dropped_unless_asked_for(lab: Checkpoint) -> None:
    ids = lab.tokenizer.encode_rendered("hi<turn|><eos>")
    assert Detokenizer(lab.tokenizer).push(ids) == "hi"
    assert Detokenizer(lab.tokenizer, keep_control=True).push(ids) == "hi<turn|><eos>"
