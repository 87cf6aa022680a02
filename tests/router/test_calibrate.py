"""Calibration: who is asked what, in which order and at which load, and what comes of it."""

import asyncio
from dataclasses import replace

import pytest

from mezzotint.router.calibrate import CalibrateConfig, Probe, Progress, calibrate, plan_waves, read_bodies
from mezzotint.router.record import Attempt
from tests.router.test_ledger import ATTEMPT

PROBES = [Probe({"messages": [{"role": "user", "content": str(n)}]}) for n in range(6)]


class Arms:
    """Answers at once, but counts how many it is asked beside one another; `broken` refuses."""

    def __init__(self) -> None:
        self.now = {"a": 0, "broken": 0}
        self.asked: list[tuple[str, int, str]] = []

    async def ask(self, arm: str, probe: Probe) -> Attempt | None:
        self.now[arm] += 1
        await asyncio.sleep(0)
        beside = self.now[arm]
        await asyncio.sleep(0)
        self.now[arm] -= 1
        self.asked.append((arm, beside, probe.body["messages"][0]["content"]))
        return None if arm == "broken" else replace(ATTEMPT, arm=arm, in_flight=beside)


def run(arms: Arms, config: CalibrateConfig) -> tuple[list[Progress], list[Attempt]]:
    noted: list[Attempt] = []

    async def collect() -> list[Progress]:
        return [told async for told in calibrate(config, list(arms.now), PROBES, arms.ask, noted.append)]

    return asyncio.run(collect()), noted


def test_every_arm_answers_the_same_probes_at_every_load_in_turns() -> None:
    waves = plan_waves(CalibrateConfig(loads=(1, 2), rounds=2), ["a", "b"], 4)
    assert [(wave.arm, wave.load, wave.probes) for wave in waves] == [
        ("a", 1, (0,)),
        ("b", 1, (0,)),
        ("b", 1, (1,)),
        ("a", 1, (1,)),
        ("a", 2, (2, 3)),
        ("b", 2, (2, 3)),
        ("b", 2, (0, 1)),
        ("a", 2, (0, 1)),
    ]


def test_a_wave_is_asked_all_at_once_and_no_other_beside_it() -> None:
    arms = Arms()
    progress, noted = run(arms, CalibrateConfig(loads=(1, 4), rounds=1))
    assert {(arm, beside) for arm, beside, _ in arms.asked} == {("a", 1), ("a", 4), ("broken", 1), ("broken", 4)}
    assert [attempt.in_flight for attempt in noted] == [1, 4, 4, 4, 4]
    assert progress[-1] == Progress(progress[-1].wave, 4, 4, refused=5)


@pytest.mark.parametrize(("loads", "rounds"), [((), 1), ((0,), 1), ((2, 2), 1), ((1,), 0)])
def test_what_cannot_be_measured_is_refused(loads: tuple[int, ...], rounds: int) -> None:
    with pytest.raises(ValueError, match=r"at least 1"):
        CalibrateConfig(loads=loads, rounds=rounds)


def test_without_arms_or_probes_there_is_no_plan() -> None:
    with pytest.raises(ValueError, match="0 arms and 3 probes"):
        plan_waves(CalibrateConfig(), [], 3)


def test_bodies_are_read_a_line_each() -> None:
    line = '{"messages": [{"role": "user", "content": "x"}]}'
    assert len(read_bodies([line, "", line])) == 2
    with pytest.raises(ValueError, match="line 2 is no JSON"):
        read_bodies([line, "{"])
    for bad in ("[]", "{}", '{"messages": []}'):
        with pytest.raises(ValueError, match="line 1 has no messages"):
            read_bodies([bad])
