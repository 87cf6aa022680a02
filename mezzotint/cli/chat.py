"""`mezzotint chat`: a talk of many turns, from a terminal or a pipe."""

import sys
from collections.abc import Iterator
from contextlib import suppress

from mezzotint.cli.errors import error_line
from mezzotint.cli.flags import unfold
from mezzotint.cli.options import Decoding, Loading, Stop, System, Watch

with suppress(ImportError):  # Windows has none
    import readline  # noqa: F401 (input() edits lines with it once it is loaded)


@unfold
def chat(loading: Loading, decoding: Decoding, system: System = None, stop: Stop = None, watch: Watch = False) -> None:
    """Talk with a model, a line a turn; /reset forgets what was said, /quit ends.

    Each answer ends with a line that tells what it cost.
    """
    # Importing torch takes seconds, and --help is not to wait for it: see options.
    from mezzotint.cli.answer import answer, drawing, print_receipt, set_up, writing
    from mezzotint.cli.scores import print_scores
    from mezzotint.text.stop import check_stops

    stops = check_stops(stop or ())
    llm, params = set_up(loading, decoding, shared=True)  # a turn finds the talk before it encoded
    opening = [] if system is None else [{"role": "system", "content": system}]
    said = opening
    for line in _turns():
        if line == "/reset":
            said = opening
            continue
        asked = [*said, {"role": "user", "content": line}]
        try:
            show = drawing(llm, params) if watch else writing()
            completion = answer(llm, asked, params, show, stop=stops).completion
        except ValueError as error:
            if not sys.stdin.isatty():
                raise
            print(f"{error_line(error)} (or /reset)", file=sys.stderr)
            continue
        if watch:
            print(completion.text)
        print_scores(completion, llm.tokenizer)
        print_receipt(completion.receipt)
        said = [*asked, {"role": "assistant", "content": llm.parse(completion).content}]


def _turns() -> Iterator[str]:
    """The lines that are said, and /reset; up to /quit or the end of the input."""
    prompt = "› " if sys.stdin.isatty() else ""
    while True:
        try:
            line = input(prompt).strip()
        except EOFError:
            return
        if line == "/quit":
            return
        if line.startswith("/") and line[1:].isalpha() and line != "/reset":
            print(f"error: {line} is no command; there are /reset and /quit", file=sys.stderr)
        elif line:
            yield line
