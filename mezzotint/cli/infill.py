"""`mezzotint infill`: the blanks of a file filled, or a part of it written anew."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mezzotint.cli.flags import unfold
from mezzotint.cli.options import Decoding, Loading
from mezzotint.cli.receipt import metrics, receipt_line, usage

if TYPE_CHECKING:
    from mezzotint.llm import Blank


@unfold
def infill(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A text with blanks in it; - reads standard input.")],
    loading: Loading,
    decoding: Decoding,
    marker: Annotated[
        str | None,
        typer.Option("--blank", help="What marks a blank, <blank> unless given; <blank:24> has at most 24 tokens."),
    ] = None,
    lines: Annotated[
        str | None, typer.Option(metavar="A:B", help="Write lines A to B anew, counted from 1, instead of blanks.")
    ] = None,
    span: Annotated[
        str | None, typer.Option(metavar="A:B", help="Write characters A to B − 1 anew, counted from 0, instead.")
    ] = None,
    hint: Annotated[
        list[str] | None, typer.Option(help="What should stand in a blank; again for the next blank.")
    ] = None,
    lengths: Annotated[
        str | None,
        typer.Option(
            help="surplus: pads fill what a middle leaves; candidates: several are tried; surplus unless given."
        ),
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Use no chat template: the text alone.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one object: text, middles and cost.")] = False,
) -> None:
    """Fill the blanks of a file, and write the whole text, otherwise unchanged.

    Standard output holds the text and nothing else; what it cost is told on standard error. What a span or lines held
    before is not shown to the model.
    """
    document = _find_blanks(_read(file), marker, lines, span, hint or [])
    # Importing torch takes seconds, and --help is not to wait for it: see options.
    from mezzotint.cli.answer import set_up

    llm, params = set_up(loading, decoding)
    asked: Any = {} if lengths is None else {"lengths": lengths}
    done = llm.infill(document, params, raw=raw, **asked)
    if as_json:
        whole = {
            "text": done.text,
            "middles": [middle._asdict() for middle in done.middles],
            "usage": usage(done.receipt),
            "metrics": metrics(done.receipt, done.receipt.prefill_s + done.receipt.generation_s),
        }
        print(json.dumps(whole, ensure_ascii=False, allow_nan=False))
        return
    typer.echo(done.text.encode(), nl=False)
    print(receipt_line(done.receipt), file=sys.stderr)


def _read(file: str) -> str:
    """The text of a file, its line breaks as they are. Raises: ValueError where it is no UTF-8."""
    content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is no UTF-8 from byte {error.start} on; write it anew as UTF-8") from error


def _find_blanks(
    text: str, marker: str | None, lines: str | None, span: str | None, hints: list[str]
) -> "list[str | Blank]":
    """The document that the flags make of a text. Raises: ValueError naming flag, value and remedy."""
    from mezzotint.text.document import MARKER, Blank, cut_lines, cut_marked, cut_span

    flags = {"--blank": marker, "--lines": lines, "--span": span}
    given = [name for name, value in flags.items() if value is not None]
    if len(given) > 1:
        raise ValueError(f"{' and '.join(given)} each say where the blanks are: give one of them")
    if lines is None and span is None:
        return cut_marked(text, MARKER if marker is None else marker, hints)
    if len(hints) > 1:
        raise ValueError(f"{len(hints)} hints are given, but {given[0]} makes one blank; give one")
    blank = Blank(hint=hints[0] if hints else None)
    if lines is not None:
        return cut_lines(text, *_read_range("--lines", lines), blank)
    return cut_span(text, *_read_range("--span", str(span)), blank)


def _read_range(flag: str, given: str) -> tuple[int, int]:
    first, _, last = given.partition(":")
    try:
        return int(first), int(last)
    except ValueError:
        raise ValueError(f"{flag} is {given!r}; write two whole numbers with a colon between them, as 3:7") from None
