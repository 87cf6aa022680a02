"""Names and shapes of a checkpoint's vision tensors, to tell them from strays; nothing here runs an image."""

from dataclasses import dataclass

from mezzotint.model.fields import Fields

# Keys that decide no name and no shape; they will matter once images are run.
_INERT = frozenset(
    "model_type architectures dtype torch_dtype hidden_activation rms_norm_eps max_position_embeddings "
    "attention_bias attention_dropout rope_parameters pooling_kernel_size initializer_range "
    "default_output_length "
    "transformers_version _name_or_path chunk_size_feed_forward id2label label2id is_encoder_decoder "
    "output_attentions output_hidden_states problem_type return_dict".split()
)


@dataclass(frozen=True, kw_only=True)
class VisionConfig:
    """The sizes that decide names and shapes of a checkpoint's vision tensors."""

    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    kv_heads: int
    head_dim: int
    patch_size: int
    position_embedding_size: int
    standardize: bool
    clipped_linears: bool


def parse_vision(fields: Fields) -> VisionConfig:
    """Read a `vision_config` object. Raises: ConfigError for a key that is unknown or of the wrong kind."""
    heads = fields.integer("num_attention_heads", 12)
    config = VisionConfig(
        hidden_size=fields.integer("hidden_size", 768),
        intermediate_size=fields.integer("intermediate_size", 3072),
        num_layers=fields.integer("num_hidden_layers", 16),
        num_heads=heads,
        kv_heads=fields.integer("num_key_value_heads", 12),
        head_dim=fields.integer("head_dim", 64),
        patch_size=fields.integer("patch_size", 16),
        position_embedding_size=fields.integer("position_embedding_size", 10_240),
        standardize=fields.flag("standardize", default=False),
        clipped_linears=fields.flag("use_clipped_linears", default=False),
    )
    fields.close(_INERT)
    return config


def vision_shapes(config: VisionConfig, width: int) -> dict[str, tuple[int, ...]]:
    """Shape of every vision tensor by its name below the encoder; `width` is the text model's D.

    Source: the released checkpoint's layout; a clipped linear carries its four bounds as scalars.
    """
    inner = config.hidden_size
    shapes: dict[str, tuple[int, ...]] = {
        "embed_vision.embedding_projection.weight": (width, inner),
        "vision_tower.patch_embedder.input_proj.weight": (inner, 3 * config.patch_size**2),
        "vision_tower.patch_embedder.position_embedding_table": (2, config.position_embedding_size, inner),
    }
    if config.standardize:
        shapes |= {"vision_tower.std_bias": (inner,), "vision_tower.std_scale": (inner,)}
    for index in range(config.num_layers):
        layer = _layer_shapes(config)
        shapes |= {f"vision_tower.encoder.layers.{index}.{name}": shape for name, shape in layer.items()}
    return shapes


def _layer_shapes(config: VisionConfig) -> dict[str, tuple[int, ...]]:
    width, inner = config.hidden_size, config.intermediate_size
    queries, keys = config.num_heads * config.head_dim, config.kv_heads * config.head_dim
    linears = {
        "self_attn.q_proj": (queries, width),
        "self_attn.k_proj": (keys, width),
        "self_attn.v_proj": (keys, width),
        "self_attn.o_proj": (width, queries),
        "mlp.gate_proj": (inner, width),
        "mlp.up_proj": (inner, width),
        "mlp.down_proj": (width, inner),
    }
    shapes: dict[str, tuple[int, ...]] = {f"{name}.linear.weight": shape for name, shape in linears.items()}
    if config.clipped_linears:
        bounds = ("input_min", "input_max", "output_min", "output_max")
        shapes |= {f"{name}.{bound}": () for name in linears for bound in bounds}
    shapes |= {f"self_attn.{name}.weight": (config.head_dim,) for name in ("q_norm", "k_norm")}
    norms = "input_layernorm post_attention_layernorm pre_feedforward_layernorm post_feedforward_layernorm"
    return shapes | {f"{name}.weight": (width,) for name in norms.split()}
