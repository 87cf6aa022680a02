"""What filled blanks add up to, as Markdown; nothing is filled or judged here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.report import markdown_table, run_table
from mezzotint.evaluate.interval import wilson_interval
from mezzotint.types import tokens_per_forward

_SAYS = {
    "tokens": "diffusion, ids given",
    "fixed": "diffusion, text, seams left alone",
    "surplus": "diffusion, text, surplus pads",
    "candidates": "diffusion, text, candidates",
    "ar": "`ar`, prefix only",
}
ARMS = tuple(_SAYS)
_CONDITIONS = """\
Held-out blanks of `infill`, at most 28 tokens; diffusion with the `report` sampler at temperature 1, `ar` greedy; all
fill the same blanks in turn. Passed: the function's syntax tree is the original's (of `ar`, with any beginning of what
it wrote). The same text: but for white space (`ar`: what it wrote begins with it). Right length: as many tokens as the
original. A forward of several rows counts once."""
_SEAMS = """\
The effect of seams: ids on either side as in training; text whose ids stand as they are; text of which the ids beside
the blank are written as they are likeliest. Alike: what was written is what the first of the three wrote, from the same
noise where no seam takes a place. Empty: nothing but white space was written where there was more."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One blank filled one way.

    has_lines: whether the original has a line break. exact: the original but for white space. right_length: None where
    nobody decided on one.
    """

    seed: int
    arm: str
    has_lines: bool
    wanted: str
    text: str
    passed: bool
    exact: bool
    right_length: bool | None
    tokens: int
    forwards: int
    seconds: float


def render(facts: Mapping[str, str], answers: Sequence[Answer]) -> str:
    """The run, how each way did, and what seams do."""
    by_arm = {arm: [answer for answer in answers if answer.arm == arm] for arm in ARMS}
    return "\n\n".join(
        [f"{run_table(facts)}\n\n{_CONDITIONS}", ways_table(by_arm), f"{_SEAMS}\n\n{seams_table(by_arm)}"]
    )


def ways_table(by_arm: Mapping[str, Sequence[Answer]]) -> str:
    """A row for each way."""
    head = ["filled by", "n", "passed", "95 %", "the same text", "right length", "tokens per forward", "forwards", "s"]
    rows = []
    for arm, answers in by_arm.items():
        n = len(answers)
        tokens, forwards = sum(a.tokens for a in answers), sum(a.forwards for a in answers)
        rows.append(
            [
                _SAYS[arm],
                str(n),
                *_rate([answer.passed for answer in answers]),
                _share([answer.exact for answer in answers]),
                _share([answer.right_length for answer in answers if answer.right_length is not None]),
                f"{tokens_per_forward(tokens, forwards):.2f}",
                f"{forwards / n:.1f}",
                f"{sum(answer.seconds for answer in answers) / n:.3f}",
            ]
        )
    return markdown_table(head, rows)


def seams_table(by_arm: Mapping[str, Sequence[Answer]]) -> str:
    """A row for each kind of blank and level."""
    head = ["blanks", "filled by", "n", "passed", "95 %", "the same text", "right length", "empty", "alike"]
    rows = []
    for kind, has_lines in (("within a line", False), ("of several lines", True)):
        trained = [answer for answer in by_arm["tokens"] if answer.has_lines == has_lines]
        for arm in ("tokens", "fixed", "surplus") if trained else ():
            own = [answer for answer in by_arm[arm] if answer.has_lines == has_lines]
            alike = [one.text == other.text for one, other in zip(own, trained, strict=True)]
            rows.append(
                [
                    kind,
                    _SAYS[arm],
                    str(len(own)),
                    *_rate([answer.passed for answer in own]),
                    _share([answer.exact for answer in own]),
                    _share([bool(answer.right_length) for answer in own]),
                    _share([not answer.text.strip() and bool(answer.wanted.strip()) for answer in own]),
                    "–" if arm == "tokens" else _share(alike),
                ]
            )
    return markdown_table(head, rows)


def _rate(passed: Sequence[bool]) -> list[str]:
    low, high = wilson_interval(sum(passed), len(passed))
    return [_share(passed), f"{100 * low:.1f} – {100 * high:.1f}"]


def _share(held: Sequence[bool]) -> str:
    return f"{100 * sum(held) / len(held):.1f} %" if held else "–"
