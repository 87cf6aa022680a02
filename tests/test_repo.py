"""The house: who may import whom, what is declared, budgets, names, and the two pictures of the disk."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.disk import ROOT, code_under, document, files, files_under, short

# The copy of ARCHITECTURE.md's table. Rows come in its order, and a room may import only rooms above it.
MAY_IMPORT = {
    "types": "nothing",
    "text": "types",
    "tasks": "types, text",
    "decoding": "types",
    "model": "types",
    "engine": "types, decoding, model",
    "llm": "types, text, decoding, model, engine",
    "server": "types, text, decoding, engine, llm",
    "router": "types, tasks, server.protocol, server.errors, server.sse",
    "bench": "types, text, tasks, model.config, server.protocol, llm, router.record, router.ledger",
    "evaluate": "types, text, tasks, server.protocol, llm, router.ledger",
    "train": "types, text, tasks, decoding, model",
    "cli": "every room",
    "web": "nothing",
}
CODE_ROOMS = [room for room in MAY_IMPORT if room not in ("cli", "web")]
# The two doors of the package are no rooms: one shows names of the rooms, the other starts the command line.
DOORS = {"__init__": ", ".join(CODE_ROOMS), "__main__": "cli"}
DATA_FOLDERS = {"checkpoints", "configs"}

FILE_LINES, FUNCTION_LINES, EXAMPLE_LINES = 300, 60, 40
VAGUE_NAMES = {"utils", "util", "common", "core", "base", "helpers", "helper", "manager", "misc"}


class Import(NamedTuple):
    """One imported name: the line, and its dotted path with relative dots resolved."""

    line: int
    target: str


def imports_of(source: str, package: str) -> Iterator[Import]:
    """Every import in a source file of `package`, wherever it stands."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (Import(node.lineno, name.name) for name in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                above = package.split(".")[: package.count(".") + 2 - level] if level else []
                start = ".".join([*above, *([module] if module else [])])
                yield from (Import(node.lineno, f"{start}.{name.name}") for name in names)
            case ast.Call(func=ast.Attribute(attr=call) | ast.Name(id=call), args=[ast.Constant(value=str(name)), *_]):
                if call in ("import_module", "__import__"):
                    yield Import(node.lineno, name)


def is_allowed(room: str, target: str) -> bool:
    """Whether a room may import a dotted path; what is not ours is not judged here."""
    ours, _, path = target.partition(".")
    if ours != "mezzotint":
        return True
    rule = {**MAY_IMPORT, **DOORS}[room]
    allowed = CODE_ROOMS if rule == "every room" else rule.split(", ")
    if path == "__version__":
        return True
    return any(path == name or path.startswith(f"{name}.") for name in [room, *allowed])


def room_of(file: Path) -> str:
    """The room that a file of the package belongs to."""
    return file.relative_to(ROOT / "mezzotint").parts[0].removesuffix(".py")


def package_of(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).parent.parts)


def test_every_room_imports_only_what_the_table_allows() -> None:
    broken = []
    for file in code_under("mezzotint"):
        room = room_of(file)
        assert room in MAY_IMPORT or room in DOORS, f"{short(file)} is in no room of ARCHITECTURE.md"
        for line, target in imports_of(file.read_text(), package_of(file)):
            if not is_allowed(room, target):
                broken.append(f"{short(file)}:{line}: {room} may not import {target}")
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize(
    ("room", "package", "source"),
    [
        ("decoding", "mezzotint.decoding", "from mezzotint.model.kv import Cache"),
        ("decoding", "mezzotint.decoding", "from ..model import kv"),
        ("decoding", "mezzotint.decoding", "from .. import model"),
        ("decoding", "mezzotint.decoding", "def late():\n    import mezzotint.model"),
        ("text", "mezzotint.text", "if TYPE_CHECKING:\n    from mezzotint.engine import engine"),
        ("text", "mezzotint.text", "import importlib\nimportlib.import_module('mezzotint.engine')"),
        ("bench", "mezzotint.bench", "from mezzotint.server import app"),
        ("bench", "mezzotint.bench", "from mezzotint.server.protocols import Request"),
        ("text", "mezzotint.text", "import mezzotint"),
        ("types", "mezzotint", "from .text import tokenizer"),
        ("__init__", "mezzotint", "from mezzotint.cli import app"),
    ],
)
def test_an_arrow_that_points_right_is_found(room: str, package: str, source: str) -> None:
    assert not all(is_allowed(room, target) for _, target in imports_of(source, package))


@pytest.mark.parametrize(
    ("room", "package", "source"),
    [
        ("bench", "mezzotint.bench", "from mezzotint.server import protocol"),
        ("bench", "mezzotint.bench", "from mezzotint.server.protocol import Request"),
        ("model", "mezzotint.model.kernels", "from ..attention import attend"),
        (
            "decoding",
            "mezzotint.decoding",
            "import torch\nfrom torch import nn\nfrom mezzotint.types import Receipt",
        ),
        ("cli", "mezzotint.cli", "from mezzotint.router.config import Config"),
        ("llm", "mezzotint.llm", "from mezzotint import engine"),
    ],
)
def test_an_arrow_that_points_left_is_welcome(room: str, package: str, source: str) -> None:
    assert all(is_allowed(room, target) for _, target in imports_of(source, package))


def test_the_table_of_rooms_has_no_arrow_to_the_right() -> None:
    rooms = list(MAY_IMPORT)
    for position, room in enumerate(rooms):
        named = [] if MAY_IMPORT[room] in ("nothing", "every room") else MAY_IMPORT[room].split(", ")
        assert {name.split(".")[0] for name in named} <= set(rooms[:position]), room


