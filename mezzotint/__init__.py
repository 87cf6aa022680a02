"""Mezzotint runs block-diffusion language models; the public names live here and nothing else."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mezzotint.decoding.params import SamplingParams
    from mezzotint.llm import LLM, BlockEvent, Completion, DraftEvent
    from mezzotint.text.prompt import Chat
    from mezzotint.types import Receipt

__all__ = ["LLM", "BlockEvent", "Chat", "Completion", "DraftEvent", "Receipt", "SamplingParams", "__version__"]

__version__ = "0.1.0"

_HOMES = {
    "LLM": "llm",
    "BlockEvent": "llm",
    "Chat": "text.prompt",
    "Completion": "llm",
    "DraftEvent": "llm",
    "Receipt": "types",
    "SamplingParams": "decoding.params",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: torch alone takes a second, and `--help` needs none of it."""
    if name not in _HOMES:
        raise AttributeError(f"module 'mezzotint' has no attribute {name!r}")
    return getattr(import_module(f"mezzotint.{_HOMES[name]}"), name)
