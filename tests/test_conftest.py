"""What conftest.py lays on every test: no network, and no quiet skip where the data are required."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.disk import ROOT


@pytest.mark.parametrize(("required", "outcome"), [("0", "1 passed, 2 skipped"), ("1", "1 passed, 2 errors")])
def test_a_skip_for_want_of_data_fails_where_the_data_are_required(tmp_path: Path, required: str, outcome: str) -> None:
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_some.py").write_text("def test_one(data_dir): ...\ndef test_two(): ...")
    (tmp_path / "test_none.py").write_text("import pytest\npytest.skip('no MEZZOTINT_DATA', allow_module_level=True)")
    environment = {name: value for name, value in os.environ.items() if name != "MEZZOTINT_DATA"}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "--continue-on-collection-errors", tmp_path],
        env={**environment, "MEZZOTINT_REQUIRE_DATA": required},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome in run.stdout


def test_a_connection_that_leaves_this_machine_fails_the_test() -> None:
    elsewhere = ("192.0.2.1", 9)  # an address that is reserved for documentation
    with socket.socket() as client, pytest.raises(pytest.fail.Exception, match="this machine only"):
        client.connect(elsewhere)


def test_a_connection_within_this_machine_is_made() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.connect(server.getsockname())
