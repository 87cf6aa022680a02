"""`python -m mezzotint.server.document docs/serving.md` writes the tables of fields into that page."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from mezzotint.server.protocol import Body, ChatBody, ChooseBody, CompletionBody, InfillBody, ResponsesBody
from mezzotint.server.routing import OutcomeBody

_PAGES: tuple[tuple[str, type[Body]], ...] = (
    ("/v1/chat/completions", ChatBody),
    ("/v1/completions", CompletionBody),
    ("/v1/responses", ResponsesBody),
    ("/v1/choose", ChooseBody),
    ("/v1/infill", InfillBody),
    ("/v1/router/outcomes", OutcomeBody),
)
BEGIN, END = "<!-- fields: begin -->", "<!-- fields: end -->"


def write_fields() -> str:
    """The three lists of every path, as Markdown."""
    return "\n".join(line for path, body in _PAGES for line in _section(path, body))


def rewrite(page: str) -> str:
    """The page with the lists of today. Raises: ValueError for a page without the two marks."""
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise ValueError(f"the page must hold {BEGIN} and {END} once each; put them where the lists belong")
    head, rest = page.split(BEGIN)
    return f"{head}{BEGIN}\n\n{write_fields().strip()}\n\n{END}{rest.split(END)[1]}"


def _section(path: str, body: type[Body]) -> Iterator[str]:
    yield f"### {path}"
    yield ""
    yield f"Honoured: {_names(body.honoured())}."
    if body.inert:
        yield ""
        yield f"Inert, whatever they hold: {_names(sorted(body.inert))}."
    if body.refused:
        yield ""
        yield "| refused | passes | instead |"
        yield "|---|---|---|"
        for name, refusal in sorted(body.refused.items()):
            passes = ", ".join(f"`{value!r}`" for value in refusal.neutral) or "nothing"
            yield f"| `{name}` | {passes} | {refusal.remedy} |"
    yield ""


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    for given in map(Path, sys.argv[1:]):
        given.write_text(rewrite(given.read_text(encoding="utf-8")), encoding="utf-8")
