"""Whether transformers' own generate and ours draw answers from one distribution; tokens are compared elsewhere."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import torch

from benchmarks.two_samples import Comparison, compare_means, compare_rates
from mezzotint.llm import LLM, SamplingParams
from mezzotint.tasks import FAMILIES, Example
from mezzotint.text.parse import parse_reply

# Any: its own types cost a type checker half a minute and know nothing of `generate`.
transformers: Any = import_module("transformers")

TASK = "extract"


class Answers(NamedTuple):
    """Of one side, one value a prompt: whether the verifier accepts it, and its denoising steps."""

    accepted: tuple[bool, ...]
    steps: tuple[int, ...]


class Drawn(NamedTuple):
    """What both sides answered to the same prompts, each with random numbers of its own."""

    ours: Answers
    theirs: Answers

    @property
    def rates(self) -> Comparison:
        """Ours minus theirs, of the shares that are accepted."""
        counts = [(sum(side.accepted), len(side.accepted)) for side in self]
        return compare_rates(*counts[0], *counts[1])

    @property
    def steps(self) -> Comparison:
        """Ours minus theirs, of the mean denoising steps."""
        return compare_means(self.ours.steps, self.theirs.steps)


def draw_both(llm: LLM, reference: Any, n: int) -> Drawn:
    """Let both sides answer the first n held-out prompts by the checkpoint's own sampler."""
    examples = [FAMILIES[TASK].generate(seed, "test") for seed in range(n)]
    return Drawn(our_answers(llm, examples), their_answers(reference, llm, examples))


def load_reference(folder: Path, dtype: str) -> Any:
    """The checkpoint in transformers."""
    transformers.utils.logging.disable_progress_bar()
    return transformers.DiffusionGemmaForBlockDiffusion.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()


def our_answers(llm: LLM, examples: Sequence[Example]) -> Answers:
    """A canvas for each example, seeded by its number."""
    accepted, steps = [], []
    for seed, example in enumerate(examples):
        [found] = llm.generate([list(example.messages)], SamplingParams(max_tokens=llm.limits.canvas_length, seed=seed))
        accepted.append(_accept(llm, example, found.token_ids))
        steps.append(sum(found.receipt.denoise_steps))
    return Answers(tuple(accepted), tuple(steps))


@torch.inference_mode()
def their_answers(reference: Any, llm: LLM, examples: Sequence[Example]) -> Answers:
    """A canvas for each example, in a row from one seed; `llm` encodes the prompts."""
    torch.manual_seed(0)
    accepted, steps = [], []
    for example in examples:
        prompt = llm.encode(list(example.messages))
        # `generate` calls forward by its name, once a denoising step.
        with patch.object(reference, "forward", side_effect=reference.forward) as forward:
            found = reference.generate(torch.tensor([prompt]), max_new_tokens=llm.limits.canvas_length)
        accepted.append(_accept(llm, example, found.sequences[0, len(prompt) :].tolist()))
        steps.append(forward.call_count)
    return Answers(tuple(accepted), tuple(steps))


def _accept(llm: LLM, example: Example, ids: Sequence[int]) -> bool:
    assert llm.tokenizer is not None  # without one no chat could be encoded
    return FAMILIES[TASK].accept(example, parse_reply(ids, llm.tokenizer))
