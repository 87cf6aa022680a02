"""Offline use: prompts in, completions out, from one checkpoint in this process."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch

from mezzotint.decoding.generate import (
    Block,
    Draft,
    Finished,
    Limits,
    Prefilled,
    generate_blocks,
    generate_tokens,
    required_positions,
)
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.random import fresh_seed
from mezzotint.decoding.sampler import SAMPLERS, Sampler
from mezzotint.model.fused import fuse, fuses, layer_bytes
from mezzotint.model.generation_config import GenerationDefaults, read_generation
from mezzotint.model.kv import kv_bytes
from mezzotint.model.memory import available_bytes
from mezzotint.model.weights import load_model, resolve
from mezzotint.text.detokenize import Detokenizer
from mezzotint.text.prompt import Prompt, PromptEncoder, list_prompts
from mezzotint.types import FinishReason, Receipt

# SamplingParams is half of this interface: rooms that may import llm and not decoding find it here.
__all__ = [
    "LLM",
    "BlockEvent",
    "Completion",
    "DraftEvent",
    "Event",
    "Prompt",
    "SamplingParams",
    "checkpoint_sampler",
]


class DraftEvent(NamedTuple):
    """A canvas after one denoising step of `step_budget`; tokens and text may still change."""

    block: int
    step: int
    step_budget: int
    token_ids: list[int]
    accepted: list[bool]


class BlockEvent(NamedTuple):
    """Final tokens and their text, which will not change; under ar one token.

    A last event without tokens brings what an answer that ends within a character leaves.
    """

    block: int
    steps: int
    token_ids: list[int]
    text: str


@dataclass(frozen=True, kw_only=True)
class Completion:
    """A finished answer. Its ids end with the end-of-turn token if there was one; text has no control tokens."""

    text: str
    token_ids: list[int]
    finish_reason: FinishReason
    receipt: Receipt


Event = DraftEvent | BlockEvent | Completion


class LLM:
    """One checkpoint, ready to generate."""

    def __init__(
        self,
        model: str = "lab",
        *,
        dtype: str | None = None,
        device: str = "cpu",
        threads: int | None = None,
    ) -> None:
        """Load `model`: "lab", a directory in Hugging Face format, or a hub id.

        dtype: float64, float32 or bfloat16; None = as stored. threads: torch's intra-op threads for the whole
        process, set once the options are known to be good; None leaves them.
        Raises: ValueError naming option, value and remedy.
        """
        place, kept = _parse_device(device), _parse_dtype(dtype)
        _check_threads(threads)
        self.path = resolve(model)
        # The small files first: one that cannot be honoured should not cost the reading of all weights.
        self._prompts = PromptEncoder.from_directory(self.path)
        self.tokenizer = self._prompts.tokenizer
        self._defaults = checkpoint_sampler(read_generation(self.path))
        if threads is not None:
            torch.set_num_threads(threads)
        self.model = load_model(self.path, dtype=kept, device=place)
        config = self.model.config
        if self.tokenizer is not None and config.vocab_size > self.tokenizer.vocab_size:
            raise ValueError(
                f"{self.path}: the model has {config.vocab_size} ids and its tokenizer {self.tokenizer.vocab_size}, so "
                "some tokens would have no text; remove tokenizer.json to work with token ids"
            )
        if fuses(layer_bytes(self.model)):
            fuse(self.model)
        self.limits = Limits(
            vocab_size=config.vocab_size,
            canvas_length=config.canvas_length,
            max_positions=config.max_positions,
            end_ids=config.eos_ids,
        )

    def generate(self, prompts: Prompt | Sequence[Prompt], params: SamplingParams | None = None) -> list[Completion]:
        """Answer one prompt or several, in order.

        A prompt is text (encoded as it stands behind <bos>), a chat (a list of messages, rendered by the
        checkpoint's template) or token ids.
        Raises: ValueError before any work if a prompt is malformed or, with its max_tokens, exceeds the context.
        """
        params = params or SamplingParams()
        encoded = [self.encode(prompt) for prompt in list_prompts(prompts)]
        for ids in encoded:
            self._check(ids, params)
        return [self._last(self.stream(ids, params)) for ids in encoded]

    def stream(self, prompt: Prompt, params: SamplingParams | None = None) -> Iterator[Event]:
        """Answer one prompt as draft and block events, then its Completion.

        Raises: as generate, before any work.
        """
        params = params or SamplingParams()
        ids = self.encode(prompt)
        self._check(ids, params)
        seed = fresh_seed() if params.seed is None else params.seed
        return self._run(ids, params, seed)

    def encode(self, prompt: Prompt) -> list[int]:
        """Token ids of a prompt. Raises: ValueError naming what is wrong with it, or what the checkpoint lacks."""
        return self._prompts.encode(prompt, self.limits.vocab_size)

    def sampler(self, params: SamplingParams) -> Sampler:
        """The sampler of a request: with the checkpoint's own numbers unless the request names others."""
        return params.resolve_sampler(self._defaults)

    def _check(self, ids: list[int], params: SamplingParams) -> None:
        if params.decoder == "diffusion" and self.model.config.family != "diffusion_gemma":
            raise ValueError(f"{self.path} is a {self.model.config.family} checkpoint; it runs with decoder 'ar' only")
        positions = required_positions(len(ids), params, self.limits)
        need = kv_bytes(self.model.config, positions, self.model.dtype)
        have = available_bytes(self.model.device)
        if need > have:
            raise ValueError(
                f"keys and values of {positions} tokens need {need:,} bytes and {self.model.device} has {have:,}; "
                "shorten the prompt or ask for fewer tokens"
            )

    @torch.inference_mode()
    def _run(self, ids: list[int], params: SamplingParams, seed: int) -> Iterator[Event]:
        started = prefilled = time.perf_counter()
        tokens: list[int] = []
        blocks: list[Block] = []
        detokenizer = None if self.tokenizer is None else Detokenizer(self.tokenizer)
        pieces: list[str] = []
        sampler = self.sampler(params) if params.decoder == "diffusion" else None
        for event in self._events(ids, params, seed):
            match event:
                case Prefilled():
                    prefilled = time.perf_counter()
                case Draft():
                    assert sampler is not None
                    yield DraftEvent(event.block, event.step, sampler.budget, event.tokens, event.accepted)
                case Block():
                    blocks.append(event)
                    tokens += event.tokens
                    pieces.append("" if detokenizer is None else detokenizer.push(event.tokens))
                    yield BlockEvent(event.block, event.steps, event.tokens, pieces[-1])
                case Finished():
                    pieces.append("" if detokenizer is None else detokenizer.flush())
                    if pieces[-1]:
                        yield BlockEvent(blocks[-1].block, 0, [], pieces[-1])
                    receipt = _receipt(ids, tokens, blocks, event, params, sampler, seed, self.limits)
                    ended = time.perf_counter()
                    receipt = replace(receipt, prefill_s=prefilled - started, generation_s=ended - prefilled)
                    yield Completion(
                        text="".join(pieces), token_ids=tokens, finish_reason=event.reason, receipt=receipt
                    )

    def _events(self, ids: list[int], params: SamplingParams, seed: int) -> Iterator[Any]:
        if params.decoder == "ar":
            return generate_tokens(self.model, ids, params, seed, self.limits)
        return generate_blocks(self.model, ids, params, seed, self.limits, defaults=self._defaults)

    @staticmethod
    def _last(events: Iterator[Event]) -> Completion:
        *_, completion = events
        assert isinstance(completion, Completion)
        return completion


def checkpoint_sampler(defaults: GenerationDefaults) -> Sampler:
    """The report's sampler with a checkpoint's own numbers from generation_config.json."""
    return replace(
        SAMPLERS["report"],
        budget=defaults.max_denoising_steps,
        t_min=defaults.t_min,
        t_max=defaults.t_max,
        entropy_bound=defaults.entropy_bound,
        stability=defaults.stability_threshold,
        confidence=defaults.confidence_threshold,
    )


def _receipt(
    prompt: list[int],
    tokens: list[int],
    blocks: list[Block],
    finished: Finished,
    params: SamplingParams,
    sampler: Sampler | None,
    seed: int,
    limits: Limits,
) -> Receipt:
    receipt = Receipt(
        decoder=params.decoder,
        sampler=None if sampler is None else sampler.name,
        seed=seed,
        prompt_tokens=len(prompt),
        output_tokens=len(tokens),
        encodes=finished.encodes,
    )
    if sampler is None:
        return receipt
    return replace(
        receipt,
        denoise_steps=tuple(block.steps for block in blocks),
        block_tokens=tuple(len(block.tokens) for block in blocks),
        step_budget=sampler.budget,
        canvas_length=limits.canvas_length,
        entropy_bound=sampler.entropy_bound if sampler.rule == "entropy_bound" else None,
    )


def _parse_dtype(name: str | None) -> torch.dtype | None:
    known = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16}
    if name is None:
        return None
    if name not in known:
        raise ValueError(f"dtype is {name!r}; choose one of {', '.join(known)}")
    return known[name]


def _parse_device(name: str) -> torch.device:
    try:
        place = torch.device(name)
        torch.zeros(1, device=place).item()  # read back, for "meta" lets itself be filled and holds nothing
    except (RuntimeError, AssertionError, ImportError, TypeError) as error:  # torch has no narrower class
        reason = str(error).partition("\n")[0]
        raise ValueError(f"device is {name!r}, which torch cannot use here ({reason}); 'cpu' works") from None
    return place


def _check_threads(threads: Any) -> None:
    whole = isinstance(threads, int) and not isinstance(threads, bool)
    if threads is not None and not (whole and threads >= 1):
        raise ValueError(f"threads is {threads!r}; give a whole number from 1 up")
