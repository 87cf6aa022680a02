"""What choices add up to: accuracy, and how far probabilities can be trusted; nothing is run here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from benchmarks.report import markdown_table, run_table
from mezzotint.evaluate.interval import wilson_interval
from mezzotint.llm.choose import ChoosingDecoder

DECODERS: tuple[ChoosingDecoder, ...] = ("diffusion", "ar")
BINS = 10  # of equal width, by the probability of the likeliest choice
_CONDITIONS = f"""\
Held-out prompts of `choose`, two to five labels each; both decoders choose at the same prompts. Right: the likeliest
label is the right one; chance: by guessing. Sure: mean probability of the likeliest. ECE: expected calibration error in
{BINS} bins of equal width by that probability, Σ share of the bin × |share right − mean probability|; few prompts
make it too large. Brier: mean over prompts of Σ over labels (probability − 1 if it is right)², 0 the best, 2 the worst,
that of equal probabilities beside it. Forwards: behind that of the prompt. Single: labels of one token each."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One prompt's probabilities by one decoder, in the order of its labels, and the place of the right one."""

    seed: int
    decoder: ChoosingDecoder
    variant: str
    probabilities: tuple[float, ...]
    right: int
    forwards: int

    @property
    def confidence(self) -> float:
        """Probability of the likeliest label."""
        return max(self.probabilities)

    @property
    def is_right(self) -> bool:
        """Whether the likeliest label, the first of several, is the right one."""
        return self.probabilities.index(self.confidence) == self.right


def calibration_error(answers: Sequence[Answer], bins: int = BINS) -> float:
    """Mean distance between how sure and how right answers are, bin by bin, weighted by their number.

    Source: Guo et al. 2017, arXiv:1706.04599.
    """
    total = 0.0
    for place in range(bins):
        own = [a for a in answers if min(int(a.confidence * bins), bins - 1) == place]
        if own:
            total += len(own) * abs(fmean(a.is_right for a in own) - fmean(a.confidence for a in own))
    return total / len(answers)


def brier_score(answers: Sequence[Answer]) -> float:
    """Mean over answers of the squared distance between probabilities and what was right.

    Source: Brier 1950, for any number of classes.
    """
    return fmean(
        sum((p - (place == answer.right)) ** 2 for place, p in enumerate(answer.probabilities)) for answer in answers
    )


def render(facts: Mapping[str, str], answers: Sequence[Answer]) -> str:
    """The run, and a row for each decoder and kind of labels."""
    head = ["labels", "decoder", "n", "right", "95 %", "chance", "sure", "ECE", "Brier", "of equal", "forwards"]
    rows = []
    for variant in ("all", *dict.fromkeys(answer.variant for answer in answers)):
        for decoder in DECODERS:
            own = [a for a in answers if a.decoder == decoder and variant in ("all", a.variant)]
            rows.append([variant, f"`{decoder}`", str(len(own)), *_cells(own)])
    return f"{run_table(facts)}\n\n{_CONDITIONS}\n\n{markdown_table(head, rows)}"


def _cells(answers: Sequence[Answer]) -> list[str]:
    n, right = len(answers), sum(answer.is_right for answer in answers)
    low, high = wilson_interval(right, n)
    return [
        f"{100 * right / n:.1f} %",
        f"{100 * low:.1f} – {100 * high:.1f}",
        f"{100 * fmean(1 / len(answer.probabilities) for answer in answers):.1f} %",
        f"{100 * fmean(answer.confidence for answer in answers):.1f} %",
        f"{calibration_error(answers):.3f}",
        f"{brier_score(answers):.3f}",
        f"{fmean(1 - 1 / len(answer.probabilities) for answer in answers):.3f}",
        f"{fmean(answer.forwards for answer in answers):.1f}",
    ]
