"""Whatever a caller gives as a prompt becomes ids, or is refused by name."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import mezzotint
from mezzotint.text.prompt import PromptEncoder, list_prompts
from mezzotint.text.template import ChatTemplate
from mezzotint.text.tokenizer import Tokenizer

LAB = Path(mezzotint.__file__).parent / "checkpoints" / "lab"
CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
WORKS = "give text, token ids, a list of message objects, or a Chat"
MALFORMED: list[tuple[Any, str]] = [
    (True, f"a prompt is True; {WORKS}"),
    (5, f"a prompt is 5; {WORKS}"),
    (2.5, f"a prompt is 2.5; {WORKS}"),
    (None, f"a prompt is None; {WORKS}"),
    (b"Hi", f"a prompt is b'Hi'; {WORKS}"),
    (bytearray(b"Hi"), f"a prompt is bytearray(b'Hi'); {WORKS}"),
    ({3, 4}, f"a prompt is {{3, 4}}; {WORKS}"),
    ({"role": "user"}, f"a prompt is {{'role': 'user'}}; {WORKS}"),
    ([True, 2], f"a prompt holds True; {WORKS}"),
    ([2, False], f"a prompt holds False; {WORKS}"),
    ([2, 3.0], f"a prompt holds 3.0; {WORKS}"),
    ([2, None], f"a prompt holds None; {WORKS}"),
    ([2, "Hi"], f"a prompt holds 'Hi'; {WORKS}"),
    ([2, [3]], f"a prompt holds [3]; {WORKS}"),
    ([2, {"role": "user"}], f"a prompt holds {{'role': 'user'}}; {WORKS}"),
    ([{"role": "user", "content": "Hi"}, 2], "a prompt holds {'role': 'user', 'content': 'Hi'}"),
    (["Hi", "there"], f"a prompt holds 'Hi'; {WORKS}"),
    ([2, -1], "token id -1 lies outside the vocabulary of this checkpoint; ids go from 0 to 2047"),
    ([2048], "token id 2048 lies outside the vocabulary of this checkpoint; ids go from 0 to 2047"),
    ([2**70], f"token id {2**70} lies outside the vocabulary"),
    ("half \ud800", "half a surrogate pair"),
    ([{"role": "robot", "content": "Hi"}], "message 0 has the role 'robot'"),
    ([{}], "message 0 has the role None"),
]


@pytest.fixture(scope="module")
def encoder() -> PromptEncoder:
    return PromptEncoder.from_directory(LAB)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_directory(LAB)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The text side of a checkpoint, for a test to take something out of it."""
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copyfile(LAB / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("text", ["Hello", "", " two\nlines ", "𝄞", "<|turn>user"])
def test_text_stands_as_it_is_behind_bos(encoder: PromptEncoder, tokenizer: Tokenizer, text: str) -> None:
    first, *rest = encoder.encode(text, 2048)
    assert first == tokenizer.control["<bos>"]
    assert tokenizer.decode(rest) == text
    assert tokenizer.control_ids.isdisjoint(rest)


@pytest.mark.parametrize("form", [list, tuple])
def test_a_chat_is_what_the_template_writes(encoder: PromptEncoder, tokenizer: Tokenizer, form: Any) -> None:
    template = ChatTemplate.from_directory(LAB, tokenizer)
    assert encoder.encode(form(CHAT), 2048) == template.encode(CHAT)


@pytest.mark.parametrize("ids", [[0, 2047], (5,), range(3, 9), []])
def test_ids_stay_as_they_are(encoder: PromptEncoder, ids: Any) -> None:
    encoded = encoder.encode(ids, 2048)
    assert encoded == list(ids)
    assert encoded is not ids


@pytest.mark.parametrize(("prompt", "words"), MALFORMED, ids=[repr(prompt) for prompt, _ in MALFORMED])
def test_a_malformed_prompt_is_named_with_what_works(encoder: PromptEncoder, prompt: Any, words: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (all of the words are compared below)
        encoder.encode(prompt, 2048)
    assert words in str(caught.value)


def test_a_tokenizer_that_knows_more_than_the_model_writes_no_id_outside_its_vocabulary(
    encoder: PromptEncoder,
) -> None:
    text = encoder.encode("Hello", 2048)
    assert encoder.encode("Hello", max(text) + 1) == text
    with pytest.raises(ValueError, match=f"token id {max(text)} lies outside"):
        encoder.encode("Hello", max(text))
    with pytest.raises(ValueError, match="lies outside the vocabulary of this checkpoint; ids go from 0 to 9"):
        encoder.encode(CHAT, 10)


def test_ids_need_no_tokenizer_and_text_asks_for_it_by_name(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    encoder = PromptEncoder.from_directory(folder)
    assert encoder.tokenizer is None
    assert encoder.encode([5, 6], 2048) == [5, 6]
    for prompt in ("Hello", "", CHAT):
        with pytest.raises(ValueError, match=r"has no tokenizer\.json; give prompts as token ids") as caught:
            encoder.encode(prompt, 2048)
        assert str(folder) in str(caught.value)


def test_text_needs_no_template_and_a_chat_asks_for_it_by_name(folder: Path, encoder: PromptEncoder) -> None:
    (folder / "chat_template.jinja").unlink()
    base = PromptEncoder.from_directory(folder)
    assert base.encode("Hello", 2048) == encoder.encode("Hello", 2048)
    assert base.encode([5, 6], 2048) == [5, 6]
    with pytest.raises(ValueError, match="has no chat template; give prompts as text or token ids") as caught:
        base.encode(CHAT, 2048)
    assert str(folder) in str(caught.value)


def test_a_template_may_stand_in_the_tokenizers_config(folder: Path, encoder: PromptEncoder) -> None:
    file, config = folder / "chat_template.jinja", folder / "tokenizer_config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"chat_template": file.read_text()}))
    file.unlink()
    assert PromptEncoder.from_directory(folder).encode(CHAT, 2048) == encoder.encode(CHAT, 2048)


def test_a_template_that_is_broken_is_not_a_template_that_is_missing(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text("{% if")
    with pytest.raises(ValueError, match="chat template, line 1"):
        PromptEncoder.from_directory(folder)


@pytest.mark.parametrize(
    ("given", "prompts"),
    [
        ("Hello", ["Hello"]),
        ("", [""]),
        ([5, 6], [[5, 6]]),
        ((5, 6), [(5, 6)]),
        (CHAT, [CHAT]),
        (["one", "two"], ["one", "two"]),
        ([[5, 6]], [[5, 6]]),
        ([CHAT], [CHAT]),
        ((CHAT, "one", [5, 6], "two", CHAT[1:]), [CHAT, "one", [5, 6], "two", CHAT[1:]]),
        ([[]], [[]]),
    ],
)
def test_one_prompt_is_a_list_of_one_and_several_keep_their_order(given: Any, prompts: Any) -> None:
    assert list_prompts(given) == prompts


@pytest.mark.parametrize("nothing", [[], ()])
def test_no_prompt_at_all_is_refused(nothing: Any) -> None:
    with pytest.raises(ValueError, match="prompts is empty; give at least one"):
        list_prompts(nothing)


@pytest.mark.parametrize("given", [None, 5, b"Hi", {"role": "user", "content": "Hi"}, {5, 6}, iter(["Hi"])])
def test_what_is_no_list_of_prompts_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match=rf"a prompt is .*; {WORKS}"):
        list_prompts(given)


def test_a_list_that_begins_with_a_bool_is_one_prompt_and_its_ids_are_refused(encoder: PromptEncoder) -> None:
    bools: Any = [True, False]
    [prompt] = list_prompts(bools)
    with pytest.raises(ValueError, match="a prompt holds True"):
        encoder.encode(prompt, 2048)
