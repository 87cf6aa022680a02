"""The recipe of the bundled model `lab`: its shape, its first weights, its ids, and the run as a whole."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import torch

from mezzotint.model.assistant import AssistantNetwork
from mezzotint.model.config import LayerKind, LayerShape, ModelConfig, VisionConfig
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.generation_config import GenerationDefaults
from mezzotint.model.locate import BUNDLED
from mezzotint.model.weights import load_model, write_checkpoint
from mezzotint.tasks import Example
from mezzotint.text.parse import encode_reply, end_of_reply
from mezzotint.text.template import ChatTemplate
from mezzotint.text.tokenizer import Tokenizer
from mezzotint.train.compiled import compile_parts
from mezzotint.train.config import TrainConfig
from mezzotint.train.data import Sample
from mezzotint.train.loop import train

Model = TypeVar("Model", bound=DiffusionGemma | AssistantNetwork)

_KINDS: tuple[LayerKind, ...] = ("sliding_attention", "sliding_attention", "full_attention") * 2
_STEP_BUDGET = 16  # the largest that on-policy training visits
_TEXT_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


def train_lab(
    folder: Path,
    config: TrainConfig,
    *,
    report: Callable[[dict[str, float]], None],
    minutes: float | None = None,
    start: str | Path | None = None,
    resume: bool = True,
    compiled: bool = True,
) -> Path:
    """Train `lab` in `folder` for config.steps or `minutes`, and write the averaged weights as a checkpoint.

    A folder/state.pt continues, exactly if config is the one that it was written under; another one holds
    from that step on, its seed and mixture too. resume=False discards it and the curve once all else is known
    to be in order. Without one, `start` (folder, bundled name or hub id of a checkpoint) gives the weights and
    the optimisers begin afresh with their warm-up; without that, weights are random.
    Returns: folder/checkpoint in Hugging Face format.
    Raises: ValueError for a start that is not of lab's shape, and without a C++ compiler if compiled.
    """
    texts = BUNDLED / "lab"
    tokenizer = Tokenizer.from_directory(texts)
    template = ChatTemplate.from_directory(texts, tokenizer)
    model = _first_weights(lab_config(tokenizer.vocab_size), config.seed, start)
    if compiled:
        compile_parts(model)
    if not resume:
        for name in ("state.pt", "curve.jsonl"):
            (folder / name).unlink(missing_ok=True)
    ids = partial(tokenise, tokenizer=tokenizer, template=template)
    state = train(model, config, ids, folder, report, until_s=None if minutes is None else 60 * minutes)
    target = folder / "checkpoint"
    defaults = GenerationDefaults(eos_ids=model.config.eos_ids, max_denoising_steps=_STEP_BUDGET)
    write_checkpoint(state.averaged(DiffusionGemma(model.config)), target, generation=defaults)
    for name in _TEXT_FILES:
        shutil.copyfile(texts / name, target / name)
    return target


def lab_config(vocab_size: int) -> ModelConfig:
    """Shape of `lab`: about 6 M parameters, 12 MB in bfloat16. The vision tower exists in the file only."""
    return ModelConfig(
        family="diffusion_gemma",
        vocab_size=vocab_size,
        hidden_size=256,
        intermediate_size=384,
        num_heads=4,
        layers=tuple(_layer(kind) for kind in _KINDS),
        sliding_window=512,
        num_experts=4,
        top_k_experts=2,
        moe_intermediate_size=128,
        rms_norm_eps=1e-6,
        softcap=30.0,
        max_positions=4096,
        canvas_length=64,
        bos_id=2,
        pad_id=0,
        eos_ids=(1, 7, 14),  # <eos>, <turn|>, <|tool_response>
        vision=VisionConfig(
            hidden_size=8,
            intermediate_size=8,
            num_layers=1,
            num_heads=1,
            kv_heads=1,
            head_dim=8,
            patch_size=4,
            position_embedding_size=16,
            standardize=False,
            clipped_linears=False,
        ),
    )


def _layer(kind: LayerKind) -> LayerShape:
    full = kind == "full_attention"
    return LayerShape(
        kind=kind,
        head_dim=64,
        kv_heads=1 if full else 2,
        shares_kv=full,
        rope_theta=1e5 if full else 1e4,
        rotary_fraction=0.5 if full else 1.0,
    )


def initialise(model: Model, seed: int) -> Model:
    """Random start: embeddings of unit rms after scaling, products that keep variance, scores of order 1.

    Returns: the model, filled.
    """
    generator = torch.Generator().manual_seed(seed)
    depth = len(model.config.layers)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, parameter.shape[-1] ** -0.5, generator=generator)
            elif "q_norm" in name or "k_norm" in name:
                parameter.fill_(parameter.shape[0] ** -0.25)
            elif "post_attention" in name or name.endswith("post_feedforward_layernorm.weight"):
                parameter.fill_(depth**-0.5)
            else:
                parameter.fill_(1.0)
    return model


def tokenise(example: Example, tokenizer: Tokenizer, template: ChatTemplate) -> Sample:
    """Prompt ids as the chat template writes them, with what the turn begins with; answer ids with their end token."""
    prompt = template.encode(example.messages, tools=example.tools, thinking=example.thinking)
    behind = tokenizer.encode_text(example.ends)
    return Sample(
        prompt=prompt + tokenizer.encode_text(example.begins),
        answer=[*encode_reply(example.reply, tokenizer), *behind, end_of_reply(example.reply, tokenizer)],
        given=len(behind) + 1 if behind else 0,
    )


def _first_weights(shape: ModelConfig, seed: int, start: str | Path | None) -> DiffusionGemma:
    """The model in bfloat16, from a checkpoint's weights or at random."""
    model = initialise(DiffusionGemma(shape), seed).to(torch.bfloat16)
    if start is not None:
        found = load_model(start, dtype=torch.bfloat16)
        if found.config != shape:
            raise ValueError(f"{start} is not of lab's shape; start from a checkpoint of lab or from nothing")
        model.load_state_dict(found.state_dict())
    return model
