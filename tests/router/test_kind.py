"""What is read of a request: its class, told from the body alone, and its limits, needs and talk."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from mezzotint.router.kind import classify, read_ask
from mezzotint.tasks import FAMILIES, Example, Split

N = 60
HELLO = [{"role": "user", "content": "Hello there"}]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def read(**body: Any) -> Any:
    return read_ask({"model": "auto", "messages": HELLO, **body}, prompt_tokens=20, default_max_tokens=512)


def body_of(example: Example, *, declares: bool) -> dict[str, Any]:
    """An example as a client would send it; declares: whether with the form of its answer."""
    messages: list[dict[str, Any]] = [dict(message) for message in example.messages]
    if example.begins:
        messages.append({"role": "assistant", "content": example.begins})
    body: dict[str, Any] = {"model": "auto", "messages": messages}
    if example.tools:
        body["tools"] = list(example.tools)
    if declares and example.schema is not None:
        if example.family == "choose":
            body["structured_outputs"] = {"choice": example.schema["enum"]}
        else:
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "a", "schema": example.schema}}
    return body


def classes(split: Split, *, declares: bool) -> dict[str, Counter[str]]:
    """How many examples of each family are in each class."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name, family in FAMILIES.items():
        for seed in range(N):
            body = body_of(family.generate(seed, split), declares=declares)
            tokens = sum(len(str(message.get("content") or "")) for message in body["messages"]) // 3
            found[classify(body, tokens)][name] += 1
    return found


def confusion(found: dict[str, Counter[str]]) -> Iterator[str]:
    for kind, counts in sorted(found.items()):
        yield f"{kind:26} {', '.join(f'{family} {count}' for family, count in counts.most_common())}"


@pytest.mark.parametrize("declares", [False, True])
@pytest.mark.parametrize("split", ["train", "test"])
def test_classes_hold_one_family_each_or_nearly(split: Split, declares: bool) -> None:
    found = classes(split, declares=declares)
    print(*confusion(found), sep="\n")
    pure = sum(max(counts.values()) for counts in found.values())
    assert pure / (N * len(FAMILIES)) > 0.97
    assert len(found) < 30


@pytest.mark.parametrize("declares", [False, True])
def test_prompts_with_words_that_were_held_out_are_in_classes_that_were_seen(declares: bool) -> None:
    known, new = (classes(split, declares=declares) for split in ("train", "test"))
    count = sum(sum(counts.values()) for kind, counts in new.items() if kind in known)
    assert count / (N * len(FAMILIES)) > 0.97


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({}, "text-any"),
        ({"max_tokens": 20}, "text-short"),
        ({"max_completion_tokens": 100}, "text-medium"),
        ({"max_tokens": 1000}, "text-long"),
        ({"messages": [*HELLO, {"role": "assistant", "content": "Hi"}, *HELLO]}, "talk-any"),
        ({"messages": [*HELLO, {"role": "assistant", "content": "Hi, I"}]}, "go-on-any"),
        ({"messages": [{"role": "user", "content": "The sky is ____."}]}, "fill-any"),
        ({"messages": [{"role": "user", "content": "```\nx = 1\n```"}]}, "code-short"),
        ({"tools": [TOOL]}, "call-short"),
        ({"tools": [TOOL], "tool_choice": "none"}, "text-any"),
        ({"tools": [TOOL], "messages": [*HELLO, {"role": "tool", "content": "3"}]}, "told-short"),
        ({"response_format": {"type": "json_object"}}, "schema-short"),
        ({"response_format": {"type": "text"}}, "text-any"),
        ({"structured_outputs": {"choice": ["a", "b"]}}, "choice-short"),
        ({"structured_outputs": {"json": {"enum": ["a", "b"]}}}, "choice-short"),
        ({"structured_outputs": {"regex": "a+"}}, "grammar-any"),
    ],
)
def test_the_class_tells_form_and_expected_length(body: dict[str, Any], kind: str) -> None:
    assert classify({"model": "auto", "messages": HELLO, **body}, 20) == kind


@pytest.mark.parametrize(("leaves", "length"), [(1, "short"), (6, "medium"), (40, "long")])
def test_a_schema_with_more_leaves_has_longer_answers(leaves: int, length: str) -> None:
    inner = {"type": "object", "properties": {f"f{n}": {"type": "string"} for n in range(leaves)}}
    schema = {"type": "object", "properties": {"inner": inner}}
    body = {"messages": HELLO, "response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}
    assert classify(body, 20) == f"schema-{length}"


def test_requests_of_one_program_share_a_frame_and_those_of_people_have_none() -> None:
    def framed(system: str, user: str) -> str:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        return classify({"messages": messages}, 20)

    assert framed("You sort mail.", "first") == framed("You sort mail.", "second")
    assert framed("You sort mail.", "first") != framed("You write poems.", "first")
    data = [{"role": "user", "content": f"Extract the fields: {n}\nof line {n}"} for n in range(2)]
    assert len({classify({"messages": [message]}, 20) for message in data}) == 1
    assert "#" not in classify({"messages": HELLO}, 20)


def test_limits_and_goal_are_read() -> None:
    route = {"deadline_ms": 1500, "max_cost_usd": 0.01, "max_attempts": 3, "risk": 0.2, "explore": False}
    ask = read(model="auto:fast", max_tokens=99, x_route={**route, "accept": {"type": "exact", "value": "x"}})
    assert (ask.goal, ask.most_tokens, ask.deadline_s, ask.max_cost_usd) == ("fast", 99, 1.5, 0.01)
    assert (ask.max_attempts, ask.risk, ask.explore, ask.verifies) == (3, 0.2, False, True)


def test_what_is_not_said_keeps_its_default() -> None:
    ask = read()
    assert (ask.goal, ask.most_tokens, ask.deadline_s, ask.max_cost_usd) == ("balanced", 512, 600.0, None)
    assert (ask.verifies, ask.explore, ask.needs) == (False, True, frozenset())


def test_needs_are_read() -> None:
    assert read(tools=[TOOL], logprobs=True, seed=0).needs == {"tools", "logprobs", "seed"}
    assert read(response_format={"type": "json_object"}).needs == {"schema"}
    assert read(structured_outputs={"regex": "a"}).needs == {"grammar"}
    assert read(chat_template_kwargs={"enable_thinking": True}).needs == {"thinking"}
    assert read(reasoning_effort="none").needs == frozenset()
    assert read(x_route={"decoder": "ar"}).needs == {"decoder:ar"}
    assert read(model="lab-ar").needs == {"arm:lab-ar"}


def test_all_turns_of_a_talk_have_one_session_and_another_talk_has_another() -> None:
    first = read()
    second = read(messages=[*HELLO, {"role": "assistant", "content": "Hi"}, {"role": "user", "content": "More"}])
    other = read(messages=[{"role": "user", "content": "Hello you"}])
    assert first.session == second.session != other.session


def test_content_in_parts_is_read_as_their_text() -> None:
    parts = [{"type": "text", "text": "Repair it.\n"}, {"type": "text", "text": "def f(x):\n    return x"}]
    whole = {"role": "user", "content": "Repair it.\ndef f(x):\n    return x"}
    assert classify({"messages": [{"role": "user", "content": parts}]}, 20) == classify({"messages": [whole]}, 20)