def test_architecture_shows_the_same_table_and_marks_what_is_not_built() -> None:
    _, section = document("ARCHITECTURE.md").split("|---|---|---|", maxsplit=1)
    table, _ = section.split("\n\n", maxsplit=1)
    rows = re.findall(r"^\| (\*?)(\w+)\1 \| [^|]+ \| ([^|]+) \|$", table, re.MULTILINE)
    assert [(room, allowed) for _, room, allowed in rows] == list(MAY_IMPORT.items())
    marked_as_built = {room for star, room, _ in rows if not star}
    on_disk = {room_of(file) for file in files_under("mezzotint")} & set(MAY_IMPORT)
    assert marked_as_built == on_disk, "in ARCHITECTURE.md a room in *italics* is one that is not on disk"


def test_everything_in_the_package_belongs_to_a_room() -> None:
    ours = {room_of(file) for file in files_under("mezzotint")}
    assert ours <= {*MAY_IMPORT, *DOORS, *DATA_FOLDERS, "py.typed"}


def test_every_folder_of_code_is_a_package_so_that_a_wheel_holds_it() -> None:
    missing = {short(file.parent) for file in code_under("mezzotint") if not (file.parent / "__init__.py").exists()}
    assert not missing


def test_every_foreign_import_is_a_declared_dependency() -> None:
    project = tomllib.loads(document("pyproject.toml"))["project"]
    extras = [needs for extra, needs in project["optional-dependencies"].items() if extra != "test"]
    declared = {distribution(need) for need in sum(extras, project["dependencies"])}
    providers = packages_distributions()
    undeclared = []
    for file in code_under("mezzotint"):
        for line, target in imports_of(file.read_text(), package_of(file)):
            name = target.split(".")[0]
            if name == "mezzotint" or name in sys.stdlib_module_names:
                continue
            if not declared & {distribution(provider) for provider in providers.get(name, [name])}:
                undeclared.append(f"{short(file)}:{line}: {name}")
    assert not undeclared, "\n".join(undeclared)


def test_constraints_pin_every_dependency_exactly() -> None:
    lines = [line for line in document("constraints.txt").splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)
    project = tomllib.loads(document("pyproject.toml"))["project"]
    needs = sum(project["optional-dependencies"].values(), project["dependencies"])
    assert {distribution(need) for need in needs} <= {distribution(line) for line in lines}


def test_text_and_the_scheduler_touch_no_tensor() -> None:
    for file in code_under("mezzotint"):
        if room_of(file) == "text" or short(file) == "mezzotint/engine/scheduler.py":
            targets = [target for _, target in imports_of(file.read_text(), package_of(file))]
            assert not [target for target in targets if target.split(".")[0] == "torch"], short(file)


def test_no_file_is_longer_than_a_few_screens() -> None:
    for file in code_under("mezzotint", "benchmarks", "examples"):
        budget = EXAMPLE_LINES if (ROOT / "examples") in file.parents else FILE_LINES
        lines = len(file.read_text().splitlines())
        assert lines <= budget, f"{short(file)} has {lines} lines of at most {budget}: split it by concept"


def test_no_function_is_longer_than_a_screen() -> None:
    for file in code_under("mezzotint", "benchmarks", "examples"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                assert lines <= FUNCTION_LINES, f"{short(file)}:{node.lineno}: {node.name} has {lines} lines"


def test_no_file_has_a_name_that_says_nothing() -> None:
    for name in map(short, files()):
        assert not VAGUE_NAMES & {Path(part).stem for part in Path(name).parts}, name


def test_no_file_outside_the_tests_knows_a_path_of_one_machine() -> None:
    paths = [f"/{folder}/".encode() for folder in ("work", "root", "tmp")]
    for file in sorted(set(files()) - set(files_under("tests"))):
        content = file.read_bytes()
        assert not [path for path in paths if path in content], short(file)


def test_the_file_tree_in_the_readme_is_the_one_on_disk() -> None:
    for block in re.findall(r"^```\w*\n([^`]*├──[^`]*)^```", document("README.md"), re.MULTILINE):
        listed = tree_of(block)
        for folder in {path.parent for path in listed}:
            drawn = {path.name for path in listed if path.parent == folder}
            assert drawn == shown_on_disk(folder), f"the README draws {short(folder)} as it is not"


def test_a_drawn_tree_is_read_with_its_folders() -> None:
    block = "mezzotint/\n├── text/     ids\n│   ├── parse.py\n│   └── template.py\n└── llm.py    offline\n"
    names = ["text", "text/parse.py", "text/template.py", "llm.py"]
    assert tree_of(block) == [ROOT / "mezzotint" / name for name in names]


def distribution(requirement: str) -> str:
    """The normalised name of the distribution that a requirement asks for."""
    name = re.split(r"[^\w.-]", requirement)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def tree_of(block: str) -> list[Path]:
    """The paths of a drawn tree: its first line is a folder of the project, each line after it one name."""
    first, *lines = block.splitlines()
    parents = [ROOT / first.split()[0].rstrip("/")]
    listed = []
    for line in lines:
        if entry := re.match(r"([│ ]*)[├└]── (\S+)", line):
            depth = len(entry[1]) // 4
            listed.append(parents[depth] / entry[2].rstrip("/"))
            parents[depth + 1 :] = [listed[-1]]
    return listed


def shown_on_disk(folder: Path) -> set[str]:
    """What a tree must show of a folder: all but hidden, underscored and marker files."""
    names = {file.relative_to(folder).parts[0] for file in files() if folder in file.parents}
    return {name for name in names if not name.startswith((".", "_")) and name != "py.typed"}
