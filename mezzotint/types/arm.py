"""What a router asks, and who judges what came back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from mezzotint.types.network import DecoderName

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence


class Verdict(NamedTuple):
    """Whether an answer is what was asked for; None where that could not be told. reason: why it is not, in words."""

    accepted: bool | None
    reason: str = ""


class Verifier(Protocol):
    """What says whether an answer is what was asked for."""

    async def verify(self, messages: Sequence[Mapping[str, Any]], answer: Mapping[str, Any]) -> Verdict:
        """Judge `answer`, an assistant's message in OpenAI's form, to `messages`."""


@dataclass(frozen=True, kw_only=True)
class ArmTraits:
    """What is known of an arm before it is asked.

    engine: the machine that it shares with others, whose load is its own. decoder: how it writes, as far as that is
    known. canvas_length: None where it writes token by token. step_budget: of a block; None leaves it to the model.
    context: most tokens of prompt and answer together. abilities: what it honours, of tools, schema, grammar, logprobs,
    seed and thinking. input_price, output_price: dollars a million tokens. busy_price: dollars a second of work.
    timeout_s: that one answer may take.
    """

    name: str
    engine: str
    is_local: bool
    decoder: DecoderName | None = None
    canvas_length: int | None = None
    step_budget: int | None = None
    context: int
    abilities: frozenset[str] = frozenset()
    input_price: float = 0.0
    output_price: float = 0.0
    busy_price: float = 0.0
    timeout_s: float = 600.0


FailureKind = Literal["timeout", "busy", "refused", "broken", "garbage"]


class ArmError(Exception):
    """An arm gave no answer.

    kind: timeout; busy, it has too much to do; refused, the request is not one that it honours; broken, it is away or
    stopped in the middle; garbage, what came is no answer. retry_after_s: when it may be asked again, where it said so.
    """

    def __init__(self, kind: FailureKind, message: str, retry_after_s: float | None = None) -> None:
        """All as the class describes."""
        super().__init__(message)
        self.kind, self.retry_after_s = kind, retry_after_s


class Arm(Protocol):
    """One way to have a chat answered: a decoder and budget of an engine here, or a server elsewhere."""

    @property
    def traits(self) -> ArmTraits:
        """What is known of it."""

    @property
    def in_flight(self) -> int:
        """Requests that its engine is answering now."""

    @property
    def is_up(self) -> bool:
        """Whether it can be asked now."""

    def stream(self, body: Mapping[str, Any], timeout_s: float) -> AsyncGenerator[dict[str, Any], None]:
        """Chunks of a chat's answer in OpenAI's form, to a body in that form; the last one tells `usage`.

        Closing it cancels the request. Raises: ArmError.
        """
