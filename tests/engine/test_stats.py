from dataclasses import replace

import pytest

from mezzotint.engine.pages import PagePool
from mezzotint.engine.stats import Forwards, Meter, Pages, count_pages
from tests.engine.tiny import AR, Run, engine, request


def test_forwards_are_counted_with_their_tokens_and_by_rows() -> None:
    meter = Meter()
    for rows in (1, 1, 2, 3, 4, 5, 64):
        meter.count([8] * rows)
    meter.count([])
    assert meter.read() == Forwards(7, 80 * 8, 80, {1: 2, 2: 1, 4: 2, 8: 1, 64: 1})


def test_a_page_is_used_or_cached_or_free() -> None:
    pool = PagePool(10)
    pages = pool.allocate(6)
    for page in pages[:3]:
        pool.keep(page)
    for page in (pages[0], pages[1], pages[5]):
        pool.release(page)
    assert count_pages(pool) == Pages(used=3, cached=2, free=5)


def test_a_snapshot_tells_what_was_done_and_does_not_change() -> None:
    run = Run(engine(page_size=4, pages=(40, 40), max_rows=2))
    before = run.engine.stats()
    ar = replace(AR, max_tokens=5, ignore_eos=True)
    run.submit(request("first", 10, ar), request("second", 10, ar), request("third", 4, ar))
    run.step()
    stats = run.engine.stats()
    assert (stats.submitted, stats.running, stats.waiting, stats.finished) == (3, 2, 1, 0)
    assert (stats.steps, stats.encodes) == (1, Forwards(1, 20, 2, {2: 1}))
    assert (stats.full, stats.sliding) == (Pages(6, 0, 34), Pages(4, 1, 35))  # of two equal pages one is kept
    run.cancel("third")
    run.finish()
    after = run.engine.stats()
    assert (after.finished, after.failed, after.running, after.waiting) == (2, {"cancelled": 1}, 0, 0)
    assert (after.emitted_tokens, after.steps, after.encodes.forwards, after.denoises.forwards) == (10, 5, 5, 0)
    assert (after.full.used, after.full.free + after.full.cached) == (0, 40)
    assert before == replace(before, submitted=0, steps=0, emitted_tokens=0)
    with pytest.raises(TypeError, match="does not support item assignment"):
        after.failed["error"] = 1  # type: ignore[index]


def test_hits_of_the_prefix_cache_are_counted_with_what_they_spared() -> None:
    run = Run(engine(page_size=4))
    for id in ("first", "again"):
        run.submit(request(id, 17, AR))
        run.finish()
    stats = run.engine.stats()
    assert (stats.prefix_hits, stats.prefix_tokens, stats.evictions) == (1, 16, 0)
