"""Offline use: prompts in, completions out, from one checkpoint in this process; the names live here, nothing else."""

from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.presets import PRESETS, preset
from mezzotint.llm.checkpoint import checkpoint_sampler
from mezzotint.llm.choose import Choice
from mezzotint.llm.events import BlockEvent, Completion, DraftEvent, Event
from mezzotint.llm.infill import Infilled, Middle
from mezzotint.llm.offline import LLM
from mezzotint.llm.together import GenerationError
from mezzotint.text.document import Blank, cut_lines, cut_marked, cut_span
from mezzotint.text.prompt import Prompt

# SamplingParams is half of this interface: rooms that may import llm and not decoding find it here.
__all__ = [
    "LLM",
    "PRESETS",
    "Blank",
    "BlockEvent",
    "Choice",
    "Completion",
    "DraftEvent",
    "Event",
    "GenerationError",
    "Infilled",
    "Middle",
    "Prompt",
    "SamplingParams",
    "checkpoint_sampler",
    "cut_lines",
    "cut_marked",
    "cut_span",
    "preset",
]
