"""A model of two layers in float64, requests to it, the plain loop of each, and an engine run to its end.

No test lives here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple
from unittest.mock import patch

import torch

from mezzotint.decoding.canvas import Pins, pin_positions
from mezzotint.decoding.generate import Limits, generate_blocks, generate_tokens
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.policy import SMALL_MODEL
from mezzotint.decoding.program import Block, Draft, Event, Finished, Prefilled
from mezzotint.decoding.receipt import write_receipt
from mezzotint.decoding.sampler import SAMPLERS
from mezzotint.decoding.verify import generate_guessed, generate_verified
from mezzotint.engine.config import EngineConfig
from mezzotint.engine.costs import CostBook
from mezzotint.engine.engine import Engine
from mezzotint.engine.memory import Memory
from mezzotint.engine.request import Done, Failed, Outcome, Request, Told
from mezzotint.model.assistant import Assistant, AssistantNetwork
from mezzotint.model.assistant_config import AssistantConfig
from mezzotint.model.config import LayerShape, ModelConfig
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.train.lab import initialise
from mezzotint.types import Channel, ContextPairs, Guess, Receipt

V, CANVAS, CONTEXT, END = 40, 8, 96, 1
OPEN, CLOSE = 0, 5  # of thoughts, which a greedy request begins often
LIMITS = Limits(vocab_size=V, canvas_length=CANVAS, max_positions=CONTEXT, end_ids=(END,), channel=Channel(OPEN, CLOSE))
DEFAULTS = replace(SAMPLERS["report"], budget=4, entropy_bound=4.0)
NOBODY: Mapping[int, Pins] = {}
PINS = {0: pin_positions({0: 11, 5: 12}, CANVAS), 1: pin_positions({7: 13}, CANVAS)}

_SLIDING = LayerShape("sliding_attention", 8, 2, shares_kv=False, rope_theta=1e4, rotary_fraction=1.0)
_FULL = LayerShape("full_attention", 8, 1, shares_kv=True, rope_theta=1e5, rotary_fraction=0.5)
SHAPE = ModelConfig(
    family="diffusion_gemma",
    vocab_size=V,
    hidden_size=16,
    intermediate_size=16,
    num_heads=2,
    layers=(_SLIDING, _FULL),
    sliding_window=6,
    num_experts=2,
    top_k_experts=1,
    moe_intermediate_size=8,
    rms_norm_eps=1e-6,
    softcap=30.0,
    max_positions=CONTEXT,
    canvas_length=CANVAS,
    bos_id=2,
    pad_id=0,
    eos_ids=(END,),
    vision=None,
)

# Every way to ask: the samplers, their temperatures and budgets, what ends an answer and what is given of it.
DIFFUSION = SamplingParams(max_tokens=20, seed=3)
AR = SamplingParams(decoder="ar", max_tokens=12, seed=3)
ASKED: dict[str, SamplingParams] = {
    "default": DIFFUSION,
    "endless": replace(DIFFUSION, ignore_eos=True, max_tokens=30),
    "short": replace(DIFFUSION, max_tokens=3, steps=1),
    "report": replace(DIFFUSION, sampler="report", steps=3, entropy_bound=30.0),
    "hf, warm": replace(DIFFUSION, sampler="hf", temperature=1.5, steps=5),
    "jax, cold": replace(DIFFUSION, sampler="jax", temperature=0.0),
    "refine": replace(DIFFUSION, sampler="refine", steps=3, editing_threshold=0.5),
    "ddim": replace(DIFFUSION, sampler="ddim", steps=3),
    "ar": AR,
    "ar, endless": replace(AR, ignore_eos=True, max_tokens=25),
    "ar, narrowed": replace(AR, temperature=0.7, top_k=20, top_p=0.9, min_p=0.01),
    "ar, greedy": replace(AR, temperature=0.0, ignore_eos=True),
    "verified": replace(AR, decoder="verified", max_tokens=20),
    "verified, fixed": replace(AR, decoder="verified", ignore_eos=True, max_tokens=25, draft_tokens=5, draft_steps=2),
    "verified, greedy": replace(AR, decoder="verified", temperature=0.0, ignore_eos=True, max_tokens=30),
    "mtp": replace(AR, decoder="mtp", ignore_eos=True, max_tokens=20),
    "mtp, narrow": replace(AR, decoder="mtp", temperature=0.0, ignore_eos=True, draft_tokens=2),
    "mtp, greedy": replace(AR, decoder="mtp", temperature=0.0, ignore_eos=True, max_tokens=30),
    "mtp, wide": replace(AR, decoder="mtp", draft_tokens=18, max_tokens=30),
    "thoughtful": replace(DIFFUSION, ignore_eos=True, max_tokens=25, thinking_budget=3, steps=2),
    "ar, thoughtful": replace(AR, temperature=0.0, ignore_eos=True, max_tokens=25, thinking_budget=2),
    "verified, thoughtful": replace(AR, decoder="verified", temperature=0.0, thinking_budget=0, answer_reserve=3),
    "mtp, thoughtful": replace(AR, decoder="mtp", temperature=0.0, ignore_eos=True, max_tokens=20, answer_reserve=15),
    "verified, with tails": replace(AR, decoder="verified", draft_tokens=7, draft_steps=1, draft_tail="tail+soft"),
}

# What the engine must equal, by decoder.
PLAIN: dict[str, Callable[..., Iterator[Event]]] = {
    "diffusion": lambda network, request, seed: generate_blocks(
        network,
        list(request.prompt),
        request.params,
        seed,
        LIMITS,
        defaults=DEFAULTS,
        pins=request.pins,
        stopper=request.stopper,
    ),
    "ar": lambda network, request, seed: generate_tokens(
        network, list(request.prompt), request.params, seed, LIMITS, stopper=request.stopper
    ),
    "verified": lambda network, request, seed: generate_verified(
        network, list(request.prompt), request.params, seed, LIMITS, defaults=DEFAULTS, stopper=request.stopper
    ),
    "mtp": lambda network, request, seed: generate_guessed(
        network,
        drafter(network.config.sliding_window),
        list(request.prompt),
        request.params,
        seed,
        LIMITS,
        stopper=request.stopper,
    ),
}


@cache
def model(window: int = 6) -> DiffusionGemma:
    """Random weights that differ everywhere, norms too."""
    network = initialise(DiffusionGemma(replace(SHAPE, sliding_window=window)).double(), 0)
    generator = torch.Generator().manual_seed(0)
    for name, tensor in network.state_dict().items():
        if tensor.ndim == 1 or "scalar" in name:
            tensor.mul_(1 + 0.3 * torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype))
    return network


class Leaning(NamedTuple):
    """A drafter of random weights that leans to token 0, which a greedy request is told often."""

    assistant: Assistant

    @property
    def reach(self) -> int:
        return self.assistant.reach

    def guess(self, need: Guess, kv: ContextPairs) -> list[int]:
        return self.guess_all([need], [kv])[0]

    def guess_all(self, needs: Sequence[Guess], contexts: Sequence[ContextPairs]) -> list[list[int]]:
        said = self.assistant.guess_all(needs, contexts)
        return [[token if token % 3 == 1 else 0 for token in row] for row in said]


@cache
def drafter(window: int = 6) -> Leaning:
    """A drafter of the model with that window."""
    config = AssistantConfig(
        target_width=16,
        vocab_size=V,
        hidden_size=16,
        intermediate_size=8,
        num_heads=2,
        layers=(_SLIDING, _FULL),
        sliding_window=window,
        rms_norm_eps=1e-6,
        max_positions=CONTEXT,
    )
    network, generator = AssistantNetwork(config).double(), torch.Generator().manual_seed(1)
    for tensor in network.state_dict().values():
        tensor.copy_(torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype))
    return Leaning(Assistant(network, model(window)))


def tokens_of(seed: int, count: int) -> tuple[int, ...]:
    """Some token ids, none of them an end."""
    return tuple(torch.randint(2, V, (count,), generator=torch.Generator().manual_seed(seed)).tolist())


@dataclass(frozen=True)
class Runs:
    """Ends an answer where so many odd tokens follow one another, whatever came before. A `Stopper` of the tests.

    seen: odd tokens in a row so far, in a list of one.
    """

    length: int
    seen: list[int] = field(default_factory=lambda: [0], compare=False)

    def count_kept(self, ids: Sequence[int]) -> int | None:
        for index, id in enumerate(ids):
            assert self.seen[0] < self.length, "nothing follows the end"
            self.seen[0] = (self.seen[0] + 1) * (id % 2)
            if self.seen[0] == self.length:
                return index + 1
        return None

    def restart(self) -> "Runs":
        return Runs(self.length)


def request(id: str, prompt: int | tuple[int, ...] = 10, params: SamplingParams = DIFFUSION, **given: Any) -> Request:
    """A request; a prompt may be given as its length."""
    ids = tokens_of(prompt, prompt) if isinstance(prompt, int) else prompt
    return Request(id=id, prompt=ids, params=params, **given)


class Answer(NamedTuple):
    """What a request told, and its receipt, without what alone may differ: times, cached tokens, last bits of doubt."""

    events: tuple[Event, ...]
    receipt: Receipt

    @property
    def tokens(self) -> list[int]:
        return [token for event in self.events if isinstance(event, Block) for token in event.tokens]


def alone(asked: Request, window: int = 6) -> Answer:
    """The answer of the plain loop."""
    assert isinstance(asked.stopper, Runs | None), "known by its value"
    return _alone(window, asked.prompt, asked.params, asked.pins is PINS, asked.stopper)


@cache
def _alone(window: int, prompt: tuple[int, ...], params: SamplingParams, pinned: bool, stopper: Runs | None) -> Answer:
    assert params.seed is not None
    asked = Request(id="alone", prompt=prompt, params=params, pins=PINS if pinned else NOBODY, stopper=stopper)
    with torch.inference_mode():
        events = tuple(PLAIN[params.decoder](model(window), asked, params.seed))
    blocks = [event for event in events if isinstance(event, Block)]
    finished = events[-1]
    assert isinstance(finished, Finished)
    sampler = params.resolve_sampler(DEFAULTS) if params.decoder in ("diffusion", "verified") else None
    costs = SMALL_MODEL if params.decoder == "verified" else None
    receipt = write_receipt(len(prompt), blocks, finished, params, sampler, params.seed, CANVAS, costs)
    return Answer(settled(events), receipt)


def settled(events: Iterable[Event]) -> tuple[Event, ...]:
    """Events without the doubts of drafts, which another batch rounds otherwise."""
    return tuple(event._replace(entropy=None) if isinstance(event, Draft) else event for event in events)


def engine(
    network: DiffusionGemma | None = None,
    *,
    pages: tuple[int, int] | None = None,
    clock: Callable[[], float] = lambda: 0.0,
    guesses: bool = False,
    hasty: bool = False,
    **config: Any,
) -> Engine:
    """An engine that weighs drafts as the plain loop does.

    pages: of the full and the sliding group, instead of plenty. guesses: whether it has a drafter. hasty: whether it
    lets a row in where full layers could hold it now, whatever others will need, so that rows often have to yield.
    """
    given = EngineConfig(**{"memory_bytes": 2**20, "page_size": 4, **config})
    network = network or model()
    divide = "mezzotint.engine.engine.divide_memory"
    with patch(divide, return_value=Memory(*pages)) if pages else nullcontext():
        guessing = drafter(network.config.sliding_window) if guesses else None
        costs = CostBook(network, LIMITS, SMALL_MODEL)
        made = Engine(network, LIMITS, given, defaults=DEFAULTS, drafter=guessing, costs=costs, clock=clock)
    if hasty:
        soon = made.room._soon
        made.room._need = lambda row, match, claims: Memory(soon(row).full, 0)  # type: ignore[method-assign]
    return made


def guess(asked: Iterable[Request]) -> bool:
    """Whether a drafter is needed."""
    return any(each.params.decoder == "mtp" for each in asked)


class Run:
    """An engine and all that it told so far, checked after every step."""

    def __init__(self, made: Engine, *, limit: int = 2000) -> None:
        self.engine, self.limit = made, limit
        self.steps = 0
        self.told: dict[str, list[Event]] = {}
        self.done: dict[str, Receipt] = {}
        self.failed: dict[str, Failed] = {}

    def submit(self, *asked: Request) -> None:
        for each in asked:
            self.engine.submit(each)
            self.told[each.id] = []

    def step(self) -> list[Outcome]:
        outcomes = self.engine.step()
        self.steps += 1
        self.take(outcomes)
        self.engine.check_integrity()
        return outcomes

    def cancel(self, id: str) -> None:
        self.take(self.engine.cancel(id))
        self.engine.check_integrity()

    def take(self, outcomes: Iterable[Outcome]) -> None:
        for outcome in outcomes:
            assert outcome.id not in self.done, "nothing follows a receipt"
            assert outcome.id not in self.failed, "nothing follows a failure"
            match outcome:
                case Told(id, event):
                    self.told[id] += settled([event])
                case Done(id, receipt):
                    self.done[id] = receipt
                case Failed(id):
                    self.failed[id] = outcome

    def finish(self) -> "Run":
        """Step until nothing is left."""
        while not self.engine.is_idle:
            assert self.steps < self.limit, "the engine makes no progress"
            self.step()
        return self

    def answer(self, id: str) -> Answer:
        assert id in self.done, self.failed.get(id)
        receipt = replace(self.done[id], cached_tokens=0, queue_s=0.0, prefill_s=0.0, generation_s=0.0)
        return Answer(tuple(self.told[id]), receipt)


def phase(events: Iterable[Event]) -> str:
    """What a request does next, from what it told."""
    last = [event for event in events if not isinstance(event, Finished)][-1:]
    names = {Prefilled: "denoising", Draft: "denoising", Block: "between blocks"}
    return names[type(last[0])] if last else "prefilling"
