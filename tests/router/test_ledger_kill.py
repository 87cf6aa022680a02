"""A ledger whose writer is killed at random moments holds all that the writer was told is kept."""

from pathlib import Path

from tests.router.kill import kill_at_random


def test_twenty_kills_lose_nothing_that_was_acknowledged_and_leave_a_sound_file(tmp_path: Path) -> None:
    survival = kill_at_random(tmp_path / "ledger.sqlite", 20, seed=1)
    assert survival.acknowledged > 200
    assert (survival.lost, survival.broken) == (0, [])
