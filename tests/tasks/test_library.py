"""The library's functions: whole, short, real, apart by shape; and the comparison that takes any text."""

import ast
import io
import itertools
import sysconfig
import tokenize
from pathlib import Path

import pytest

from mezzotint.tasks import Split, library
from mezzotint.tasks.library import MAX_CODE, bundled_tokenizer, dump_code, functions, parse_code, splits_word

SPLITS: tuple[Split, ...] = ("train", "test")

MODULE = '''"""A module with what a standard library has."""

import os


def plain(path):
    """Says what it does.

    At length.
    """

    # a comment before the code
    name = os.path.basename(path)  # a comment behind it

    return name + "# no comment" + '"#'


class Shelf:
    """A class is no function."""

    @property
    def upper(self):
        text = self._text
        return text.upper()

    class Inner:
        async def wait(self, seconds):
            await self.clock.sleep(seconds)
            return "it's # not a comment"


if os.name == "posix":
    def outer(numbers):
        def inner(number):
            return number + 1
        return [inner(number) for number in numbers]


def long_text(self):
    text = """
  # left where it is

"""
    return text.format(self.name, self.value)


def only_documented(self, name, value):
    """Has nothing but a docstring, so nothing would be left of it."""


def tiny(self):
    pass


def one_line(self, name): return self._names.get(name, self._default)[0]


def foreign(self, name):
    self.words.append("naïve")
    return self.words


def long(self):
    return [FILL]
'''.replace("FILL", ", ".join(map(str, range(100, 150))))

