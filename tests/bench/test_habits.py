"""What is taken as given."""

from dataclasses import replace

import pytest

from mezzotint.bench.habits import REPORT, kept_at


def test_drafts_are_kept_until_the_first_that_is_not() -> None:
    assert kept_at(0.5, 3) == 0.5 + 0.25 + 0.125
    assert kept_at(1.0, 4) == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [({"tokens_per_forward": 0.0}, "--tokens-per-forward is 0"), ({"kept": 4.5}, "--kept-drafts is 4.5; of 4 drafts")],
)
def test_habits_that_cannot_be_are_refused(change: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(REPORT, **change)  # type: ignore[arg-type]
