"""The flags that verbs share: which checkpoint runs and how it decodes; what values mean is said by decoding.

No default stands here: a flag left out is left to SamplingParams and LLM. Their numbers are repeated in the
help alone, where a test holds them to the originals, because importing those means importing torch: 1.5 s of
processor time, where `--help` needs 0.3 s for everything else.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer


def _option(help: str) -> Any:
    return typer.Option(help=help)


Device = Annotated[str | None, _option("Where the model runs, as torch names it; cpu unless given.")]
Dtype = Annotated[str | None, _option("float64, float32 or bfloat16; the checkpoint's own unless given.")]
Threads = Annotated[int | None, _option("CPU threads; torch's choice unless given.")]
Compiled = Annotated[
    bool | None,
    typer.Option("--compile", help="Run as machine code, which a C++ compiler makes in seconds the first time."),
]
Drafter = Annotated[
    str | None, _option("The checkpoint that drafts for decoder mtp; MODEL-drafter beside the model unless given.")
]
System = Annotated[str | None, _option("A system message before the prompt.")]
Watch = Annotated[
    bool,
    typer.Option("--watch", help="Draw the canvas on standard error as it settles; drawing takes time too."),
]


@dataclass(frozen=True, kw_only=True)
class Loading:
    """Which checkpoint, and where and how it runs."""

    model: Annotated[
        str, typer.Option(help="A bundled model, a folder or a hub id; MODEL:DECODER names the decoder too.")
    ] = "lab"
    device: Device = None
    dtype: Dtype = None
    threads: Threads = None
    compiled: Compiled = None
    drafter: Drafter = None


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """The fields of SamplingParams; None leaves one to it."""

    decoder: Annotated[
        str | None,
        _option("diffusion; ar: token by token; verified, mtp: ar's tokens, many at a time; diffusion unless given."),
    ] = None
    sampler: Annotated[
        str | None,
        _option("report, hf, jax, refine or ddim; report with the checkpoint's numbers unless given."),
    ] = None
    max_tokens: Annotated[int | None, _option("Most output tokens, the end of turn included; 256 unless given.")] = None
    temperature: Annotated[
        float | None,
        _option("Under diffusion a factor on the sampler's schedule, else the usual one; 1.0 unless given."),
    ] = None
    steps: Annotated[int | None, _option("Most denoising steps a block; the sampler's own unless given.")] = None
    entropy_bound: Annotated[
        float | None, _option("Uncertainty that a step may accept, in nats; the sampler's own unless given.")
    ] = None
    threshold: Annotated[
        float | None, _option("refine only: accept from this probability on; its own unless given.")
    ] = None
    editing_threshold: Annotated[
        float | None,
        _option("refine only: replace accepted tokens above this probability, none unless given."),
    ] = None
    top_k: Annotated[
        int | None, _option("Not diffusion: draw among the k likeliest tokens; among all unless given.")
    ] = None
    top_p: Annotated[
        float | None, _option("Not diffusion: draw among the likeliest of this mass; 1.0 unless given.")
    ] = None
    min_p: Annotated[
        float | None, _option("Not diffusion: least probability, a share of the highest; 0.0 unless given.")
    ] = None
    draft_tokens: Annotated[
        int | None, _option("verified, mtp: tokens that a round drafts; what pays, for mtp 6, unless given.")
    ] = None
    draft_steps: Annotated[
        int | None, _option("verified only: denoising steps of a draft; what pays unless given.")
    ] = None
    draft_tail: Annotated[
        str | None,
        _option("verified only: what a canvas keeps of a draft: fresh, tail or tail+soft; tail+soft unless given."),
    ] = None
    seed: Annotated[int | None, _option("Same seed, same tokens; drawn and told in the receipt unless given.")] = None
    ignore_eos: Annotated[bool | None, typer.Option("--ignore-eos", help="Write on behind an end of turn.")] = None


class Target(NamedTuple):
    """The checkpoint that answers, and its decoder if one was named."""

    model: str
    decoder: str | None


def choose_target(model: str, decoder: str | None) -> Target:
    """Take MODEL[:DECODER] apart; a folder with a colon in its name is a folder.

    Raises: ValueError where `decoder` names another one. Source: contract 9.
    """
    name, colon, suffix = model.rpartition(":")
    if not colon or Path(model).exists():
        return Target(model, decoder)
    if decoder not in (None, suffix):
        raise ValueError(f"model is {model!r}, but --decoder is {decoder!r}: name one decoder")
    return Target(name, suffix)
