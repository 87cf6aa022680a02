"""How long a piece of work takes: the longer of reading and multiplying, and a time for each kernel; no model here."""

from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from mezzotint.bench.accelerators import Accelerator, Arithmetic

TILE = 128  # rows and columns of a product that one multiprocessor takes at a time
_LEAST_ROWS = 16  # of a tile, for products of few rows


@dataclass(frozen=True, kw_only=True)
class Efficiency:
    """How much of an accelerator's figures software reaches; fitted on operator times, never set by hand.

    bandwidth, products: shares of the stated bandwidth, and of the stated FLOP/s where tiles fill the device; above 1
    where what is read lies in a cache. attention: the share that attention's products reach, with a softmax between
    them. kernel_us: what each kernel takes besides, launched and drained. logit_passes:
    how often sampling reads or writes logits in float32. host_ms: how long the device waits between two steps.
    """

    bandwidth: float
    products: float
    attention: float
    kernel_us: float
    logit_passes: float
    host_ms: float


class Work(NamedTuple):
    """What one operator must do, all layers together.

    bytes: read or written once. flop: multiplied, without padding. filled: share of the device that its tiles keep
    busy. kernels: launched one after the other. logit_bytes: a float32 logit array, passed over logit_passes times.
    attends: the products are attention's.
    """

    bytes: float = 0.0
    flop: float = 0.0
    arithmetic: Arithmetic = "bf16"
    filled: float = 1.0
    kernels: float = 0.0
    logit_bytes: float = 0.0
    attends: bool = False


def seconds(work: Work, accelerator: Accelerator, efficiency: Efficiency) -> float:
    """Time of a piece of work, in seconds.

    Source: the roofline model (Williams, Waterman and Patterson 2009) with a time for each launch.
    """
    bandwidth = accelerator.bandwidth * efficiency.bandwidth
    reached = efficiency.attention if work.attends else efficiency.products
    products = accelerator.peak(work.arithmetic) * reached * work.filled
    logits = efficiency.logit_passes * work.logit_bytes / bandwidth
    return max(work.bytes / bandwidth, work.flop / products) + logits + work.kernels * efficiency.kernel_us * 1e-6


def filled(rows: float, columns: int, accelerator: Accelerator, *, matrices: float = 1, splits: bool = False) -> float:
    """Share of the device that a product [rows, …] × […, columns] keeps busy, from above 0 to 1.

    Tiles are dealt to multiprocessors in waves, so that the last wave, and rows or columns that end inside a tile,
    leave some of them idle. matrices: equal products side by side, such as experts. splits: the sum is so long that it
    is split over whatever is idle, and only padding is lost. Products of few rows take lower tiles.
    """
    if accelerator.units is None:
        return 1.0
    height = min(TILE, max(_LEAST_ROWS, 1 << ceil(rows - 1).bit_length()))
    tiles = matrices * ceil(rows / height) * ceil(columns / TILE)
    dealt = tiles if splits else ceil(tiles / accelerator.units) * accelerator.units
    return matrices * rows * columns / (dealt * height * TILE)
