"""What the soak asks of a service, all of it seeded: prompts that share beginnings, options, and readers that leave."""

import random
from dataclasses import dataclass
from typing import Any, get_args

from mezzotint.decoding.canvas import Pins, pin_positions
from mezzotint.decoding.generate import Limits
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.sampler import SamplerName
from mezzotint.engine.request import Request
from mezzotint.types import DecoderName

DECODERS: tuple[DecoderName, ...] = ("diffusion", "ar", "verified", "mtp")
_SAMPLERS: tuple[SamplerName, ...] = get_args(SamplerName)
_STEMS, _CHATS = 6, 24  # beginnings that prompts share, and chats that may go on


@dataclass(frozen=True, kw_only=True)
class Visit:
    """A request, and after how many events its reader leaves, if it does."""

    request: Request
    leaves_after: int | None


class Traffic:
    """An endless, seeded stream of visits."""

    def __init__(self, limits: Limits, *, seed: int) -> None:
        """limits: of the model; prompts take up to a third of its context."""
        self._limits, self._random = limits, random.Random(seed)
        self._longest = limits.max_positions // 3
        self._stems = [self._tokens(self._random.randint(1, self._longest // 2)) for _ in range(_STEMS)]
        self._chats: list[tuple[int, ...]] = []
        self._count = 0

    def next(self) -> Visit:
        """The next visit."""
        draw, params = self._random, self._params()
        self._count += 1
        request = Request(
            id=f"request {self._count}",
            prompt=self._prompt(),
            params=params,
            pins=self._pins(params),
            priority=draw.choice([0, 0, 0, 1, -1]),
            deadline_s=draw.uniform(0.05, 5.0) if draw.random() < 0.08 else None,
        )
        return Visit(request=request, leaves_after=draw.randint(0, 12) if draw.random() < 0.15 else None)

    def remember(self, request: Request, answer: list[int]) -> None:
        """Let a chat go on that has been answered."""
        chat = (*request.prompt, *answer)
        if len(chat) < self._longest:
            self._chats = [*self._chats[1 - _CHATS :], chat]

    def _tokens(self, count: int) -> tuple[int, ...]:
        return tuple(self._random.randrange(self._limits.vocab_size) for _ in range(count))

    def _prompt(self) -> tuple[int, ...]:
        begins = self._random.choice([(), *self._stems, *self._chats])
        return begins + self._tokens(self._random.randint(1, self._longest - len(begins)))

    def _params(self) -> SamplingParams:
        draw = self._random
        most = self._limits.canvas_length * 4
        options: dict[str, Any] = {
            "decoder": draw.choice(DECODERS),
            "max_tokens": draw.randint(1, most),
            "seed": draw.randrange(2**53),
            "ignore_eos": draw.random() < 0.3,
            "temperature": draw.choice([0.0, 0.7, 1.0, 1.3]),
        }
        if options["decoder"] == "diffusion":
            options |= {"sampler": draw.choice([None, *_SAMPLERS]), "steps": draw.randint(1, 8)}
            if options["sampler"] == "refine":
                options["temperature"] = 1.0
        elif draw.random() < 0.5:
            options |= {"top_k": draw.choice([None, 40]), "top_p": draw.choice([1.0, 0.9])}
        if options["decoder"] in ("verified", "mtp") and draw.random() < 0.5:
            options["draft_tokens"] = draw.randint(1, 2 * self._limits.canvas_length)
        if options["decoder"] == "verified" and draw.random() < 0.5:
            options["draft_steps"] = draw.randint(1, 3)
        return SamplingParams(**options)

    def _pins(self, params: SamplingParams) -> dict[int, Pins]:
        width = self._limits.canvas_length
        if params.decoder != "diffusion" or self._random.random() < 0.7:
            return {}
        block = self._random.randrange(-(-params.max_tokens // width))
        return {block: pin_positions({self._random.randrange(width): self._random.randrange(3, 100)}, width)}
