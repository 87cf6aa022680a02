"""Files that are cut short, or hold something else: refused by name, with what to do."""

import shutil
from pathlib import Path

import pytest

from mezzotint.text.files import read_object, read_text
from mezzotint.text.template import ChatTemplate
from mezzotint.text.tokenizer import Tokenizer
from tests.text.conftest import Checkpoint

BROKEN = [b'{"eos_token": ', b"[1]", b'"text"', b"\xff\xfe{}"]


def test_whole_files_are_read(tmp_path: Path) -> None:
    file = tmp_path / "file.json"
    file.write_text('{"a": "é"}', encoding="utf-8")
    assert read_text(file) == '{"a": "é"}'
    assert read_object(file) == {"a": "é"}


@pytest.mark.parametrize("content", BROKEN)
def test_a_broken_config_is_named_by_both_its_readers(lab: Checkpoint, tmp_path: Path, content: bytes) -> None:
    shutil.copyfile(lab.directory / "tokenizer.json", tmp_path / "tokenizer.json")
    (tmp_path / "tokenizer_config.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"tokenizer_config\.json cannot be read: .*; download it again"):
        Tokenizer.from_directory(tmp_path)
    with pytest.raises(ValueError, match=r"tokenizer_config\.json cannot be read: .*; download it again"):
        ChatTemplate.from_directory(tmp_path, lab.tokenizer)


@pytest.mark.parametrize("cut", [0, 1, 1000])
def test_a_vocabulary_cut_short_is_named(lab: Checkpoint, tmp_path: Path, cut: int) -> None:
    whole = (lab.directory / "tokenizer.json").read_bytes()
    (tmp_path / "tokenizer.json").write_bytes(whole[:cut])
    with pytest.raises(ValueError, match=r"tokenizer\.json cannot be read: .*; download it again"):
        Tokenizer.from_directory(tmp_path)


def test_a_template_that_is_not_utf8_is_named_with_the_place(lab: Checkpoint, tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_bytes(b"abc\xff")
    with pytest.raises(ValueError, match=r"chat_template\.jinja cannot be read: it is not UTF-8 at byte 3"):
        ChatTemplate.from_directory(tmp_path, lab.tokenizer)


def test_a_named_token_without_a_spelling_keeps_its_usual_name(lab: Checkpoint, tmp_path: Path) -> None:
    shutil.copyfile(lab.directory / "tokenizer.json", tmp_path / "tokenizer.json")
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": {}}')
    assert Tokenizer.from_directory(tmp_path).eos_id == lab.tokenizer.control["<eos>"]
