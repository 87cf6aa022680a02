"""An answer that grows by whole blocks: what is settled, and what would end it; trying changes nothing."""

from collections.abc import Sequence
from copy import copy
from math import isinf

from mezzotint.decoding.limits import Limits
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.stop import Cut, cut_answer
from mezzotint.decoding.thoughts import Thoughts, bound_thoughts
from mezzotint.types import DecoderName, Stopper


class Growing:
    """The tokens that have passed, by block, and what ends them; what is tried changes nothing here."""

    def __init__(self, prompt: list[int], params: SamplingParams, limits: Limits, stopper: Stopper | None) -> None:
        self.prompt, self.params, self.limits = prompt, params, limits
        self.ends = () if params.ignore_eos else tuple(limits.end_ids)
        self.tokens: list[int] = []
        self.borders: list[int] = []
        self.thoughts = bound_thoughts(prompt, params, limits)
        self._stopper = stopper

    @property
    def at(self) -> int:
        """Where the next block begins in the context."""
        return len(self.prompt) + len(self.tokens)

    @property
    def room(self) -> int:
        """Tokens that may yet come."""
        return self.params.max_tokens - len(self.tokens)

    def cut(self, tokens: Sequence[int]) -> Cut:
        """What of tokens would stand, and whether the answer would end with them."""
        return self._cut(tokens, copy(self.thoughts))

    def keep(self, tokens: Sequence[int]) -> None:
        """Make tokens that were cut the next block."""
        self._cut(tokens, self.thoughts)
        self.borders.append(len(self.tokens))
        self.tokens += tokens

    def is_whole(self, cut: Cut) -> bool:
        """Whether the answer would end as the model means it to."""
        return cut.reason == "stop" and cut.tokens[-1] in self.ends

    def _cut(self, tokens: Sequence[int], thoughts: Thoughts | None) -> Cut:
        stopper = None if self._stopper is None else self._stopper.restart()
        if stopper is not None:
            stopper.count_kept(self.tokens)
        return cut_answer(tokens, self.room, self.ends, stopper, thoughts)

    def ask(self, decoder: DecoderName) -> SamplingParams:
        """The same request of a causal decoder that goes on from here, at its likeliest."""
        params, left = self.params, None if self.thoughts is None else self.thoughts.left
        return SamplingParams(
            decoder=decoder,
            temperature=0.0,
            max_tokens=self.room,
            min_tokens=max(0, params.min_tokens - len(self.tokens)),
            thinking_budget=None if left is None or isinf(left) else max(0, int(left)),
            answer_reserve=min(params.answer_reserve, self.room - 1),
            logit_bias=params.logit_bias,
            logprobs=params.logprobs,
            ignore_eos=params.ignore_eos,
        )
