"""Short real functions, read from the standard library of the running Python, and when two texts are one code.

Another release of Python has other functions, so examples made of them depend on it: scores may be compared, and
a model trained, under one release only. What is asked about the functions lives in `repair` and `infill`.
"""

import ast
import re
import sysconfig
import textwrap
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from mezzotint.tasks.family import Split, is_held_out
from mezzotint.text.tokenizer import Tokenizer

TOKENS = range(12, 121)  # of the bundled tokenizer
MAX_CODE = 20_000  # characters; what a model writes may be longer and is then no function of the library
_MAX_CHARACTERS = 480  # hardly one of at most 120 tokens is longer, and the longer ones need not be encoded
_ONE_IN = 8  # shapes of which one is held out
_SKIPS = frozenset(
    "test tests idlelib lib2to3 encodings site-packages pydoc_data turtledemo ensurepip distutils".split()
)
_STRING_OR_COMMENT = re.compile(
    r"""(?P<string>(?P<quotes>'''|\"\"\"|'|")(?:\\.|(?!(?P=quotes)).)*(?P=quotes))|[ \t]*\#[^\n]*""", re.DOTALL
)


@cache
def functions(split: Split) -> tuple[str, ...]:
    """List the functions and methods of one split, as their sources from `def` on, sorted.

    Each stands alone, without decorators, docstring, comments and blank lines, is ASCII, has at least two lines,
    and 12 to 120 tokens of the bundled tokenizer. Functions whose syntax trees have the same shape, whatever their
    names and constants, are in one split: about one shape in eight is in test.
    Returns: sources without the indentation that all their lines share; the two splits hold none in common.
    Raises: FileNotFoundError where the standard library is installed without its sources.
    """
    found = {source for source, held_out in _library() if held_out == (split == "test")}
    if not found:
        raise FileNotFoundError(
            f"the standard library in {sysconfig.get_path('stdlib')} has no sources to make examples of; "
            "use a Python that is installed with its .py files"
        )
    return tuple(sorted(found))


@cache
def bundled_tokenizer() -> Tokenizer:
    """The tokenizer of the bundled checkpoint `lab`, by which lengths are counted; read once."""
    return Tokenizer.from_directory(Path(__file__).parents[1] / "checkpoints" / "lab")


def dump_code(source: str) -> str | None:
    """Write down the syntax tree of a source, so that two sources with equal dumps are the same code.

    Returns: the dump, without places; None for what is no Python or has more than MAX_CODE characters.
    """
    if (tree := parse_code(source)) is None:
        return None
    try:
        return ast.dump(tree)
    except (RecursionError, ValueError):  # too deep to write down, or a number too long
        return None


def parse_code(source: str) -> ast.Module | None:
    """Parse a source that may be anything.

    Returns: its syntax tree; None for what is no Python or has more than MAX_CODE characters.
    """
    if len(source) > MAX_CODE:
        return None
    with warnings.catch_warnings():  # of escapes that strings do not have
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def splits_word(source: str, place: int) -> bool:
    """Whether the characters before and at a place, counted from 0, belong to one word."""
    return re.fullmatch(r"\w\w", source[max(place - 1, 0) : place + 1]) is not None


@cache
def _library() -> tuple[tuple[str, bool], ...]:
    root = Path(sysconfig.get_path("stdlib"))
    found = []
    for file in _files(root):
        text = file.read_text(encoding="utf-8")
        lines = text.split("\n")  # as ast counts them: a form feed starts no line
        for node in _functions(ast.parse(text).body):
            if (source := _source(node, lines)) is not None and _has_right_length(source):
                found.append((source, is_held_out(_shape(node), _ONE_IN)))
    return tuple(found)


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name.isidentifier() and path.name not in _SKIPS:
            yield from _files(path)
        elif path.suffix == ".py":
            yield path


def _functions(body: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions in a body at any depth, but none within another; without decorators and docstring."""
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                node.decorator_list = []
                yield node
            case ast.ClassDef():
                yield from _functions(node.body)
            case ast.If() | ast.Try():
                yield from _functions(node.body + node.orelse)


def _source(node: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> str | None:
    """The function's text, its docstring taken out of the tree too; None where it cannot stand alone."""
    kept = lines[node.lineno - 1 : node.end_lineno]
    if ast.get_docstring(node, clean=False) is not None:
        docstring, *rest = node.body
        if not rest or docstring.lineno == node.lineno or rest[0].lineno == docstring.end_lineno:
            return None
        node.body = rest
        del kept[docstring.lineno - node.lineno : (docstring.end_lineno or 0) + 1 - node.lineno]
    source = textwrap.dedent("\n".join(kept))
    if "#" in source:
        source = _STRING_OR_COMMENT.sub(lambda match: match["string"] or "", source).rstrip()
    if "'''" not in source and '"""' not in source:
        source = re.sub(r"\s*\n", "\n", source)
    alone = source.startswith(("def ", "async def ")) and "\n" in source and source.isascii()
    return source if alone else None


def _has_right_length(source: str) -> bool:
    return len(source) <= _MAX_CHARACTERS and len(bundled_tokenizer().encode_text(source)) in TOKENS


def _shape(node: ast.AST) -> str:
    """The types of a tree's nodes: what is left of its dump when every name and constant is erased."""
    return f"({type(node).__name__}{''.join(map(_shape, ast.iter_child_nodes(node)))})"
