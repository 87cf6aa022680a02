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


def _parse_bias(text: str) -> dict[int, float]:
    try:
        pairs = [part.split("=") for part in text.split(",")]
        return {int(id): float(number) for id, number in pairs}
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no bias; write ID=NUMBER with commas between them") from None


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
Stop = Annotated[
    list[str] | None,
    _option("Ends the answer before this text wherever it is written, thoughts included; may be given several times."),
]
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
    """The fields of SamplingParams, and a preset of some of them; None leaves one to it."""

    preset: Annotated[
        str | None,
        _option("fast, balanced or best: decides sampler, steps and gate of diffusion, none unless given."),
    ] = None
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
    canvas_length: Annotated[
        int | None, _option("Tokens of a canvas, at most the checkpoint's, which it has unless given.")
    ] = None
    drop_after_end: Annotated[
        bool | None,
        typer.Option("--drop-after-end", help="Denoise nothing more behind an end of turn that has settled."),
    ] = None
    gate: Annotated[
        str | None,
        _option("off; text: blocks that read wrong are mended first; causal: weighed too; off unless given."),
    ] = None
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
    top_k: Annotated[int | None, _option("Choose among the k likeliest tokens; among all unless given.")] = None
    top_p: Annotated[float | None, _option("Choose among the likeliest tokens of this mass; 1.0 unless given.")] = None
    min_p: Annotated[
        float | None, _option("Least probability of a token, a share of the highest; 0.0 unless given.")
    ] = None
    thinking_budget: Annotated[
        int | None, _option("Most tokens of thoughts, which are closed behind them; as many as there come otherwise.")
    ] = None
    answer_reserve: Annotated[
        int | None, _option("Thoughts are closed while so many of max_tokens are left; 0 unless given.")
    ] = None
    min_tokens: Annotated[int | None, _option("None of so many first tokens ends the turn; 0 unless given.")] = None
    logit_bias: Annotated[
        Any,
        typer.Option(
            parser=_parse_bias,
            metavar="ID=NUMBER,…",
            help="Added to the logits of token ids, -inf to bar one, none unless given.",
        ),
    ] = None
    presence_penalty: Annotated[
        float | None, _option("Not diffusion: what a token written before costs once; 0.0 unless given.")
    ] = None
    frequency_penalty: Annotated[
        float | None, _option("Not diffusion: what it costs each time it was written; 0.0 unless given.")
    ] = None
    repetition_penalty: Annotated[
        float | None, _option("Not diffusion: divides logits of tokens seen before; 1.0 unless given.")
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
    logprobs: Annotated[
        int | None,
        _option("Tell log-probabilities, of so many of the likeliest too, 0 to 20; none otherwise."),
    ] = None
    prompt_logprobs: Annotated[int | None, _option("The same for the tokens of the prompt; none otherwise.")] = None
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
