"""`mezzotint generate`: one prompt, one answer."""

import json
import sys
from typing import Annotated

import typer

from mezzotint.cli.flags import unfold
from mezzotint.cli.form import Form, compile_form, read_tools
from mezzotint.cli.options import Decoding, Loading, Stop, System, Watch
from mezzotint.cli.receipt import metrics, usage


@unfold
def generate(
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="What to answer; - reads standard input.")],
    loading: Loading,
    decoding: Decoding,
    form: Form,
    system: System = None,
    stop: Stop = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Use no chat template: the prompt to its last line break as it is.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one object: text, ids and cost.")] = False,
    watch: Watch = False,
) -> None:
    """Answer one prompt.

    Text is written as it becomes final, and a last line tells what it cost; for a pipe take --json.
    """
    for flag, given in (("--system", system), ("--tools", form.tools)):
        if raw and given is not None:
            raise ValueError(f"--raw leaves out the chat template, which {flag} needs: drop one of the two")
    # Importing torch takes seconds, and --help is not to wait for it: see options.
    from mezzotint.cli.answer import answer, drawing, print_receipt, set_up, silent, writing
    from mezzotint.cli.scores import print_scores, scores
    from mezzotint.text.prompt import Chat
    from mezzotint.text.stop import check_stops

    text = prompt if prompt != "-" else sys.stdin.read() if raw else sys.stdin.read().removesuffix("\n")
    form.check()
    stops, tools = check_stops(stop or ()), read_tools(form)
    said = [] if system is None else [{"role": "system", "content": system}]
    llm, params = set_up(loading, decoding)
    grammar = None if form.is_free else compile_form(form, llm.grammars, tools)
    show = drawing(llm, params) if watch else silent() if as_json else writing()
    chat = Chat(messages=[*said, {"role": "user", "content": text}], tools=tools)
    done = answer(llm, text if raw else chat, params, show, grammar, stops)
    completion = done.completion
    if as_json:
        whole = {
            "text": completion.text,
            "token_ids": completion.token_ids,
            **({"calls": [call._asdict() for call in llm.parse(completion).calls]} if tools else {}),
            "finish_reason": completion.finish_reason,
            "stop_reason": completion.stop_reason,
            **scores(completion, llm.tokenizer),
            "usage": usage(completion.receipt),
            "metrics": metrics(completion.receipt, done.first_text_s),
        }
        print(json.dumps(whole, ensure_ascii=False, allow_nan=False))
        return
    if watch:
        print(completion.text)
    print_scores(completion, llm.tokenizer)
    print_receipt(completion.receipt)
