"""The benchmark from end to end on a tiny model: both sides do the same work, and all of it is printed."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from benchmarks import vocabulary
from benchmarks.ceilings import FUNCTIONS, measure_ceilings, product_shapes
from benchmarks.foundation import Plan, bound_sections, lab_sections, large_sections, main
from benchmarks.machine import describe_run
from benchmarks.ours import Ours
from benchmarks.reference import Reference
from benchmarks.sides import Work, check_agreement, measure
from benchmarks.subjects import Subject, cut_context, fix_steps, large_config, random_subject
from tests.benchmarks.tiny import CONFIG
from tests.model.compiler import needs_compiler

WORK = Work(rounds=2, steps=(1, 3), tokens=4, context=20)
PLAN = Plan(lab=WORK, large=WORK, ceiling_s=0.0, split_steps=4)


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    found = random_subject("tiny", CONFIG, tmp_path_factory.mktemp("foundation") / "tiny", prompts=2)
    return found._replace(prompts=[prompt[:20] for prompt in found.prompts])


@pytest.fixture(scope="module")
def sides(subject: Subject) -> tuple[Ours, Reference]:
    return Ours(subject.folder, "float32"), Reference(subject.folder, "float32")


def test_both_sides_compute_the_same(sides: tuple[Ours, Reference], subject: Subject) -> None:
    agreement = check_agreement(*sides, subject, WORK)
    assert agreement.furthest < 1e-4
    assert agreement.same_argmax == 1
    assert agreement.same_tokens == agreement.tokens == WORK.tokens


def test_both_loops_of_the_reference_draw_the_same_tokens(sides: tuple[Ours, Reference], subject: Subject) -> None:
    theirs = sides[1]
    drawn = theirs.continue_greedily(subject.prompts[0], tokens=6)
    assert len(drawn) == 6
    assert theirs.continue_bare(subject.prompts[0], tokens=6) == drawn


def test_the_reference_runs_every_step_that_it_is_asked_for(
    sides: tuple[Ours, Reference], subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, passes = sides[1].model, []
    forward = model.forward
    monkeypatch.setattr(model, "forward", lambda *a, **k: passes.append(1) or forward(*a, **k))
    answer = sides[1].answer(subject.prompts[0], steps=5, seed=0)
    assert (len(passes), len(answer)) == (5, CONFIG.canvas_length)


def test_our_side_refuses_a_run_that_stopped_early(subject: Subject, tmp_path: Path) -> None:
    folder = tmp_path / "eager"
    fix_steps(subject.folder, folder)
    generation = json.loads((folder / "generation_config.json").read_text())
    (folder / "generation_config.json").write_text(
        json.dumps({**generation, "stability_threshold": 0, "confidence_threshold": 100.0})
    )
    with pytest.raises(RuntimeError, match=r"took \(1,\) steps, 4 were asked for"):
        Ours(folder, "float32").answer(subject.prompts[0], steps=4, seed=0)


def test_only_what_is_asked_for_is_measured(sides: tuple[Ours, Reference], subject: Subject) -> None:
    found = measure(*sides, subject, WORK, answers=False, tokens=True)
    assert found.answers is None
    assert found.tokens is not None
    assert len(found.tokens.step.ours.values) == WORK.rounds


@pytest.mark.parametrize(
    ("kinds", "lines"),
    [
        ({"answer"}, ["answer, 1 steps", "answer, 3 steps", "denoising step"]),
        ({"ar"}, ["AR step, context 20, generate", "AR step, context 20, their forward alone"]),
    ],
)
def test_the_small_model_prints_the_rows_of_its_kind(subject: Subject, kinds: set[str], lines: list[str]) -> None:
    text = "\n".join(lab_sections(subject, "float32", PLAN, kinds))
    named = [line.split(" | ")[0].removeprefix("| ") for line in text.splitlines() if " ms" not in line]
    assert [name for name in named if name.startswith(("answer", "denoising", "AR"))] == lines
    assert "random weights" in text
    assert "step ÷ AR step" not in text


def test_the_large_model_prints_steps_memory_and_the_ar_step_beside_their_ratio(subject: Subject) -> None:
    text = "\n".join(large_sections(subject, PLAN, {"step"}))
    for part in (
        "| denoising step |",
        "≥ 6 ×",
        "| side | denoising step, ms | AR step, ms |",
        "our vocabulary pass",
    ):
        assert part in text


def test_shares_stand_beside_the_ceilings(sides: tuple[Ours, Reference], subject: Subject) -> None:
    text = "\n".join(bound_sections(sides[0], subject, 20, PLAN))
    assert text.count("| whole step |") == 2
    assert all(f"| {name} |" in text for name in FUNCTIONS)


@needs_compiler
def test_a_compiled_model_is_measured_in_the_same_way_and_its_parts_are_not_told(subject: Subject) -> None:
    text = "\n".join(lab_sections(subject, "float32", PLAN, {"answer", "ar", "ceilings"}, compiled=True))
    assert "batch 1, ours compiled" in text
    shares = [line.split(" | ") for line in text.splitlines() if line.startswith(("| whole step", "| projections"))]
    assert [bool(taken) for *_, taken, _ in shares] == [False, True, False, True]
    agreement = check_agreement(
        Ours(subject.folder, "float32", compiled=True), Reference(subject.folder, "float32"), subject, WORK
    )
    assert agreement.furthest < 1e-4


def test_ceilings_are_taken_at_the_shapes_of_the_model() -> None:
    config = large_config()
    assert {(256, 640, 2048), (256, 2048, 640), (256, 640, 1024), (256, 1024, 640)} == set(product_shapes(config))
    ceilings = measure_ceilings(CONFIG, torch.bfloat16, 4096, seconds=0.0)
    assert ceilings.flop_per_s == max(ceilings.products.values())
    assert min(ceilings.bytes_per_s, *ceilings.elements_per_s.values(), *ceilings.products.values()) > 0


def test_a_context_is_repeated_or_cut_to_its_length() -> None:
    assert cut_context([1, 2, 3], 7) == [1, 2, 3, 1, 2, 3, 1]
    assert cut_context([1, 2, 3], 2) == [1, 2]


def test_a_run_names_command_machine_versions_and_commit() -> None:
    facts = describe_run(["--quick"])
    assert facts["command"] == "python -m benchmarks.foundation --quick"
    assert "transformers 5." in facts["versions"]
    assert facts["machine"]
    assert facts["commit"]


def test_an_unknown_kind_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--only", "answer,speed"])
    assert "'speed' is none of answer, ar, step, ceilings" in capsys.readouterr().err


@pytest.mark.parametrize("threads", ["0", "-2", "two"])
@pytest.mark.parametrize("bench", [main, vocabulary.main])
def test_a_number_of_threads_that_is_none_is_refused(
    bench: Callable[[list[str]], None], threads: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        bench([f"--threads={threads}"])
    assert f"{threads!r} is no number of threads; give 1 or more" in capsys.readouterr().err


def test_a_model_is_refused_where_none_but_random_weights_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--only", "step", "--model", "lab"])
    assert "step is measured with random weights alone; drop it" in capsys.readouterr().err
