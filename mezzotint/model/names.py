"""What a checkpoint calls our tensors, and the check that it holds those and no others; reads no values."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mezzotint.model.config import ModelConfig
from mezzotint.model.fields import CheckpointError
from mezzotint.model.shards import Stored
from mezzotint.model.vision import vision_shapes

Shape = tuple[int, ...]

# Gemma 4 under its three published spellings: what stands before text, vision and head names.
_GEMMA4 = (
    ("model.language_model.", "model.", "lm_head.weight"),
    ("language_model.model.", "", "language_model.lm_head.weight"),
    ("model.", "model.", "lm_head.weight"),
)

# An assistant's tensors that stand beside its layers, and its head.
_ASSISTANT = ("pre_projection.", "post_projection.", "masked_embedding.")
_ASSISTANT_HEAD = "lm_head.weight"


class Naming(NamedTuple):
    """How a checkpoint spells names: what precedes text, encoder scalars and vision, and the head in full."""

    text: str
    encoder: str
    vision: str
    head: str

    def of(self, own: str) -> str:
        """The checkpoint's name of our tensor `own`."""
        if own.endswith(".encoder_layer_scalar"):
            return self.encoder + own.removesuffix("encoder_layer_scalar") + "layer_scalar"
        return self.text + own


class Account(NamedTuple):
    """Where every tensor of ours lies: stored names by our name, several where experts lie apart.

    vision: names of the vision tensors, which are not loaded. head: name of a stored copy of the embedding.
    """

    sources: dict[str, tuple[str, ...]]
    vision: tuple[str, ...]
    head: str | None


def naming(config: ModelConfig, stored: Iterable[str]) -> Naming:
    """The spelling that a checkpoint with these tensor names uses."""
    if config.family == "diffusion_gemma":
        return Naming("model.decoder.", "model.encoder.language_model.", "model.encoder.", "lm_head.weight")
    names = set(stored)
    for text, vision, head in _GEMMA4:
        if f"{text}embed_tokens.weight" in names:
            return Naming(text, text, vision, head)
    text, vision, head = _GEMMA4[0]
    return Naming(text, text, vision, head)


def account(config: ModelConfig, shapes: Mapping[str, Shape], stored: Mapping[str, Stored]) -> Account:
    """Match our tensors (`shapes` by our names) with the stored ones, in both directions.

    Raises: CheckpointError for a tensor that is missing, unexpected or of another shape.
    """
    spelling = naming(config, stored)
    sources = {own: _parts(own, spelling.of(own), shape, stored) for own, shape in shapes.items()}
    expected = {part: _part_shape(shapes[own], len(parts)) for own, parts in sources.items() for part in parts}
    vision = vision_shapes(config.vision, config.hidden_size) if config.vision else {}
    seen = {spelling.vision + name: shape for name, shape in vision.items()}
    if not seen.keys() & stored.keys():
        seen = {}  # a text-only copy holds none of them
    heads = {spelling.head: shapes["embed_tokens.weight"]} if spelling.head in stored else {}
    _match_names({**expected, **seen, **heads}.keys(), stored)
    _match_shapes({**expected, **seen, **heads}, stored)
    return Account(sources, tuple(seen), next(iter(heads), None))


def assistant_name(own: str) -> str:
    """The checkpoint's name of an assistant's tensor `own`."""
    return own if own.startswith(_ASSISTANT) else f"model.{own}"


def account_assistant(shapes: Mapping[str, Shape], stored: Mapping[str, Stored]) -> Account:
    """Match an assistant's tensors (`shapes` by our names) with the stored ones; raises as `account` does."""
    names = {own: assistant_name(own) for own in shapes}
    heads = {_ASSISTANT_HEAD: shapes["embed_tokens.weight"]} if _ASSISTANT_HEAD in stored else {}
    expected = {names[own]: shape for own, shape in shapes.items()} | heads
    _match_names(expected.keys(), stored)
    _match_shapes(expected, stored)
    return Account({own: (name,) for own, name in names.items()}, (), next(iter(heads), None))


def _parts(own: str, name: str, shape: Shape, stored: Mapping[str, Stored]) -> tuple[str, ...]:
    """Stored names whose stack is our tensor: itself, or one or two projections an expert in order."""
    experts, _, projection = name.rpartition(".")
    if ".experts." not in own or name in stored or f"{experts}.0.down_proj.weight" not in stored:
        return (name,)
    names = ("gate_proj", "up_proj") if projection == "gate_up_proj" else ("down_proj",)
    return tuple(f"{experts}.{expert}.{each}.weight" for expert in range(shape[0]) for each in names)


def _part_shape(shape: Shape, parts: int) -> Shape:
    return shape if parts == 1 else (shape[0] * shape[1] // parts, shape[2])


def _match_names(expected: Iterable[str], stored: Mapping[str, Stored]) -> None:
    wanted = set(expected)
    missing, strays = sorted(wanted - stored.keys()), sorted(stored.keys() - wanted)
    lacks = f"lacks {missing[0]} ({len(missing)} such tensors)" if missing else ""
    holds = f"holds {strays[0]}, which config.json has no place for ({len(strays)} such tensors)" if strays else ""
    if missing or strays:
        folder = next(iter(stored.values())).file.parent if stored else "the checkpoint"
        raise CheckpointError(
            f"{folder} {' and '.join(filter(None, (lacks, holds)))}; "
            "config.json and weights must be of one checkpoint: download both again"
        )


def _match_shapes(expected: Mapping[str, Shape], stored: Mapping[str, Stored]) -> None:
    for name, shape in expected.items():
        if stored[name].shape != shape:
            raise CheckpointError(
                f"{stored[name].file}: {name} has shape {list(stored[name].shape)}, config.json asks for "
                f"{list(shape)}; config.json and weights must be of one checkpoint: download both again"
            )
