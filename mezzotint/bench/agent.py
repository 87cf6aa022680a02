"""An agent's inner loop: dozens of short hops with waits for tools between, played with tools that do not exist.

A task strings loops of the `call` family together. A hop that reads a request and decides what is called is a `plan`;
one that goes on with what a tool gave back is a `tool` hop. A hop is asked with the right history, which is the model's
own wherever its answers were accepted, and without that the task goes no further.
"""

from itertools import count

from mezzotint.bench.families import MAX_TASKS, family_hop
from mezzotint.bench.task import Hop, Task, Workload
from mezzotint.tasks import FAMILIES, Example
from mezzotint.tasks.call import play


def agent_workload(*, hops: int, tool_wait_s: float, seed: int, retrieval_s: float = 0.0) -> Workload:
    """Tasks of at least `hops` hops, whole loops all of them. tool_wait_s: before each hop that a tool answers to.

    Raises: ValueError for fewer than one hop.
    """
    if hops < 1:
        raise ValueError(f"hops is {hops}; give an agent's task at least 1")

    def make(index: int) -> Task:
        number, made = seed * MAX_TASKS + index, list[Hop]()
        for loop in count():
            if len(made) >= hops:
                break
            made += [_hop(turn, tool_wait_s) for turn in play(number * 64 + loop, "test").turns]
        return Task(id=f"agent {number}", family="agent", seed=number, hops=tuple(made), retrieval_s=retrieval_s)

    note = f"{hops} hops or a few more, {tool_wait_s:g} s for a tool; each hop accepted by the family's exact verifier"
    return Workload(name="agent", make=make, note=note, digest=f"agent {hops} hops {tool_wait_s:g} s seed {seed}")


def _hop(turn: Example, tool_wait_s: float) -> Hop:
    hop = family_hop(FAMILIES["call"], turn)
    is_first = turn.variant == "first"
    return Hop(
        messages=hop.messages,
        verifier=hop.verifier,
        tools=hop.tools,
        kind="plan" if is_first else "tool",
        wait_s=0.0 if is_first else tool_wait_s,
    )
