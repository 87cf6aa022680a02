"""One server elsewhere: what it is asked, what is tried again, and what its refusals mean."""

import asyncio
from email.utils import formatdate
from time import time

import pytest

from mezzotint.router.remote import RemoteArm
from mezzotint.types import ArmError
from tests.router.replay import Replay, Script
from tests.router.stand_ins import HELLO, remote
from tests.router.test_fleet import dead_port, run


async def read(arm: RemoteArm, **more: object) -> str:
    chunks = [chunk async for chunk in arm.stream({**HELLO, **more}, 30.0)]
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])


def test_a_server_is_asked_for_its_own_model_with_its_key_and_nothing_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAR_KEY", "secret-7")

    async def go() -> None:
        async with Replay().running() as server:
            arm = remote("far", server.url, key_env="FAR_KEY")
            await read(arm, top_k=5, x_route={"explore": True}, x_diffusion={"drafts": True}, stream=False)
            [asked], [head] = server.asked, server.heads
            assert "authorization: Bearer secret-7" in head.replace("Authorization", "authorization")
            assert asked == {
                "messages": HELLO["messages"],
                "max_tokens": 64,
                "top_k": 5,
                "model": "m",
                "stream": True,
                "stream_options": {"include_usage": True},
            }
            await arm.close()

    run(go())


def test_a_connection_is_tried_again_and_a_request_that_may_have_been_read_is_not() -> None:
    async def go() -> None:
        port = dead_port()
        arm = remote("far", f"http://127.0.0.1:{port}", connect_attempts=50, connect_s=5.0)
        asked = asyncio.create_task(read(arm))
        await asyncio.sleep(0.1)
        async with Replay().running(port) as server:
            assert await asked == "Hello world."
            server.scripts = [Script(fault="reset"), Script(), Script(status=500)]
            server.asked.clear()
            with pytest.raises(ArmError, match="broke off"):
                await read(arm)
            assert len(server.asked) == 1
            assert await read(arm) == "Hello world."
            with pytest.raises(ArmError, match="status 500"):
                await read(arm)
            assert len(server.asked) == 3
        await arm.close()

    run(go())


@pytest.mark.parametrize(
    ("script", "kind", "told"),
    [
        (Script(status=400), "refused", "the script says no"),
        (Script(status=422), "refused", "the script says no"),
        (Script(status=401), "broken", "status 401"),
        (Script(status=404), "broken", "status 404"),
        (Script(status=429), "busy", "status 429"),
        (Script(status=503, headers={"retry-after": "3"}), "busy", "status 503"),
        (Script(status=502), "broken", "status 502"),
        (Script(fault="error"), "broken", "the script failed"),
    ],
)
def test_what_a_server_answers_is_told_by_its_kind(script: Script, kind: str, told: str) -> None:
    async def go() -> None:
        async with Replay(script).running() as server:
            arm = remote("far", server.url, failures=1)
            with pytest.raises(ArmError, match=told) as error:
                await read(arm)
            assert error.value.kind == kind
            assert ("says no" in str(error.value)) == (kind == "refused"), "what it says of our key stays here"
            assert arm.is_up == (kind == "refused")
            assert arm.in_flight == 0
            await arm.close()

    run(go())


def test_a_wait_may_be_told_as_a_date() -> None:
    async def go() -> None:
        when = Script(status=429, headers={"retry-after": formatdate(time() + 60, usegmt=True)})
        async with Replay(when, Script(status=429, headers={"retry-after": "soon"})).running() as server:
            for expected in (60.0, None):
                arm = remote("far", server.url)
                with pytest.raises(ArmError) as error:
                    await read(arm)
                if expected is None:
                    assert error.value.retry_after_s is None
                else:
                    assert error.value.retry_after_s == pytest.approx(expected, abs=5)
                await arm.close()

    run(go())
