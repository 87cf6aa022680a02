"""A model of another OpenAI-compatible server as an arm: asked, timed, limited, watched; foreign reads its chunks."""

import asyncio
import ssl
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any, TypeVar

import httpx2
import stamina
from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError, AsyncOpenAI, AsyncStream

from mezzotint.router.breaker import Breaker
from mezzotint.router.config import RemoteArmConfig
from mezzotint.router.foreign import Foreign
from mezzotint.server.protocol import ROUTED
from mezzotint.types import ArmError, ArmTraits, FailureKind

T = TypeVar("T")
_OURS = ("model", "stream", "stream_options", "x_route", "x_diffusion")
_REFUSED, _LONGEST_WAIT_S = (400, 413, 415, 422), 300.0


class RemoteArm:
    """One model of one server."""

    def __init__(
        self, config: RemoteArmConfig, load: Counter[str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """load: requests by engine, shared by the arms of a fleet. clock: seconds, by which an arm is left alone.

        Raises: ValueError where its key is not set.
        """
        self._config, self._load, self._clock = config, load, clock
        timeout = httpx2.Timeout(None, connect=config.connect_s)
        limits = httpx2.Limits(max_connections=config.most_in_flight + 1)
        self._http = httpx2.AsyncClient(timeout=timeout, limits=limits, verify=_trusted())
        self._client = AsyncOpenAI(
            base_url=config.url,
            api_key=config.key or "none",
            max_retries=0,
            timeout=timeout,
            http_client=self._http,
            default_headers={ROUTED: "1"},
        )
        self._breaker = Breaker(config.failures, config.pause_s, clock)
        self._open, self._is_healthy, self._busy_until_s = 0, True, 0.0
        self.traits = ArmTraits(
            name=config.name,
            engine=config.engine or config.url,
            is_local=False,
            decoder=config.decoder,
            canvas_length=config.canvas_length,
            step_budget=config.step_budget,
            context=config.context,
            abilities=config.abilities,
            input_price=config.input_price,
            output_price=config.output_price,
            timeout_s=config.whole_s,
        )

    @property
    def in_flight(self) -> int:
        """Requests of ours that its engine is answering now."""
        return self._load[self.traits.engine]

    @property
    def is_up(self) -> bool:
        """Whether it can be asked: healthy, not left alone, not told to wait, and with room."""
        is_waited_for = self._clock() < self._busy_until_s
        has_room = self._open < self._config.most_in_flight
        return self._is_healthy and self._breaker.is_passable and has_room and not is_waited_for

    async def stream(self, body: Mapping[str, Any], timeout_s: float) -> AsyncGenerator[dict[str, Any], None]:
        """Chunks of the answer in our own form, calls whole. Raises: ArmError."""
        if not self.is_up:
            raise ArmError("busy", f"{self.traits.name} takes no request now", self._wait_s())
        foreign, is_over = Foreign(self.traits.name, body), False
        self._breaker.enter()
        self._open += 1
        self._load[self.traits.engine] += 1
        try:
            async with aclosing(self._ask(body, min(timeout_s, self._config.whole_s), foreign)) as raws:
                async for raw in raws:
                    for chunk in foreign.push(raw):
                        yield chunk
            for chunk in foreign.end():
                yield chunk
            is_over = True
            self._breaker.succeed()
        except ArmError as error:
            is_over = True
            self._note(error)
            raise
        finally:
            self._open -= 1
            self._load[self.traits.engine] -= 1
            if not is_over:
                self._breaker.leave()

    async def watch(self) -> None:
        """Probe its health again and again, where it has an address for that."""
        while self._config.health is not None:
            try:
                answered = await self._http.get(self._config.health, timeout=self._config.connect_s)
                self._is_healthy = answered.is_success
            except (httpx2.HTTPError, httpx2.InvalidURL):
                self._is_healthy = False
            await asyncio.sleep(self._config.probe_s)

    async def close(self) -> None:
        """Let go of its connections."""
        await self._client.close()

    async def _ask(self, body: Mapping[str, Any], whole_s: float, foreign: Foreign) -> AsyncGenerator[object, None]:
        """Chunks as they come, each in its time."""
        config, now = self._config, asyncio.get_running_loop().time
        end_s, first_s = now() + whole_s, now() + config.first_s
        stream = await self._within(self._connect(body), min(first_s, end_s))
        try:
            limit_s = first_s
            while True:
                try:
                    raw = await self._within(anext(stream), min(limit_s, end_s))
                except StopAsyncIteration:
                    return
                except ArmError:
                    if foreign.is_whole:  # nothing of the answer is lost
                        return
                    raise
                yield raw
                limit_s = now() + config.between_s
        finally:
            with suppress(httpx2.HTTPError):
                await stream.close()

    async def _connect(self, body: Mapping[str, Any]) -> AsyncStream[object]:
        """The beginning of an answer. A connection is tried again; a request that may have been read is not."""
        asked = {name: value for name, value in body.items() if name not in _OURS}
        asked |= {"model": self._config.model, "stream": True, "stream_options": {"include_usage": True}}
        waits: dict[str, Any] = {"wait_initial": 0.05, "wait_jitter": 0.05, "wait_max": 0.5}
        waits |= {"attempts": self._config.connect_attempts, "timeout": self._config.connect_s}
        async for attempt in stamina.retry_context(on=_is_unsent, **waits):
            with attempt:
                return await self._client.post(
                    "/chat/completions", body=asked, cast_to=object, stream=True, stream_cls=AsyncStream[object]
                )
        raise AssertionError("unreachable")

    async def _within(self, coming: Awaitable[T], until_s: float) -> T:
        """What comes until then. Raises: ArmError for what goes wrong on the way, StopAsyncIteration at the end."""
        name = self.traits.name
        try:
            async with asyncio.timeout_at(until_s):
                return await coming
        except (TimeoutError, APITimeoutError) as error:
            raise ArmError("timeout", f"{name} did not answer in time") from error
        except APIConnectionError as error:
            raise ArmError("broken", f"{name} cannot be reached, or broke off: {error.__cause__!r}") from error
        except APIStatusError as error:
            raise self._explain(error) from error
        except APIError as error:
            raise ArmError("broken", f"{name} failed: {error.message}") from error
        except (ValueError, AttributeError, TypeError) as error:
            raise ArmError("garbage", f"{name} sent what is no stream of chunks: {error}") from error

    def _explain(self, error: APIStatusError) -> ArmError:
        status, wait_s = error.status_code, _read_wait(error.response.headers.get("retry-after"))
        kinds: dict[int, FailureKind] = {**dict.fromkeys(_REFUSED, "refused"), 408: "timeout", 429: "busy"}
        kind = "busy" if wait_s is not None else kinds.get(status, "broken")
        # What it says of a key is not for our clients.
        told = f": {error.message}"[:300] if kind == "refused" else ""
        return ArmError(kind, f"{self.traits.name} answered with status {status}{told}", wait_s)

    def _note(self, error: ArmError) -> None:
        if error.kind == "refused":
            self._breaker.leave()
        elif error.kind == "busy":
            self._breaker.leave()
            self._busy_until_s = self._clock() + (1.0 if error.retry_after_s is None else error.retry_after_s)
        else:
            self._breaker.fail()

    def _wait_s(self) -> float:
        return max(0.0, self._busy_until_s - self._clock()) or self._config.pause_s


@cache
def _trusted() -> ssl.SSLContext:
    """Certificates to trust, which take 50 ms to read."""
    return httpx2.create_ssl_context()


def _is_unsent(error: Exception) -> bool:
    """Whether a request cannot have been read by anybody."""
    cause = error.__cause__
    return isinstance(error, APIConnectionError) and isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout)


def _read_wait(told: str | None) -> float | None:
    """Seconds, of a Retry-After in seconds or as a date."""
    if told is None:
        return None
    try:
        wait_s = float(told)
    except ValueError:
        try:
            wait_s = parsedate_to_datetime(told).timestamp() - time.time()
        except ValueError:
            return None
    return min(max(0.0, wait_s), _LONGEST_WAIT_S)
