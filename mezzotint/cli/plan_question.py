"""From the flags of `mezzotint plan` to bench's question: which shape, which drafter, and what is taken as given."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from mezzotint.bench.accelerators import find_accelerator
from mezzotint.bench.footprint import DrafterShape, find_precision
from mezzotint.bench.habits import HABITS, REPORT, REPORT_DRAFTER, Habits
from mezzotint.bench.operators import Setting
from mezzotint.bench.plan import Question
from mezzotint.cli.plan import Load, Machine, Pace
from mezzotint.model.assistant_config import read_assistant_config
from mezzotint.model.config import ConfigError, ModelConfig, read_config, shipped_config
from mezzotint.model.locate import BUNDLED

_USUAL_CONTEXT = 4096


class _Model(NamedTuple):
    config: ModelConfig
    drafter: DrafterShape | None


def ask(model: str, drafter: str | None, machine: Machine, load: Load, pace: Pace) -> Question:
    """The question that the flags put. Raises: ValueError naming a flag, its value and what works."""
    accelerator, precision = find_accelerator(machine.accelerator), find_precision(machine.dtype)
    config, shape = _find(model)
    habits = _habits(model, config, pace)
    room = max(1, config.max_positions - load.output)
    return Question(
        setting=Setting(config=config, precision=precision, accelerator=accelerator, expert_pool=habits.expert_pool),
        habits=habits,
        drafter=shape if drafter is None else _read_drafter(Path(drafter).expanduser(), config),
        context=min(_USUAL_CONTEXT, room) if load.context is None else load.context,
        output=load.output,
        concurrency=load.concurrency,
        steps=pace.steps,
        verified=None if pace.verified_keeps is None else (pace.verified_steps, pace.verified_keeps),
    )


def _find(name: str) -> _Model:
    bundled = [file.parent.name for file in sorted(BUNDLED.glob("*/config.json"))]
    folder = Path(name).expanduser()
    if not (name and folder.is_dir()) and name in bundled:
        folder = BUNDLED / name
    if name and folder.is_dir():
        config, beside = read_config(folder), folder.with_name(f"{folder.name}-drafter")
        return _Model(config, _read_drafter(beside, config) if beside.is_dir() else None)
    try:
        return _Model(shipped_config(name), REPORT_DRAFTER)
    except ConfigError as error:
        models = ", ".join(each for each in bundled if not each.endswith("-drafter"))
        raise ValueError(f"{error}; bundled are: {models}; or name the folder of a config.json") from None


def _read_drafter(folder: Path, target: ModelConfig) -> DrafterShape:
    config = read_assistant_config(folder)
    if config.target_width != target.hidden_size:
        raise ValueError(
            f"{folder} drafts for a model of width {config.target_width}, this one has {target.hidden_size}; name the "
            "drafter that was trained for it"
        )
    scored = config.vocab_size
    if config.centroids:
        scored = config.centroids + config.top_centroids * (config.vocab_size // config.centroids)
    return DrafterShape(
        target_width=config.target_width,
        vocab_size=config.vocab_size,
        scored=scored,
        hidden_size=config.hidden_size,
        intermediate_size=config.intermediate_size,
        num_heads=config.num_heads,
        layers=config.layers,
        sliding_window=config.sliding_window,
    )


def _habits(name: str, config: ModelConfig, pace: Pace) -> Habits:
    if pace.steps is not None and pace.tokens_per_forward is not None:
        raise ValueError("--steps and --tokens-per-forward both say how long a canvas takes: drop one of the two")
    known = HABITS.get(name, REPORT)
    if (
        known is REPORT
        and config.family == "diffusion_gemma"
        and config.canvas_length != shipped_config("diffusiongemma-26b-a4b").canvas_length
        and pace.steps is None
        and pace.tokens_per_forward is None
    ):
        raise ValueError(
            f"how many steps {name} takes is not known, and its canvas of {config.canvas_length} is not that of the "
            "published model; give --steps or --tokens-per-forward"
        )
    return replace(
        known,
        tokens_per_forward=known.tokens_per_forward if pace.tokens_per_forward is None else pace.tokens_per_forward,
        kept=known.kept if pace.kept_drafts is None else pace.kept_drafts,
    )
