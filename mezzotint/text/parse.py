"""What a model said in its turn: thoughts, calls of tools and content, from ids and back to ids."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class ToolCall(NamedTuple):
    """One call of a tool; `arguments` is the object that it was given."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Reply:
    """One turn of a model, its kinds of text apart.

    content: what a reader sees. reasoning: the thoughts before it. calls: in the order written.
    faults: one sentence for each thing that is not written as it should be; what it meant stays in content.
    """

    content: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    faults: tuple[str, ...] = field(default=(), compare=False)
