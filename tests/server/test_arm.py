"""An arm of the engine here: what it is, what it writes, and how it says that it cannot."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import aclosing
from typing import Any

import pytest

from mezzotint.server import Backend
from mezzotint.server.arm import LocalArm
from mezzotint.types import ArmError
from tests.server.running import make_backend

HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 16, "seed": 1}


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    made = make_backend()
    made.start()
    yield made
    made.stop()


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 60))


async def read(arm: LocalArm, **more: Any) -> list[dict[str, Any]]:
    return [chunk async for chunk in arm.stream({**HELLO, **more}, 60.0)]


def test_its_traits_are_those_of_the_checkpoint_and_its_budget(backend: Backend) -> None:
    canvas, plain = LocalArm("c", backend, steps=5), LocalArm("p", backend, decoder="ar", busy_price=0.5)
    assert (canvas.traits.decoder, canvas.traits.canvas_length, canvas.traits.step_budget) == ("diffusion", 64, 5)
    assert (plain.traits.decoder, plain.traits.canvas_length, plain.traits.step_budget) == ("ar", None, None)
    assert canvas.traits.engine == plain.traits.engine == "lab"
    assert LocalArm("b", backend, preset="best").traits.step_budget == 32
    assert plain.traits.busy_price == 0.5


def test_it_tells_once_how_unsure_its_first_canvas_was_and_drafts_only_if_asked(backend: Backend) -> None:
    told = [chunk["x_diffusion"] for chunk in run(read(LocalArm("c", backend, steps=4))) if "x_diffusion" in chunk]
    assert len(told) == 1
    assert told[0].keys() == {"first_entropy"}
    assert 0 <= told[0]["first_entropy"] < 8
    drafts = run(read(LocalArm("c", backend, steps=4), x_diffusion={"drafts": True}))
    shown = [chunk["x_diffusion"] for chunk in drafts if "x_diffusion" in chunk]
    assert [each["step"] for each in shown] == list(range(1, len(shown) + 1))
    assert shown[0]["first_entropy"] == pytest.approx(sum(shown[0]["entropy"]) / 64, abs=1e-3)
    assert shown[0]["first_entropy"] == pytest.approx(told[0]["first_entropy"])
    assert not [chunk for chunk in run(read(LocalArm("p", backend, decoder="ar"))) if "x_diffusion" in chunk]


def test_its_temperature_is_that_of_requests_that_name_none(backend: Backend) -> None:
    def text(arm: LocalArm, **more: Any) -> str:
        chunks = run(read(arm, **more))
        return "".join(each["delta"].get("content") or "" for chunk in chunks for each in chunk["choices"])

    cold, plain = LocalArm("c", backend, decoder="ar", temperature=0.0), LocalArm("p", backend, decoder="ar")
    assert text(cold, seed=1) == text(cold, seed=2) == text(plain, seed=3, temperature=0)
    assert text(cold, seed=4, temperature=1.5) == text(plain, seed=4, temperature=1.5)
    assert text(cold, seed=4, temperature=1.5) != text(cold, seed=4)


def test_a_request_counts_from_its_beginning_to_its_end(backend: Backend) -> None:
    async def go() -> None:
        arm, other = LocalArm("a", backend, decoder="ar"), LocalArm("b", backend)
        async with aclosing(arm.stream({**HELLO, "max_tokens": 500, "ignore_eos": True}, 60.0)) as chunks:
            coming = asyncio.ensure_future(anext(chunks))
            await asyncio.sleep(0)
            assert (arm.in_flight, other.in_flight, backend.open) == (1, 1, 0)
            await coming
            assert (arm.in_flight, backend.open) == (1, 1)
        assert (arm.in_flight, backend.open, backend.coming) == (0, 0, 0)

    run(go())


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"temperature": -1}, "refused"),
        ({"max_tokens": 10**6}, "refused"),
        ({"messages": "none"}, "refused"),
        ({"surprise": 1}, "refused"),
    ],
)
def test_what_it_cannot_honour_it_refuses(backend: Backend, body: dict[str, Any], kind: str) -> None:
    arm = LocalArm("p", backend, decoder="ar")
    with pytest.raises(ArmError) as error:
        run(read(arm, **body))
    assert error.value.kind == kind
    assert arm.in_flight == 0


def test_a_deadline_that_passes_is_a_timeout(backend: Backend) -> None:
    async def go() -> None:
        arm = LocalArm("p", backend, decoder="ar")
        with pytest.raises(ArmError) as error:
            async for _ in arm.stream({**HELLO, "max_tokens": 3000, "ignore_eos": True}, 0.05):
                pass
        assert error.value.kind == "timeout"

    run(go())


def test_an_engine_that_is_away_takes_nothing() -> None:
    arm = LocalArm("p", make_backend(), decoder="ar")
    assert not arm.is_up
    with pytest.raises(ArmError) as error:
        run(read(arm))
    assert error.value.kind == "broken"
