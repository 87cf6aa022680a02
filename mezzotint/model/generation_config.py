"""How a checkpoint wants its blocks denoised, from and to generation_config.json; no sampler lives here."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mezzotint.model.fields import Fields, read_json

# Lengths and request fields that every request states for itself, cache choices, and bookkeeping.
_INERT = frozenset(
    "max_new_tokens max_length do_sample temperature top_k top_p bos_token_id pad_token_id "
    "cache_implementation cache_config disable_compile return_dict_in_generate "
    "transformers_version _commit_hash _from_model_config".split()
)


@dataclass(frozen=True, kw_only=True)
class GenerationDefaults:
    """The checkpoint's schedule and stopping rule; entropy_bound and confidence_threshold are in nats.

    stability_threshold: steps that the argmax must have stood still. eos_ids None: config.json decides.
    Source: the released generation_config.json, whose numbers are also the reference's own fallbacks.
    """

    max_denoising_steps: int = 48
    t_min: float = 0.4
    t_max: float = 0.8
    entropy_bound: float = 0.1
    stability_threshold: int = 1
    confidence_threshold: float = 0.005
    eos_ids: tuple[int, ...] | None = None


def read_generation(folder: Path) -> GenerationDefaults:
    """The defaults of a checkpoint's folder; those of the release where it has no generation_config.json.

    Raises: CheckpointError for an unreadable file, ConfigError for a key that is unknown or out of range.
    """
    file = folder / "generation_config.json"
    fields = Fields(read_json(file) if file.is_file() else {}, str(file))
    usual = GenerationDefaults()
    sampler = fields.section("sampler_config") or Fields({}, "")
    sampler.only(_cls_name="EntropyBoundSamplerConfig")
    t_min = fields.number("t_min", usual.t_min)
    defaults = GenerationDefaults(
        max_denoising_steps=fields.integer("max_denoising_steps", usual.max_denoising_steps),
        t_min=t_min,
        t_max=fields.number("t_max", usual.t_max, above=t_min),
        entropy_bound=sampler.number("entropy_bound", usual.entropy_bound, above=0),
        stability_threshold=fields.integer("stability_threshold", usual.stability_threshold, least=0),
        confidence_threshold=fields.number("confidence_threshold", usual.confidence_threshold, above=0),
        eos_ids=fields.ids("eos_token_id"),
    )
    sampler.close(frozenset())
    fields.close(_INERT)
    return defaults


def generation_json(defaults: GenerationDefaults, *, max_new_tokens: int, pad_id: int) -> dict[str, Any]:
    """The object that Hugging Face reads back as generation_config.json."""
    return {
        "max_new_tokens": max_new_tokens,
        "max_denoising_steps": defaults.max_denoising_steps,
        "sampler_config": {"_cls_name": "EntropyBoundSamplerConfig", "entropy_bound": defaults.entropy_bound},
        "t_min": defaults.t_min,
        "t_max": defaults.t_max,
        "stability_threshold": defaults.stability_threshold,
        "confidence_threshold": defaults.confidence_threshold,
        "eos_token_id": None if defaults.eos_ids is None else list(defaults.eos_ids),
        "pad_token_id": pad_id,
    }
