"""Tasks of the seeded families, each a chat with the family's own verifier."""

from collections.abc import Sequence

from mezzotint.bench.task import Hop, Task, Workload
from mezzotint.tasks import FAMILIES, Example, Family
from mezzotint.tasks.message import FamilyVerifier, write_messages

MAX_TASKS = 1_000_000  # the next seed's prompts begin where these end
_BLANKS = "infill"  # whose documents no chat can ask for


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
        verifier=FamilyVerifier(family=family, example=example),
        tools=example.tools,
        extra={"chat_template_kwargs": {"enable_thinking": True}} if example.thinking else {},
    )
