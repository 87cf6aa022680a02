"""One server for all tests of a process that do not need their own."""

from collections.abc import Iterator

import httpx2
import pytest

from tests.server.running import Running, make_backend, serving


@pytest.fixture(scope="session")
def server() -> Iterator[Running]:
    with serving(make_backend()) as running:
        yield running


@pytest.fixture
def http(server: Running) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server.url, timeout=60) as client:
        yield client
