"""An LLM whose single prompts share an engine: the plain loop's answers, nothing encoded twice, no page lost."""

from pathlib import Path
from typing import Any

import pytest

from mezzotint import LLM, SamplingParams
from mezzotint.decoding.policy import SMALL_MODEL
from mezzotint.engine.engine import Engine
from mezzotint.engine.runner import Runner
from mezzotint.llm import Completion, DraftEvent, GenerationError
from tests.llm.tiny import AR, ASKED, CHAT, DIFFUSION, fold, timeless

PROMPTS: list[Any] = [CHAT, "Hello", [*range(30, 60)]]


@pytest.fixture(scope="module")
def plain(folder: Path) -> LLM:
    return LLM(str(folder), costs=SMALL_MODEL)


@pytest.fixture
def shared(folder: Path) -> LLM:
    return LLM(str(folder), costs=SMALL_MODEL, shared=True)


def engine_of(llm: LLM) -> Engine:
    engine = llm._together._engine
    assert engine is not None
    engine.check_integrity()
    return engine


@pytest.mark.parametrize("name", ["ar", "ar narrowed", "verified", "as the checkpoint says", "refine"])
def test_a_prompt_alone_gets_the_plain_loops_events(plain: LLM, shared: LLM, name: str) -> None:
    for prompt in PROMPTS:
        expected, own = (fold(llm.stream(prompt, ASKED[name])) for llm in (plain, shared))
        assert (own.drafts, own.blocks) == (expected.drafts, expected.blocks)
        assert timeless(own.completion) == timeless(expected.completion)
        assert timeless(shared.generate(prompt, ASKED[name])[0]) == timeless(expected.completion)
    assert engine_of(shared).is_idle


def test_a_second_turn_finds_the_first_one_encoded(plain: LLM, shared: LLM) -> None:
    first = [{"role": "user", "content": "one two three four five six"}]
    said = shared.generate(first, AR)[0]
    second = [*first, {"role": "assistant", "content": said.text}, {"role": "user", "content": "and more"}]
    [own], [expected] = shared.generate(second, AR), plain.generate(second, AR)
    assert timeless(own) == timeless(expected)
    assert own.receipt.cached_tokens >= said.receipt.prompt_tokens // 16 * 16 > 0
    assert expected.receipt.cached_tokens == 0


@pytest.mark.parametrize("params", [AR, DIFFUSION], ids=["ar", "diffusion"])
def test_streams_that_are_read_in_turn_go_on_at_once(plain: LLM, shared: LLM, params: SamplingParams) -> None:
    streams = [shared.stream(prompt, params) for prompt in PROMPTS]
    ended: dict[int, Completion] = {}
    while len(ended) < len(streams):
        for index, stream in enumerate(streams):
            for event in stream:
                if isinstance(event, Completion):
                    ended[index] = event
                break
    expected = [plain.generate(prompt, params)[0] for prompt in PROMPTS]
    assert [timeless(ended[index]) for index in range(3)] == list(map(timeless, expected))
    engine = engine_of(shared)
    assert engine.stats().encodes.batches.keys() | engine.stats().denoises.batches.keys() > {1}, "they shared forwards"


def test_a_stream_that_is_left_gives_its_pages_back(shared: LLM) -> None:
    left = shared.stream(CHAT, DIFFUSION)
    assert isinstance(next(left), DraftEvent)
    engine = engine_of(shared)
    assert engine.stats().full.used > 0
    del left
    assert engine.is_idle
    assert engine_of(shared).stats().full.used == 0
    assert engine.stats().failed == {"cancelled": 1}


def test_a_stream_may_be_left_in_the_midst_of_a_step_of_another(plain: LLM, shared: LLM) -> None:
    left = shared.stream(CHAT, DIFFUSION)
    next(left)
    with shared._together._lock:
        del left
    assert not engine_of(shared).is_idle, "its pages may be in use"
    assert timeless(shared.generate("Hello", AR)[0]) == timeless(plain.generate("Hello", AR)[0])
    assert engine_of(shared).is_idle


def test_a_stream_that_was_never_read_does_no_work(shared: LLM) -> None:
    shared.stream(CHAT, AR)
    assert engine_of(shared).stats().submitted == 0


def test_a_prompt_that_fails_says_why_and_the_next_one_is_answered(
    plain: LLM, shared: LLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Runner, pieces: Any) -> Any:
        raise ZeroDivisionError("it was told to")

    with monkeypatch.context() as patched:
        patched.setattr(Runner, "encode", broken)
        with pytest.raises(GenerationError, match=r"prompts\[0\] of 1 was not answered: ZeroDivisionError: it was"):
            list(shared.stream(CHAT, AR))
        with pytest.raises(GenerationError, match=r"ZeroDivisionError: it was told to"):
            shared.generate(CHAT, AR)
    assert timeless(shared.generate(CHAT, AR)[0]) == timeless(plain.generate(CHAT, AR)[0])


def test_what_memory_could_never_hold_is_refused_before_it_is_read(folder: Path) -> None:
    small = LLM(str(folder), memory_bytes=6_000, shared=True)
    with pytest.raises(ValueError, match=r"a request of 82 tokens needs .* allow more memory_bytes"):
        small.stream([6] * 70, AR)
