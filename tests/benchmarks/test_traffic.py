from itertools import islice

from benchmarks.tiny import tiny_model
from benchmarks.traffic import DECODERS, Traffic, Visit
from mezzotint.decoding.generate import Limits
from mezzotint.engine.entry import check_entry

CONFIG = tiny_model().config
LIMITS = Limits(vocab_size=512, canvas_length=16, max_positions=256, end_ids=(1,))


def visits(seed: int, count: int) -> list[Visit]:
    traffic = Traffic(LIMITS, seed=seed)
    found = []
    for visit in islice(iter(traffic.next, None), count):
        found.append(visit)
        traffic.remember(visit.request, [5, 6, 7])
    return found


def test_traffic_is_seeded() -> None:
    assert [visit.request.params for visit in visits(3, 40)] == [visit.request.params for visit in visits(3, 40)]
    assert [visit.request.prompt for visit in visits(3, 40)] == [visit.request.prompt for visit in visits(3, 40)]
    assert visits(3, 1)[0].request.prompt != visits(4, 1)[0].request.prompt


def test_every_request_can_be_answered_and_all_kinds_come() -> None:
    found = visits(0, 400)
    for visit in found:
        check_entry(visit.request, LIMITS, CONFIG, has_drafter=True)
    requests = [visit.request for visit in found]
    assert {each.params.decoder for each in requests} == set(DECODERS)
    assert {None, "report", "refine"} <= {each.params.sampler for each in requests}
    assert {each.priority for each in requests} == {-1, 0, 1}
    assert any(each.pins for each in requests)
    assert any(each.deadline_s for each in requests)
    assert any(visit.leaves_after is not None for visit in found)
    assert len({each.id for each in requests}) == 400


def test_prompts_share_beginnings_and_go_on_from_answers() -> None:
    prompts = [visit.request.prompt for visit in visits(0, 200)]
    begins = [prompt[:20] for prompt in prompts if len(prompt) >= 20]
    assert len(set(begins)) < len(begins) - 30
    answered = {(*prompt, 5, 6, 7) for prompt in prompts}
    assert any(prompt[: len(chat)] == chat for prompt in prompts for chat in answered)
