"""Tiny assistants written by transformers and read by both sides, each beside its target; no test lives here."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mezzotint.model.assistant import Assistant
from mezzotint.model.assistant_weights import load_assistant
from tests.contract.reference import CAUSAL_SHAPES, VOCABULARY, Shape, Twin, causal_twin, write_checkpoint

DRAFT = 5


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """A target's shape and an assistant's. centroids 0: a dense head; top: how many of them are scored."""

    target: Shape
    assistant: Shape
    centroids: int = 0
    top: int = 0


def _drafter(target: Shape, **changes: Any) -> Shape:
    """An assistant's shape for a target: narrower, dense, its layers' keys and values those of the target."""
    names = ("kv_heads", "head_dim", "global_kv_heads", "global_head_dim", "shares_kv", "window")
    kept = {name: getattr(target, name) for name in names}
    return Shape(**{**kept, "experts": 0, "width": 32, "layers": "sssf", **changes})


_BIG, _SMALL = CAUSAL_SHAPES["experts, V is K"], CAUSAL_SHAPES["dense, own V"]

PAIRINGS = {
    "26B: dense head, V is K": Pairing(target=_BIG, assistant=_drafter(_BIG)),
    "26B, older config, twice the heads": Pairing(target=_BIG, assistant=_drafter(_BIG, style="older", heads=8)),
    "E2B: ordered head, own V": Pairing(target=_SMALL, assistant=_drafter(_SMALL), centroids=16, top=4),
    "every centroid scored": Pairing(target=_SMALL, assistant=_drafter(_SMALL, layers="sf"), centroids=8, top=8),
    "window shorter than the target's": Pairing(target=_BIG, assistant=_drafter(_BIG, window=7, layers="sfsf")),
}


class Drafting(NamedTuple):
    """A target as both sides read it, the assistant as transformers reads it (`oracle`), and as we do (`ours`)."""

    target: Twin
    oracle: Any
    ours: Assistant
    directory: Path


def pair(pairing: Pairing, folder: Path) -> Drafting:
    """Both checkpoints of a pairing, written and read."""
    from transformers import Gemma4AssistantForCausalLM

    target, directory = causal_twin(pairing.target, folder / "target"), folder / "assistant"
    network: Any = Gemma4AssistantForCausalLM(assistant_config(pairing))
    if pairing.centroids:
        order = torch.randperm(VOCABULARY, generator=torch.Generator().manual_seed(1))
        network.masked_embedding.token_ordering.copy_(order)
    network.generation_config.num_assistant_tokens = DRAFT
    write_checkpoint(network, pairing.assistant, directory)
    load: Any = Gemma4AssistantForCausalLM.from_pretrained
    oracle = load(directory, dtype=torch.float32).eval().requires_grad_(requires_grad=False)
    return Drafting(target, oracle, load_assistant(directory, target.model), directory)


def assistant_config(pairing: Pairing) -> Any:
    """The reference's config of a pairing's assistant."""
    from transformers import Gemma4AssistantConfig, Gemma4TextConfig

    shape = pairing.assistant
    text = Gemma4TextConfig(
        **shape.text_config,
        attention_k_eq_v=shape.shares_kv,
        num_kv_shared_layers=len(shape.layers),
        hidden_size_per_layer_input=0,
        vocab_size_per_layer_input=0,
    )
    return Gemma4AssistantConfig(
        text_config=text,
        backbone_hidden_size=pairing.target.width,
        use_ordered_embeddings=pairing.centroids > 0,
        num_centroids=pairing.centroids or 2048,
        centroid_intermediate_top_k=pairing.top or 32,
    )


class Drafted(NamedTuple):
    """A draft [k] and the logits [k, V] that it was read from."""

    tokens: list[int]
    logits: Tensor


def reference_draft(drafting: Drafting, prompt: Tensor, token: int) -> Drafted:
    """What transformers' own generator of candidates drafts behind `token`, which follows prompt [1, T]."""
    from transformers import GenerationConfig
    from transformers.generation.candidate_generator import SinglePositionMultiTokenCandidateGenerator

    oracle = drafting.target.oracle
    outputs = oracle(prompt, output_hidden_states=True, return_shared_kv_states=True)
    generator = SinglePositionMultiTokenCandidateGenerator(
        drafting.oracle, oracle.get_input_embeddings(), GenerationConfig(max_length=10_000)
    )
    ids = torch.cat((prompt, torch.tensor([[token]])), 1)
    found, logits = generator.get_candidates(
        ids,
        model_kwargs={"attention_mask": torch.ones_like(ids)},
        model_outputs=outputs,
        is_first_iteration=False,
        n_last_matches=0,
    )
    assert logits is not None
    return Drafted(found[0, ids.shape[1] :].tolist(), logits[0])
