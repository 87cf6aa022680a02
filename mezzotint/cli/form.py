"""The flags that say what form an answer must have, and the grammar that they name."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from mezzotint.text.grammar import Grammar, Grammars


@dataclass(frozen=True, kw_only=True)
class Form:
    """At most one of these: what the answer must follow."""

    schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A JSON Schema: the answer is a JSON text that it accepts.")
    ] = None
    regex: Annotated[
        str | None,
        typer.Option(help="A regular expression, in the syntax of Rust's regex crate, of the whole answer."),
    ] = None
    grammar: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A grammar in llguidance's Lark that the whole answer follows.")
    ] = None

    @property
    def is_free(self) -> bool:
        """Whether nothing is asked."""
        return self == Form()

    def check(self) -> None:
        """Refuse two forms at once. Raises: ValueError naming them."""
        given = [f"--{name}" for name in ("schema", "regex", "grammar") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} each say what the answer must follow: give one of them")


def compile_form(form: Form, grammars: "Grammars") -> "Grammar | None":
    """The grammar that the flags name, None where they name none.

    Raises: ValueError for what cannot be compiled, OSError for a file that cannot be read.
    """
    if form.schema is not None:
        try:
            schema = json.loads(form.schema.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{form.schema} holds no JSON: {error}") from error
        return grammars.from_schema(schema)
    if form.regex is not None:
        return grammars.from_regex(form.regex)
    if form.grammar is not None:
        return grammars.from_lark(form.grammar.read_text(encoding="utf-8"))
    return None
