"""The measured side that is transformers' as it comes: eager, dynamic cache, own attention and experts."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

# Any: its own types cost a type checker half a minute and know nothing of `generate`.
transformers: Any = import_module("transformers")

_TEXT_KEYS = (
    "vocab_size hidden_size intermediate_size num_hidden_layers layer_types per_layer_config sliding_window "
    "num_attention_heads num_key_value_heads head_dim num_experts top_k_experts moe_intermediate_size "
    "rope_parameters rms_norm_eps final_logit_softcapping max_position_embeddings pad_token_id bos_token_id"
).split()


class Stop(NamedTuple):
    """When a canvas is done: after `steps`, or earlier where it is stable and confident; without these rules never."""

    max_tokens: int
    steps: int
    stability: int | None = None
    confidence: float | None = None

    @property
    def is_fixed(self) -> bool:
        """Whether every canvas takes all steps."""
        return self.stability is None


class Reference:
    """DiffusionGemmaForBlockDiffusion from a checkpoint, and Gemma4ForCausalLM from its causal half."""

    def __init__(self, folder: Path, dtype: str) -> None:
        """Load the checkpoint in `dtype`, as a user would: no option beyond it."""
        transformers.utils.logging.disable_progress_bar()
        self.dtype = getattr(torch, dtype)
        self.model = transformers.DiffusionGemmaForBlockDiffusion.from_pretrained(folder, dtype=self.dtype)
        self.model.eval()
        self.canvas_length: int = self.model.config.canvas_length
        self.causal = self._causal_half()

    @property
    def choices(self) -> str:
        """What transformers chose by itself."""
        config = self.model.config.text_config
        return f"attention {config._attn_implementation}, experts {config._experts_implementation}"

    def answer(self, prompt: list[int], *, steps: int, seed: int) -> list[int]:
        """Denoise one canvas with exactly `steps` steps: without thresholds nothing stops it earlier."""
        torch.manual_seed(seed)
        found = self.model.generate(
            torch.tensor([prompt]),
            max_new_tokens=self.canvas_length,
            max_denoising_steps=steps,
            stability_threshold=None,
            confidence_threshold=None,
        )
        ids: list[int] = found.sequences[0, len(prompt) :].tolist()
        return ids

    def answer_together(self, prompts: Sequence[list[int]], *, stop: Stop, seed: int) -> list[list[int]]:
        """Denoise one batch, padded on the left. Returns: what each prompt is answered, up to its end."""
        torch.manual_seed(seed)
        found = self.model.generate(
            **self._pad(prompts),
            max_new_tokens=stop.max_tokens,
            max_denoising_steps=stop.steps,
            stability_threshold=stop.stability,
            confidence_threshold=stop.confidence,
        )
        width = max(map(len, prompts))
        return [row[width:] for row in found.sequences.tolist()]

    def continue_together(self, prompts: Sequence[list[int]], *, tokens: int) -> list[list[int]]:
        """Draw exactly `tokens` argmax tokens behind each prompt of a batch, padded on the left."""
        found = self.causal.generate(**self._pad(prompts), max_new_tokens=tokens, do_sample=False)
        return [row[-tokens:] for row in found.tolist()]

    def continue_greedily(self, prompt: list[int], *, tokens: int) -> list[int]:
        """Draw exactly `tokens` argmax tokens with `generate`."""
        ids = torch.tensor([prompt])
        found = self.causal.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens, do_sample=False)
        drawn: list[int] = found[0, len(prompt) :].tolist()
        return drawn

    @torch.no_grad()
    def continue_bare(self, prompt: list[int], *, tokens: int) -> list[int]:
        """The same tokens by the forward alone in a loop of three lines: the least that it can be asked."""
        ids, cache = torch.tensor([prompt]), None
        drawn: list[int] = []
        while len(drawn) < tokens:
            out = self.causal(ids, cache=cache, use_cache=True, logits_to_keep=1)
            ids, cache = out.logits.argmax(-1), out.cache
            drawn.append(int(ids))
        return drawn

    @torch.no_grad()
    def first_logits(self, prompt: list[int], canvas: Tensor) -> Tensor:
        """Logits [C, V] of the first step of canvas [C] behind the prompt."""
        logits: Tensor = self.model(torch.tensor([prompt]), decoder_input_ids=canvas[None]).logits
        return logits[0]

    def _pad(self, prompts: Sequence[list[int]]) -> dict[str, Tensor]:
        width, pad = max(map(len, prompts)), self.model.config.text_config.pad_token_id
        rows = [[pad] * (width - len(prompt)) + list(prompt) for prompt in prompts]
        mask = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
        return {"input_ids": torch.tensor(rows), "attention_mask": torch.tensor(mask)}

    def _causal_half(self) -> Any:
        text = self.model.config.text_config.to_dict()
        config = transformers.Gemma4TextConfig(
            **{key: text[key] for key in _TEXT_KEYS},
            attention_k_eq_v=True,
            enable_moe_block=True,
            hidden_size_per_layer_input=0,
            eos_token_id=None,
        )
        weights = self.model.model.encoder.language_model.state_dict()
        causal = transformers.Gemma4ForCausalLM.from_pretrained(
            None,
            config=config,
            state_dict={f"model.{name}": value for name, value in weights.items()},
            dtype=self.dtype,
        )
        return causal.eval()
