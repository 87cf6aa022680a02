"""`mezzotint plan`: what decoders would cost on an accelerator, on paper; how it is reckoned is said in bench."""

import json
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from mezzotint.cli.flags import unfold

_RELEASED = "diffusiongemma-26b-a4b"


def _option(help: str) -> Any:
    return typer.Option(help=help)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What it would run on, and in which precision."""

    accelerator: Annotated[
        str,
        _option("h100, h200, a100, b200, gb10, rtx5090, rtx4090, l40s, m3-ultra, or cpu for models as small as lab."),
    ] = "h100"
    dtype: Annotated[
        str, _option("bf16, fp8, int8, nvfp4 or int4: of experts, attention and MLPs; all others stay bf16.")
    ] = "bf16"


@dataclass(frozen=True, kw_only=True)
class Load:
    """What would be asked of it."""

    context: Annotated[int | None, _option("Tokens of the prompt; 4096, or what the model has room for.")] = None
    output: Annotated[int, _option("Tokens of the answer.")] = 1024
    concurrency: Annotated[int, _option("Requests at once.")] = 1


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How many tokens a forward yields, which no config says."""

    steps: Annotated[float | None, _option("Denoising steps a canvas, in place of --tokens-per-forward.")] = None
    tokens_per_forward: Annotated[
        float | None, _option("Of diffusion, commits counted; the published or measured mean unless given.")
    ] = None
    kept_drafts: Annotated[
        float | None, _option("Drafts that a round of mtp keeps; as published or measured unless given.")
    ] = None
    verified_steps: Annotated[int, _option("Denoising steps of a draft under verified.")] = 4
    verified_keeps: Annotated[
        float | None, _option("Tokens that a round of verified keeps; unless given, verified is left out.")
    ] = None


@unfold
def plan(
    machine: Machine,
    load: Load,
    pace: Pace,
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="diffusiongemma-26b-a4b, a bundled model, or a checkpoint's folder.")
    ] = _RELEASED,
    drafter: Annotated[
        str | None, _option("The folder of a drafter for mtp; MODEL-drafter beside the model unless given.")
    ] = None,
    errors: Annotated[
        bool, typer.Option("--errors", help="Print how near this comes to published figures, and nothing else.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one object: an object for each decoder.")] = False,
) -> None:
    """Reckon memory and time of each decoder on an accelerator that need not be here.

    Prefill is left out. What no config says, such as tokens a forward, is taken from published or measured figures.
    """
    from mezzotint.bench.agreement import agreement
    from mezzotint.bench.crossing import crossings
    from mezzotint.bench.plan import estimate
    from mezzotint.cli.plan_question import ask
    from mezzotint.cli.plan_report import as_objects, as_text, errors_text

    if errors:
        if (machine, load, pace, drafter) != (Machine(), Load(), Pace(), None) or model != _RELEASED:
            raise ValueError("--errors compares with published figures alone; drop all flags beside it but --json")
        rows = agreement()
        told_rows = [{**row._asdict(), "error": row.error} for row in rows]
        print(json.dumps(told_rows) if as_json else errors_text(rows))
        return
    question = ask(model, drafter, machine, load, pace)
    told, crossed = estimate(question), crossings(question)
    print(json.dumps(as_objects(question, told, crossed)) if as_json else as_text(model, question, told, crossed))
