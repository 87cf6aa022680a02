"""Several prompts at once: each gets what it gets alone, shared beginnings are spared, no failure hides an answer."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from mezzotint import LLM, Chat, SamplingParams
from mezzotint.decoding.policy import SMALL_MODEL
from mezzotint.engine.engine import Engine
from mezzotint.engine.request import Outcome
from mezzotint.engine.runner import Runner
from mezzotint.llm import GenerationError
from mezzotint.model.assistant import AssistantNetwork
from mezzotint.model.assistant_weights import write_assistant
from mezzotint.train.drafter import drafter_config
from tests.llm.tiny import AR, ASKED, CHAT, DIFFUSION, V, answer, timeless

# Of every kind, some with a beginning in common, one twice, and lengths from one token to most of the context.
PROMPTS: list[Any] = [
    CHAT,
    "Hello",
    [5, 6, 7],
    "",
    [*range(30, 60)],
    [*range(30, 55), 9, 8, 7],
    CHAT,
    [(7 * index) % V for index in range(70)],
    Chat(messages=CHAT, begins="Hello there"),
]
EVERY: dict[str, SamplingParams] = {
    **{name: ASKED[name] for name in ("ar", "ar narrowed", "verified", "as the checkpoint says", "jax", "ddim")},
    "verified endless": replace(ASKED["verified narrowed"], ignore_eos=True),
    "mtp endless": replace(AR, decoder="mtp", ignore_eos=True),
}


@pytest.fixture(scope="module")
def drafting(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny checkpoint with a drafter beside it."""
    copy = tmp_path_factory.mktemp("together") / "model"
    shutil.copytree(folder, copy)
    drafter = AssistantNetwork(drafter_config(LLM(str(copy)).model.config, guesses=2))
    for parameter in drafter.parameters():
        torch.nn.init.normal_(parameter, 0, 0.2, generator=torch.Generator().manual_seed(0))
    write_assistant(drafter, copy.with_name("model-drafter"), dtype=torch.float32)
    return copy


@pytest.fixture(scope="module", params=["float32", "float64"])
def either(request: pytest.FixtureRequest, drafting: Path) -> LLM:
    return LLM(str(drafting), dtype=request.param, costs=SMALL_MODEL)


@pytest.mark.parametrize("params", EVERY.values(), ids=EVERY)
def test_each_of_several_prompts_gets_what_it_gets_alone(either: LLM, params: SamplingParams) -> None:
    together = either.generate(PROMPTS, params)
    assert [timeless(each) for each in together] == [answer(either, prompt, params) for prompt in PROMPTS]


@pytest.mark.parametrize("decoder", ["diffusion", "ar", "verified", "mtp"])
def test_prompts_without_a_seed_get_one_each_that_repeats_their_answers(either: LLM, decoder: Any) -> None:
    unseeded = SamplingParams(decoder=decoder, max_tokens=12)
    together = either.generate(PROMPTS, unseeded)
    assert len({each.receipt.seed for each in together}) == len(PROMPTS)
    for prompt, each in zip(PROMPTS, together, strict=True):
        assert answer(either, prompt, replace(unseeded, seed=each.receipt.seed)) == timeless(each)


def test_more_prompts_than_run_at_once_are_all_answered_in_order(llm: LLM) -> None:
    prompts = [[5, 6, index] for index in range(100)]
    short = replace(AR, max_tokens=2, ignore_eos=True)
    steps = counted(llm, lambda: llm.generate(prompts, short))
    assert [timeless(each) for each in llm.generate(prompts, short)] == [answer(llm, each, short) for each in prompts]
    assert steps < 10, "at most sixty-four run at once, and then the others"


def counted(llm: LLM, run: Callable[[], object]) -> int:
    """How many steps its engine takes for what `run` does."""
    llm.generate([[5], [6]], replace(AR, max_tokens=1))  # so that it has one
    engine = engine_of(llm)
    before = engine.stats().steps
    run()
    return engine.stats().steps - before


def engine_of(llm: LLM) -> Engine:
    engine = llm._together._engine
    assert engine is not None
    return engine


def test_a_beginning_that_was_seen_before_is_spared_and_the_receipt_says_so(folder: Path) -> None:
    fresh = LLM(str(folder))
    prompt = [*range(30, 80)]
    for _ in range(2):
        first, second = fresh.generate([prompt, [5, 6]], AR)
        assert (second.receipt.cached_tokens, first.receipt.prompt_tokens) == (0, 50)
    assert first.receipt.cached_tokens == 48, "whole pages of sixteen, but not what is read of the last token"
    assert fresh.generate(prompt, AR)[0].receipt.cached_tokens == 0, "a prompt alone shares nothing"


