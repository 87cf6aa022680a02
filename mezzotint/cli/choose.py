"""`mezzotint choose`: which of several answers, and how likely each is."""

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer

from mezzotint.cli.flags import unfold
from mezzotint.cli.options import Loading, System, choose_target


@unfold
def choose(
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="The question, as a user's message.")],
    choices: Annotated[list[str], typer.Argument(metavar="CHOICE…", help="Two or more whole answers.")],
    loading: Loading,
    decoder: Annotated[
        str | None, typer.Option(help="diffusion: one read of a canvas; ar: the causal pass; diffusion unless given.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="diffusion only: of the noise read; drawn unless given.")] = None,
    system: System = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one object.")] = False,
) -> None:
    """Tell how likely each of several answers is, the likeliest first; nothing is generated."""
    # Importing torch takes seconds, and --help is not to wait for it: see options.
    from mezzotint.llm import LLM

    target = choose_target(loading.model, decoder)
    options = {name: value for name, value in asdict(loading).items() if value is not None}
    llm = LLM(**options | {"model": target.model})
    said = [] if system is None else [{"role": "system", "content": system}]
    asked: Any = {} if target.decoder is None else {"decoder": target.decoder}
    found = llm.choose([*said, {"role": "user", "content": prompt}], choices, seed=seed, **asked)
    ranked = sorted(found, key=lambda choice: -choice.probability)
    if as_json:
        print(json.dumps({"choices": [choice._asdict() for choice in ranked]}, ensure_ascii=False))
        return
    for choice in ranked:
        print(f"{choice.probability:7.2%}  {choice.text}")
