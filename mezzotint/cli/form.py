"""The flags that say what form an answer must have and which tools it may call, and the grammar that they name."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from mezzotint.text.grammar import Grammar, Grammars


@dataclass(frozen=True, kw_only=True)
class Form:
    """Declared tools, and at most one of the others: what the answer must follow."""

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

    tools: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Tools that the model is told of: a JSON list as OpenAI's clients send it."),
    ] = None
    tool_choice: Annotated[
        str | None,
        typer.Option(
            metavar="CHOICE",
            help="Calls hold to what --tools declares. auto: words, or calls; required: calls; or the NAME of the one "
            "tool that is called.",
        ),
    ] = None

    @property
    def is_free(self) -> bool:
        """Whether nothing is asked of the answer."""
        return not self._held

    @property
    def _held(self) -> list[str]:
        names = ("schema", "regex", "grammar", "tool_choice")
        return [f"--{name.replace('_', '-')}" for name in names if getattr(self, name) is not None]

    def check(self) -> None:
        """Refuse two forms at once, and a choice of no tools. Raises: ValueError naming them."""
        if len(self._held) > 1:
            raise ValueError(f"{' and '.join(self._held)} each say what the answer must follow: give one of them")
        if self.tool_choice is not None and self.tools is None:
            raise ValueError(f"--tool-choice is {self.tool_choice!r}, but no tools are declared: give --tools FILE")


def read_tools(form: Form) -> list[dict[str, Any]]:
    """The tools in the file that a flag names, none without it.

    Raises: ValueError for what declares no tools, OSError for a file that cannot be read.
    """
    from mezzotint.text.messages import check_chat

    if form.tools is None:
        return []
    tools = _read_json(form.tools)
    if not isinstance(tools, list) or not tools:
        raise ValueError(f'{form.tools} declares no tools: write a list of {{"type": "function", "function": …}}')
    return check_chat([{"role": "user", "content": ""}], tools).tools


def compile_form(form: Form, grammars: "Grammars", tools: list[dict[str, Any]]) -> "Grammar | None":
    """The grammar that the flags name, None where they name none. tools: those of read_tools.

    Raises: ValueError for what cannot be compiled, OSError for a file that cannot be read.
    """
    from mezzotint.text.call_grammar import compile_calls

    if form.schema is not None:
        return grammars.from_schema(_read_json(form.schema))
    if form.regex is not None:
        return grammars.from_regex(form.regex)
    if form.grammar is not None:
        return grammars.from_lark(form.grammar.read_text(encoding="utf-8"))
    match form.tool_choice:
        case None:
            return None
        case "auto" | "required" as choice:
            return compile_calls(grammars, tools, choice=choice)
        case name:
            return compile_calls(grammars, tools, choice="required", only=name)


def _read_json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file} holds no JSON: {error}") from error
