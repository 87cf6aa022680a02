"""Batches beside transformers: the same work on both sides, and a batch that fits its memory."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import versus
from benchmarks.ours import Ours
from benchmarks.peak import peak_growth_bytes
from benchmarks.reference import Reference, Stop
from benchmarks.sides import Sides
from benchmarks.subjects import Subject, large_config, random_subject
from benchmarks.timing import as_measured
from benchmarks.together import Batches, Together, count_to_end, time_both
from benchmarks.versus import (
    AT_ONCE,
    Comparison,
    lab_versus,
    large_versus,
    largest_batch,
    reference_bytes,
    versus_table,
    weight_bytes,
)
from mezzotint.llm import LLM, SamplingParams
from tests.benchmarks.tiny import CONFIG

ROWS = 3


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    """Prompts of different lengths, so that a batch is padded."""
    found = random_subject("tiny", CONFIG, tmp_path_factory.mktemp("versus") / "tiny", prompts=2 * ROWS)
    return found._replace(prompts=[prompt[: 9 + 5 * place] for place, prompt in enumerate(found.prompts)])


@pytest.fixture(scope="module")
def llm(subject: Subject) -> LLM:
    return Ours(subject.folder, "float32").llm


@pytest.fixture(scope="module")
def theirs(subject: Subject) -> Reference:
    return Reference(subject.folder, "float32")


def batches(llm: LLM, theirs: Reference, subject: Subject) -> Batches:
    together = Together(llm, ROWS, llm.sampler(SamplingParams()))
    return Batches(together, theirs, subject.prompts, ROWS)


def test_both_sides_draw_the_same_tokens_behind_a_padded_batch(llm: LLM, theirs: Reference, subject: Subject) -> None:
    given = batches(llm, theirs, subject)
    params = SamplingParams(decoder="ar", temperature=0.0, max_tokens=6, ignore_eos=True)
    for turn in range(2):
        prompts = given.of_turn(turn)
        ours = [answer.tokens for answer in given._ours.answer(prompts, [params] * ROWS)]
        assert theirs.continue_together(prompts, tokens=6) == ours
        assert given.draw_ours(6, turn) == given.draw_theirs(6, turn) == 6 * ROWS
    assert given.of_turn(0) != given.of_turn(1)


def test_fixed_steps_are_as_many_forwards_and_whole_canvases_on_both_sides(
    llm: LLM, theirs: Reference, subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, stop = batches(llm, theirs, subject), Stop(CONFIG.canvas_length, 3)
    forward, passes = theirs.model.forward, []
    monkeypatch.setattr(theirs.model, "forward", lambda *a, **k: passes.append(1) or forward(*a, **k))
    assert given.denoise_theirs(stop, (), 0) == ROWS * CONFIG.canvas_length
    assert len(passes) == 3
    before = given._ours._engine.stats()
    assert given.denoise_ours(stop, 0) == ROWS * CONFIG.canvas_length
    after = given._ours._engine.stats()
    assert after.denoises.forwards - before.denoises.forwards == 3
    assert after.denoises.rows - before.denoises.rows == 3 * ROWS


def test_a_run_of_ours_that_stopped_early_is_refused(llm: LLM, theirs: Reference, subject: Subject) -> None:
    eager = replace(llm.sampler(SamplingParams()), stability=0, confidence=100.0)
    given = Batches(Together(llm, ROWS, eager), theirs, subject.prompts, ROWS)
    with pytest.raises(RuntimeError, match=r"took \(1,\) steps, 4 were asked for"):
        given.denoise_ours(Stop(CONFIG.canvas_length, 4), 0)
    assert given.denoise_ours(Stop(CONFIG.canvas_length, 4, 0, 100.0), 0) <= ROWS * CONFIG.canvas_length


def test_tokens_count_up_to_the_first_end() -> None:
    assert [count_to_end(tokens, (1, 7)) for tokens in ([5, 7, 1, 0], [5, 6], [1], [])] == [2, 2, 1, 0]


def test_seconds_are_told_a_token() -> None:
    asked: list[str] = []

    def give(name: str, tokens: int, turn: int) -> int:
        asked.append(f"{name}{turn}")
        return tokens

    sides = time_both(lambda turn: give("ours", 1, turn), lambda turn: give("theirs", 10**9, turn), 2)
    assert asked == ["ours0", "theirs0", "ours0", "theirs0", "theirs1", "ours1"]
    assert sides.theirs.median < sides.ours.median / 1000
    assert len(sides.ours.values) == 2


def test_the_batch_is_the_largest_that_fits() -> None:
    config = large_config()
    assert [largest_batch(config, gigabytes * 10**9) for gigabytes in (1, 5, 12, 18, 100)] == [1, 2, 5, 8, 8]
    assert reference_bytes(config, 8) == 8 * reference_bytes(config, 1) == 8 * 256 * 262_144 * 32


def test_transformers_needs_the_memory_that_its_logits_are_said_to(tmp_path: Path) -> None:
    config = replace(CONFIG, vocab_size=32_768, canvas_length=64)
    wide = random_subject("wide", config, tmp_path / "wide", prompts=2)
    theirs, stop = Reference(wide.folder, "bfloat16"), Stop(64, 2)

    def denoise() -> object:
        return theirs.answer_together(wide.prompts, stop=stop, seed=0)

    denoise()
    if (grown := peak_growth_bytes(denoise)) is None:
        pytest.skip("this system does not tell a process's peak")
    assert 0.8 < grown / reference_bytes(config, 2) < 1.2


def test_weights_that_two_models_share_count_once(theirs: Reference) -> None:
    both = [sum(each.nbytes for each in model.parameters()) for model in (theirs.model, theirs.causal)]
    assert both[1] > 0
    assert weight_bytes(theirs) == both[0], "the causal half has none of its own"


def test_a_line_tells_both_rates_and_how_many_times_more_are_ours() -> None:
    sides = Sides(as_measured([0.01, 0.02, 0.02]), as_measured([0.05, 0.06, 0.06]))
    [*_, line] = versus_table([Comparison("what", 8, sides, 3.0)]).splitlines()
    assert line.startswith("| what | 8 | 17 | 50 | 3.00 × | 3.00–5.00 | 3 | ≥ 3 × |")
    two = Sides(as_measured([0.5, 0.5]), as_measured([2.0, 2.0]))
    assert "| 0.50 | 2.00 | 4.00 × | too few | 2 |  |" in versus_table([Comparison("what", 1, two, None)])


@pytest.fixture
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    def tiny(folder: Path, *, prompts: int) -> Any:
        return random_subject("tiny", CONFIG, folder, prompts=prompts)

    for name in ("lab", "large"):
        monkeypatch.setattr(versus, name, tiny)
    monkeypatch.setattr(versus, "_LAB_TOKENS", 4)


@pytest.mark.usefixtures("_tiny")
def test_eight_at_once_are_measured_with_fixed_steps_by_their_own_rule_and_greedily(tmp_path: Path) -> None:
    text = "\n".join(lab_versus(tmp_path, rounds=1, compiled=False))
    for what in ("diffusion, 8 steps", "diffusion, 16 steps", "diffusion, at most 16 steps", "ar, 4 tokens"):
        assert f"| {what}" in text
    assert text.count(f" | {AT_ONCE} | ") == 4
    assert text.count("≥ 3 ×") == 3


@pytest.mark.usefixtures("_tiny")
def test_a_full_vocabulary_is_measured_alone_and_at_the_batch_that_is_named(tmp_path: Path) -> None:
    text = "\n".join(large_versus(tmp_path, rounds=1, compiled=False))
    assert f"{AT_ONCE} rows fit" in text
    assert [f"| diffusion, 4 steps | {rows} | " in text for rows in (1, AT_ONCE)] == [True, True]
    assert text.count("≥ 6 ×") == 2
