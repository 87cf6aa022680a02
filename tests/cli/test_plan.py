"""`mezzotint plan` from its flags to what it prints."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from mezzotint.cli import app

RELEASED = "diffusiongemma-26b-a4b"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["plan", *arguments])


def told(*arguments: str) -> dict[str, dict[str, Any]]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    objects: dict[str, dict[str, Any]] = json.loads(result.stdout)
    return objects


def test_the_released_model_is_planned_by_name_as_one_object_a_decoder() -> None:
    whole = "--accelerator h100 --dtype fp8 --context 4096 --output 1024 --concurrency 1".split()
    objects = told(RELEASED, *whole)
    assert list(objects) == ["ar", "mtp", "diffusion"]
    for each in objects.values():
        assert each["step_ms"] > 0
        assert each["tokens_per_s"] == each["tokens_per_s_per_user"] > 0
        assert each["memory"]["max_concurrency"] > 100
        assert list(each["memory"]["weights_bytes_by_dtype"]) == ["bf16", "fp8", "int8", "nvfp4", "int4"]
    assert objects["diffusion"]["r"] == pytest.approx(objects["diffusion"]["step_ms"] / objects["ar"]["step_ms"])
    assert set(objects["diffusion"]["crossover"]) == {"ar", "mtp"}


def test_several_requests_share_the_tokens() -> None:
    objects = told(RELEASED, "--dtype", "fp8", "--concurrency", "8")
    assert objects["ar"]["tokens_per_s"] == pytest.approx(8 * objects["ar"]["tokens_per_s_per_user"])
    assert objects["ar"]["tokens_per_s"] == pytest.approx(8e3 / objects["ar"]["step_ms"])


def test_the_text_has_a_row_a_decoder_and_says_where_diffusion_falls_behind() -> None:
    result = run(RELEASED, "--dtype", "fp8", "--tokens-per-forward", "16")
    assert result.exit_code == 0
    rows = [line.split()[0] for line in result.stdout.splitlines() if line]
    assert rows.count("ar") == rows.count("mtp") == rows.count("diffusion") == 3
    assert "Diffusion falls behind mtp at 22.7 requests at once." in result.stdout
    assert "arXiv 2608.00146" in result.stdout
    assert "bf16 51.6 GB, fp8 27.2 GB, int8 27.2 GB, nvfp4 16.5 GB, int4 15.3 GB" in result.stdout


def test_what_never_crosses_is_said_so() -> None:
    said = run(RELEASED, "--dtype", "fp8", "--steps", "1").stdout
    assert "Diffusion is ahead of ar for 1 to 139 requests at once: no crossover." in said
    assert "Diffusion is behind ar for one request already." in run(RELEASED, "--dtype", "fp8", "--steps", "200").stdout


def test_a_bundled_model_is_planned_with_its_drafter() -> None:
    objects = told("lab", "--accelerator", "cpu", "--verified-keeps", "20")
    assert list(objects) == ["ar", "mtp", "diffusion", "verified"]
    assert objects["verified"]["tokens_per_step"] == 20


def test_a_folder_needs_no_weights_but_says_how_long_its_canvas_takes(tiny: Path, tmp_path: Path) -> None:
    shutil.copy(tiny / "config.json", tmp_path)
    refused = run(str(tmp_path))
    assert refused.exit_code == 2
    assert "give --steps or --tokens-per-forward" in refused.stderr
    assert list(told(str(tmp_path), "--steps", "4", "--context", "64", "--output", "64")) == ["ar", "diffusion"]
    assert "mtp" in told(str(tmp_path), "--steps", "4", "--output", "64", "--drafter", drafter_for(tmp_path))


def drafter_for(folder: Path) -> str:
    """The bundled drafter's shape, as if it had been made for this model."""
    from mezzotint.model.locate import BUNDLED

    beside = folder / "drafter"
    beside.mkdir()
    config = json.loads((BUNDLED / "lab-drafter" / "config.json").read_text())
    config["backbone_hidden_size"] = json.loads((folder / "config.json").read_text())["text_config"]["hidden_size"]
    (beside / "config.json").write_text(json.dumps(config))
    return str(beside)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], f"there are: {RELEASED}; bundled are: lab; or name the folder"),
        ([RELEASED, "--accelerator", "h1"], "--accelerator is 'h1'"),
        ([RELEASED, "--dtype", "fp6"], "--dtype is 'fp6'"),
        ([RELEASED, "--steps", "4", "--tokens-per-forward", "9"], "drop one of the two"),
        ([RELEASED, "--steps", "nan"], "--steps is nan; a canvas needs a finite number of at least 1"),
        ([RELEASED, "--steps", "inf"], "--steps is inf; a canvas needs a finite number of at least 1"),
        (["--errors", "--steps", "3"], "--errors compares with published figures alone; drop all flags"),
        (["--errors", "lab"], "--errors compares with published figures alone; drop all flags"),
        ([RELEASED, "--accelerator", "rtx4090"], "take --dtype nvfp4 or int4"),
        ([RELEASED, "--accelerator", "cpu"], "choose another"),
        (["lab", "--context", "9999"], "exceed the model's 4096 positions"),
        (["lab", "--output", "9999"], "exceed the model's 4096 positions"),
    ],
)
def test_what_cannot_be_planned_is_one_line_with_the_remedy(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert result.stdout == ""


def test_a_drafter_of_another_model_is_refused() -> None:
    from mezzotint.model.locate import BUNDLED

    result = run(RELEASED, "--dtype", "fp8", "--drafter", str(BUNDLED / "lab-drafter"))
    assert result.exit_code == 2
    assert "drafts for a model of width 256, this one has 2816" in result.stderr


def test_errors_against_published_figures_are_printed() -> None:
    rows = run("--errors").stdout.splitlines()
    assert rows[0].split() == ["published", "measured", "predicted", "error"]
    assert any(row.startswith("crossover of diffusion and mtp") and row.endswith("%") for row in rows)
    whole = json.loads(run("--errors", "--json").stdout)
    assert len(whole) == len(rows) - 1
    assert {"what", "published", "predicted", "error"} == set(whole[0])


def test_a_plan_waits_for_no_torch() -> None:
    asked = f"import sys; sys.argv = ['mezzotint', 'plan', '{RELEASED}', '--dtype', 'fp8']; import mezzotint.cli as c\n"
    ended = "try: c.app()\nexcept SystemExit: pass\nprint('torch' in sys.modules, 'scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked + ended], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False False"
