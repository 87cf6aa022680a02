"""Geometry of each layer's attention as config.json states it; config reads the rest."""

from collections.abc import Iterator
from typing import Literal, NamedTuple, get_args

from mezzotint.model.fields import ConfigError, Fields

LayerKind = Literal["sliding_attention", "full_attention"]


class LayerShape(NamedTuple):
    """Geometry of one layer's attention; `shares_kv` means V is the unrotated K projection."""

    kind: LayerKind
    head_dim: int
    kv_heads: int
    shares_kv: bool
    rope_theta: float
    rotary_fraction: float


def parse_layers(text: Fields, *, shared: bool) -> Iterator[LayerShape]:
    """Geometry of every layer in order; `shared` says that full layers take V from their K projection.

    Raises: ConfigError naming the key.
    Source: the released config's `layer_types`, `rope_parameters` and its two styles of sizes, which are
    `per_layer_config` and `global_head_dim` with `num_global_key_value_heads`.
    """
    kinds, ropes = _kinds(text), _ropes(text)
    for kind, (head_dim, kv_heads) in zip(kinds, _heads(text, kinds, shared=shared), strict=True):
        yield LayerShape(
            kind=kind,
            head_dim=head_dim,
            kv_heads=kv_heads,
            shares_kv=shared and kind == "full_attention",
            rope_theta=ropes[kind].theta,
            rotary_fraction=ropes[kind].fraction,
        )


def check_layers(layers: tuple[LayerShape, ...], num_heads: int) -> None:
    """Refuse layers that attention cannot run. Raises: ConfigError naming the layer, the value and the limit."""
    if not layers:
        raise ConfigError("config.json: a model has at least one layer")
    for index, layer in enumerate(layers):
        if layer.kv_heads < 1 or num_heads % layer.kv_heads:
            raise ConfigError(
                f"config.json: layer {index} has {layer.kv_heads} KV heads, which do not divide "
                f"num_attention_heads {num_heads}"
            )
        if layer.head_dim < 2 or layer.head_dim % 2:
            raise ConfigError(f"config.json: layer {index} has head_dim {layer.head_dim}, must be even")
        if not 0 <= layer.rotary_fraction <= 1:
            raise ConfigError(
                f"config.json: layer {index} has partial_rotary_factor {layer.rotary_fraction}, must be at most 1"
            )


def _kinds(text: Fields) -> list[LayerKind]:
    count = text.integer("num_hidden_layers", 30)
    names = text.words("layer_types")
    if names is None:
        names = ["full_attention" if (index + 1) % 6 == 0 else "sliding_attention" for index in range(count)]
    if len(names) != count:
        raise ConfigError(f"config.json: layer_types has {len(names)} entries, num_hidden_layers is {count}")
    known: dict[str, LayerKind] = {kind: kind for kind in get_args(LayerKind)}
    for index, name in enumerate(names):
        if name not in known:
            raise ConfigError(f"config.json: layer_types[{index}] is {name!r}, must be {' or '.join(known)}")
    return [*(known[name] for name in names[:-1]), "full_attention"]  # the reference forces the last one


class _Heads(NamedTuple):
    size: int
    kv_heads: int


def _heads(text: Fields, kinds: list[LayerKind], *, shared: bool) -> list[_Heads]:
    usual = _Heads(text.integer("head_dim", 256), text.integer("num_key_value_heads", 4))
    if "per_layer_config" in text:
        overrides = text.section("per_layer_config") or Fields({}, "")
        heads = [_override(overrides.section(str(index)), usual) for index in range(len(kinds))]
        overrides.close(frozenset())
        return heads
    kv_heads = text.integer("num_global_key_value_heads", usual.kv_heads)
    wide = _Heads(text.integer("global_head_dim", 512), kv_heads if shared else usual.kv_heads)
    return [wide if kind == "full_attention" else usual for kind in kinds]


def _override(own: Fields | None, usual: _Heads) -> _Heads:
    if own is None:
        return usual
    heads = _Heads(own.integer("head_dim", usual.size), own.integer("num_key_value_heads", usual.kv_heads))
    own.close(frozenset())
    return heads


class _Rope(NamedTuple):
    theta: float
    fraction: float


def _ropes(text: Fields) -> dict[LayerKind, _Rope]:
    usual: dict[LayerKind, _Rope] = {"sliding_attention": _Rope(1e4, 1.0), "full_attention": _Rope(1e6, 0.25)}
    stated = text.section("rope_parameters")
    if stated is None:
        return usual
    ropes = {kind: _rope(stated.section(kind), kind, usual[kind]) for kind in usual}
    stated.close(frozenset())
    return ropes


def _rope(stated: Fields | None, kind: LayerKind, usual: _Rope) -> _Rope:
    if stated is None:
        return usual
    if kind == "sliding_attention":
        stated.only(rope_type="default", partial_rotary_factor=1.0)
    else:
        stated.only(rope_type="proportional")
    theta = stated.number("rope_theta", usual.theta, above=0)
    fraction = stated.number("partial_rotary_factor", 1.0)
    stated.close(frozenset())
    return _Rope(theta, fraction)
