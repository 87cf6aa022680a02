"""What every test starts from: one thread, no network, the same examples each time, the data."""

import os
import socket
from collections.abc import Generator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: the models are too small to share among threads
os.environ["HF_HUB_OFFLINE"] = "1"

import hypothesis
import pytest

hypothesis.settings.register_profile("mezzotint", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("mezzotint")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of benchmark data; without it the test is skipped, or fails where the data are required."""
    if not (folder := os.environ.get("MEZZOTINT_DATA")):
        pytest.skip("MEZZOTINT_DATA is unset; it names the folder that holds MANIFEST.json")
    if not Path(folder, "MANIFEST.json").is_file():
        pytest.fail(f"MEZZOTINT_DATA is {folder!r}, which holds no MANIFEST.json")
    return Path(folder)


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that leaves this machine fails the test that makes it."""
    connect = socket.socket.connect

    def connect_here(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):
            pytest.fail(f"a test may reach this machine only, not {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect_here)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is marked gpu where there is no CUDA device."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked and not _has_cuda():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))


def _has_cuda() -> bool:
    import torch  # here: collecting tests that need no GPU must not wait for it

    return torch.cuda.is_available()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where MEZZOTINT_REQUIRE_DATA is 1, a test that was skipped for want of the data has failed."""
    report = yield
    _insist_on_data(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a whole file that was skipped."""
    report = yield
    _insist_on_data(report)
    return report


def _insist_on_data(report: pytest.TestReport | pytest.CollectReport) -> None:
    required = os.environ.get("MEZZOTINT_REQUIRE_DATA") == "1"
    if required and report.skipped and "MEZZOTINT_DATA" in str(report.longrepr):
        report.outcome = "failed"
        report.longrepr = f"the benchmark data are required here, and this was skipped: {report.longrepr}"
