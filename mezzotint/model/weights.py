"""From a checkpoint's folder to a network and back; names are matched by names, files opened by shards."""

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from mezzotint.model.config import ModelConfig, read_config
from mezzotint.model.config_json import config_json
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.fields import CheckpointError as CheckpointError
from mezzotint.model.folder import Opened, check_dtype, write_folder
from mezzotint.model.generation_config import GenerationDefaults, generation_json
from mezzotint.model.locate import resolve as resolve
from mezzotint.model.memory import check_memory, estimate, outline
from mezzotint.model.names import account, naming
from mezzotint.model.shards import Shards
from mezzotint.model.vision import vision_shapes

_log = logging.getLogger(__name__)


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
    check_dtype(kept)
    need = estimate(found.config, dtype=kept, context_tokens=found.config.canvas_length, rows=1)
    check_memory(need, device=place, limit_bytes=memory_limit_bytes)
    found.opened.check_head()
    model = outline(found.config)
    model.load_state_dict(found.opened.read_all(kept, place), assign=True)
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
    check_dtype(dtype)
    folder, config = Path(path), model.config
    defaults = generation or GenerationDefaults()
    if defaults.eos_ids is None:
        defaults = replace(defaults, eos_ids=config.eos_ids)
    descriptions = {
        "config.json": config_json(config, dtype),
        "generation_config.json": generation_json(defaults, max_new_tokens=max_new_tokens, pad_id=config.pad_id),
    }
    write_folder(folder, descriptions, _stored_tensors(model, dtype))


class _Found(NamedTuple):
    """An opened checkpoint whose names and shapes are all accounted for."""

    config: ModelConfig
    opened: Opened

    def report(self) -> LoadReport:
        account, stored = self.opened.account, self.opened.shards.stored
        sources, vision = account.sources, account.vision
        text = dict.fromkeys(part for parts in sources.values() for part in parts)
        return LoadReport(
            config=self.config,
            dtype=stored[sources["embed_tokens.weight"][0]].dtype,
            text_tensors=len(text),
            text_bytes=sum(stored[name].bytes for name in text),
            vision_tensors=len(vision),
            vision_bytes=sum(stored[name].bytes for name in vision),
        )


def _open(path: Path | str) -> _Found:
    folder = path if isinstance(path, Path) else resolve(path)
    config = read_config(folder)
    shapes = {name: tuple(tensor.shape) for name, tensor in outline(config).state_dict().items()}
    shards = Shards.open(folder)
    return _Found(config, Opened(shapes, shards, account(config, shapes, shards.stored)))


def _vision_note(report: LoadReport) -> str:
    if not report.vision_tensors:
        return "no vision tensors"
    return f"text only for now: {report.vision_tensors} vision tensors are recognised and left out"


def _stored_tensors(model: DiffusionGemma, dtype: torch.dtype) -> dict[str, Tensor]:
    config, generator = model.config, torch.Generator().manual_seed(0)
    spelling = naming(config, ())
    tensors = {spelling.of(name): tensor.detach() for name, tensor in model.state_dict().items()}
    for name, shape in vision_shapes(config.vision, config.hidden_size).items() if config.vision else ():
        tensors[spelling.vision + name] = 0.02 * torch.randn(shape, generator=generator)
    return {name: tensor.to("cpu", dtype).contiguous() for name, tensor in tensors.items()}
