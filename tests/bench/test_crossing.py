"""Where a plan has diffusion fall behind."""

from dataclasses import replace

from mezzotint.bench.agreement import report_question
from mezzotint.bench.crossing import crossings
from mezzotint.bench.plan import at, estimate

QUESTION = report_question()


def ratio(concurrency: int, other: str) -> float:
    rates = {name: each.tokens_per_s for name, each in estimate(at(QUESTION, concurrency)).items()}
    return rates["diffusion"] / rates[other]  # type: ignore[index]


def test_diffusion_is_ahead_before_its_crossing_and_behind_after_it() -> None:
    for name, crossing in crossings(QUESTION).items():
        assert crossing.at is not None
        assert ratio(int(crossing.at), name) >= 1 > ratio(int(crossing.at) + 1, name)
        assert not crossing.behind_alone


def test_a_slow_canvas_is_behind_for_one_request() -> None:
    crossing = crossings(replace(QUESTION, steps=200))["ar"]
    assert (crossing.at, crossing.behind_alone) == (1.0, True)


def test_no_crossing_is_told_with_how_far_was_searched() -> None:
    crossing = crossings(replace(QUESTION, steps=1))["ar"]
    assert crossing.at is None
    assert crossing.searched_to == min(each.footprint.max_concurrency for each in estimate(QUESTION).values())


def test_a_crossing_does_not_depend_on_the_requests_asked_about() -> None:
    assert crossings(at(QUESTION, 50)) == crossings(QUESTION)


def test_without_diffusion_there_is_nothing_to_cross() -> None:
    setting = replace(QUESTION.setting, config=replace(QUESTION.setting.config, family="gemma4"))
    assert crossings(replace(QUESTION, setting=setting)) == {}
