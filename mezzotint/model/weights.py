"""From a checkpoint's folder to a network and back; names are matched by names, files opened by shards."""

import json
import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors.torch import save_file
from torch import Tensor

from mezzotint.model.config import ModelConfig, read_config
from mezzotint.model.config_json import config_json
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.fields import CheckpointError as CheckpointError
from mezzotint.model.generation_config import GenerationDefaults, generation_json
from mezzotint.model.locate import resolve as resolve
from mezzotint.model.memory import check_memory, estimate, outline
from mezzotint.model.names import Account, Shape, account, naming
from mezzotint.model.shards import SINGLE, Shards
from mezzotint.model.vision import vision_shapes

_log = logging.getLogger(__name__)

_DTYPES = (torch.float64, torch.float32, torch.bfloat16)


@dataclass(frozen=True, kw_only=True)
class LoadReport:
    """What a checkpoint's headers declare: tensors and stored bytes of text (loaded) and vision (left out).

    dtype: the stored element type of the embedding, which an unconverted model takes unless it is float16.
    """

    config: ModelConfig
    dtype: torch.dtype
    text_tensors: int
    text_bytes: int
    vision_tensors: int
    vision_bytes: int


def inspect_checkpoint(path: Path | str) -> LoadReport:
    """Account for every tensor of a checkpoint by its headers, reading no weight. Raises: CheckpointError."""
    return _open(path).report()


def load_model(
    path: Path | str,
    *,
    dtype: torch.dtype | None = None,
    device: str | torch.device = "cpu",
    memory_limit_bytes: int | None = None,
) -> DiffusionGemma:
    """The network of a checkpoint (folder, bundled name or hub id) in eval mode, without gradients.

    dtype: float64, float32 or bfloat16; None keeps the checkpoint's, and on the CPU such tensors stay backed by the
    file and are not copied. A checkpoint in float16, whose range is too narrow to run in, becomes float32.
    memory_limit_bytes: what the model with one canvas may take; None asks the device what it has.
    Config, names, shapes and memory are accounted for before a weight is read, and every weight is checked to
    be finite before the network is handed out.
    Raises: CheckpointError naming file, key or tensor, and the remedy.
    """
    place = torch.device(device)
    if place.type == "mps":
        raise CheckpointError(
            f"device '{place}' is not supported yet: it lacks float64, which draws and sums use; use cpu"
        )
    found = _open(path)
    report = found.report()
    kept = dtype or (torch.float32 if report.dtype == torch.float16 else report.dtype)
    _check_dtype(kept)
    need = estimate(found.config, dtype=kept, context_tokens=found.config.canvas_length, rows=1)
    check_memory(need, device=place, limit_bytes=memory_limit_bytes)
    found.check_head()
    model = outline(found.config)
    model.load_state_dict({name: found.read(name, kept, place) for name in found.account.sources}, assign=True)
    _log.info("%s: %d tensors as %s; %s", path, report.text_tensors, kept, _vision_note(report))
    return model.requires_grad_(requires_grad=False).eval()


def write_checkpoint(
    model: DiffusionGemma,
    path: Path | str,
    *,
    dtype: torch.dtype = torch.bfloat16,
    generation: GenerationDefaults | None = None,
    max_new_tokens: int = 256,
) -> None:
    """Write the checkpoint that Hugging Face reads: config.json, generation_config.json, model.safetensors.

    generation: how blocks are denoised, None the release's way; without eos ids it gets those of the model.
    The vision tower that config.vision describes is filled with small seeded noise: the format demands one,
    and this version runs text only. An interrupted write leaves old weights whole.
    Raises: CheckpointError for a config that the format cannot hold, a dtype that no model runs in, or a weight
    that is not finite.
    """
    _check_dtype(dtype)
    folder, config = Path(path), model.config
    defaults = generation or GenerationDefaults()
    if defaults.eos_ids is None:
        defaults = replace(defaults, eos_ids=config.eos_ids)
    descriptions = {
        "config.json": config_json(config, dtype),
        "generation_config.json": generation_json(defaults, max_new_tokens=max_new_tokens, pad_id=config.pad_id),
    }
    tensors = _stored_tensors(model, dtype)
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{SINGLE}.partial"
    save_file(tensors, partial, metadata={"format": "pt"})
    partial.replace(folder / SINGLE)
    for name, content in descriptions.items():
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


