"""A checkpoint read into memory, with all that its answers need; what is asked of it lives in entry."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from mezzotint.decoding.alarms import GateLimits
from mezzotint.decoding.limits import Limits
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.sampler import SAMPLERS, Sampler
from mezzotint.model.assistant import Assistant
from mezzotint.model.assistant_weights import load_assistant
from mezzotint.model.compiled import compile_model
from mezzotint.model.compiled_assistant import compile_assistant
from mezzotint.model.device import check_threads, parse_device, parse_dtype
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.fields import Fields, read_json
from mezzotint.model.fused import fuse, fuses, layer_bytes
from mezzotint.model.generation_config import GenerationDefaults, read_generation
from mezzotint.model.native import check_compiled
from mezzotint.model.weights import load_model, resolve
from mezzotint.text.parse import find_channel
from mezzotint.text.prompt import Prompt, PromptEncoder
from mezzotint.text.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A network with its text side, its sampler's own numbers and its drafter, if it has one."""

    path: Path
    prompts: PromptEncoder
    model: DiffusionGemma
    drafter: Assistant | None
    defaults: Sampler
    limits: Limits
    bounds: GateLimits

    @property
    def tokenizer(self) -> Tokenizer | None:
        """None where ids alone can be given and read."""
        return self.prompts.tokenizer

    def encode(self, prompt: Prompt) -> list[int]:
        """Token ids of a prompt. Raises: ValueError naming what is wrong with it, or what the checkpoint lacks."""
        return self.prompts.encode(prompt, self.limits.vocab_size)

    def sampler(self, params: SamplingParams) -> Sampler:
        """The sampler of a request, with the checkpoint's own numbers unless the request names others."""
        return params.resolve_sampler(self.defaults)


def load_checkpoint(
    name: str, *, dtype: str | None, device: str, threads: int | None, compiled: bool, drafter: str | None
) -> Checkpoint:
    """Read a checkpoint; see LLM. Raises: ValueError naming option, value and remedy."""
    place, kept = parse_device(device), parse_dtype(dtype)
    check_threads(threads)
    check_compiled(compiled=compiled, device=place)
    path = resolve(name)
    # The small files first: one that cannot be honoured should not cost the reading of all weights.
    prompts = PromptEncoder.from_directory(path)
    defaults, bounds = checkpoint_sampler(read_generation(path)), read_bounds(path)
    if threads is not None:
        torch.set_num_threads(threads)
    model = load_model(path, dtype=kept, device=place)
    config, tokenizer = model.config, prompts.tokenizer
    if tokenizer is not None and config.vocab_size > tokenizer.vocab_size:
        raise ValueError(
            f"{path}: the model has {config.vocab_size} ids and its tokenizer {tokenizer.vocab_size}, so "
            "some tokens would have no text; remove tokenizer.json to work with token ids"
        )
    if compiled:
        compile_model(model)
    elif fuses(layer_bytes(model)):
        fuse(model)
    return Checkpoint(
        path=path,
        prompts=prompts,
        model=model,
        drafter=_load_drafter(path, drafter, model, compiled=compiled),
        defaults=defaults,
        bounds=bounds,
        limits=Limits(
            vocab_size=config.vocab_size,
            canvas_length=config.canvas_length,
            max_positions=config.max_positions,
            end_ids=config.eos_ids,
            turn_id=_find_turn_end(tokenizer, config.eos_ids),
            channel=None if tokenizer is None else find_channel(tokenizer),
        ),
    )


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


def read_bounds(folder: Path) -> GateLimits:
    """What a checkpoint's blocks may show at a gate, from gate.json beside its weights, or what is usual.

    Raises: CheckpointError for an unreadable file, ConfigError for a key that is unknown or out of range.
    """
    file, usual = folder / "gate.json", GateLimits()
    fields = Fields(read_json(file) if file.is_file() else {}, str(file))
    bounds = GateLimits(
        doubt=fields.number("doubt", usual.doubt, above=0),
        surprise=fields.number("surprise", usual.surprise, above=0),
        spike=fields.number("spike", usual.spike, above=0),
        spikes=fields.integer("spikes", usual.spikes, least=0),
    )
    fields.close(frozenset())
    return bounds


def _find_turn_end(tokenizer: Tokenizer | None, end_ids: Collection[int]) -> int | None:
    """The id of Gemma's end of turn, where it is one of the ids that end a turn."""
    known = None if tokenizer is None else tokenizer.control.get("<turn|>")
    return known if known in end_ids else None


def _load_drafter(path: Path, name: str | None, model: DiffusionGemma, *, compiled: bool) -> Assistant | None:
    beside = path.with_name(f"{path.name}-drafter")
    if name is None and not beside.is_dir():
        return None
    drafter = load_assistant(beside if name is None else name, model)
    return compile_assistant(drafter) if compiled else drafter
