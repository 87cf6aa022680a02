import re
from dataclasses import replace

import pytest

from benchmarks import soak
from benchmarks.soak import Answered, Log, find_disorder, find_growth, find_leaks, main, resident_bytes
from mezzotint.decoding.program import Block, Draft, Event, Finished, Prefilled
from mezzotint.engine.request import Done
from mezzotint.types import Receipt
from tests.engine.tiny import Run, engine, request

FIRST, SECOND = Block(0, [5, 6], 2), Block(1, [7], 2)
ANSWER: list[Event] = [
    Prefilled(3),
    Draft(0, 1, [4, 4], []),
    Draft(0, 2, [5, 6], []),
    FIRST,
    Draft(1, 2, [7, 7], []),
    SECOND,
    Finished("length", 1),
]
DONE = Done("id", Receipt(decoder="diffusion", sampler="report", seed=0, prompt_tokens=3, output_tokens=3))


@pytest.mark.slow
def test_a_short_soak_finds_nothing_and_tells_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--minutes", "0.05", "--readers", "16"])
    printed = capsys.readouterr().out
    assert re.search(r"\| finished by decoder \| diffusion \d+, ar \d+, verified \d+, mtp \d+ \|", printed)
    assert int(re.search(r"answers compared \| (\d+)", printed)[1]) > 0  # type: ignore[index]
    # So short a run may end before anything had to yield, or before memory is warm; nothing else may be wrong.
    wrong = re.findall(r"^VIOLATION: (.*)$", printed, re.MULTILINE)
    assert not [line for line in wrong if not line.startswith(("nothing yielded", "memory grew"))]


def test_an_answer_that_differs_from_its_plain_loop_is_a_violation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(soak, "plain_blocks", lambda *given: [])
    assert main(["--minutes", "0.005", "--readers", "8"]) == 1
    assert "is not answered as by the plain loop" in capsys.readouterr().out


def test_an_account_that_is_wrong_is_a_violation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(self: soak.CheckedEngine) -> None:
        if not self.is_idle:
            raise AssertionError("full page 3 is lost")

    monkeypatch.setattr(soak, "EVERY", 1)
    monkeypatch.setattr(soak.CheckedEngine, "check_integrity", check)
    assert main(["--minutes", "0.001", "--readers", "2"]) == 1
    assert "failed: the engine failed: AssertionError: full page 3 is lost" in capsys.readouterr().out


def test_an_answer_in_order_is_in_order_even_where_drafts_are_missing() -> None:
    assert find_disorder(ANSWER, DONE) == []
    assert find_disorder([event for event in ANSWER if not isinstance(event, Draft)], DONE) == []


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([event for event in ANSWER if event is not FIRST], "blocks [1] came"),
        ([*ANSWER[:4], FIRST, *ANSWER[4:]], "blocks [0, 0, 1] came"),
        ([*ANSWER[:3], SECOND, ANSWER[4], FIRST, ANSWER[6]], "blocks [1, 0] came"),
        ([*ANSWER[:2], ANSWER[1], *ANSWER[2:]], "drafts and blocks are out of order"),
        ([*ANSWER[:3], FIRST, ANSWER[2], SECOND, ANSWER[6]], "drafts and blocks are out of order"),
        (ANSWER[1:], "it began and ended with [<class"),
        (ANSWER[:-1], "it began and ended with [<class"),
        ([*ANSWER[:5], Block(1, [7, 8], 2), ANSWER[6]], "the receipt has 3 tokens"),
    ],
)
def test_what_is_lost_doubled_or_out_of_order_is_found(events: list[Event], message: str) -> None:
    assert any(found.startswith(message) for found in find_disorder(events, DONE))


def test_pages_that_are_held_and_requests_that_are_lost_are_found() -> None:
    run = Run(engine())
    run.submit(request("running"), request("gone"))
    run.step()
    assert find_leaks(run.engine.stats())[0].startswith("an idle engine holds pages")
    run.cancel("gone")
    stats = run.finish().engine.stats()
    assert [found.split(":")[0] for found in find_leaks(stats)] == ["nothing yielded, was shared or was cancelled"]
    enough = replace(stats, preemptions=1, prefix_hits=1)
    assert find_leaks(enough) == []
    assert find_leaks(replace(enough, submitted=3))[0].startswith("requests were lost")


def test_memory_may_grow_by_a_twentieth() -> None:
    assert find_growth([1000, 900, 1050]) == []
    assert find_growth([1000, 1051, 900]) == ["memory grew by 5.1% of 1,000 bytes"]
    assert resident_bytes() > 2**20


def test_a_sample_is_drawn_evenly_from_all_answers() -> None:
    log = Log()
    for number in range(600):
        log.finish(Answered(request(f"request {number}"), [Block(number, [], 0)]))
    numbers = [answered.blocks[0].block for answered in log.sample]
    assert (len(numbers), len(set(numbers))) == (60, 60)
    assert 200 < sum(numbers) / 60 < 400
