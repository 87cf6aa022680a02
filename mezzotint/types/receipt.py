"""What one request cost, and the figure that every speed is told by."""

from __future__ import annotations

from dataclasses import dataclass

from mezzotint.types.network import DecoderName, Intervention


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """What one request cost. Times in seconds, the rest in tokens or forwards.

    denoise_steps: executed steps of each block; block_tokens: tokens that each block kept. Under verified a block is
    a round, and one without steps an autoregressive step.
    encodes: forwards of the target model after prefill; where tokens are drawn one by one, with or without drafts, the
    one that yields the first token counts.
    cached_tokens: prompt tokens that a prefix seen before spared. queue_s: before the first admission.
    break_even: the acceptance, of each draft behind accepted ones, from which `verified` is no slower than `ar` would
    have been; it is 1 where drafting never pays, None for other decoders.
    overridden_tokens: where a grammar refused the model's likeliest token. forced_tokens: where it, or a bound on
    thinking, left no choice.
    drafted_tokens, accepted_tokens: drafts that were verified, and those that were kept. draft_forwards: a drafter's.
    interventions: what a gate did about blocks in alarm; its forwards are among denoise_steps and encodes.
    """

    decoder: DecoderName
    sampler: str | None
    seed: int
    prompt_tokens: int
    output_tokens: int
    denoise_steps: tuple[int, ...] = ()
    block_tokens: tuple[int, ...] = ()
    step_budget: int = 0
    canvas_length: int = 0
    entropy_bound: float | None = None
    break_even: float | None = None
    encodes: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    draft_forwards: int = 0
    overridden_tokens: int = 0
    forced_tokens: int = 0
    interventions: tuple[Intervention, ...] = ()
    cached_tokens: int = 0
    queue_s: float = 0.0
    prefill_s: float = 0.0
    generation_s: float = 0.0

    @property
    def forwards(self) -> int:
        """Denoising steps plus encodes after prefill."""
        return sum(self.denoise_steps) + self.encodes

    @property
    def tokens_per_forward(self) -> float:
        """Output tokens a forward; 1 for ar."""
        return tokens_per_forward(self.output_tokens, self.forwards)

    @property
    def budget_hits(self) -> int:
        """Blocks that used their whole step budget."""
        return sum(steps >= self.step_budget for steps in self.denoise_steps)


def tokens_per_forward(output_tokens: int, forwards: int) -> float:
    """Output tokens (end of turn included, nothing after it) ÷ forwards after prefill; 0 where nothing ran.

    Source: contract 1.
    """
    return output_tokens / forwards if forwards else 0.0
