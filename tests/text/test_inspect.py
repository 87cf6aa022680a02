"""What is wrong with a block is found at its token, what was wrong before is told once, and forms of replies pass."""

from collections.abc import Sequence
from random import Random

import pytest

from mezzotint.tasks import FAMILIES
from mezzotint.text.inspect import TextInspector
from mezzotint.text.parse import encode_reply, end_of_reply
from mezzotint.text.tokenizer import Tokenizer
from mezzotint.types import Alarm
from tests.llm.tiny import LAB

WIDTH = 64


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_directory(LAB)


def look(
    tokenizer: Tokenizer,
    *texts: str,
    prompt: str = "Say it.",
    ends: bool = True,
    is_turn: bool = True,
    control: Sequence[str] = (),
) -> list[tuple[str, str]]:
    """The alarms of the last of `texts`, each a block: kind, and the text of the block from its token on."""
    blocks = [tokenizer.encode_text(text) for text in texts]
    blocks[-1] += [tokenizer.control[name] for name in control] + [tokenizer.control["<turn|>"]] * ends
    settled = [id for block in blocks[:-1] for id in block]
    borders = [sum(map(len, blocks[:place])) for place in range(len(blocks) - 1)]
    inspector = TextInspector(tokenizer, tokenizer.encode_text(prompt), is_turn=is_turn)
    found = inspector.inspect(settled, borders, blocks[-1], is_whole=ends)
    return [(kind, tokenizer.decode(blocks[-1][offset:])) for kind, offset in found]


def test_a_stutter_is_found_at_its_first_token_and_told_once(tokenizer: Tokenizer) -> None:
    assert look(tokenizer, "The cat sat on on the mat.") == [("stutter", "on on the mat.")]
    assert look(tokenizer, "The cat sat on on the mat.", " It slept.") == []


def test_what_is_said_again_behind_a_border_is_a_seam_at_the_blocks_beginning(tokenizer: Tokenizer) -> None:
    [(kind, rest)] = look(tokenizer, "The cat sat on the old", " on the old mat.")
    assert (kind, rest) == ("seam", " on the old mat.")


def test_what_the_prompt_says_may_be_said(tokenizer: Tokenizer) -> None:
    assert look(tokenizer, "New York New York", prompt="Sing New York New York to me.") == []
    assert look(tokenizer, "New York New York") != []


def test_brackets_count_once_the_answer_ends_and_only_in_a_turn_of_its_own(tokenizer: Tokenizer) -> None:
    [(kind, rest)] = look(tokenizer, 'Then {"a": [1, 2}')
    assert (kind, rest) == ("bracket", "}")
    assert look(tokenizer, 'Then {"a": [1, 2', ends=False) == []
    assert look(tokenizer, "a, b)", is_turn=False) == []
    assert [kind for kind, _ in look(tokenizer, 'It is {"a": ', "[1, 2]")] == ["bracket"]


def test_control_tokens_leak_and_the_forms_of_a_reply_do_not(tokenizer: Tokenizer) -> None:
    assert look(tokenizer, "Well", ends=False, control=("<mask>",)) == [("control", "")]
    assert look(tokenizer, "Well", ends=False, control=("<pad>",)) == [("control", "")]
    assert look(tokenizer, "Well", ends=False, control=("<pad>",) * 3) == [("pad", "")]
    assert (
        look(tokenizer, "Well", ends=False, control=("<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>")) == []
    )


def test_a_block_of_padding_alone_is_void(tokenizer: Tokenizer) -> None:
    kinds = [kind for kind, _ in look(tokenizer, "", ends=False, control=("<pad>",) * 4)]
    assert kinds == ["void", "pad"]
    assert "void" not in [kind for kind, _ in look(tokenizer, "", ends=True)]


def test_an_answer_that_says_nothing_is_empty_and_a_call_or_an_unfinished_one_is_not(tokenizer: Tokenizer) -> None:
    assert look(tokenizer, " \n") == [("empty", " \n")]
    assert look(tokenizer, " \n", ends=False) == []
    thought = [tokenizer.control["<|channel>"], *tokenizer.encode_text("thought\nHm."), tokenizer.control["<channel|>"]]
    inspector = TextInspector(tokenizer, [], is_turn=True)
    end = tokenizer.control["<turn|>"]
    assert [alarm.kind for alarm in inspector.inspect([], [], [*thought, end], is_whole=True)] == ["empty"]
    said = [*thought, *tokenizer.encode_text("Yes."), end]
    assert inspector.inspect([], [], said, is_whole=True) == []


def test_thoughts_that_the_prompt_has_opened_are_no_answer(tokenizer: Tokenizer) -> None:
    opening, closing = tokenizer.control["<|channel>"], tokenizer.control["<channel|>"]
    opened = [opening, *tokenizer.encode_text("thought\nSo")]
    block = [*tokenizer.encode_text(" it is."), closing, tokenizer.control["<turn|>"]]
    inspector = TextInspector(tokenizer, opened, opened=opened, is_turn=True)
    assert inspector.inspect([], [], block, is_whole=True) == [Alarm("empty", 0)]


@pytest.mark.parametrize("task", [name for name in FAMILIES if name not in ("infill", "chat")])
def test_right_answers_are_hardly_ever_accused_and_planted_faults_are(task: str, tokenizer: Tokenizer) -> None:
    """`chat` asks for empty answers and words said twice, which are no faults there."""
    count, accused, leaks = 60, 0, 0
    for seed in range(count):
        example = FAMILIES[task].generate(seed, "test")
        prompt = [id for message in example.messages for id in tokenizer.encode_text(str(message.get("content", "")))]
        prompt += tokenizer.encode_text(example.begins)
        inspector = TextInspector(tokenizer, prompt, is_turn=not example.begins)
        ids = [*encode_reply(example.reply, tokenizer), end_of_reply(example.reply, tokenizer)]
        accused += any(inspect_blocks(inspector, ids))
        leaking = list(ids)
        leaking.insert(Random(seed).randrange(len(ids)), tokenizer.control["<unk>"])
        leaks += "control" in [alarm.kind for alarm in inspect_blocks(inspector, leaking)]
    assert accused <= 1
    assert leaks == count


def inspect_blocks(inspector: TextInspector, ids: list[int]) -> list[Alarm]:
    found = []
    for start in range(0, len(ids), WIDTH):
        block, is_whole = ids[start : start + WIDTH], start + WIDTH >= len(ids)
        found += inspector.inspect(ids[:start], list(range(0, start, WIDTH)), block, is_whole=is_whole)
    return found
