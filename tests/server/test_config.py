"""A server that strangers could use without a key is refused, and so is what makes no sense."""

from typing import Any

import pytest

from mezzotint.server.config import ServerConfig


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.8.9.1"])
def test_this_machine_needs_no_key(host: str) -> None:
    ServerConfig(host=host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", ""])
def test_others_need_one(host: str) -> None:
    with pytest.raises(ValueError, match="there is no api_key"):
        ServerConfig(host=host)
    ServerConfig(host=host, api_keys=("secret",))


@pytest.mark.parametrize(
    "given",
    [
        {"port": 70000},
        {"api_keys": ("",)},
        {"api_keys": ("schlüssel",)},
        {"rate": "1/minute"},
        {"max_waiting": 0},
        {"deadline_s": -1.0},
    ],
)
def test_what_makes_no_sense_is_refused_by_name(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="api_key" if "rate" in given else next(iter(given)).removesuffix("s")):
        ServerConfig(**given)
