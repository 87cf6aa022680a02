"""A decoder and budget of the engine here as an arm of a fleet; which arm answers is decided elsewhere."""

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from mezzotint.llm import PRESETS
from mezzotint.server.account import Clock
from mezzotint.server.backend import Backend
from mezzotint.server.chat import head_of, stream_chat
from mezzotint.server.errors import ApiError
from mezzotint.server.history import read_history
from mezzotint.server.job import Job, read_chat
from mezzotint.server.protocol import ChatBody
from mezzotint.text.prompt import Chat
from mezzotint.types import ArmError, ArmTraits, DecoderName, FailureKind

ABILITIES = frozenset("tools schema grammar logprobs seed thinking".split())


class LocalArm:
    """One way in which an engine here answers a chat."""

    def __init__(
        self,
        name: str,
        backend: Backend,
        *,
        decoder: DecoderName = "diffusion",
        steps: int | None = None,
        preset: str | None = None,
        temperature: float | None = None,
        busy_price: float = 0.0,
    ) -> None:
        """steps: budget of a block. preset: decides decoder and steps. temperature: of requests that name none.

        busy_price: dollars a second of the engine.
        Raises: ValueError for what the checkpoint cannot do, naming the remedy.
        """
        self._backend = backend
        self._suffix = preset or decoder
        if f"{backend.name}:{decoder}" not in backend.names:
            raise ValueError(f"arm {name!r} is of decoder {decoder!r}, which {backend.name!r} has not; leave it out")
        if steps is not None and (preset is not None or decoder != "diffusion"):
            told = f"arm {name!r} has steps {steps}, and its {'preset' if preset else 'decoder'} takes none"
            raise ValueError(f"{told}; leave them out")
        self._shape = {} if steps is None else {"steps": steps}
        self._usual = {} if temperature is None else {"temperature": temperature}
        limits, has_canvas = backend.checkpoint.limits, decoder == "diffusion"
        budget = PRESETS[preset]["steps"] if preset else steps or backend.checkpoint.defaults.budget
        self.traits = ArmTraits(
            name=name,
            engine=backend.name,
            is_local=True,
            decoder=decoder,
            canvas_length=limits.canvas_length if has_canvas else None,
            step_budget=budget if has_canvas else None,
            context=limits.max_positions,
            abilities=ABILITIES,
            busy_price=busy_price,
            timeout_s=backend.config.deadline_s,
        )

    @property
    def in_flight(self) -> int:
        """Requests that the engine has taken, or is about to, for whichever arm."""
        return self._backend.open + self._backend.coming

    @property
    def is_up(self) -> bool:
        """Whether the engine takes a request more."""
        return self._backend.is_ready and self._backend.has_room

    async def stream(self, body: Mapping[str, Any], timeout_s: float) -> AsyncGenerator[dict[str, Any], None]:
        """Chunks of the answer; those of a canvas tell, once, how unsure the first step was. Raises: ArmError."""
        try:
            with self._announced() as arrive:
                job = self._read(body, timeout_s)
                asked = await self._backend.accept(job)
                head = head_of(self.traits.name)
                async with aclosing(stream_chat(self._backend, asked, job, head, Clock(), usage=True)) as chunks:
                    async for chunk in chunks:
                        arrive()
                        yield chunk
        except ValidationError as error:
            first = error.errors()[0]
            raise ArmError("refused", f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
        except ApiError as error:
            raise ArmError(_kind_of(error), error.message, error.retry_after_s) from error

    @contextmanager
    def _announced(self) -> Iterator[Callable[[], None]]:
        """Count a request from now on, though the engine has not taken it. Yields: what says that it has."""
        is_coming = True

        def arrive() -> None:
            nonlocal is_coming
            self._backend.coming -= is_coming
            is_coming = False

        self._backend.coming += 1
        try:
            yield arrive
        finally:
            arrive()

    def _read(self, body: Mapping[str, Any], timeout_s: float) -> Job:
        drafts = bool((body.get("x_diffusion") or {}).get("drafts"))
        told = {"model": f"{self._backend.name}:{self._suffix}", "x_diffusion": {**self._shape, "drafts": drafts}}
        asked_chat = ChatBody.model_validate({**self._usual, **body, **told})
        return replace(read_chat(asked_chat, self._backend.name), peeks=True, deadline_s=timeout_s)


def count_prompt(backend: Backend, body: Mapping[str, Any]) -> int:
    """Tokens of a chat's prompt, as the model here reads it. Raises: ApiError for one that cannot be read."""
    tools = [] if body.get("tool_choice") == "none" else body.get("tools") or []
    return len(backend.encode(Chat(messages=read_history(body["messages"]), tools=tools)))


def _kind_of(error: ApiError) -> FailureKind:
    kinds: dict[int, FailureKind] = {400: "refused", 429: "busy", 504: "timeout"}
    return kinds.get(error.status, "broken")
