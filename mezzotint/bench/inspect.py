"""What can be said of an answer after its point is over, so that nothing of it is paid for by the clock."""

from dataclasses import replace

from mezzotint.bench.record import Played, Request
from mezzotint.bench.task import Hop, Task
from mezzotint.tasks.message import FamilyVerifier
from mezzotint.text.detect import detect


async def inspect(played: Played, task: Task) -> Played:
    """Add to each request the signs that its text went wrong, and when it would have been accepted as it stood."""
    told = [await _inspect(request, task.hops[request.hop]) for request in played.requests]
    return replace(played, requests=tuple(told))


async def _inspect(request: Request, hop: Hop) -> Request:
    return replace(request, findings=_find_signs(request, hop), usable_s=await _find_usable(request, hop))


def _find_signs(request: Request, hop: Hop) -> tuple[str, ...]:
    """Kinds of signs; calls of tools may stand alone, and a text that was cut short leaves brackets open by right."""
    if request.category or (request.finish_reason == "tool_calls" and not request.text.strip()):
        return ()
    known = "\n".join(str(message.get("content") or "") for message in hop.messages)
    kinds = {finding.kind for finding in detect(request.text, known=known)}
    return tuple(sorted(kinds - ({"bracket"} if request.finish_reason == "length" else set())))


async def _find_usable(request: Request, hop: Hop) -> float | None:
    """The first arrival by which the text was right; tried of accepted content whose verifier costs next to nothing."""
    if request.outcome != "accepted" or not isinstance(hop.verifier, FamilyVerifier) or not request.text:
        return None
    for at_s, length in zip(request.arrivals, request.lengths, strict=True):
        message = {"role": "assistant", "content": request.text[:length]}
        if (await hop.verifier.verify(hop.messages, message)).accepted:
            return at_s
    return None
