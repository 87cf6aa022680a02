"""Requests in words: every argument told once, and wordings held out of train though their words are not."""

import re
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mezzotint.tasks import Split
from mezzotint.tasks.requests import CHAINS, CLAUSES, LEADS, NO, REPORTS, YES, ask, chain, draw_frame, report
from mezzotint.tasks.tools import BASES, FLAGS, QUALIFIERS, VERBS, Tool, base_parameter, draw_tools

SPLITS: tuple[Split, ...] = ("train", "test")
WORDS = {
    LEADS: [word for verb, others in VERBS.items() for word in (verb, *others)],
    CHAINS: [word for verb, others in VERBS.items() for word in (verb, *others)],
    CLAUSES: [word for key, base in BASES.items() for word in (key, *base.words)]
    + [f"{qualifier} {key}" for qualifier in QUALIFIERS for key in BASES],
    YES: list(FLAGS),
    NO: list(FLAGS),
    REPORTS: list(BASES),
}


def drawn(frames: tuple[str, ...], word: str, wording: Split) -> set[str]:
    rng = Random(0)
    return {draw_frame(rng, frames, word, wording) for _ in range(150)}


@pytest.mark.parametrize("frames", WORDS, ids=lambda frames: frames[0])
def test_each_word_has_a_quarter_of_the_frames_held_out_and_each_frame_meets_train(frames: tuple[str, ...]) -> None:
    trained: set[str] = set()
    for word in WORDS[frames]:
        train, test = drawn(frames, word, "train"), drawn(frames, word, "test")
        assert not train & test
        assert train | test == set(frames)
        assert len(test) == len(frames) // 4
        trained |= train
    assert trained == set(frames)


@given(seed=st.integers(0, 2**40), split=st.sampled_from(SPLITS), wording=st.sampled_from(SPLITS))
def test_a_request_is_one_sentence_that_tells_each_argument_once(seed: int, split: Split, wording: Split) -> None:
    rng = Random(seed)
    tool = draw_tools(rng, split, (3, 1))[0]
    arguments = {parameter.key: parameter.draw(rng, split) for parameter in tool.parameters}
    text = ask(rng, tool, arguments, wording)
    assert re.fullmatch(r"[A-Z][^{}?]*[.?]", text)
    assert tool.noun in text
    assert any(word in text.lower() for word in (tool.verb, *VERBS[tool.verb]))
    for key, value in arguments.items():
        told = key if isinstance(value, bool) else str(value)
        assert len(re.findall(rf"(?<![\w.-]){re.escape(told)}(?![\w-])", text)) >= 1


@pytest.mark.parametrize(("value", "said"), [(True, "that is paid"), (False, "that is not paid")])
def test_a_flag_is_told_by_its_name(value: bool, said: str) -> None:
    rng = Random(0)
    parameter = base_parameter("code")._replace(key="paid")
    tool = Tool("book", "table", (parameter,))
    texts = {ask(rng, tool, {"paid": value}, "train") for _ in range(300)}
    texts |= {ask(rng, tool, {"paid": value}, "test") for _ in range(300)}
    assert any(said in text for text in texts)
    assert all((" not " in text) is (not value) for text in texts)


def test_held_out_wordings_use_no_phrase_of_their_own() -> None:
    rng = Random(0)
    tool = Tool("book", "table", (base_parameter("city"),))

    def told(wording: Split) -> set[str]:
        return {ask(rng, tool, {"city": "Torvel"}, wording).split("table ")[1] for _ in range(400)}

    assert not told("train") & told("test")
    assert {"in Torvel.", "near Torvel."} <= told("train")


def test_what_comes_of_a_call_is_asked_for_by_key() -> None:
    rng = Random(0)
    tool = Tool("send", "boat", (base_parameter("code"),))
    chained = {chain(rng, tool, "code", "train") for _ in range(50)}
    assert all("code" in text and "boat" in text for text in chained)
    reported = {report(rng, ["code", "price"], "train") for _ in range(50)}
    assert all("the code and the price" in text for text in reported)


def test_the_same_draws_give_the_same_request() -> None:
    def request(seed: int) -> Any:
        rng = Random(seed)
        tool = draw_tools(rng, "train", (2, 1))[0]
        return ask(rng, tool, {tool.parameters[0].key: "x"}, "train")

    assert request(5) == request(5)
