"""How near a plan comes to what others have measured; the constants were fitted on none of these rows.

What is counted, and how two unclear figures of mtp are read (see habits and published), was chosen with them in view.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from mezzotint.bench import published
from mezzotint.bench.accelerators import ACCELERATORS
from mezzotint.bench.crossing import crossings
from mezzotint.bench.footprint import PRECISIONS
from mezzotint.bench.habits import REPORT, REPORT_DRAFTER, kept_at
from mezzotint.bench.operators import Setting
from mezzotint.bench.plan import Decoder, Question, at, estimate
from mezzotint.model.config import shipped_config


class Row(NamedTuple):
    """A published figure and what the plan says of it, in the same unit."""

    what: str
    published: float
    predicted: float

    @property
    def error(self) -> float:
        """Predicted ÷ published − 1."""
        return self.predicted / self.published - 1


def report_question() -> Question:
    """The report's measurement with one request: H100, FP8, 4,096 tokens in and 1,024 out."""
    config = shipped_config("diffusiongemma-26b-a4b")
    return Question(
        setting=Setting(
            config=config,
            precision=PRECISIONS["fp8"],
            accelerator=ACCELERATORS["h100"],
            expert_pool=REPORT.expert_pool,
        ),
        habits=replace(REPORT, tokens_per_forward=published.DIFFUSION_TOKENS_PER_FORWARD),
        drafter=REPORT_DRAFTER,
        context=published.CONTEXT,
        output=published.OUTPUT,
    )


def agreement() -> list[Row]:
    """Every published figure that the plan predicts: tokens/s by concurrency, their ratios, the crossover, vLLM's."""
    return [*_by_concurrency(), *_by_vllm()]


def _by_concurrency() -> Iterator[Row]:
    question = report_question()
    totals: Mapping[Decoder, Mapping[int, float]] = {
        "diffusion": published.DIFFUSION_TOTAL,
        "ar": published.AR_TOTAL,
        "mtp": published.MTP_TOTAL,
    }
    rates = {
        c: {name: each.tokens_per_s for name, each in estimate(at(question, c)).items()} for c in published.AR_TOTAL
    }
    for name, table in totals.items():
        for c, rate in table.items():
            yield Row(f"{name}, {c} at once, tokens/s", rate, rates[c][name])
    for c, ratio in published.DIFFUSION_OVER_MTP.items():
        yield Row(f"diffusion ÷ mtp, {c} at once", ratio, rates[c]["diffusion"] / rates[c]["mtp"])
    crossing = crossings(question)["mtp"]
    yield Row("crossover of diffusion and mtp", published.CROSSOVER_WITH_MTP, crossing.at or crossing.searched_to)


def _by_vllm() -> Iterator[Row]:
    habits = replace(REPORT, kept=kept_at(published.VLLM_MTP_ACCEPTANCE, REPORT.drafts))
    tables: Mapping[Decoder, Mapping[str, float]] = {
        "ar": published.VLLM_AR,
        "mtp": published.VLLM_MTP,
        "diffusion": published.VLLM_DIFFUSION,
    }
    for device in published.VLLM_AR:
        question = report_question()
        setting = replace(question.setting, accelerator=ACCELERATORS[device])
        told = estimate(replace(question, setting=setting, habits=habits, steps=published.VLLM_STEPS))
        for name, table in tables.items():
            yield Row(f"vLLM, {name}, {device}, tokens/s", table[device], told[name].tokens_per_s)
