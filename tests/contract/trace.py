"""One course of forwards, run by transformers and by us; how far they may differ is for the tests to say."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.kv import KV
from mezzotint.model.vocabulary import read_logits
from tests.contract.reference import CANVAS, IMAGE_IDS, VOCABULARY, Shape


class Inputs(NamedTuple):
    """Ids of a prompt [B, T], of three canvases [B, C], and an earlier step's beliefs, logits [B, C, V]."""

    prompt: Tensor
    first: Tensor
    committed: Tensor
    second: Tensor
    beliefs: Tensor

    def row(self, index: int, length: int) -> "Inputs":
        """One row alone, of whose prompt only the last `length` tokens are real."""
        alone = Inputs(*(part[index : index + 1] for part in self))
        return alone._replace(prompt=alone.prompt[:, -length:])


class Trace(NamedTuple):
    """Hidden states of two encodes, and a canvas's logits after each, without and with self-conditioning."""

    prompt: Tensor
    plain: Tensor
    conditioned: Tensor
    commit: Tensor
    second_plain: Tensor
    second_conditioned: Tensor

    def row(self, index: int, length: int) -> "Trace":
        """One row of a batch whose prompts were padded on the left to the longest."""
        alone = Trace(*(part[index : index + 1] for part in self))
        return alone._replace(prompt=alone.prompt[:, -length:])


def prompt_lengths(shape: Shape) -> dict[str, int]:
    """Prompts shorter than the window, at its edge on every side, and far longer."""
    window = shape.window
    return {"5": 5, "W-1": window - 1, "W": window, "W+1": window + 1, "2.5W": 5 * window // 2}


def draw_inputs(length: int, rows: int = 2) -> Inputs:
    """Random ids of text and beliefs, the same for the same arguments."""
    generator = torch.Generator().manual_seed(length)
    sizes = (length, CANVAS, CANVAS, CANVAS)
    texts = min(IMAGE_IDS.values())
    prompt, first, committed, second = (torch.randint(texts, (rows, n), generator=generator) for n in sizes)
    return Inputs(prompt, first, committed, second, 4 * torch.randn(rows, CANVAS, VOCABULARY, generator=generator))


def reference_trace(oracle: Any, inputs: Inputs, lengths: Tensor | None = None) -> Trace:
    """What transformers says, with its dynamic cache; lengths [B]: tokens of a prompt behind left padding."""
    from transformers import DynamicCache

    B, T = inputs.prompt.shape
    real = torch.ones(B, T + 2 * CANVAS, dtype=torch.long)
    if lengths is not None:
        real[:, :T] = torch.arange(T) >= T - lengths[:, None]
    cache = DynamicCache(config=oracle.config.text_config)

    def encode(ids: Tensor, end: int) -> Tensor:
        states: Tensor = oracle.model.encoder(ids, attention_mask=real[:, :end], cache=cache).last_hidden_state
        return states

    def logits(canvas: Tensor, end: int, beliefs: Tensor | None = None) -> Tensor:
        found: Tensor = oracle(
            cache=cache,
            decoder_input_ids=canvas,
            self_conditioning_logits=beliefs,
            decoder_attention_mask=real[:, :end],
        ).logits
        return found

    behind = T + CANVAS
    return Trace(
        encode(inputs.prompt, T),
        logits(inputs.first, behind),
        logits(inputs.first, behind, inputs.beliefs),
        encode(inputs.committed, behind),
        logits(inputs.second, behind + CANVAS),
        logits(inputs.second, behind + CANVAS, inputs.beliefs),
    )


def our_trace(model: DiffusionGemma, inputs: Inputs, window: int | None = None) -> Trace:
    """What we say of rows of equal length; `window` as in `denoise`."""
    B, T = inputs.prompt.shape
    kv = model.new_kv(B, T + 2 * CANVAS)
    soft = soft_embedding(model, inputs.beliefs)

    def logits(canvas: Tensor, soft: Tensor | None) -> Tensor:
        return model.logits(model.denoise(canvas, kv, soft, window=window))

    return Trace(
        model.encode(inputs.prompt, kv),
        logits(inputs.first, None),
        logits(inputs.first, soft),
        model.encode(inputs.committed, kv),
        logits(inputs.second, None),
        logits(inputs.second, soft),
    )


def soft_embedding(model: DiffusionGemma, beliefs: Tensor) -> Tensor:
    """The soft embedding [B, C, D] of logits [B, C, V], by the path that a denoising step takes."""
    flat = beliefs.flatten(0, 1)
    reading = read_logits(
        model.head,
        flat,
        temperature=1.0,
        proposal_temperature=0.0,
        uniforms=torch.zeros(len(flat), dtype=torch.float64),
        with_soft=True,
    )
    assert reading.soft is not None
    return reading.soft.view(*beliefs.shape[:2], -1)


def encoded(model: DiffusionGemma, *parts: Tensor) -> tuple[KV, Tensor]:
    """A context encoded in one call a part, with room for a canvas, and the hidden states of all of it."""
    kv = model.new_kv(len(parts[0]), sum(part.shape[1] for part in parts) + CANVAS)
    return kv, torch.cat([model.encode(part, kv) for part in parts], 1)


def furthest(ours: Trace | Tensor, theirs: Trace | Tensor) -> float:
    """The largest absolute difference anywhere; NaN where either side has one."""
    if isinstance(ours, Tensor):
        assert isinstance(theirs, Tensor)
        assert ours.shape == theirs.shape
        return float((ours - theirs).abs().max())
    return float(torch.tensor([furthest(mine, its) for mine, its in zip(ours, theirs, strict=True)]).max())
