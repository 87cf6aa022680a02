"""A checkpoint of two layers, requests to it, and what their events add up to; no test lives here."""

import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import mezzotint
from mezzotint import LLM, BlockEvent, Completion, DraftEvent, SamplingParams
from mezzotint.llm import Event
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.generation_config import GenerationDefaults
from mezzotint.model.weights import write_checkpoint
from mezzotint.train.lab import initialise, lab_config
from mezzotint.types import Reading

LAB = Path(mezzotint.__file__).parent / "checkpoints" / "lab"
V, CANVAS, CONTEXT, BUDGET, END = 2048, 8, 96, 4, 7
CHAT = [{"role": "user", "content": "Hello"}]
AR = SamplingParams(decoder="ar", max_tokens=12, seed=3)
DIFFUSION = SamplingParams(max_tokens=20, seed=3)
BOTH = {"ar": AR, "diffusion": DIFFUSION}
# Twenty tokens: two whole canvases and half of a third.
ASKED: dict[str, SamplingParams] = {
    "ar": replace(AR, max_tokens=20),
    "ar narrowed": replace(AR, max_tokens=20, temperature=0.7, top_k=50, top_p=0.9, min_p=0.01),
    "ar greedy": replace(AR, max_tokens=20, temperature=0.0),
    "verified": replace(AR, max_tokens=20, decoder="verified"),
    "verified narrowed": replace(AR, max_tokens=20, decoder="verified", temperature=0.7, top_k=50, draft_steps=2),
    "as the checkpoint says": DIFFUSION,
    "report": replace(DIFFUSION, sampler="report", steps=3, entropy_bound=30.0),
    "hf, warm": replace(DIFFUSION, sampler="hf", temperature=1.5),
    "jax": replace(DIFFUSION, sampler="jax"),
    "refine": replace(DIFFUSION, sampler="refine", steps=3, editing_threshold=0.5),
    "ddim": replace(DIFFUSION, sampler="ddim", steps=3),
}
CANVASES = {name: params for name, params in ASKED.items() if params.decoder == "diffusion"}


def write(folder: Path, seed: int = 0) -> Path:
    """A checkpoint of two layers with lab's text side, its weights random in float32, its norms too."""
    shape = lab_config(V)
    sizes: dict[str, Any] = {"hidden_size": 16, "intermediate_size": 16, "moe_intermediate_size": 8}
    layers = tuple(layer._replace(head_dim=8) for layer in shape.layers[1:3])
    limits: dict[str, Any] = {"canvas_length": CANVAS, "max_positions": CONTEXT}
    model = initialise(DiffusionGemma(replace(shape, layers=layers, **sizes, **limits)), seed)
    generator = torch.Generator().manual_seed(seed)
    for name, tensor in model.state_dict().items():
        if tensor.ndim == 1 or "scalar" in name:
            tensor.mul_(1 + 0.3 * torch.randn(tensor.shape, generator=generator))
    generation = GenerationDefaults(max_denoising_steps=BUDGET, entropy_bound=4.0)
    write_checkpoint(model, folder, dtype=torch.float32, generation=generation)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copyfile(LAB / name, folder / name)
    return folder


def watch(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The forwards that `llm` runs from now on, in order."""
    ran: list[str] = []

    def noting(name: str, run: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def noted(*args: Any, **options: Any) -> Tensor:
            ran.append(name)
            return run(*args, **options)

        return noted

    for name in ("encode", "denoise"):
        monkeypatch.setattr(llm.model, name, noting(name, getattr(llm.model, name)))
    return ran


def say(llm: LLM, monkeypatch: pytest.MonkeyPatch, tokens: Iterable[int]) -> None:
    """Let the model be sure of `tokens`: of the next one under ar, of a canvas of them at a denoising step."""
    rest = iter(tokens)

    def logits(hidden: Tensor) -> Tensor:
        return 100 * F.one_hot(torch.tensor([next(rest)]), V).float().expand(*hidden.shape[:-1], V)

    def read(hidden: Tensor, **options: Any) -> Reading:
        ids, sure = torch.tensor(list(islice(rest, len(hidden)))), torch.zeros(len(hidden))
        return Reading(argmax=ids, proposal=ids, entropy=sure, log_prob=sure, soft=None)

    monkeypatch.setattr(llm.model, "logits", logits)
    monkeypatch.setattr(llm.model, "read", read)


class Folded(NamedTuple):
    """The events of an answer, sorted, and what its blocks add up to."""

    drafts: list[DraftEvent]
    blocks: list[BlockEvent]
    completion: Completion

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.blocks)

    @property
    def token_ids(self) -> list[int]:
        return [token for block in self.blocks for token in block.token_ids]


def fold(events: Iterable[Event]) -> Folded:
    """The events of one answer; its completion must be the last and the only one."""
    *rest, completion = events
    assert isinstance(completion, Completion)
    drafts = [event for event in rest if isinstance(event, DraftEvent)]
    blocks = [event for event in rest if isinstance(event, BlockEvent)]
    assert len(drafts) + len(blocks) == len(rest), "one completion, and it is the last event"
    return Folded(drafts, blocks, completion)


def timeless(completion: Completion) -> Completion:
    """A completion that equals another one's, however long either took, and whatever an earlier one spared it."""
    untimed = replace(completion.receipt, cached_tokens=0, queue_s=0.0, prefill_s=0.0, generation_s=0.0)
    return replace(completion, receipt=untimed)


def timeless_event(event: Event) -> Event:
    return timeless(event) if isinstance(event, Completion) else event


def answer(llm: LLM, prompt: Any, params: SamplingParams) -> Completion:
    """One prompt's completion, timeless."""
    [completion] = llm.generate(prompt, params)
    return timeless(completion)
