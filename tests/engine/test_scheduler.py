from hypothesis import given
from hypothesis import strategies as st

from mezzotint.engine.scheduler import Plan, Wish, plan_step

SHORT = 9


def wish(row: int, encodes: int, *, indivisible: int = 1, denoises: bool = False) -> Wish:
    return Wish(row, row, encodes, indivisible, denoises)


@st.composite
def wishes(draw: st.DrawFn) -> list[Wish]:
    found = []
    for row in range(draw(st.integers(0, 8))):
        encodes = draw(st.integers(0, 60))
        indivisible = draw(st.integers(1, max(1, min(encodes, 20))))
        found.append(Wish(row, draw(st.integers(0, 3)) * 100 + row, encodes, indivisible, draw(st.booleans())))
    return found


def test_nothing_is_planned_for_nobody() -> None:
    assert plan_step([], 10, SHORT) == Plan({}, [])


def test_all_that_is_short_goes_at_once_and_so_does_every_canvas() -> None:
    canvases = [wish(row, 0, denoises=True) for row in range(20)]
    commits = [wish(row, SHORT) for row in range(20, 40)]
    assert plan_step([*canvases, *commits], 1, SHORT) == Plan(dict.fromkeys(range(20, 40), SHORT), list(range(20)))


def test_a_canvas_whose_context_is_missing_waits_for_it() -> None:
    assert plan_step([wish(0, 30, denoises=True), wish(1, 3, denoises=True)], 10, SHORT) == Plan({0: 10, 1: 3}, [])


def test_a_long_prompt_alone_takes_a_chunk_a_step() -> None:
    assert plan_step([wish(0, 25)], 10, SHORT).encodes == {0: 10}
    assert plan_step([wish(0, 10)], 10, SHORT).encodes == {0: 10}


def test_the_oldest_long_prompt_has_half_and_the_shortest_remainders_share_the_rest() -> None:
    assert plan_step([wish(0, 90), wish(1, 50), wish(2, 12)], 30, SHORT).encodes == {0: 15, 2: 12, 1: 3}
    assert plan_step([wish(0, 90), wish(1, 50), wish(2, 12)], 15, SHORT).encodes == {0: 8, 2: 7}


def test_what_the_others_leave_of_a_chunk_the_oldest_takes() -> None:
    assert plan_step([wish(0, 90), wish(1, 12)], 60, SHORT).encodes == {0: 48, 1: 12}


def test_what_must_go_together_is_not_begun_before_all_of_it_fits() -> None:
    assert plan_step([wish(0, 30, indivisible=8)], 28, SHORT).encodes == {0: 22}
    assert plan_step([wish(0, 8, indivisible=8)], 2, SHORT).encodes == {0: 8}


def test_what_must_go_together_goes_though_it_is_larger_than_a_chunk() -> None:
    assert plan_step([wish(0, 40, indivisible=40), wish(1, 90)], 10, SHORT).encodes == {0: 40, 1: 10}


@given(wished=wishes(), chunk=st.integers(1, 80))
def test_a_plan_is_fair_and_uses_its_chunk(wished: list[Wish], chunk: int) -> None:
    plan = plan_step(wished, chunk, SHORT)
    long = {each.row: each for each in wished if each.encodes > max(SHORT, each.indivisible)}
    assert not set(plan.encodes) & set(plan.denoises)
    assert set(plan.denoises) == {each.row for each in wished if each.denoises and not each.encodes}
    for each in wished:
        size = plan.encodes.get(each.row, 0)
        if each.row not in long:
            assert size == each.encodes
        assert size in (0, each.encodes) or 0 < size <= each.encodes - each.indivisible
    taken = sum(plan.encodes.get(row, 0) for row in long)
    assert taken <= chunk
    if not long:
        return
    most = {row: max(each.encodes - each.indivisible, plan.encodes.get(row, 0)) for row, each in long.items()}
    assert taken == chunk or all(plan.encodes.get(row, 0) >= most[row] for row in long)
    oldest = min(long.values(), key=lambda each: each.order)
    assert plan.encodes[oldest.row] >= min(most[oldest.row], -(-chunk // 2))


@given(chunk=st.integers(1, 40), arrivals=st.lists(st.integers(10, 14), min_size=60, max_size=60))
def test_a_long_prompt_and_a_stream_of_shorter_ones_all_get_on(chunk: int, arrivals: list[int]) -> None:
    """One shorter prompt arrives at every step; each prompt is at the latest done when all before it could be."""
    left, born, took = {0: 200}, {0: 0}, dict[int, int]()
    for step in range(3000):
        if step < len(arrivals):
            left[step + 1], born[step + 1] = arrivals[step], step
        if not left:
            break
        plan = plan_step([wish(row, size) for row, size in left.items()], chunk, SHORT)
        for row, size in plan.encodes.items():
            left[row] -= size
            if not left[row]:
                took[row] = step - born.pop(row)
                del left[row]
    assert not left
    half = -(-chunk // 2)
    assert took[0] <= 200 // half
    # A shorter one waits at most until it is the oldest, and not at all where the other half holds it.
    assert all(took[row] <= sum([200, *arrivals[:row]]) // half for row in range(1, 61))
    if chunk // 2 >= max(arrivals):
        assert not any(took[row] for row in range(1, 61))
