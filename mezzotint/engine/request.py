"""What an engine is asked for, in ids, and what it answers; how it is carried out lives in engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from mezzotint.decoding.alarms import GateLimits
from mezzotint.decoding.canvas import Pins
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.program import Event
from mezzotint.types import Constraint, Inspector, Receipt, Stopper


@dataclass(frozen=True, kw_only=True)
class Request:
    """One prompt to answer.

    id: the caller's, of his own choosing, different from that of every request still running.
    pins: given tokens by block. constraint: a grammar at its beginning, which the answer follows. stopper: what ends it
    besides its end tokens, before any id. inspector: what reads its blocks for a gate, and bounds: what they may
    show there.
    priority: higher ones are admitted first. deadline_s: seconds from submission.
    """

    id: str
    prompt: tuple[int, ...]
    params: SamplingParams
    pins: Mapping[int, Pins] = field(default_factory=dict)
    constraint: Constraint | None = None
    stopper: Stopper | None = None
    inspector: Inspector | None = None
    bounds: GateLimits | None = None
    priority: int = 0
    deadline_s: float | None = None


class UnavailableError(RuntimeError):
    """A request is not taken now; nothing is wrong with it, and later or elsewhere it may be."""


class Told(NamedTuple):
    """An event of a request that goes on."""

    id: str
    event: Event


class Done(NamedTuple):
    """A request has its answer; the event before was Finished."""

    id: str
    receipt: Receipt


class Failed(NamedTuple):
    """A request ended without its answer; `reason` says why in a sentence, `kind` in a word."""

    id: str
    kind: str  # cancelled, deadline, error; from a service also crashed, stopped
    reason: str


Outcome = Told | Done | Failed
