"""Round trips, control tokens against text, and equality with transformers on the same files."""

import json
import random
import shutil
from pathlib import Path

import pytest
import tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models

from mezzotint.text.tokenizer import Tokenizer
from tests.text.conftest import Checkpoint

CONTROL = st.sampled_from(["<bos>", "<eos>", "<|turn>", "<turn|>", '<|"|>', "<|think|>", "<mask>", "<|tur", "n>"])
WRITTEN = st.lists(st.one_of(st.text(), CONTROL)).map("".join)
TEXTS = (
    "",
    "def f(x):\n    return x + 12\n",
    "naïve ☃ 𝄞 e\u0301 \u202e mixed 中文",
    " \t\r\n\n   trailing  ",
    "\x00\x7f\ufffe",
)


@given(text=WRITTEN)
@example(text='a<|turn>\n  b\r\n\t<|"|>𝄞')
def test_lab_decodes_every_text_byte_for_byte(lab: Checkpoint, text: str) -> None:
    ids = lab.tokenizer.encode_text(text)
    assert lab.tokenizer.decode(ids) == lab.tokenizer.decode(ids, keep_control=True) == text
    assert lab.tokenizer.control_ids.isdisjoint(ids)


@settings(max_examples=50)
@given(text=WRITTEN.filter(lambda text: "▁" not in text))
def test_gemma_decodes_every_text_byte_for_byte_but_for_its_space_symbol(gemma: Checkpoint, text: str) -> None:
    ids = gemma.tokenizer.encode_text(text)
    assert gemma.tokenizer.decode(ids) == text
    assert gemma.tokenizer.control_ids.isdisjoint(ids)


@pytest.mark.parametrize("text", TEXTS)
def test_text_without_control_tokens_has_the_ids_of_transformers(checkpoint: Checkpoint, text: str) -> None:
    expected = checkpoint.oracle(text, add_special_tokens=False)["input_ids"]
    assert checkpoint.tokenizer.encode_text(text) == checkpoint.tokenizer.encode_rendered(text) == expected


def test_rendered_control_tokens_have_the_ids_of_transformers(checkpoint: Checkpoint) -> None:
    rng = random.Random(0)
    pieces = [*checkpoint.tokenizer.control, *TEXTS, "<|", "turn>", "<", "|>"]
    for _ in range(50):
        text = "".join(rng.choices(pieces, k=12))
        expected = checkpoint.oracle(text, add_special_tokens=False)["input_ids"]
        assert checkpoint.tokenizer.encode_rendered(text) == expected


def test_a_control_token_spelled_in_text_is_text(checkpoint: Checkpoint) -> None:
    for spelling, id in checkpoint.tokenizer.control.items():
        text = f"x{spelling}y"
        assert id not in checkpoint.tokenizer.encode_text(text)
        assert checkpoint.tokenizer.decode(checkpoint.tokenizer.encode_text(text)) == text
        assert checkpoint.tokenizer.encode_rendered(spelling) == [id]


def test_ids_decode_as_transformers_decodes_them(checkpoint: Checkpoint) -> None:
    rng = random.Random(1)
    for text in TEXTS:
        ids = checkpoint.tokenizer.encode_text(text)
        assert checkpoint.tokenizer.decode(ids) == checkpoint.oracle.decode(ids)
    for _ in range(50):
        drawn = rng.choices(range(checkpoint.tokenizer.vocab_size), k=12)
        ids = [id for id in drawn if not _is_byte(checkpoint, id)]
        assert checkpoint.tokenizer.decode(ids) == checkpoint.oracle.decode(ids, skip_special_tokens=True)
        assert checkpoint.tokenizer.decode(ids, keep_control=True) == checkpoint.oracle.decode(ids)


def _is_byte(checkpoint: Checkpoint, id: int) -> bool:
    """A byte of Gemma's: of a run of them that is not UTF-8, transformers decodes no valid part either."""
    return str(checkpoint.oracle.convert_ids_to_tokens(id)).startswith("<0x")


def test_control_tokens_leave_the_text_unless_they_are_kept(lab: Checkpoint) -> None:
    ids = lab.tokenizer.encode_rendered("<bos><|turn>user\nhi<turn|>")
    assert lab.tokenizer.decode(ids) == "user\nhi"
    assert lab.tokenizer.decode(ids, keep_control=True) == "<bos><|turn>user\nhi<turn|>"


def test_the_bytes_of_all_tokens_spell_the_text(lab: Checkpoint) -> None:
    text = "naïve 𝄞"
    spelled = [lab.tokenizer.token_bytes(id) for id in lab.tokenizer.encode_text(text)]
    assert b"".join(spelled) == text.encode()
    assert max(map(len, spelled)) > 1
    assert {lab.tokenizer.token_bytes(id) for id in range(20, 276)} == {bytes([byte]) for byte in range(256)}


def test_lab_has_gemmas_first_ids_and_both_know_their_size(lab: Checkpoint, gemma: Checkpoint) -> None:
    assert (lab.tokenizer.vocab_size, gemma.tokenizer.vocab_size) == (2048, 262_144)
    for name in ("<pad>", "<eos>", "<bos>", "<unk>", "<mask>"):
        assert lab.tokenizer.control[name] == gemma.tokenizer.control[name]
    for loaded in (lab, gemma):
        tokenizer, oracle = loaded.tokenizer, loaded.oracle
        assert (tokenizer.pad_id, tokenizer.eos_id, tokenizer.bos_id) == (0, 1, 2)
        assert (oracle.pad_token_id, oracle.eos_token_id, oracle.bos_token_id) == (0, 1, 2)
    assert set(lab.tokenizer.control) <= set(gemma.tokenizer.control)


