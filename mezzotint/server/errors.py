"""What a client is told when it gets no answer, in the shape that OpenAI's clients read."""

import re
from typing import Any, Literal

from mezzotint.engine.request import Failed

Kind = Literal[
    "invalid_request_error", "authentication_error", "rate_limit_error", "not_found_error", "server_error", "timeout"
]
_FIRST_WORD = re.compile(r"[a-z_]+(?:\.[a-z_]+)*")


class ApiError(Exception):
    """A request that is refused, or that failed.

    status: of HTTP. kind: `type` on the wire. code: a word that programs test for. param: the field that is wrong.
    retry_after_s: when to try again, where that is known.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: Kind = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        """All as the class describes."""
        super().__init__(message)
        self.status, self.message, self.kind = status, message, kind
        self.code, self.param, self.retry_after_s = code, param, retry_after_s

    @property
    def body(self) -> dict[str, Any]:
        """As JSON."""
        told = {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}
        return {"error": told}

    @property
    def headers(self) -> dict[str, str]:
        """That go with it."""
        return {} if self.retry_after_s is None else {"retry-after": str(self.retry_after_s)}


def refuse(error: ValueError, fields: frozenset[str] = frozenset()) -> ApiError:
    """What is wrong with a request, as a room below found it. fields: names of which its first word may be one."""
    message = str(error)
    first = _FIRST_WORD.match(message)
    param = first[0] if first and first[0].split(".")[0] in fields else None
    code = "context_length_exceeded" if "the context" in message and "exceed" in message else None
    return ApiError(400, message, param=param, code=code)


def explain(failed: Failed) -> ApiError:
    """Why a request that was taken has no answer."""
    if failed.kind == "deadline":
        return ApiError(504, failed.reason, kind="timeout", code="deadline")
    if failed.kind in ("stopped", "cancelled"):
        return ApiError(503, failed.reason, kind="server_error", code=failed.kind, retry_after_s=1)
    return ApiError(500, failed.reason, kind="server_error", code=failed.kind)
