"""What accelerators can do by their makers' figures: bandwidth, products, memory; what is reached of it is fitted."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Arithmetic = Literal["bf16", "fp8", "int8", "nvfp4"]

_T = 1e12


@dataclass(frozen=True, kw_only=True)
class Accelerator:
    """One device. bandwidth: bytes/s. memory: bytes. peaks: dense FLOP/s by arithmetic, bf16 always among them.

    units: multiprocessors that tiles of a product are dealt to, None where none are counted. query_tile: query rows
    that attention takes at a time, however few there are. cached: where the bandwidth is one of a cache, the bytes of
    weights that it holds. tuned_on: which of fitted.EFFICIENCIES tells how much of these figures is
    reached. source: where they are stated.
    """

    name: str
    title: str
    bandwidth: float
    memory: float
    peaks: Mapping[Arithmetic, float]
    units: int | None
    query_tile: int = 64
    cached: float | None = None
    tuned_on: Literal["h100", "cpu"] = "h100"
    source: str

    def peak(self, arithmetic: Arithmetic) -> float:
        """Dense FLOP/s; what a device has no units for is multiplied in bf16, however its weights are stored."""
        return self.peaks.get(arithmetic, self.peaks["bf16"])


def find_accelerator(name: str) -> Accelerator:
    """The accelerator of that name. Raises: ValueError naming what there is."""
    if name not in ACCELERATORS:
        raise ValueError(f"--accelerator is {name!r}, which is not known; choose among: {', '.join(ACCELERATORS)}")
    return ACCELERATORS[name]


def _peaks(**tera: float) -> Mapping[Arithmetic, float]:
    known: tuple[Arithmetic, ...] = ("bf16", "fp8", "int8", "nvfp4")
    return MappingProxyType({name: tera[name] * _T for name in known if name in tera})


_HOPPER = _peaks(bf16=989.4, fp8=1978.9, int8=1978.9)

ACCELERATORS: Mapping[str, Accelerator] = MappingProxyType(
    {
        device.name: device
        for device in (
            Accelerator(
                name="h100",
                title="NVIDIA H100 SXM 80 GB",
                bandwidth=3.35 * _T,
                memory=80e9,
                peaks=_HOPPER,
                units=132,
                source="NVIDIA H100 data sheet",
            ),
            Accelerator(
                name="h200",
                title="NVIDIA H200 SXM 141 GB",
                bandwidth=4.8 * _T,
                memory=141e9,
                peaks=_HOPPER,
                units=132,
                source="NVIDIA H200 data sheet",
            ),
            Accelerator(
                name="a100",
                title="NVIDIA A100 SXM 80 GB",
                bandwidth=2.039 * _T,
                memory=80e9,
                peaks=_peaks(bf16=312, int8=624),
                units=108,
                source="NVIDIA A100 data sheet",
            ),
            Accelerator(
                name="b200",
                title="NVIDIA B200 180 GB",
                bandwidth=8 * _T,
                memory=180e9,
                peaks=_peaks(bf16=2250, fp8=4500, int8=4500, nvfp4=9000),
                units=148,
                source="NVIDIA HGX B200 data sheet, an eighth, without sparsity",
            ),
            Accelerator(
                name="gb10",
                title="NVIDIA GB10 (DGX Spark) 128 GB",
                bandwidth=0.273 * _T,
                memory=128e9,
                peaks=_peaks(bf16=125, fp8=250, int8=250, nvfp4=500),
                units=48,
                source="NVIDIA DGX Spark data sheet: 1 PFLOP of sparse FP4; the others halved from it",
            ),
            Accelerator(
                name="rtx5090",
                title="NVIDIA GeForce RTX 5090 32 GB",
                bandwidth=1.792 * _T,
                memory=32e9,
                peaks=_peaks(bf16=209.5, fp8=419, int8=838, nvfp4=1676),
                units=170,
                source="NVIDIA RTX Blackwell whitepaper, float32 accumulation, without sparsity",
            ),
            Accelerator(
                name="rtx4090",
                title="NVIDIA GeForce RTX 4090 24 GB",
                bandwidth=1.008 * _T,
                memory=24e9,
                peaks=_peaks(bf16=165.2, fp8=330.3, int8=660.6),
                units=128,
                source="NVIDIA Ada whitepaper, float32 accumulation, without sparsity",
            ),
            Accelerator(
                name="l40s",
                title="NVIDIA L40S 48 GB",
                bandwidth=0.864 * _T,
                memory=48e9,
                peaks=_peaks(bf16=362, fp8=733, int8=733),
                units=142,
                source="NVIDIA L40S data sheet, without sparsity",
            ),
            Accelerator(
                name="m3-ultra",
                title="Apple M3 Ultra, 80 GPU cores, 512 GB",
                bandwidth=0.819 * _T,
                memory=512e9,
                peaks=_peaks(bf16=28.7),
                units=80,
                source="Apple's specification; products, which it does not state: 80 cores × 128 lanes × 2 × 1.4 GHz",
            ),
            Accelerator(
                name="cpu",
                title="one core of an AMD EPYC with AVX-512 bf16, --compile",
                bandwidth=0.091 * _T,
                memory=24e9,
                peaks=_peaks(bf16=0.193),
                units=None,
                query_tile=16,  # 8 queries, in vectors of half the width
                cached=32 * 2**20,
                tuned_on="cpu",
                source="measured: torch's best product and stream at lab's sizes, which the last cache holds",
            ),
        )
    }
)
