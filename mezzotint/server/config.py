"""What a server is told: where it listens, who may ask, and how much; nothing runs here."""

from dataclasses import dataclass
from ipaddress import ip_address


@dataclass(frozen=True, kw_only=True)
class ServerConfig:
    """One server.

    api_keys: any of which a client has to show; none lets everybody in, and then only this machine may ask.
    rate: most requests of a key, as "60/minute"; None for any number. max_body_bytes: of a request.
    max_waiting: requests that may wait for the engine; more are refused with 429. deadline_s: from arrival to the last
    token, for requests that name none. keep_alive_s: of silence in a stream before a comment is sent.
    default_max_tokens: of requests that name none, less where the context is short.
    max_prompt_tokens: None leaves it to the context. max_choices: answers to one request.
    cors_origins: browsers' pages that may ask; "*" is any. compatible_metrics: names as vLLM has them beside ours.
    Raises: ValueError naming field, value and remedy.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    api_keys: tuple[str, ...] = ()
    rate: str | None = None
    max_body_bytes: int = 4 << 20
    max_waiting: int = 128
    deadline_s: float = 600.0
    keep_alive_s: float = 10.0
    default_max_tokens: int = 1024
    max_prompt_tokens: int | None = None
    max_choices: int = 16
    cors_origins: tuple[str, ...] = ("*",)
    compatible_metrics: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ValueError(f"port is {self.port}; give one from 1 to 65535, or 0 for any that is free")
        if not self.api_keys and not is_loopback(self.host):
            raise ValueError(
                f"host is {self.host!r}, which others can reach, and there is no api_key; name one, or take 127.0.0.1"
            )
        if not all(key and key.isascii() for key in self.api_keys):
            raise ValueError("an api_key is empty or not ASCII, and no client could send it; give another")
        if self.rate is not None and not self.api_keys:
            raise ValueError(f"rate is {self.rate!r}, which counts by key, and there is no api_key; name one")
        for name in (
            "max_body_bytes",
            "max_waiting",
            "deadline_s",
            "keep_alive_s",
            "default_max_tokens",
            "max_choices",
        ):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be above 0")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens on `host`."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
