"""What the command line does before a verb runs: little."""

import subprocess
import sys

from typer.testing import CliRunner

import mezzotint
from mezzotint.cli import app
from tests.disk import ROOT

# A stand-in for the package's front door, so that this sees what the command line itself imports.
_IMPORT = f"""
import sys, types
package = types.ModuleType("mezzotint")
package.__path__, package.__version__ = [{str(ROOT / "mezzotint")!r}], "0"
sys.modules["mezzotint"] = package
import mezzotint.cli
print([name for name in ("torch", "huggingface_hub", "transformers", "numpy") if name in sys.modules])
"""


def test_help_waits_for_no_heavy_library() -> None:
    done = subprocess.run([sys.executable, "-c", _IMPORT], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_version_is_that_of_the_package() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout == f"mezzotint {mezzotint.__version__}\n"


def test_without_a_verb_the_verbs_are_listed() -> None:
    text = CliRunner().invoke(app, []).output
    assert all(verb in text for verb in ("generate", "chat", "models", "train"))