EXPECTED = {
    'def plain(path):\n    name = os.path.basename(path)\n    return name + "# no comment" + \'"#\'',
    "def upper(self):\n    text = self._text\n    return text.upper()",
    'async def wait(self, seconds):\n    await self.clock.sleep(seconds)\n    return "it\'s # not a comment"',
    "def outer(numbers):\n    def inner(number):\n        return number + 1\n"
    "    return [inner(number) for number in numbers]",
    'def long_text(self):\n    text = """\n  # left where it is\n\n"""\n    return text.format(self.name, self.value)',
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in place of the standard library."""
    monkeypatch.setattr(sysconfig, "get_path", {"stdlib": str(tmp_path)}.__getitem__)
    monkeypatch.setattr(library, "_library", library._library.__wrapped__)
    return tmp_path


def read_again() -> dict[bool, list[str]]:
    """The functions of the folder, by whether they are held out; what was read before is not asked."""
    found = library._library()
    return {side: sorted(source for source, held_out in found if held_out is side) for side in (False, True)}


def erase(tree: ast.AST) -> str:
    """The dump of a tree in which all names and constants are the same."""
    for node in ast.walk(tree):
        for field, value in ast.iter_fields(node):
            if isinstance(node, ast.Constant) or isinstance(value, str):
                setattr(node, field, "")
            elif isinstance(value, list) and value and isinstance(value[0], str):
                setattr(node, field, [""])
    return ast.dump(tree)


@pytest.mark.parametrize("split", SPLITS)
def test_every_function_is_alone_plain_and_of_the_right_length(split: Split) -> None:
    for source in functions(split)[::8]:
        [node] = ast.parse(source).body
        assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        assert not node.decorator_list
        assert ast.get_docstring(node) is None
        assert source.isascii()
        assert source.count("\n") >= 1
        assert source == source.strip()
    lengths = [len(bundled_tokenizer().encode_text(source)) for source in functions(split)[::8]]
    assert 12 <= min(lengths) < 20
    assert 105 < max(lengths) <= 120


@pytest.mark.parametrize("split", SPLITS)
def test_no_comment_is_left(split: Split) -> None:
    for source in functions(split)[::20]:
        kinds = {token.type for token in tokenize.generate_tokens(io.StringIO(source).readline)}
        assert tokenize.COMMENT not in kinds


def test_functions_are_many_sorted_and_each_listed_once() -> None:
    train, test = (functions(split) for split in SPLITS)
    assert len(train) > 4000
    assert len(test) > 500
    assert list(train) == sorted(set(train))
    assert list(test) == sorted(set(test))


def test_no_shape_of_train_is_in_test() -> None:
    train, test = ({erase(ast.parse(source)) for source in functions(split)} for split in SPLITS)
    assert not train & test
    assert 1 / 10 < len(test) / (len(train) + len(test)) < 1 / 6


def test_the_list_is_the_same_when_read_again(folder: Path) -> None:
    for name in ("second", "first"):
        (folder / f"{name}.py").write_text(MODULE.replace("plain", name), encoding="utf-8")
    first = read_again()
    assert sum(map(len, first.values())) == 10
    assert read_again() == first


def test_a_function_is_taken_from_def_on_without_docstring_comments_and_blank_lines(folder: Path) -> None:
    (folder / "module.py").write_text(MODULE, encoding="utf-8")
    assert {*itertools.chain(*read_again().values())} == EXPECTED


def test_modules_of_packages_are_read_and_those_of_tests_are_not(folder: Path) -> None:
    for place, name in ((".", "top"), ("package", "inner"), ("test", "first"), ("package/tests", "second")):
        (folder / place).mkdir(exist_ok=True)
        (folder / place / "module.py").write_text(f"def {name}(self):\n    return self.{name}.read(1, 2)\n")
    (folder / "notes.txt").write_text("def text(self):\n    return self.text.read(1, 2)\n")
    assert {source.split("(")[0] for source in itertools.chain(*read_again().values())} == {"def top", "def inner"}


def test_functions_that_differ_in_names_and_constants_only_are_on_one_side(folder: Path) -> None:
    shapes = [f"{{0}}({', '.join(['{1}'] * count)})" for count in range(2, 24)]
    for name, constant in (("run", "1"), ("start", "'one'"), ("stop", "None")):
        bodies = [f"def {name}_{name}(self):\n    return {shape.format(name, constant)}" for shape in shapes]
        (folder / f"{name}.py").write_text("\n\n".join(bodies))
    sides = read_again()
    train, test = ({erase(ast.parse(source)) for source in side} for side in sides.values())
    assert not train & test
    assert train
    assert test
    assert len(train | test) == len(shapes)
    assert sum(map(len, sides.values())) == 3 * len(shapes)


@pytest.mark.usefixtures("folder")
def test_a_library_without_sources_is_refused_with_a_remedy() -> None:
    with pytest.raises(FileNotFoundError, match=r"has no sources .* installed with its \.py files"):
        functions.__wrapped__("train")


@pytest.mark.parametrize(
    "same",
    ["def f(a):\n  return 'x' + a", 'def f(\n    a,\n):\n    # why\n    return ("x" + a)\n', "def f(a): return 'x'+a"],
)
def test_spacing_comments_quotes_and_brackets_are_no_part_of_the_code(same: str) -> None:
    assert dump_code(same) == dump_code('def f(a):\n    return "x" + a') is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1", "x = 1.0"),
        ("x = 1", "x = True"),
        ("x = 'a'", "x = b'a'"),
        ("x = y", "x = z"),
        ("x", "x; x"),
        ("", "1"),
    ],
)
def test_other_code_has_another_dump(one: str, other: str) -> None:
    assert dump_code(one) != dump_code(other)


@pytest.mark.parametrize(
    "text",
    [
        "return return",
        "\x00",
        "\ud800",
        "9" * 5000,
        "0x" + "f" * 9000,
        "(" * MAX_CODE,
        "-" * (MAX_CODE - 1) + "1",
        "a" + ".b" * 9000,
        "1" + "+1" * 9000,
        "f'{" * 200,
        "x" * (MAX_CODE + 1),
        "    indented",
    ],
    ids=lambda text: ascii(text)[:12],
)
def test_what_is_no_code_has_no_dump_and_raises_nothing(text: str) -> None:
    assert dump_code(text) is None


@pytest.mark.parametrize("text", [r"'\d'", "1 is 1", "assert (1, 2)", "'a'()", "0if 1else 2"])
def test_code_that_python_warns_of_is_code(text: str) -> None:
    assert dump_code(text) is not None


def test_a_text_of_just_the_greatest_length_is_read() -> None:
    assert parse_code("#" * MAX_CODE) is not None
    assert parse_code("#" * (MAX_CODE + 1)) is None


@pytest.mark.parametrize(("place", "splits"), [(0, False), (1, True), (2, True), (3, False), (4, False), (5, False)])
def test_a_word_is_split_only_between_two_of_its_characters(place: int, splits: bool) -> None:
    assert splits_word("a_1(b", place) is splits
