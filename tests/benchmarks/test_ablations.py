"""An experiment runs what is not finished, each run from the start that it names, and shows what it found."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import ablations
from benchmarks.ablation_table import tables
from benchmarks.ablations import Experiment, finished, main
from benchmarks.held_out import store
from benchmarks.learning import Learned
from benchmarks.variants import COPYING, SHAPES, VARIANTS, Shape, Variant, small_config
from mezzotint.model.config import ModelConfig
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.weights import load_model
from mezzotint.train.lab import initialise
from mezzotint.train.state import TrainState

RECIPE, FORK, WITHOUT = (
    next(variant for variant in VARIANTS if variant.name == name) for name in (COPYING, "as it is", "without repeat")
)


def tiny_config(vocab_size: int) -> ModelConfig:
    whole = small_config(vocab_size)
    return replace(whole, hidden_size=32, intermediate_size=32, layers=(whole.layers[0], whole.layers[2]))


def shift(model: DiffusionGemma, variant: Variant, tokenise: Any, seconds: float, *, report: Any) -> Learned:
    """In place of training: 7 steps that move every weight by a hundredth."""
    state = TrainState(model, variant.config)
    for value in (*state.masters.values(), *state.average.values()):
        value += 0.01
    state.step = 7
    return Learned(state, seconds, [])


@pytest.fixture(autouse=True)
def _small_numbers() -> Iterator[None]:
    """The command flushes them to 0, for the whole process; tests behind it want them back."""
    yield
    torch.set_flush_denormal(False)


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    monkeypatch.setattr(ablations, "small_config", tiny_config)
    monkeypatch.setattr(ablations, "learn", shift)
    monkeypatch.setattr(ablations, "LOSSES", 3)
    return Experiment(tmp_path, answers=1, compiled=False)


def run(experiment: Experiment, variant: Variant) -> dict[str, Any]:
    return experiment.run(variant, lambda point: None)


@pytest.mark.slow
def test_a_run_is_told_in_full_and_not_made_again(experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    told = run(experiment, RECIPE)
    assert (told["seconds"], told["steps"], told["examples"]) == (RECIPE.seconds, 7, 7 * 24)
    assert list(told["tasks"]) == ["extract", "repeat"]
    for found in told["tasks"].values():
        assert [(row["decoder"], row["step_budget"], row["n"]) for row in found["rows"]] == [
            ("diffusion", 8, 1),
            ("ar", 0, 1),
        ]
        assert all(loss > 0 for loss in (found["causal"], found["heard"], *found["denoise"].values()))
    monkeypatch.delattr(ablations, "learn")
    again = run(experiment, RECIPE)
    assert again["asked"]["name"] == COPYING
    assert finished(experiment) == [again]
    assert "| the recipe, until it copies | 2400 | 168 | 0.1 | `extract` |" in tables(finished(experiment))


def start(experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> DiffusionGemma:
    """Put the start of the forks in its place, and score nothing."""
    monkeypatch.setattr(Experiment, "_score", lambda self, model, variant: {})
    model = initialise(DiffusionGemma(tiny_config(2048)), 5).to(torch.bfloat16)
    store(model, experiment.folder / "starts" / "copying")
    return model


def test_a_fork_begins_with_the_weights_of_its_start(experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    first, seen = start(experiment, monkeypatch), []

    def look(model: DiffusionGemma, *given: Any, **named: Any) -> Learned:
        seen.append({name: value.clone() for name, value in model.state_dict().items()})
        return shift(model, *given, **named)

    monkeypatch.setattr(ablations, "learn", look)
    for variant in (FORK, replace(FORK, name="another")):  # the second meets the model that the first has moved
        run(experiment, variant)
    assert all(torch.equal(value, weights[name]) for weights in seen for name, value in first.state_dict().items())


def test_what_the_first_run_ends_with_is_the_start_of_the_forks(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Experiment, "_score", lambda self, model, variant: {})
    with pytest.raises(ValueError, match="as it is begins where recipe ended, which is not finished; run that first"):
        run(experiment, FORK)
    with pytest.raises(ValueError, match="without repeat is as long as recipe, which is not finished"):
        run(experiment, WITHOUT)
    run(experiment, RECIPE)
    stored = load_model(experiment.folder / "starts" / "copying", dtype=torch.bfloat16).state_dict()
    begun = initialise(DiffusionGemma(tiny_config(2048)), 0).to(torch.bfloat16).named_parameters()
    assert all(torch.equal(stored[name], (value.float() + 0.01).to(torch.bfloat16)) for name, value in begun)
    told = run(experiment, FORK)
    assert len(told["start_weights"]) == 12
    assert run(experiment, WITHOUT)["seconds"] == RECIPE.seconds


def test_the_bundled_weights_are_kept_for_all_runs_that_begin_with_them(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Experiment, "_score", lambda self, model, variant: {})
    untrained = next(variant for variant in VARIANTS if variant.name == "untrained")
    first = run(experiment, untrained)["start_weights"]
    monkeypatch.setattr(ablations, "BUNDLED", experiment.folder)  # which holds no lab
    assert run(experiment, replace(untrained, name="later"))["start_weights"] == first


def test_a_run_that_was_told_otherwise_is_refused(experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    start(experiment, monkeypatch)
    run(experiment, FORK)
    with pytest.raises(ValueError, match=r"as-it-is\.json is of a run that was told otherwise; remove it"):
        run(experiment, replace(FORK, changes={"canvases": 3}))


def test_the_command_runs_what_it_names_and_writes_the_tables(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    start(experiment, monkeypatch)
    monkeypatch.setattr(Experiment, "_score", lambda self, model, variant: {"extract": finding(0.5)})
    page = experiment.folder / "page.md"
    page.write_text("above\n<!-- ablations: begin --><!-- ablations: end -->\nbelow\n")
    told = ["--folder", str(experiment.folder), "--eager", "--n", "1", "--write", str(page)]
    main([*told, "--table"])
    assert "No run is finished." in page.read_text()
    main([*told, "--only", "deaf,adamw"])
    asked = [json.loads(file.read_text())["asked"]["name"] for file in sorted(experiment.folder.glob("*.json"))]
    assert asked == ["adamw", "deaf"]
    assert "| no self-conditioning | 240 | 168 | 0.7 | `extract` |" in page.read_text()
    with pytest.raises(SystemExit):
        main([*told, "--only", "blind"])
    assert "'blind' is none of recipe, as it is," in capsys.readouterr().err


def finding(rate: float) -> dict[str, Any]:
    rows = [{"decoder": name, "pass_rate": rate, "interval": [rate / 2, 1.0]} for name in ("diffusion", "ar")]
    return {"causal": 1.25, "denoise": {"0.25": 0.1, "0.5": 0.2, "0.75": 0.3, "1.0": 0.4}, "heard": 0.35, "rows": rows}


def told(start: str, says: str, seconds: float, weights: str | None) -> dict[str, Any]:
    tasks = {"extract": finding(0.5), "repeat": finding(0.25)}
    about = {"seconds": seconds, "examples": 1200, "start_weights": weights, "tasks": tasks}
    return {"asked": {"start": start, "says": says}, **about}


def test_runs_stand_in_the_table_of_their_start() -> None:
    text = tables(
        [told("copying", "one", 240.0, "abc"), told("nothing", "two", 0.0, None), told("copying", "three", 60.0, "abd")]
    )
    nothing, copying = text.split("From the weights at which")
    assert nothing.startswith("From nothing:\n")
    assert (
        "| two | 0 | 1,200 | – | `extract` | 1.250 | 0.100 | 0.200 | 0.300 | 0.400 | 0.350 | 50 % (25 – 100) |"
        in nothing
    )
    assert copying.splitlines()[0].endswith("(abc, abd):")
    assert [line.split(" | ")[0] for line in copying.splitlines()[4:]] == ["| one", "| ", "| three", "| "]
    assert "|  |  |  |  | `repeat` | 1.250 |" in copying
    assert "| one | 240 | 1,200 | 5.0 |" in copying


def test_shapes_stand_in_a_table_of_their_own_and_begin_with_random_weights(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Experiment, "_score", lambda self, model, variant: {})
    [small] = [variant for variant in VARIANTS if variant.start == "small"]
    assert run(experiment, small)["start_weights"] is None
    shapes = [told(start, start, 750.0, None) for start in SHAPES]
    text = tables([told("nothing", "recipe", 714.0, None), *shapes])
    assert text.count("From nothing") == 2
    assert text.split("one shape beside another")[1].count("`repeat`") == len(SHAPES)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_would_fit_among_the_bundled_checkpoints(shape: Shape) -> None:
    with torch.device("meta"):
        model = DiffusionGemma(SHAPES[shape](2048))
    assert 2 * sum(weight.numel() for weight in model.parameters()) < 32e6