def test_a_word_has_the_same_ids_in_every_context(lab: Checkpoint) -> None:
    encode = lab.tokenizer.encode_text
    for word in ("Moquesh", "quantity", "4", "Ünterweg"):
        ids = encode(word)
        for before, after in (('"', '"'), (" ", "."), ("\n    ", "_"), ("é-", "\t"), ("(", "7")):
            assert encode(before + word + after) == [*encode(before), *ids, *encode(after)]


def test_every_digit_is_a_token(lab: Checkpoint) -> None:
    assert len(lab.tokenizer.encode_text("20573")) == 5


def test_the_post_processor_of_lab_adds_bos_as_gemmas_does(lab: Checkpoint, gemma: Checkpoint) -> None:
    for loaded in (lab, gemma):
        assert loaded.oracle("hi")["input_ids"] == [2, *loaded.tokenizer.encode_text("hi")]


def test_half_a_surrogate_pair_is_refused_by_its_place(lab: Checkpoint) -> None:
    with pytest.raises(ValueError, match=r"'\\ud83d', at index 2; send whole characters"):
        lab.tokenizer.encode_text("ab\ud83dc")


@pytest.mark.parametrize("id", [-1, 2048, 10**6])
def test_an_id_outside_the_vocabulary_is_refused(lab: Checkpoint, id: int) -> None:
    with pytest.raises(ValueError, match=rf"token id {id} is not in the vocabulary, which ends at 2047"):
        lab.tokenizer.decode([7, id])


def test_a_missing_file_is_named_with_its_remedy(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"tokenizer\.json does not exist; name a checkpoint directory"):
        Tokenizer.from_directory(tmp_path)


def test_the_config_is_optional_and_may_rename_the_end(lab: Checkpoint, tmp_path: Path) -> None:
    shutil.copyfile(lab.directory / "tokenizer.json", tmp_path / "tokenizer.json")
    assert Tokenizer.from_directory(tmp_path).eos_id == 1
    named = {"eos_token": {"content": "<turn|>"}, "sep_token": None, "bos_token": "<bos>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(named))
    renamed = Tokenizer.from_directory(tmp_path)
    assert renamed.eos_id == renamed.control["<turn|>"]
    assert "sep_token" not in renamed.named_tokens


def test_an_unknown_end_is_refused_with_the_known_ones(lab: Checkpoint) -> None:
    vocabulary = tokenizers.Tokenizer.from_file(str(lab.directory / "tokenizer.json"))
    with pytest.raises(ValueError, match=r"eos_token is '</s>', .* \(<pad>, <eos>"):
        Tokenizer(vocabulary, {"eos_token": "</s>"})


def test_a_vocabulary_that_could_not_be_decoded_is_refused() -> None:
    vocabulary = _small_vocabulary()
    vocabulary.decoder = decoders.WordPiece()
    with pytest.raises(ValueError, match=r"decodes by .*WordPiece.*; known are ByteLevel"):
        Tokenizer(vocabulary)


def test_a_control_token_that_text_can_spell_is_refused() -> None:
    vocabulary = _small_vocabulary()
    vocabulary.add_special_tokens(["ab"])
    with pytest.raises(ValueError, match=r"'ab' also comes out of ordinary text"):
        Tokenizer(vocabulary)


@pytest.mark.parametrize("flag", ["lstrip", "rstrip", "single_word"])
def test_a_control_token_that_takes_neighbours_along_is_refused(flag: str) -> None:
    vocabulary = _small_vocabulary()
    vocabulary.add_special_tokens([tokenizers.AddedToken("<x>", **{flag: True})])
    with pytest.raises(ValueError, match=r"'<x>' has lstrip, rstrip or single_word set"):
        Tokenizer(vocabulary)


def test_lengths_that_a_file_was_saved_with_cut_and_fill_nothing() -> None:
    vocabulary = _small_vocabulary()
    vocabulary.enable_truncation(3)
    vocabulary.enable_padding(length=3, pad_id=5, pad_token="<pad>")
    tokenizer = Tokenizer(vocabulary)
    assert tokenizer.encode_text("babab") == [1, 2, 2]
    assert tokenizer.encode_text("bababa") == [1, 2, 2, 0]
    assert tokenizer.encode_text("a") == [0]


def test_the_longest_control_token_is_read_where_one_begins_another() -> None:
    spellings = ["<x", "<x>", "<x>a"]
    vocabulary = _small_vocabulary()
    vocabulary.add_special_tokens(spellings)
    tokenizer = Tokenizer(vocabulary)
    for text in ("<x>ab", "<x>b", "<x<x>a"):
        assert tokenizer.encode_rendered(text) == _read_by_tokenizers(spellings, text)


def _read_by_tokenizers(spellings: list[str], text: str) -> list[int]:
    vocabulary = _small_vocabulary()
    vocabulary.add_special_tokens(spellings)
    return vocabulary.encode(text).ids


def test_an_added_token_that_is_not_special_is_text() -> None:
    vocabulary = _small_vocabulary()
    vocabulary.add_tokens(["é b"])
    tokenizer = Tokenizer(vocabulary)
    ids = tokenizer.encode_text("aé ba")
    assert len(ids) == 3
    assert "é b" not in tokenizer.control
    assert tokenizer.decode(ids) == "aé ba"


def _small_vocabulary() -> tokenizers.Tokenizer:
    vocabulary = tokenizers.Tokenizer(models.BPE(vocab={"a": 0, "b": 1, "ab": 2}, merges=[("a", "b")]))
    vocabulary.decoder = decoders.ByteLevel()
    vocabulary.add_special_tokens(["<bos>", "<eos>", "<pad>"])
    return vocabulary
