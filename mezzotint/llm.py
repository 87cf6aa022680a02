"""Offline use: prompts in, completions out, from one checkpoint in this process."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch

from mezzotint.decoding.blank import Blank, lay_blank
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
from mezzotint.decoding.receipt import step_budget, write_receipt
from mezzotint.decoding.sampler import SAMPLERS, Sampler
from mezzotint.decoding.verify import generate_guessed, generate_verified
from mezzotint.model.assistant import Assistant
from mezzotint.model.assistant_weights import load_assistant
from mezzotint.model.compiled import compile_model
from mezzotint.model.device import check_threads, parse_device, parse_dtype
from mezzotint.model.fused import fuse, fuses, layer_bytes
from mezzotint.model.generation_config import GenerationDefaults, read_generation
from mezzotint.model.kv import kv_bytes
from mezzotint.model.memory import available_bytes
from mezzotint.model.native import check_compiled
from mezzotint.model.weights import load_model, resolve
from mezzotint.text.detokenize import Detokenizer
from mezzotint.text.parse import Reply, parse_reply
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
    """Final tokens and their text, which will not change; under ar one token, under verified those of a round.

    A last event without tokens brings what an answer that ends within a character leaves.
    """

    block: int
    steps: int
    token_ids: list[int]
    text: str


@dataclass(frozen=True, kw_only=True)
class Completion:
    """A finished answer. Its ids end with the end-of-turn token if there was one; text has no control tokens.

    Where the prompt says what stands behind the answer, both hold what fills the blank and nothing else.
    """

    text: str
    token_ids: list[int]
    finish_reason: FinishReason
    receipt: Receipt


Event = DraftEvent | BlockEvent | Completion


class _Request(NamedTuple):
    """A prompt's ids with its options, found to be in order; blank: where text behind the answer is given."""

    ids: list[int]
    params: SamplingParams
    seed: int
    blank: Blank | None


