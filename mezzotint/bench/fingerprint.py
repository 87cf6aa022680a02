"""The fingerprint of denoising: how many steps blocks took; speeds compare only where it does."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mezzotint.bench.record import Request


@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    """Blocks by the steps they took, and under which sampler, budget and canvas.

    digest: equal for equal fingerprints. Where seeds and arithmetic are the same, so is it.
    """

    sampler: str
    step_budget: int
    canvas: int
    blocks: Mapping[int, int]

    @property
    def digest(self) -> str:
        """Twelve hexadecimal digits."""
        told = [self.sampler, self.step_budget, self.canvas, sorted(self.blocks.items())]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:12]

    @property
    def total(self) -> int:
        """Blocks in all."""
        return sum(self.blocks.values())


def take_fingerprint(requests: Iterable[Request]) -> Fingerprint | None:
    """Of the canvases among requests; None without any.

    Raises: ValueError for two samplers, budgets or canvases, which have no histogram in common.
    """
    canvases = [request for request in requests if request.semantics == "canvas" and request.steps]
    kinds = {(request.sampler or "unknown", request.step_budget or 0, request.canvas) for request in canvases}
    if not canvases:
        return None
    if len(kinds) > 1:
        raise ValueError(f"steps of {sorted(kinds)} are mixed; take the fingerprint of one sampler, budget and canvas")
    [(sampler, budget, canvas)] = kinds
    blocks = Counter(steps for request in canvases for steps in request.steps)
    return Fingerprint(sampler=sampler, step_budget=budget, canvas=canvas, blocks=dict(sorted(blocks.items())))


def distance(one: Fingerprint, other: Fingerprint) -> float:
    """Share of blocks that would have to take another number of steps for the two to agree: 0 equal, 1 disjoint."""
    steps = {*one.blocks, *other.blocks}
    return sum(abs(one.blocks.get(at, 0) / one.total - other.blocks.get(at, 0) / other.total) for at in steps) / 2
