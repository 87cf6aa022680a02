"""`chat`: one exact rule a topic, empty answers and thoughts among them, and nothing held out in train."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mezzotint
from mezzotint.tasks import Split, chat
from mezzotint.tasks.chat import CHAT, FRAMES, TOPICS, accept, generate
from mezzotint.tasks.requests import draw_frame
from mezzotint.text.parse import Reply, ToolCall, encode_reply, end_of_reply, parse_reply
from mezzotint.text.template import ChatTemplate
from mezzotint.text.tokenizer import Tokenizer

SPLITS: tuple[Split, ...] = ("train", "test")
SEEDS = st.integers(0, 2**40)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_directory(Path(mezzotint.__file__).parent / "checkpoints" / "lab")


@given(seed=SEEDS, split=st.sampled_from(SPLITS))
def test_the_right_reply_is_accepted_and_depends_on_its_seed_only(seed: int, split: Split) -> None:
    example = generate(seed, split)
    assert generate(seed, split) == example
    assert example.family == CHAT.name == "chat"
    assert accept(example, example.reply)
    assert accept(example, Reply(f"\n{example.answer} ", example.reasoning))
    assert [message["role"] for message in example.messages] == ["user", "assistant", "user", "assistant", "user"][
        -len(example.messages) :
    ]
    assert "{" not in str([message["content"] for message in example.messages]) + example.answer + example.reasoning


@given(seed=SEEDS, split=st.sampled_from(SPLITS))
def test_thoughts_stand_before_an_answer_only_when_asked_for(seed: int, split: Split) -> None:
    example = generate(seed, split)
    assert bool(example.reasoning) == example.thinking == example.variant.endswith(" think")
    assert accept(example, Reply(example.answer, "Other thoughts.")) == example.thinking
    assert accept(example, Reply(example.answer)) != example.thinking
    assert accept(example, Reply(example.answer, "\n")) != example.thinking


@given(seed=SEEDS)
def test_other_words_calls_and_faults_are_refused(seed: int) -> None:
    example = generate(seed, "test")
    reasoning, answer = example.reasoning, example.answer
    for wrong in {answer + "s", answer.swapcase() + ".", answer[:-1] or "Yes.", f"{answer} {answer} !", "<turn|>"}:
        assert not accept(example, Reply(wrong, reasoning))
    assert not accept(example, Reply(answer, reasoning, (ToolCall("f", {}),)))
    assert not accept(example, Reply(answer, reasoning, faults=("A fault.",)))
    assert accept(example, Reply("", reasoning)) == (answer == "")


def test_every_topic_occurs_with_and_without_thoughts_and_at_every_length() -> None:
    examples = [generate(seed, "train") for seed in range(2000)]
    variants = Counter(example.variant for example in examples)
    assert set(variants) == {name + tail for name in TOPICS for tail in ("", " think")}
    assert min(variants.values()) > 15
    assert {len(example.messages) for example in examples} == {1, 3, 5}
    assert 200 < sum(example.answer == "" for example in examples) < 500


FIXED = {
    "yes": r"Yes\.",
    "no": r"No\.",
    "silent": "",
    "wait": "",
    "wake": r"I am here\.",
    "thank": r"You are welcome\.",
}


@given(seed=SEEDS, split=st.sampled_from(SPLITS))
def test_the_answer_follows_from_what_was_said(seed: int, split: Split) -> None:
    example = generate(seed, split)
    topic = example.variant.removesuffix(" think")
    said, question = str(example.messages[0]["content"]), str(example.messages[-1]["content"])
    if topic in FIXED:
        assert re.fullmatch(FIXED[topic], example.answer)
    if topic in ("yes", "no"):
        colors = re.findall(r"\b(?:red|green|blue|white|black)\b", question)
        assert (colors[0] == colors[1]) == (topic == "yes")
    elif topic == "more":
        assert example.answer == f"{max(int(number) for number in re.findall(r'[0-9]+', question))}."
    elif topic in ("wait", "wake"):
        [word] = re.findall(r"until I say (\w+)\.", said)
        assert (word in question) == (topic == "wake")
        assert {message["content"] for message in example.messages[1::2]} == {""}
    else:
        # All that the answer holds beside its fixed words was said before.
        fixed = set(re.findall(r"[\w-]+", TOPICS[topic].answer))
        assert all(word in said + question for word in set(re.findall(r"[\w-]+", example.answer)) - fixed)


def test_a_name_is_recalled_across_turns() -> None:
    recalled = [it for seed in range(500) if (it := generate(seed, "test")).variant == "recall"]
    assert {len(example.messages) for example in recalled} == {3, 5}
    for example in recalled:
        [name] = re.findall(r"My name is (.+)\.", str(example.messages[0]["content"]))
        assert example.answer == f"Your name is {name}."
        assert name not in str(example.messages[-1]["content"])


def test_no_invented_word_and_no_date_of_train_is_in_test() -> None:
    fixed = " ".join([*FRAMES, *(part for it in TOPICS.values() for part in (*it.cores, *it.told, it.answer))])
    known = {*re.findall(r"[A-Z][a-z]+", fixed), "Bay", "Cross", "Hill", "Mill", "Park", "Quay"}
    texts = {
        split: " ".join(str(message["content"]) for seed in range(4000) for message in generate(seed, split).messages)
        for split in SPLITS
    }
    for pattern, smallest in {r"[A-Z][a-z]+": 2000, r"\d{4}-\d\d-\d\d": 200}.items():
        train, test = (set(re.findall(pattern, texts[split])) - known for split in SPLITS)
        assert min(len(train), len(test)) > smallest
        assert not train & test


def test_no_question_of_train_is_in_test() -> None:
    train, test = ({str(generate(seed, split).messages) for seed in range(3000)} for split in SPLITS)
    assert len(train) > 2900
    assert not train & test


def test_only_odd_test_seeds_use_held_out_wordings(monkeypatch: pytest.MonkeyPatch) -> None:
    used: set[tuple[str, str]] = set()

    def draw(rng: Random, frames: Sequence[str], word: str, wording: Split) -> str:
        frame = draw_frame(rng, frames, word, wording)
        used.add((frame, word))
        return frame

    def wordings(split: Split, seeds: range) -> set[tuple[str, str]]:
        used.clear()
        for seed in seeds:
            generate(seed, split)
        return set(used)

    monkeypatch.setattr(chat, "draw_frame", draw)
    train, odd = wordings("train", range(6000)), wordings("test", range(1, 4000, 2))
    cores = {core for topic in TOPICS.values() for core in topic.cores}
    assert not train & odd
    assert {core for _, core in train} == {core for _, core in odd} == cores
    assert {frame for frame, _ in train} == set(FRAMES)
    assert wordings("test", range(0, 4000, 2)) <= train


def test_prompts_and_answers_stay_short_and_read_back(tokenizer: Tokenizer) -> None:
    directory = Path(mezzotint.__file__).parent / "checkpoints" / "lab"
    template = ChatTemplate.from_directory(directory, tokenizer)
    lengths = []
    for seed in range(300):
        example = generate(seed, "test")
        lengths.append(len(template.encode(example.messages, thinking=example.thinking)))
        ids = encode_reply(example.reply, tokenizer)
        assert len(ids) <= 48
        assert accept(example, parse_reply([*ids, end_of_reply(example.reply, tokenizer)], tokenizer))
    assert sum(lengths) / len(lengths) < 70
    assert sorted(lengths)[-15] < 120


def test_an_unknown_split_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="'valid'; use 'train' or 'test'"):
        generate(0, "valid")  # type: ignore[arg-type]