class LLM:
    """One checkpoint, ready to generate."""

    def __init__(
        self,
        model: str = "lab",
        *,
        dtype: str | None = None,
        device: str = "cpu",
        threads: int | None = None,
        compiled: bool = False,
        drafter: str | None = None,
    ) -> None:
        """Load `model`: "lab", a directory in Hugging Face format, or a hub id.

        dtype: float64, float32 or bfloat16; None = as stored. threads: torch's intra-op threads for the whole
        process, set once the options are known to be good; None leaves them. compiled: run as machine code, which
        some seconds of a C++ compiler make the first time; not bit for bit what is computed without. drafter: the
        checkpoint of decoder `mtp`; None takes the one beside the model that is called like it with "-drafter" behind.
        Raises: ValueError naming option, value and remedy.
        """
        place, kept = parse_device(device), parse_dtype(dtype)
        check_threads(threads)
        check_compiled(compiled=compiled, device=place)
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
        if compiled:
            compile_model(self.model)
        elif fuses(layer_bytes(self.model)):
            fuse(self.model)
        self._drafter = self._load_drafter(drafter)
        self.limits = Limits(
            vocab_size=config.vocab_size,
            canvas_length=config.canvas_length,
            max_positions=config.max_positions,
            end_ids=config.eos_ids,
        )

    def generate(self, prompts: Prompt | Sequence[Prompt], params: SamplingParams | None = None) -> list[Completion]:
        """Answer one prompt or several, in order.

        A prompt is text (encoded as it stands behind <bos>), a chat (a list of messages, or a Chat, rendered by
        the checkpoint's template) or token ids. With the `ends` of a Chat the answer is one canvas at most and fills
        the blank before them, of max_tokens or what the canvas leaves.
        Raises: ValueError before any work if a prompt is malformed or, with its max_tokens, exceeds the context.
        """
        params = params or SamplingParams()
        requests = [self._accept(prompt, params) for prompt in list_prompts(prompts)]
        return [self._last(self._run(request)) for request in requests]

    def stream(self, prompt: Prompt, params: SamplingParams | None = None) -> Iterator[Event]:
        """Answer one prompt as draft and block events, then its Completion.

        Raises: as generate, before any work.
        """
        return self._run(self._accept(prompt, params or SamplingParams()))

    def encode(self, prompt: Prompt) -> list[int]:
        """Token ids of a prompt. Raises: ValueError naming what is wrong with it, or what the checkpoint lacks."""
        return self._prompts.encode(prompt, self.limits.vocab_size)

    def sampler(self, params: SamplingParams) -> Sampler:
        """The sampler of a request: with the checkpoint's own numbers unless the request names others."""
        return params.resolve_sampler(self._defaults)

    def parse(self, completion: Completion) -> Reply:
        """A completion's thoughts, calls of tools and content. Raises: ValueError without a tokenizer."""
        if self.tokenizer is None:
            raise ValueError(f"{self.path} has no tokenizer.json; read the completion's token ids")
        return parse_reply(completion.token_ids, self.tokenizer)

    def _accept(self, prompt: Prompt, params: SamplingParams) -> _Request:
        """Check a request before any work."""
        ids, behind, blank = self.encode(prompt), self._prompts.encode_ends(prompt), None
        if behind:
            if params.decoder != "diffusion":
                told = f"ends is given, but decoder {params.decoder!r} sees only what is before"
                raise ValueError(f"{told}: use 'diffusion' or drop it")
            width = self.limits.canvas_length
            blank = lay_blank(behind, params.max_tokens, width, self.model.config.eos_ids[0])
            params = replace(params, max_tokens=width)
        self._check(ids, params)
        return _Request(ids, params, fresh_seed() if params.seed is None else params.seed, blank)

    def _load_drafter(self, name: str | None) -> Assistant | None:
        beside = self.path.with_name(f"{self.path.name}-drafter")
        if name is None and not beside.is_dir():
            return None
        return load_assistant(beside if name is None else name, self.model)

    def _check(self, ids: list[int], params: SamplingParams) -> None:
        if params.decoder == "mtp" and self._drafter is None:
            raise ValueError(
                f"decoder is 'mtp', which needs a drafter, and {self.path} has none; name one or use 'verified'"
            )
        if params.decoder in ("diffusion", "verified") and self.model.config.family != "diffusion_gemma":
            raise ValueError(
                f"{self.path} is a {self.model.config.family} checkpoint without a canvas; use decoder 'ar' or 'mtp'"
            )
        positions = required_positions(len(ids), params, self.limits)
        need = kv_bytes(self.model.config, positions, self.model.dtype)
        have = available_bytes(self.model.device)
        if need > have:
            raise ValueError(
                f"keys and values of {positions} tokens need {need:,} bytes and {self.model.device} has {have:,}; "
                "shorten the prompt or ask for fewer tokens"
            )

    @torch.inference_mode()
    def _run(self, request: _Request) -> Iterator[Event]:
        ids, params, seed, blank = request
        started = prefilled = time.perf_counter()
        tokens: list[int] = []
        blocks: list[Block] = []
        detokenizer = None if self.tokenizer is None else Detokenizer(self.tokenizer)
        pieces: list[str] = []
        sampler = self.sampler(params) if params.decoder in ("diffusion", "verified") else None
        budget = step_budget(params, sampler)
        surplus = {self.model.config.pad_id, *self.limits.end_ids}
        for event in self._events(request):
            match event:
                case Prefilled():
                    prefilled = time.perf_counter()
                case Draft():
                    yield DraftEvent(event.block, event.step, budget, event.tokens, event.accepted)
                case Block():
                    if blank is not None:
                        event = event._replace(tokens=blank.keep(event.tokens, surplus))
                    blocks.append(event)
                    tokens += event.tokens
                    pieces.append("" if detokenizer is None else detokenizer.push(event.tokens))
                    yield BlockEvent(event.block, event.steps, event.tokens, pieces[-1])
                case Finished():
                    pieces.append("" if detokenizer is None else detokenizer.flush())
                    if pieces[-1]:
                        yield BlockEvent(blocks[-1].block, 0, [], pieces[-1])
                    receipt = write_receipt(len(ids), blocks, event, params, sampler, seed, self.limits.canvas_length)
                    ended = time.perf_counter()
                    receipt = replace(receipt, prefill_s=prefilled - started, generation_s=ended - prefilled)
                    yield Completion(
                        text="".join(pieces), token_ids=tokens, finish_reason=event.reason, receipt=receipt
                    )

    def _events(self, request: _Request) -> Iterator[Any]:
        ids, params, seed, blank = request
        if params.decoder == "ar":
            return generate_tokens(self.model, ids, params, seed, self.limits)
        if params.decoder == "verified":
            return generate_verified(self.model, ids, params, seed, self.limits, defaults=self._defaults)
        if params.decoder == "mtp":
            assert self._drafter is not None  # _check saw to it
            return generate_guessed(self.model, self._drafter, ids, params, seed, self.limits)
        pins = {} if blank is None else {0: blank.pins}
        return generate_blocks(self.model, ids, params, seed, self.limits, defaults=self._defaults, pins=pins)

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
