"""What an engine is told: sizes of memory, chunk and queue; nothing runs here."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    """One engine.

    memory_bytes: of keys and values; None takes half of what is free. page_size: tokens a page.
    chunk_tokens: prompt tokens that one engine step may encode, which is how long prefill may delay a denoising step.
    max_rows: requests that run at once, memory permitting. max_waiting: requests that may wait; more are refused.
    prefix_cache: whether pages outlive their request for others to share.
    drafts: whether canvases are told after every step.
    Raises: ValueError naming field, value and limit.
    """

    memory_bytes: int | None = None
    page_size: int = 16
    chunk_tokens: int = 512
    max_rows: int = 64
    max_waiting: int = 10_000
    prefix_cache: bool = True
    drafts: bool = True

    def __post_init__(self) -> None:
        for name in ("page_size", "chunk_tokens", "max_rows", "max_waiting"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.memory_bytes is not None and self.memory_bytes < 1:
            raise ValueError(f"memory_bytes is {self.memory_bytes}; give None or at least 1")
