"""What is compared: a model by its name, or several by kind of hop and for a second try; what answers is elsewhere."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from mezzotint.bench.task import HopKind

_PARTS = ("plan", "tool", "retry")
_GREEDY = ("ar", "verified", "mtp")  # decoders that are measured at temperature 0 (contract 14)
FORM = "write MODEL[@STEPS][,plan=MODEL][,tool=MODEL][,retry=MODEL]"


class Way(NamedTuple):
    """Who is asked, and how. model: on the wire. steps: its budget of a block; None leaves it to the server."""

    model: str
    steps: int | None = None
    temperature: float | None = None

    @property
    def body(self) -> dict[str, Any]:
        """The fields of a request that say so."""
        fields: dict[str, Any] = {"model": self.model}
        if self.temperature is not None:
            fields["temperature"] = self.temperature
        if self.steps is not None:
            fields["x_diffusion"] = {"steps": self.steps}
        return fields


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One side of a comparison: who is asked, and who instead for a kind of hop, or once an answer was not accepted."""

    name: str
    usual: Way
    plan: Way | None = None
    tool: Way | None = None
    retry: Way | None = None

    def way(self, kind: HopKind, attempt: int) -> Way:
        """Who is asked. attempt: from 0."""
        if attempt and self.retry is not None:
            return self.retry
        return {"plan": self.plan, "tool": self.tool}.get(kind) or self.usual


def read_arm(text: str, temperature: float | None = None) -> Arm:
    """Read MODEL[@STEPS][,plan=MODEL][,tool=MODEL][,retry=MODEL]. temperature: of all; None: contract 14's for each.

    Raises: ValueError for another form.
    """
    usual, *others = text.split(",")
    parts: dict[str, Way] = {}
    for part in others:
        name, equals, model = part.partition("=")
        if not equals or name not in _PARTS or name in parts or not model:
            raise ValueError(f"arm is {text!r}, of which {part!r} is not understood; {FORM}")
        parts[name] = _read_way(model, temperature)
    if not usual:
        raise ValueError(f"arm is {text!r}, which names no model; {FORM}")
    return Arm(name=text, usual=_read_way(usual, temperature), **parts)


def _read_way(text: str, temperature: float | None) -> Way:
    model, at, steps = text.rpartition("@")
    if not at or not steps.isdecimal():
        model, steps = text, ""
    if temperature is None and model.rpartition(":")[2] in _GREEDY:
        temperature = 0.0
    return Way(model, int(steps) if steps else None, temperature)