def test_a_receipt_tells_how_long_a_prompt_waited_and_ran(llm: LLM) -> None:
    for each in llm.generate(PROMPTS, AR):
        assert each.receipt.queue_s >= 0
        assert each.receipt.prefill_s > 0
        assert each.receipt.generation_s > 0
    last = llm.generate([[5, 6, index] for index in range(100)], replace(AR, ignore_eos=True))[-1]
    assert last.receipt.queue_s > 0, "it waited for one of the sixty-four before it"


def test_blanks_are_filled_side_by_side(llm: LLM) -> None:
    blanks = [Chat(messages=CHAT, begins=begins, ends=" end") for begins in ("", "Hello", "no")]
    together = llm.generate([*blanks, CHAT], DIFFUSION)
    assert [timeless(each) for each in together[:3]] == [answer(llm, blank, DIFFUSION) for blank in blanks]
    assert all(len(each.token_ids) < 8 for each in together[:3])
    assert timeless(together[3]) == answer(llm, CHAT, DIFFUSION)


def test_a_prompt_alone_makes_no_engine_and_several_share_one(folder: Path) -> None:
    fresh = LLM(str(folder))
    fresh.generate(CHAT, AR)
    fresh.generate([CHAT], AR)
    assert fresh._together._engine is None
    fresh.generate([CHAT, "Hello"], AR)
    first = engine_of(fresh)
    fresh.generate([CHAT, "Hello"], AR)
    assert engine_of(fresh) is first
    assert first.config.prefix_cache
    assert not first.config.drafts


def test_memory_is_what_was_given_and_a_prompt_that_it_cannot_hold_is_refused_before_any_work(folder: Path) -> None:
    small = LLM(str(folder), memory_bytes=6_000)
    with pytest.raises(ValueError, match=r"a request of 82 tokens needs .* allow more memory_bytes"):
        small.generate([[5], [6] * 70], AR)
    assert engine_of(small).stats().submitted == 0
    assert [timeless(each) for each in small.generate([[5], [6]], AR)] == [
        answer(small, [5], AR),
        answer(small, [6], AR),
    ]


def test_of_several_prompts_one_that_fails_is_named_and_the_others_are_answered(
    llm: LLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Runner.encode

    def encode(self: Runner, pieces: Any) -> Any:
        if any(666 in piece.tokens for piece in pieces):
            raise ZeroDivisionError("it was told to")
        return plain(self, pieces)

    expected = [answer(llm, prompt, AR) for prompt in (CHAT, "Hello")]
    monkeypatch.setattr(Runner, "encode", encode)
    with pytest.raises(GenerationError) as caught:
        llm.generate([CHAT, [666, 5], "Hello", [5, 666]], AR)
    assert str(caught.value) == (
        "prompts[1] of 4 was not answered: ZeroDivisionError: it was told to, and 1 more failed; "
        "the answers of the others are in completions of this error"
    )
    first, *between, last = caught.value.completions
    assert first is not None
    assert between[1] is not None
    assert [timeless(first), timeless(between[1])] == expected
    assert (between[0], last) == (None, None)
    assert caught.value.failures == dict.fromkeys((1, 3), "ZeroDivisionError: it was told to")
    monkeypatch.undo()
    assert timeless(llm.generate([[666, 5], CHAT], AR)[1]) == expected[0]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_ends_all_and_leaves_a_checkpoint_that_answers(
    llm: LLM, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    expected = [answer(llm, prompt, DIFFUSION) for prompt in PROMPTS]
    plain, steps = Runner.denoise, [0]

    def denoise(self: Runner, given: Any) -> Any:
        steps[0] += 1
        if steps[0] == 3:
            raise error  # in the middle of a step, memory for it reserved
        return plain(self, given)

    monkeypatch.setattr(Runner, "denoise", denoise)
    with pytest.raises(error):
        llm.generate(PROMPTS, DIFFUSION)
    engine = engine_of(llm)
    assert engine.is_idle
    engine.check_integrity()
    assert [timeless(each) for each in llm.generate(PROMPTS, DIFFUSION)] == expected


def test_a_step_that_fails_as_a_whole_keeps_the_answers_that_are_finished(
    llm: LLM, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    prompts, short = [[5, 6, index] for index in range(70)], replace(AR, max_tokens=2, ignore_eos=True)
    expected = [timeless(each) for each in llm.generate(prompts, short)]
    plain, finished = Engine.step, engine_of(llm).stats().finished

    def step(self: Engine) -> list[Outcome]:
        if self.stats().finished > finished:
            raise RuntimeError("the device is gone")
        return plain(self)

    monkeypatch.setattr(Engine, "step", step)
    with pytest.raises(
        GenerationError, match=r"prompts\[64\] of 70 was not answered: the engine failed: RuntimeError: the"
    ) as caught:
        llm.generate(prompts, short)
    assert "RuntimeError: the device is gone" in caplog.text
    completions = caught.value.completions
    assert [timeless(each) for each in completions if each is not None] == expected[:64]
    assert completions[64:] == [None] * 6
    monkeypatch.undo()
    assert [timeless(each) for each in llm.generate(prompts, short)] == expected
