"""A plan as objects and as plain text; its numbers come from bench."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mezzotint.bench.agreement import Row
from mezzotint.bench.crossing import Crossing
from mezzotint.bench.footprint import PRECISIONS, weights_bytes
from mezzotint.bench.plan import Decoder, Estimate, Question

_Told = Mapping[Decoder, Estimate]
_Crossed = Mapping[Decoder, Crossing]


def as_objects(question: Question, told: _Told, crossed: _Crossed) -> dict[str, dict[str, Any]]:
    """An object for each decoder and nothing beside them; what compares decoders stands with diffusion."""
    objects: dict[str, dict[str, Any]] = {name: _as_object(question, each) for name, each in told.items()}
    if "diffusion" in told:
        objects["diffusion"]["r"] = _r(told)
        objects["diffusion"]["crossover"] = {name: each._asdict() for name, each in crossed.items()}
    return objects


def _as_object(question: Question, each: Estimate) -> dict[str, Any]:
    tokens = question.concurrency * each.tokens_per_step
    return {
        "step_ms": 1e3 * each.step.seconds,
        "tokens_per_s": each.tokens_per_s,
        "tokens_per_s_per_user": each.tokens_per_s / question.concurrency,
        "tokens_per_step": each.tokens_per_step,
        **({} if each.steps is None else {"steps": each.steps}),
        **({} if each.commit is None else {"commit_ms": 1e3 * each.commit.seconds}),
        "operators_ms": {name: 1e3 * taken for name, taken in each.step.operators_s.items()},
        "host_ms": 1e3 * each.step.host_s,
        "bytes_per_step": each.step.bytes,
        "flop_per_step": each.step.flop,
        "bytes_per_token": each.step.bytes / tokens,
        "flop_per_token": each.step.flop / tokens,
        "memory": {**each.footprint._asdict(), "weights_bytes_by_dtype": _by_precision(question)},
    }


def as_text(model: str, question: Question, told: _Told, crossed: _Crossed) -> str:
    """Three tables, of rates, of operators and of memory, and what follows from them in words."""
    setting, habits = question.setting, question.habits
    lines = [
        f"{model}, {setting.precision.name} on {setting.accelerator.title}; {question.context} tokens in, "
        f"{question.output} out, {question.concurrency} at once, without prefill",
        *_table(_rates(question, told)),
        *_table(_operators(told)),
        *_table(_memory(told)),
        "",
        _weights(question),
        *(_sentences(told, crossed) if "diffusion" in told else ()),
        f"Taken as given: {habits.source}." + _stated(question),
        _constants(question),
    ]
    return "\n".join(lines)


def errors_text(rows: Sequence[Row]) -> str:
    """A row for each published figure, with what the plan says of it."""
    cells = [[row.what, f"{row.published:.4g}", f"{row.predicted:.4g}", f"{row.error:+.0%}"] for row in rows]
    return "\n".join(list(_table([["published", "measured", "predicted", "error"], *cells]))[1:])


def _rates(question: Question, told: _Told) -> Iterator[list[str]]:
    yield ["decoder", "ms a step", "tokens a step", "tokens/s", "a user", "GB a step", "TFLOP a step"]
    for name, each in told.items():
        numbers = [
            1e3 * each.step.seconds,
            each.tokens_per_step,
            each.tokens_per_s,
            each.tokens_per_s / question.concurrency,
            each.step.bytes / 1e9,
            each.step.flop / 1e12,
        ]
        yield [name, *(f"{number:.4g}" for number in numbers)]


def _operators(told: _Told) -> Iterator[list[str]]:
    names = list(dict.fromkeys(name for each in told.values() for name in each.step.operators_s))
    yield ["ms of a step", *(name.replace("_", ", ") for name in names), "host"]
    for decoder, each in told.items():
        times = [1e3 * each.step.operators_s.get(name, 0.0) for name in names]
        yield [decoder, *(f"{taken:.3g}" for taken in (*times, 1e3 * each.step.host_s))]


def _memory(told: _Told) -> Iterator[list[str]]:
    yield ["memory", "weights, GB", "KV, kB a token", "KV, MB a request", "canvas, MB a request", "requests that fit"]
    for decoder, each in told.items():
        sizes = (
            each.footprint.weights_bytes / 1e9,
            each.footprint.kv_bytes_per_token / 1e3,
            each.footprint.kv_bytes_per_sequence / 1e6,
            each.footprint.state_bytes_per_sequence / 1e6,
        )
        yield [decoder, *(f"{size:.4g}" for size in sizes), str(each.footprint.max_concurrency)]


def _table(rows: Iterator[list[str]] | list[list[str]]) -> Iterator[str]:
    """An empty line, then the rows with their columns aligned."""
    whole = list(rows)
    widths = [max(map(len, column)) for column in zip(*whole, strict=True)]
    yield ""
    for first, *rest in whole:
        cells = (cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))
        yield "  ".join([first.ljust(widths[0]), *cells])


def _weights(question: Question) -> str:
    sizes = ", ".join(f"{name} {size / 1e9:.3g} GB" for name, size in _by_precision(question).items())
    return f"The model's weights by --dtype: {sizes}; keys and values are bf16 in each."


def _by_precision(question: Question) -> dict[str, float]:
    return {name: weights_bytes(question.setting.config, precision) for name, precision in PRECISIONS.items()}


def _sentences(told: _Told, crossed: _Crossed) -> Iterator[str]:
    each = told["diffusion"]
    if each.steps is not None and each.commit is not None:
        commit_ms = 1e3 * each.commit.seconds
        yield f"A canvas takes {each.steps:.3g} steps, and a commit of {commit_ms:.4g} ms if more follows."
    yield f"r, a denoising step by a step of ar, is {_r(told):.3g}."
    for name, crossing in crossed.items():
        if crossing.behind_alone:
            yield f"Diffusion is behind {name} for one request already."
        elif crossing.at is None:
            yield f"Diffusion is ahead of {name} for 1 to {crossing.searched_to} requests at once: no crossover."
        else:
            yield f"Diffusion falls behind {name} at {crossing.at:.3g} requests at once."


def _r(told: _Told) -> float:
    return told["diffusion"].step.seconds / told["ar"].step.seconds


def _stated(question: Question) -> str:
    if question.steps is not None:
        return f" Stated here: {question.steps:g} steps a canvas."
    return f" Used here: {question.habits.tokens_per_forward:g} tokens a forward, {question.habits.kept:g} drafts kept."


def _constants(question: Question) -> str:
    device = question.setting.accelerator
    elsewhere = "" if device.name == device.tuned_on else ", and taken to hold here"
    return f"Peaks: {device.source}. Efficiencies: fitted on {device.tuned_on}{elsewhere}; see --errors."
