"""Where the time of our steps goes, by timing each torch call of the real loops; bound has what must be."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from statistics import median
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from mezzotint.decoding.canvas import no_pins
from mezzotint.decoding.generate import Limits, generate_tokens, settle_canvas
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.random import SeededCanvas
from mezzotint.decoding.sampler import Sampler
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.fused import FusedLayer
from mezzotint.model.product import Product
from mezzotint.types import Cache, KeyValues, Reading

_PRODUCTS = (F.linear, torch.mm, Tensor.mm, torch.matmul, Tensor.matmul, Tensor.__matmul__)


class Split(NamedTuple):
    """Seconds of a step: median and minimum of runs that are not watched, median of each part when watched.

    "rest" is what the parts leave of the former: Python between torch's calls, negative where watching
    adds more to the parts than that. There are no parts of a model that is compiled: they are no calls.
    """

    median_s: float
    minimum_s: float
    parts_s: dict[str, float]


class Stopwatch(TorchFunctionMode):
    """Adds up seconds of torch calls by part; `region` says which code is running."""

    def __init__(self) -> None:
        super().__init__()
        self.region = "layers"
        self.seconds: dict[str, float] = defaultdict(float)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        started = time.perf_counter()
        result = func(*args, **(kwargs or {}))
        self.seconds[_part(self.region, func)] += time.perf_counter() - started
        return result

    def lap(self) -> dict[str, float]:
        """Seconds by part since the last lap."""
        passed, self.seconds = dict(self.seconds), defaultdict(float)
        return passed

    @contextmanager
    def within(self, region: str) -> Iterator[None]:
        """Time what happens inside as part of `region`."""
        outer, self.region = self.region, region
        yield
        self.region = outer

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Time every call of fused layers: packed products as projections, routing and mixing as experts."""
        with ExitStack() as patches:
            patches.enter_context(patch.object(Product, "__call__", self._timed(Product.__call__)))
            for name in ("_mix_all", "_mix_sorted"):
                patches.enter_context(
                    patch.object(FusedLayer, name, self._inside("experts", getattr(FusedLayer, name)))
                )
            patches.enter_context(self)
            yield

    def _timed(self, product: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            # A packed product is no torch function, an unpacked one is: count either once.
            outer, self.region = self.region, "inside a product"
            started = time.perf_counter()
            result = product(*args)
            passed, self.region = time.perf_counter() - started, outer
            self.seconds.pop("inside a product", None)
            self.seconds["projections" if outer == "layers" else outer] += passed
            return result

        return call

    def _inside(self, region: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            with self.within(region):
                return method(*args)

        return call


def _part(region: str, func: Callable[..., Any]) -> str:
    if region == "layers" and func is F.scaled_dot_product_attention:
        return "attention"
    if region == "layers":
        return "projections" if func in _PRODUCTS else "element-wise"
    if region == "vocabulary":
        return "vocabulary products" if func in _PRODUCTS else "vocabulary element-wise"
    return region


class _Marked:
    """The network as the loops see it; tells a stopwatch which half of it runs, or else the sampler."""

    def __init__(self, model: DiffusionGemma, watch: Stopwatch) -> None:
        self.model, self.watch = model, watch

    def new_kv(self, rows: int, capacity: int) -> Cache:
        return self.model.new_kv(rows, capacity)

    def embed(self, ids: Tensor) -> Tensor:
        return self.model.embed(ids)

    def encode(self, ids: Tensor, kv: KeyValues) -> Tensor:
        with self.watch.within("layers"):
            return self.model.encode(ids, kv)

    def denoise(self, canvas: Tensor, kv: KeyValues, soft: Tensor | None, *, window: int | None) -> Tensor:
        with self.watch.within("layers"):
            return self.model.denoise(canvas, kv, soft, window=window)

    def logits(self, hidden: Tensor) -> Tensor:
        with self.watch.within("vocabulary"):
            return self.model.logits(hidden)

    def read(self, hidden: Tensor, **how: Any) -> Reading:
        with self.watch.within("vocabulary"):
            return self.model.read(hidden, **how)

    def read_logits(self, logits: Tensor, **how: Any) -> Reading:
        with self.watch.within("vocabulary"):
            return self.model.read_logits(logits, **how)


def split_denoising(model: DiffusionGemma, context: list[int], limits: Limits, sampler: Sampler) -> Split:
    """Time the steps of one canvas behind `context`, all but its first and last, which do less.

    sampler: its stopping rule must not fire, and its budget must be at least 3.
    """
    watch = Stopwatch()
    watch.region = "sampler"
    kv = model.new_kv(1, len(context) + limits.canvas_length)
    model.encode(torch.tensor([context]), kv)
    randomness = SeededCanvas(seed=0, block=0, width=limits.canvas_length, vocab_size=limits.vocab_size)

    def run() -> Iterable[object]:
        pins = no_pins(limits.canvas_length)
        return settle_canvas(_Marked(model, watch), kv, sampler, randomness, pins, limits)

    return _split(watch, run, unlike=1, watched=model.compiled is None)


def split_token(model: DiffusionGemma, context: list[int], limits: Limits, tokens: int) -> Split:
    """Time `tokens` greedy autoregressive steps behind `context`."""
    watch = Stopwatch()
    watch.region = "sampler"
    params = SamplingParams(decoder="ar", temperature=0, max_tokens=tokens + 1, ignore_eos=True)
    run = partial(generate_tokens, _Marked(model, watch), context, params, 0, limits)
    return _split(watch, run, unlike=2, watched=model.compiled is None)


class _Lap(NamedTuple):
    seconds: float
    parts: dict[str, float]


@torch.inference_mode()
def _split(watch: Stopwatch, run: Callable[[], Iterable[object]], *, unlike: int, watched: bool) -> Split:
    """Time what passes between events, except the first `unlike` laps and the last: no whole steps."""
    _laps(run(), watch)  # warm-up
    plain = [lap.seconds for lap in _laps(run(), watch)[unlike:-1]]
    if not watched:
        return Split(median(plain), min(plain), {})
    with watch.watching():
        laps = [lap.parts for lap in _laps(run(), watch)[unlike:-1]]
    parts = {name: median(lap.get(name, 0.0) for lap in laps) for name in sorted(set().union(*laps))}
    return Split(median(plain), min(plain), {**parts, "rest": median(plain) - sum(parts.values())})


def _laps(events: Iterable[object], watch: Stopwatch) -> list[_Lap]:
    """What passed before each event, since the one before it."""
    laps, started = [], time.perf_counter()
    for _ in events:
        laps.append(_Lap(time.perf_counter() - started, watch.lap()))
        started = time.perf_counter()
    return laps
