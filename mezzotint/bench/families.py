"""Tasks of the seeded families: their chats in OpenAI's form, and their verifiers for answers in that form."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mezzotint.bench.task import Hop, Task, Workload
from mezzotint.tasks import FAMILIES, Example, Family
from mezzotint.text.parse import Reply, ToolCall
from mezzotint.types import Verdict

MAX_TASKS = 1_000_000  # the next seed's prompts begin where these end
_BLANKS = "infill"  # whose documents no chat can ask for


class FamilyVerifier:
    """Judges an answer as its family does."""

    def __init__(self, family: Family, example: Example) -> None:
        """example: the question with its right answer."""
        self._family, self._example = family, example

    async def verify(self, messages: Sequence[Mapping[str, Any]], answer: Mapping[str, Any]) -> Verdict:
        """Whether it is the right answer, however it is spelled."""
        is_right = self._family.accept(self._example, read_message(answer))
        return Verdict(is_right, "" if is_right else f"not the right answer of {self._family.name}")


def family_workload(names: Sequence[str], *, seed: int, retrieval_s: float = 0.0) -> Workload:
    """Held-out prompts of families, taking turns; prompt i of seed s is example s × 10^6 + i, as evaluate has it.

    Raises: ValueError naming a family that there is not, or that chats cannot ask.
    """
    for name in names:
        if name not in FAMILIES or name == _BLANKS:
            known = ", ".join(family for family in FAMILIES if family != _BLANKS)
            raise ValueError(f"task is {name!r}, which is no family that chats can ask; choose from {known}")

    def make(index: int) -> Task:
        name, number = names[index % len(names)], seed * MAX_TASKS + index
        hop = family_hop(FAMILIES[name], FAMILIES[name].generate(number, "test"))
        return Task(id=f"{name} {number}", family=name, seed=number, hops=(hop,), retrieval_s=retrieval_s)

    note = f"held-out prompts of {', '.join(names)}; accepted by the family's exact verifier"
    return Workload(name="+".join(names), make=make, note=note, digest=f"families {','.join(names)} seed {seed}")


def family_hop(family: Family, example: Example) -> Hop:
    """One example as a chat."""
    return Hop(
        messages=tuple(write_messages(example.messages)),
        verifier=FamilyVerifier(family, example),
        tools=example.tools,
        extra={"chat_template_kwargs": {"enable_thinking": True}} if example.thinking else {},
    )


def write_messages(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A talk as OpenAI's clients send it: the response to each call is a message of its own."""
    written: list[dict[str, Any]] = []
    for turn, message in enumerate(messages):
        if "tool_calls" not in message:
            written.append(dict(message))
            continue
        calls = [
            {
                "id": f"call_{turn}_{at}",
                "type": "function",
                "function": {
                    "name": call["function"]["name"],
                    "arguments": json.dumps(call["function"]["arguments"], ensure_ascii=False),
                },
            }
            for at, call in enumerate(message["tool_calls"])
        ]
        written.append({"role": "assistant", "content": None, "tool_calls": calls})
        for call, back in zip(calls, message.get("tool_responses", ()), strict=False):
            content = json.dumps(back["response"], ensure_ascii=False)
            written.append({"role": "tool", "tool_call_id": call["id"], "content": content})
    return written


def read_message(answer: Mapping[str, Any]) -> Reply:
    """An assistant's message in OpenAI's form as a reply; `faults` in it are what a server found badly written."""
    faults, calls = list(answer.get("faults", ())), []
    for call in answer.get("tool_calls") or ():
        function = call.get("function", {})
        try:
            arguments = json.loads(function.get("arguments") or "{}")
        except (ValueError, RecursionError):
            arguments = None
        if isinstance(arguments, dict):
            calls.append(ToolCall(function.get("name", ""), arguments))
        else:
            faults.append(f"The arguments of {function.get('name', '')} are no JSON object.")
    reasoning = answer.get("reasoning_content") or answer.get("reasoning") or ""
    return Reply(answer.get("content") or "", reasoning, tuple(calls), tuple(faults))
