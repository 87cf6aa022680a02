"""What is measured: checkpoints that both sides read, and the prompts they are given; nothing runs here."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from mezzotint.model.config import LayerKind, LayerShape, ModelConfig
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.generation_config import GenerationDefaults
from mezzotint.model.locate import BUNDLED
from mezzotint.model.weights import resolve, write_checkpoint
from mezzotint.tasks import FAMILIES
from mezzotint.text.template import ChatTemplate
from mezzotint.text.tokenizer import Tokenizer
from mezzotint.train.lab import initialise, lab_config

# Text of any length denoises equally fast; a model without a tokenizer is given this many ids.
_PROMPT_TOKENS = 256
_NEVER = 1_000_000  # steps that an argmax would have to stand still


class Subject(NamedTuple):
    """A checkpoint's folder, its prompts as ids, and a line on what its weights are."""

    name: str
    folder: Path
    prompts: Sequence[list[int]]
    weights: str


def lab(folder: Path, *, prompts: int, model: str | None = None) -> Subject:
    """The bundled model, or `model`, on held-out `extract` prompts; random weights where it has none yet.

    folder: must not exist; becomes the checkpoint, as fix_steps makes it.
    """
    texts = resolve(model) if model else BUNDLED / "lab"
    tokenizer = Tokenizer.from_directory(texts)
    if trained := (texts / "config.json").is_file():
        fix_steps(texts, folder)
    else:
        write_random(lab_config(tokenizer.vocab_size), folder)
    template = ChatTemplate.from_directory(texts, tokenizer)
    examples = (FAMILIES["extract"].generate(seed, "test") for seed in range(prompts))
    weights = f"weights of {texts.name}" if trained else "random weights, there being no trained ones yet"
    return Subject("lab", folder, [template.encode(example.messages) for example in examples], weights)


def large(folder: Path, *, prompts: int) -> Subject:
    """Random weights of large_config, behind seeded random ids."""
    return random_subject("270M-like", large_config(), folder, prompts=prompts)


def random_subject(name: str, config: ModelConfig, folder: Path, *, prompts: int) -> Subject:
    """Seeded random weights of any shape, written to `folder`, behind seeded random ids."""
    write_random(config, folder)
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(config.vocab_size, (prompts, _PROMPT_TOKENS), generator=generator)
    return Subject(name, folder, ids.tolist(), "random weights")


def large_config() -> ModelConfig:
    """A small model of today with a full vocabulary: Gemma 3 270M's sizes, and experts beside its MLP."""
    kinds: list[LayerKind] = ["sliding_attention"] * 18
    kinds[5::6] = ["full_attention"] * 3
    return ModelConfig(
        family="diffusion_gemma",
        vocab_size=262_144,
        hidden_size=640,
        intermediate_size=2048,
        num_heads=4,
        layers=tuple(_large_layer(kind) for kind in kinds),
        sliding_window=512,
        num_experts=8,
        top_k_experts=2,
        moe_intermediate_size=512,
        rms_norm_eps=1e-6,
        softcap=30.0,
        max_positions=4096,
        canvas_length=256,
        bos_id=2,
        pad_id=0,
        eos_ids=(1,),
        vision=lab_config(1024).vision,  # the least that the format allows
    )


def write_random(config: ModelConfig, folder: Path) -> None:
    """Write a checkpoint of seeded random weights in bfloat16, whose canvases never count as stable."""
    unstable = GenerationDefaults(stability_threshold=_NEVER)
    write_checkpoint(initialise(DiffusionGemma(config), 0), folder, generation=unstable)


def fix_steps(source: Path, folder: Path) -> None:
    """Make the new `folder` the checkpoint `source` by links to its files, but let no canvas count as stable.

    So a request runs exactly the steps it asks for, as transformers does without thresholds.
    """
    folder.mkdir(parents=True)
    generation = source / "generation_config.json"
    for file in source.iterdir():
        if file.is_file() and file != generation:
            (folder / file.name).symlink_to(file.resolve())
    stated = json.loads(generation.read_text()) if generation.is_file() else {}
    (folder / generation.name).write_text(json.dumps({**stated, "stability_threshold": _NEVER}))


def cut_context(prompt: list[int], length: int) -> list[int]:
    """The prompt, repeated or cut to exactly `length` tokens."""
    return (prompt * -(-length // len(prompt)))[:length]


def _large_layer(kind: LayerKind) -> LayerShape:
    full = kind == "full_attention"
    return LayerShape(
        kind=kind,
        head_dim=256,
        kv_heads=1,
        shares_kv=full,
        rope_theta=1e6 if full else 1e4,
        rotary_fraction=0.25 if full else 1.0,
    )
