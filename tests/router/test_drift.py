"""Drift: noticed soon where it is there, seldom where it is not, and never taken for a change of load."""

from random import Random

from mezzotint.router.drift import DriftWatch, PageHinkley


def test_a_steady_stream_raises_no_alarm() -> None:
    random, test = Random(0), PageHinkley()
    assert not any(test.note(random.gauss(0.3, 1.0)) for _ in range(20_000))


def test_a_mean_that_moved_either_way_is_noticed_within_forty() -> None:
    for shift in (1.5, -1.5):
        random, test = Random(1), PageHinkley()
        assert not any(test.note(random.gauss(0.0, 1.0)) for _ in range(200))
        alarms = [test.note(random.gauss(shift, 1.0)) for _ in range(40)]
        assert any(alarms)


def test_stalls_that_stand_alone_are_no_drift() -> None:
    random, test = Random(2), PageHinkley()
    assert not any(test.note(50.0 if at % 50 == 49 else random.gauss(0.0, 1.0)) for at in range(2000))


def test_behind_an_alarm_it_begins_anew() -> None:
    random, test = Random(3), PageHinkley()
    first = [test.note(random.gauss(0.0 if at < 200 else 2.0, 1.0)) for at in range(600)]
    assert sum(first) == 1


def test_a_load_whose_times_are_off_from_the_start_is_no_drift() -> None:
    random, watch = Random(4), DriftWatch()
    told = [watch.note_time("arm", 0, random.gauss(0.0, 0.2), 0.2) for _ in range(300)]
    told += [watch.note_time("arm", 3, random.gauss(1.5, 0.2), 0.2) for _ in range(300)]
    assert not any(told)


def test_acceptance_that_fell_is_noticed() -> None:
    random, watch = Random(5), DriftWatch()
    assert not any(watch.note_verdict("arm", random.random() < 0.9, 0.9) for _ in range(500))
    assert any(watch.note_verdict("arm", random.random() < 0.4, 0.9) for _ in range(60))
