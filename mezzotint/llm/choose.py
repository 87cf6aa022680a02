"""One of several answers, chosen by how likely a checkpoint finds each; how that is read lives in decoding.choose."""

from collections.abc import Sequence
from math import exp
from typing import Literal, NamedTuple

import torch

from mezzotint.decoding.choose import Surplus, read_choices, score_choices
from mezzotint.decoding.random import fresh_seed
from mezzotint.llm.checkpoint import Checkpoint
from mezzotint.text.prompt import Prompt

ChoosingDecoder = Literal["diffusion", "ar"]


class Choice(NamedTuple):
    """One of the choices, and its probability among them."""

    text: str
    probability: float


@torch.inference_mode()
def choose(
    prompt: Prompt, choices: Sequence[str], decoder: ChoosingDecoder, seed: int | None, checkpoint: Checkpoint
) -> list[Choice]:
    """See LLM.choose."""
    config, tokenizer = checkpoint.model.config, checkpoint.tokenizer
    if decoder not in ("diffusion", "ar"):
        told = "one read of a canvas (diffusion) or the causal pass (ar) chooses, and no decoder adds to them"
        raise ValueError(f"decoder is {decoder!r}; {told}: take one of the two")
    if decoder == "ar" and seed is not None:
        raise ValueError(f"seed is {seed}, but decoder 'ar' draws nothing; leave it out, or take 'diffusion'")
    if tokenizer is None:
        raise ValueError(f"{checkpoint.path} has no tokenizer.json, and choices are texts; add the file")
    if decoder == "diffusion" and config.family != "diffusion_gemma":
        raise ValueError(f"{checkpoint.path} is a {config.family} checkpoint without a canvas; use decoder 'ar'")
    if checkpoint.prompts.encode_ends(prompt):
        raise ValueError("ends is given, but a choice is a whole answer with its end of turn; drop it")
    ids, texts = checkpoint.encode(prompt), [tokenizer.encode_text(choice) for choice in choices]
    if decoder == "ar":
        log_probs = score_choices(checkpoint.model, ids, texts, checkpoint.limits)
    else:
        surplus = Surplus(config.pad_id, config.eos_ids[0])
        noise = fresh_seed() if seed is None else seed
        log_probs = read_choices(checkpoint.model, ids, texts, noise, checkpoint.limits, surplus)
    return [Choice(choice, exp(value)) for choice, value in zip(choices, log_probs, strict=True)]
