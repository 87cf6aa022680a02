"""The measured side that is ours: the public LLM, asked for a fixed amount of work."""

from pathlib import Path

import torch
from torch import Tensor

from mezzotint.llm import LLM, SamplingParams


class Ours:
    """A checkpoint behind the public interface, ids in and ids out."""

    def __init__(self, folder: Path, dtype: str, *, compiled: bool = False) -> None:
        """Load a checkpoint whose stopping rule never fires; see subjects.fix_steps."""
        self.llm = LLM(str(folder), dtype=dtype, compiled=compiled)
        self.canvas_length = self.llm.limits.canvas_length

    def answer(self, prompt: list[int], *, steps: int, seed: int) -> list[int]:
        """Denoise one canvas with exactly `steps` steps.

        Raises: RuntimeError if the receipt tells of another number of steps: the comparison would be void.
        """
        params = SamplingParams(steps=steps, seed=seed, max_tokens=self.canvas_length)
        completion = self.llm.generate(prompt, params)[0]
        if completion.receipt.denoise_steps != (steps,):
            raise RuntimeError(f"took {completion.receipt.denoise_steps} steps, {steps} were asked for")
        return completion.token_ids

    def continue_greedily(self, prompt: list[int], *, tokens: int) -> list[int]:
        """Draw exactly `tokens` argmax tokens one after another."""
        params = SamplingParams(decoder="ar", temperature=0, max_tokens=tokens, ignore_eos=True)
        return self.llm.generate(prompt, params)[0].token_ids

    @torch.inference_mode()
    def first_logits(self, prompt: list[int], canvas: Tensor) -> Tensor:
        """Logits [C, V] of the first step of canvas [C] behind the prompt."""
        model = self.llm.model
        kv = model.new_kv(1, len(prompt) + len(canvas))
        model.encode(torch.tensor([prompt]), kv)
        return model.logits(model.denoise(canvas[None], kv))[0]