class _Found(NamedTuple):
    """An opened checkpoint whose names and shapes are all accounted for."""

    config: ModelConfig
    shapes: dict[str, Shape]
    shards: Shards
    account: Account

    def report(self) -> LoadReport:
        stored, sources, vision = self.shards.stored, self.account.sources, self.account.vision
        text = dict.fromkeys(part for parts in sources.values() for part in parts)
        return LoadReport(
            config=self.config,
            dtype=stored[sources["embed_tokens.weight"][0]].dtype,
            text_tensors=len(text),
            text_bytes=sum(stored[name].bytes for name in text),
            vision_tensors=len(vision),
            vision_bytes=sum(stored[name].bytes for name in vision),
        )

    def check_head(self) -> None:
        """Refuse a stored output head that differs from the embedding: we run them tied."""
        head, embedding = self.account.head, self.account.sources["embed_tokens.weight"][0]
        if head is not None and not torch.equal(self.shards.read(head), self.shards.read(embedding)):
            raise CheckpointError(
                f"{self.shards.stored[head].file}: {head} differs from {embedding}; this model ties its head "
                "to the embedding, so another head cannot be honoured: use a checkpoint with tied embeddings"
            )

    def read(self, name: str, dtype: torch.dtype, device: torch.device) -> Tensor:
        """Our tensor `name`: the stored one where dtype and device allow, else a converted copy; finite."""
        parts = self.account.sources[name]
        if len(parts) == 1:
            tensor = self.shards.read(parts[0]).to(device, dtype)
        else:
            tensor = torch.empty(self.shapes[name], dtype=dtype, device=device)
            slots = tensor.view(len(parts), *self.shards.stored[parts[0]].shape)
            for slot, part in zip(slots, parts, strict=True):
                slot.copy_(self.shards.read(part))
        _check_finite(f"{self.shards.stored[parts[0]].file}: {parts[0]}", tensor)
        return tensor


def _open(path: Path | str) -> _Found:
    folder = path if isinstance(path, Path) else resolve(path)
    config = read_config(folder)
    shapes = {name: tuple(tensor.shape) for name, tensor in outline(config).state_dict().items()}
    shards = Shards.open(folder)
    return _Found(config, shapes, shards, account(config, shapes, shards.stored))


def _check_dtype(dtype: torch.dtype) -> None:
    if dtype not in _DTYPES:
        raise CheckpointError(f"dtype is {dtype}, must be one of {', '.join(map(str, _DTYPES))}")


def _vision_note(report: LoadReport) -> str:
    if not report.vision_tensors:
        return "no vision tensors"
    return f"text only for now: {report.vision_tensors} vision tensors are recognised and left out"


def _check_finite(name: str, tensor: Tensor) -> None:
    """Refuse nan and infinity. One pass without scratch: least and greatest carry a nan along."""
    least, greatest = torch.aminmax(tensor)
    if not (least.isfinite() and greatest.isfinite()):
        raise CheckpointError(
            f"{name} is not finite in {tensor.dtype} (from {least.item()} to {greatest.item()}); "
            "the weights are damaged or too large for this dtype: download them again, or choose a wider one"
        )


def _stored_tensors(model: DiffusionGemma, dtype: torch.dtype) -> dict[str, Tensor]:
    config, generator = model.config, torch.Generator().manual_seed(0)
    spelling = naming(config, ())
    tensors = {spelling.of(name): tensor.detach() for name, tensor in model.state_dict().items()}
    for name, shape in vision_shapes(config.vision, config.hidden_size).items() if config.vision else ():
        tensors[spelling.vision + name] = 0.02 * torch.randn(shape, generator=generator)
    tensors = {name: tensor.to("cpu", dtype).contiguous() for name, tensor in tensors.items()}
    for name, tensor in tensors.items():
        _check_finite(name, tensor)
    return tensors
