"""A request's tokens are its plain loop's, whoever runs beside it and whatever the engine's sizes are."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mezzotint.decoding.generate import required_positions
from mezzotint.engine.entry import find_widest
from mezzotint.engine.request import Request
from tests.engine.tiny import (
    ASKED,
    CANVAS,
    DIFFUSION,
    LIMITS,
    PINS,
    Run,
    Runs,
    alone,
    drafter,
    engine,
    guess,
    model,
    request,
    tokens_of,
)

WINDOWS = (6, 12)
# Prompts that begin alike, so that whole pages of any size are shared.
STEM = tokens_of(99, 24)
LENGTHS = ((0, 1), (0, 9), (12, 3), (12, 20), (24, 0), (24, 9), (20, 25))
PROMPTS = [STEM[:shared] + tokens_of(shared, own) for shared, own in LENGTHS]

SIZES = st.fixed_dictionaries(
    {
        "page_size": st.integers(1, 5),
        "chunk_tokens": st.sampled_from([1, 3, 8, 16, 512]),
        "max_rows": st.sampled_from([1, 2, 16]),
        "prefix_cache": st.booleans(),
    }
)


@st.composite
def requests(draw: st.DrawFn, most: int = 6) -> list[Request]:
    """Requests of all kinds, some of them with pins, or something that ends them, or urgent."""
    found = []
    for index in range(draw(st.integers(2, most))):
        params = replace(ASKED[draw(st.sampled_from(sorted(ASKED)))], seed=draw(st.integers(0, 2)))
        may_pin = params.decoder == "diffusion" and params.max_tokens > CANVAS and not params.bounds_thinking
        given: dict[str, Any] = {"pins": PINS} if may_pin and draw(st.booleans()) else {}
        given |= {"stopper": draw(st.sampled_from([None, Runs(1), Runs(3)])), "priority": draw(st.integers(0, 1))}
        found.append(request(f"request {index}", draw(st.sampled_from(PROMPTS)), params, **given))
    return found


def least_pages(asked: Sequence[Request], window: int, config: dict[str, Any]) -> tuple[int, int]:
    """The fewest pages with which each of these is accepted."""
    positions = max(required_positions(len(each.prompt), each.params, LIMITS) for each in asked)
    page, piece = (
        config["page_size"],
        max(config["chunk_tokens"], CANVAS + 1, *(find_widest(each, LIMITS) for each in asked)),
    )
    shown = drafter(window).reach + 1 if guess(asked) else window
    return -(-positions // page), -(-min(positions, shown + piece + 2 * page) // page)


def submit_late(run: Run, asked: Sequence[Request], pauses: Sequence[int]) -> None:
    """Submit requests with some steps before each."""
    for each, pause in zip(asked, pauses, strict=True):
        for _ in range(pause):
            run.step()
        run.submit(each)


@settings(max_examples=20)
@given(asked=requests(), config=SIZES, window=st.sampled_from(WINDOWS), data=st.data())
def test_a_request_gets_what_it_gets_alone(
    asked: list[Request], config: dict[str, Any], window: int, data: st.DataObject
) -> None:
    run = Run(engine(model(window), guesses=guess(asked), **config))
    pauses = st.lists(st.integers(0, 4), min_size=len(asked), max_size=len(asked))
    submit_late(run, asked, data.draw(pauses, "steps before each arrives"))
    run.finish()
    for each in asked:
        assert run.answer(each.id) == alone(each, window)


@settings(max_examples=30)
@given(
    asked=requests(most=5),
    config=SIZES,
    window=st.sampled_from(WINDOWS),
    spare=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    hasty=st.booleans(),
    cancelled=st.dictionaries(st.integers(0, 4), st.integers(0, 40), max_size=2),
)
def test_a_request_gets_what_it_gets_alone_in_the_least_memory_while_others_are_cancelled(
    asked: list[Request],
    config: dict[str, Any],
    window: int,
    spare: tuple[int, int],
    hasty: bool,
    cancelled: dict[int, int],
) -> None:
    full, sliding = least_pages(asked, window, config)
    pages = (full + spare[0], sliding + spare[1])
    run = Run(engine(model(window), pages=pages, guesses=guess(asked), hasty=hasty, **config))
    run.submit(*asked)
    gone = {asked[index].id: after for index, after in cancelled.items() if index < len(asked)}
    while not run.engine.is_idle:
        for id, after in gone.items():
            if run.steps == after and id not in run.done:
                run.cancel(id)
        run.step()
    for each in asked:
        if each.id in run.failed:
            assert run.failed[each.id].kind == "cancelled"
            assert each.id in gone
            whole = alone(each, window).events
            assert tuple(run.told[each.id]) == whole[: len(run.told[each.id])]
        else:
            assert run.answer(each.id) == alone(each, window)


@pytest.mark.parametrize("prefix_cache", [True, False])
@pytest.mark.parametrize(("full", "sliding"), [(22, 60), (90, 14)], ids=["full layers", "sliding layers"])
def test_rows_that_outgrow_memory_yield_and_still_get_what_they_get_alone(
    full: int, sliding: int, prefix_cache: bool
) -> None:
    sizes = {"page_size": 3, "chunk_tokens": 16, "prefix_cache": prefix_cache}
    run = Run(engine(pages=(full, sliding), guesses=True, hasty=True, **sizes))
    asked = [request(name, PROMPTS[index % 4], params) for index, (name, params) in enumerate(ASKED.items())]
    run.submit(*asked)
    run.finish()
    assert run.engine.stats().preemptions > 3
    for each in asked:
        assert run.answer(each.id) == alone(each)


def test_stopped_and_thoughtful_requests_end_where_they_end_alone_and_disturb_nobody() -> None:
    thoughtful = {name: params for name, params in ASKED.items() if params.bounds_thinking}
    asked = [
        request(f"{name} {index} {ends}", prompt, params, stopper=ends)
        for name, params in thoughtful.items()
        for index, prompt in enumerate(PROMPTS[::2])
        for ends in (None, Runs(2))
    ]
    run = Run(engine(guesses=True, max_rows=64))
    run.submit(*asked)
    run.finish()
    for each in asked:
        assert run.answer(each.id) == alone(each)
        if each.stopper is not None:
            whole = alone(replace(each, stopper=None)).tokens
            count = each.stopper.restart().count_kept(whole)
            assert run.answer(each.id).tokens == whole[:count]
    for name in thoughtful:
        assert any(run.done[each.id].forced_tokens for each in asked if each.id.startswith(f"{name} "))


def test_a_prompt_asked_again_and_a_chat_that_goes_on_are_served_from_pages() -> None:
    run = Run(engine())
    first = request("first", PROMPTS[3])
    run.submit(first)
    run.finish()
    reply = tuple(run.answer("first").tokens)
    again = request("again", first.prompt)
    continued = request("continued", first.prompt + reply + (2, 5, 9, 4))
    run.submit(again, continued)
    run.finish()
    assert run.answer("again") == alone(again) == run.answer("first")
    assert run.answer("continued") == alone(continued)
    # Of the answer two of three canvases were encoded: of 32 + 16 tokens all whole pages are found.
    assert (run.done["again"].cached_tokens, run.done["continued"].cached_tokens) == (32, 48)


def test_a_seed_gives_the_same_tokens_alone_and_among_sixteen() -> None:
    run = Run(engine(max_rows=16))
    asked = [request(f"request {seed}", 30, replace(DIFFUSION, seed=seed % 3)) for seed in range(16)]
    run.submit(*asked)
    run.finish()
    for each in asked:
        assert run.answer(each.id) == alone(each)
    assert run.engine.stats().denoises.batches[16]
