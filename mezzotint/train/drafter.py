"""How a drafter of the bundled model is taught: its shape, its loss, and the run as a whole.

    target    p p p | a0 a1 a2 a3 a4        one encode a row, its weights frozen
    start at a0:      a0 ► g1
                         a1 ► g2            step k is fed the text's own token, and what step k − 1 handed on
                            a2 ► g3

Every answer token is a start, and sees the context before itself alone. A guess is right where it is what the target
says behind the same text, for that is what verification will ask.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from mezzotint.model.assistant import AssistantNetwork, Seen, drafter_reach, source_layers
from mezzotint.model.assistant_config import AssistantConfig
from mezzotint.model.assistant_weights import write_assistant
from mezzotint.model.config import LayerKind, ModelConfig
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.layers import rotary_angles
from mezzotint.model.locate import resolve
from mezzotint.model.weights import load_model
from mezzotint.text.template import ChatTemplate
from mezzotint.text.tokenizer import Tokenizer
from mezzotint.train.config import DrafterConfig
from mezzotint.train.context import RecordedKV
from mezzotint.train.data import Batch, training_batches
from mezzotint.train.lab import initialise, tokenise
from mezzotint.train.loop import continued, run_steps
from mezzotint.train.state import TrainState

_WIDTH, _INNER, _HEADS = 128, 512, 4
_KINDS: tuple[LayerKind, ...] = ("sliding_attention", "full_attention")


class Lesson(NamedTuple):
    """The loss to differentiate, in nats a guess, and how many guesses in a row are right on average."""

    loss: Tensor
    accepted: float


def train_drafter(
    folder: Path,
    config: DrafterConfig,
    *,
    report: Callable[[dict[str, float]], None],
    target: str | Path = "lab",
    minutes: float | None = None,
    resume: bool = True,
) -> Path:
    """Train a drafter for `target` in `folder` for config.steps or `minutes`, and write its averaged weights.

    target: folder, bundled name or hub id of a checkpoint with tokenizer and chat template; its weights stay as they
    are. A folder/state.pt continues, exactly if target and config are those that it was written under;
    resume=False discards it and the curve.
    Returns: folder/checkpoint, an assistant in Hugging Face format.
    Raises: ValueError for a target without layers of both kinds.
    """
    texts = resolve(str(target))
    tokenizer = Tokenizer.from_directory(texts)
    template = ChatTemplate.from_directory(texts, tokenizer)
    model = load_model(texts, dtype=torch.float32)
    network = initialise(AssistantNetwork(drafter_config(model.config, config.guesses)), config.seed)
    if not resume:
        for name in ("state.pt", "curve.jsonl"):
            (folder / name).unlink(missing_ok=True)
    state = continued(network, config.schedule, folder)
    ids = partial(tokenise, tokenizer=tokenizer, template=template)
    pad, fill = model.config.pad_id, model.config.eos_ids[0]
    batches = training_batches(config.schedule, ids, state.step, pad_id=pad, fill_id=fill)
    take = partial(_take_step, state, model, config.guesses)
    until_s = None if minutes is None else 60 * minutes
    run_steps(state, lambda: take(next(batches)), folder, report, until_s=until_s)
    write_assistant(state.averaged(AssistantNetwork(network.config)), folder / "checkpoint")
    return folder / "checkpoint"


def drafter_config(target: ModelConfig, guesses: int) -> AssistantConfig:
    """Shape of a drafter, a layer of each kind of `target`: for lab 0.6 M parameters and the table, 1.8 MB in bfloat16.

    Raises: ValueError for a target without layers of both kinds.
    """
    last = {shape.kind: shape for shape in target.layers}
    for kind in _KINDS:
        if kind not in last:
            raise ValueError(f"the target has no {kind} layer, and a drafter attends one of each kind; name another")
    return AssistantConfig(
        target_width=target.hidden_size,
        vocab_size=target.vocab_size,
        hidden_size=_WIDTH,
        intermediate_size=_INNER,
        num_heads=_HEADS,
        layers=tuple(last[kind] for kind in _KINDS),
        sliding_window=target.sliding_window,
        rms_norm_eps=target.rms_norm_eps,
        max_positions=target.max_positions,
        draft_tokens=guesses,
    )


def drafter_loss(network: AssistantNetwork, target: DiffusionGemma, batch: Batch, guesses: int) -> Lesson:
    """Cross-entropy of `guesses` guesses behind every answer token with the target's own next tokens.

    The step is that of model.assistant, so that it meets in use what it met here; only its tokens are the text's.
    """
    with torch.no_grad():
        kv = RecordedKV()
        hidden = target.encode(batch.ids, kv)
        said, embedded = target.logits(hidden).argmax(-1), target.embed(batch.ids)
    rows, last = torch.arange(len(batch.ids))[:, None], batch.ids.shape[1] - 1
    longest = int((batch.lengths - batch.prompt_lengths).max())
    at = batch.prompt_lengths[:, None] + torch.arange(max(1, longest - 1))
    places = at.clamp(max=last)
    angles = {shape.kind: rotary_angles(shape, places, network.dtype) for shape in network.config.layers}
    seen = _contexts(network.config, target.config, kv, places)
    carried = hidden[rows, places - 1]
    errors, right = [], []
    for step in range(guesses):
        known = (at + step).clamp(max=last)
        state = network(embedded[rows, known], carried, angles, seen)
        carried = network.next_hidden(state)
        counted = at + step + 1 < batch.lengths[:, None]
        logits, wanted = network.logits(state[counted]), said[rows, known][counted]
        errors.append(F.cross_entropy(logits, wanted, reduction="sum") / max(1, len(wanted)))
        right.append(torch.zeros_like(counted).masked_scatter(counted, logits.argmax(-1) == wanted))
    starts = (at + 1 < batch.lengths[:, None]).sum()
    in_a_row = torch.stack(right).long().cumprod(0).sum()
    return Lesson(torch.stack(errors).mean(), float(in_a_row / starts.clamp(min=1)))


def _contexts(config: AssistantConfig, target: ModelConfig, kv: RecordedKV, places: Tensor) -> dict[LayerKind, Seen]:
    """For each layer kind the target's keys and values, and which of them the query at places [B, A] sees."""
    slots, ends = torch.arange(kv.length), places[:, None, :, None]
    before = slots < ends
    masks = {"full_attention": before, "sliding_attention": before & (slots >= ends - drafter_reach(config))}
    sources = source_layers(config, target)
    return {kind: Seen(*kv.pair(layer, 0, kv.length), masks[kind]) for kind, layer in sources.items()}


def _take_step(
    state: TrainState[AssistantNetwork], target: DiffusionGemma, guesses: int, batch: Batch
) -> dict[str, float]:
    lesson = drafter_loss(state.model, target, batch, guesses)
    lesson.loss.backward()
    norm = state.update()
    return {"loss": float(lesson.loss.detach()), "accepted": lesson.accepted, "norm": norm}
