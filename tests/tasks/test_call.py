"""`call`: loops that hold together, calls that copy from request and response, and every near miss refused."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mezzotint
from mezzotint.tasks import Example, Split, requests
from mezzotint.tasks.call import CALL, Loop, accept, generate, is_same_call, play, record
from mezzotint.text.parse import Reply, ToolCall, encode_reply, parse_reply
from mezzotint.text.template import ChatTemplate
from mezzotint.text.tokenizer import Tokenizer

SPLITS: tuple[Split, ...] = ("train", "test")
SEEDS = st.integers(0, 2**40)
TYPES = {"string": str, "integer": int, "number": float, "boolean": bool}
OPEN_VALUE = re.compile(r"[A-Z]{2}-\d{4}|\d{4}-\d\d-\d\d|\d\d:\d\d|\d+\.\d\d")


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_directory(Path(mezzotint.__file__).parent / "checkpoints" / "lab")


@pytest.fixture(scope="module")
def template(tokenizer: Tokenizer) -> ChatTemplate:
    return ChatTemplate.from_directory(Path(mezzotint.__file__).parent / "checkpoints" / "lab", tokenizer)


def variant(name: str, split: Split = "test", start: int = 0) -> Example:
    """The first example of a variant from `start` on."""
    return next(example for seed in range(start, start + 100) if (example := generate(seed, split)).variant == name)


def properties(example: Example, call: ToolCall) -> dict[str, Any]:
    [found] = [tool["function"] for tool in example.tools if tool["function"]["name"] == call.name]
    schemas: dict[str, Any] = found["parameters"]["properties"]
    assert set(found["parameters"].get("required", ())) <= call.arguments.keys()
    return schemas


def history(example: Example) -> str:
    """What the arguments of an example may be copied from: its request and the responses so far."""
    responses = [back["response"] for message in example.messages[1:] for back in message["tool_responses"]]
    values = [str(value) for response in responses for value in response.values()]
    return " ".join([example.messages[0]["content"], *values])


@given(seed=SEEDS, split=st.sampled_from(SPLITS))
def test_an_example_is_a_call_or_words_and_depends_on_its_seed_only(seed: int, split: Split) -> None:
    example = generate(seed, split)
    assert generate(seed, split) == example
    assert example.family == CALL.name == "call"
    assert bool(example.calls) != bool(example.answer)
    assert bool(example.answer) == (example.variant == "answer")
    assert 2 <= len(example.tools) <= 4
    assert len(example.calls) <= 2
    assert accept(example, example.reply)
    assert not accept(example, Reply())


@given(seed=SEEDS, split=st.sampled_from(SPLITS))
def test_arguments_fit_their_declaration_and_stand_in_request_or_response(seed: int, split: Split) -> None:
    example = generate(seed, split)
    for call in example.calls:
        schemas = properties(example, call)
        assert list(call.arguments) == sorted(call.arguments)
        for key, value in call.arguments.items():
            assert type(value) is TYPES[schemas[key]["type"]]
            assert value in schemas[key].get("enum", [value])
            assert (key if isinstance(value, bool) else str(value)) in history(example)


def test_an_argument_that_nobody_mentioned_is_left_out() -> None:
    left_out = without_any = 0
    for seed in range(500):
        example = generate(seed, "train")
        for call in example.calls:
            left_out += len(call.arguments) < len(properties(example, call))
            without_any += not call.arguments
    assert left_out > 100
    assert without_any > 10


def test_all_variants_kinds_and_styles_occur() -> None:
    examples = [generate(seed, "train") for seed in range(1500)]
    variants = Counter(example.variant for example in examples)
    assert variants["first"] > 800
    assert variants["next"] > 150
    assert variants["answer"] > 200
    first = [example for example in examples if example.variant == "first"]
    assert Counter(len(example.calls) for example in first)[2] > 100
    assert sum(len({call.name for call in example.calls}) < len(example.calls) for example in first) > 20
    functions = [tool["function"] for example in examples for tool in example.tools]
    assert 0.05 < sum("description" in function for function in functions) / len(functions) < 0.2
    assert 0.05 < sum("required" in function["parameters"] for function in functions) / len(functions) < 0.2
    assert {len(example.tools) for example in examples} == {2, 3, 4}


@given(seed=SEEDS, split=st.sampled_from(SPLITS))
def test_a_loop_plays_to_its_end_with_every_response_in_the_next_turn(seed: int, split: Split) -> None:
    loop = play(seed, split)
    assert play(seed, split) == loop
    messages = list(loop.turns[0].messages)
    assert [message["role"] for message in messages] == ["user"]
    for turn in loop.turns[:-1]:
        assert list(turn.messages) == messages
        messages.append(record(turn.calls, [loop.respond(call) for call in turn.calls]))
    assert list(loop.turns[-1].messages) == messages
    variants = [turn.variant for turn in loop.turns]
    assert variants in (["first", "answer"], ["first", "next", "answer"])
    assert len({str(turn.tools) for turn in loop.turns}) == 1


def test_loops_of_every_length_occur() -> None:
    lengths = Counter(len(play(seed, "test").turns) for seed in range(200))
    assert set(lengths) == {2, 3}
    assert min(lengths.values()) > 20


def chained(seed: int = 0) -> Loop:
    return next(loop for at in range(seed, seed + 100) if len((loop := play(at, "test")).turns) == 3)


def test_the_next_call_hands_on_what_the_response_before_it_gave() -> None:
    for seed in range(0, 400, 7):
        loop = chained(seed)
        [given_back] = loop.exchanges[0].responses
        [call] = loop.turns[1].calls
        assert call.arguments == given_back
        assert not call.arguments.keys() & loop.turns[0].calls[0].arguments.keys()


def test_a_call_that_is_not_right_gets_an_error_back() -> None:
    loop = chained()
    [call] = loop.turns[0].calls
    assert loop.respond(call) == loop.exchanges[0].responses[0]
    assert loop.respond(call._replace(name="no_tool")) == {"error": "unknown call"}
    assert loop.respond(call._replace(arguments={**call.arguments, "extra": 1})) == {"error": "unknown call"}


@given(seed=SEEDS, split=st.sampled_from(SPLITS))
def test_words_tell_the_fields_asked_for_or_else_all(seed: int, split: Split) -> None:
    loop = play(seed, split)
    responses = loop.exchanges[-1].responses
    answer = loop.turns[-1].answer
    told = [
        [re.fullmatch(r"[Tt]he (\w+) is (.+)", part) for part in sentence.split(" and ")]
        for sentence in re.findall(r"The .+?\.(?= The |$)", answer)
    ]
    assert len(told) == len(responses)
    for parts, response in zip(told, responses, strict=True):
        fields = {part[1]: part[2].rstrip(".") for part in parts if part}
        assert len(fields) == len(parts)
        assert all(str(response[key]) == value for key, value in fields.items())
        if len(fields) < len(response):
            assert f"the {next(iter(fields))}" in loop.turns[0].messages[0]["content"]


def seen(split: Split, seeds: Sequence[int]) -> dict[str, set[str]]:
    """All that can be held out, as drawn for `seeds`."""
    found: dict[str, set[str]] = {"names": set(), "keys": set(), "words": set(), "values": set()}
    for seed in seeds:
        example = generate(seed, split)
        functions = [tool["function"] for tool in example.tools]
        found["names"] |= {function["name"] for function in functions}
        found["keys"] |= {key for function in functions for key in function["parameters"]["properties"] if "_" in key}
        text = history(example)
        found["values"] |= set(OPEN_VALUE.findall(text))
        mail = re.findall(r"\w+(?=@)|(?<=@)[a-z]+", text)
        found["words"] |= {word.capitalize() for word in mail} | set(re.findall(r"(?<=[a-z,] )[A-Z][a-z]+", text))
    return found


def test_what_is_held_out_never_occurs_in_train() -> None:
    train, test = (seen(split, range(4000)) for split in SPLITS)
    landmarks = {"Bay", "Cross", "Hill", "Mill", "Park", "Quay"}
    for kind, smallest in {"names": 60, "keys": 10, "values": 1000, "words": 1000}.items():
        assert len(test[kind] - landmarks) > smallest, kind
        assert not (train[kind] & test[kind]) - landmarks, kind


def test_only_odd_test_seeds_use_held_out_wordings(monkeypatch: pytest.MonkeyPatch) -> None:
    used: set[tuple[str, str]] = set()

    def draw(rng: Random, frames: Sequence[str], word: str, wording: Split) -> str:
        frame = original(rng, frames, word, wording)
        used.add((frame, word))
        return frame

    def wordings(split: Split, seeds: range) -> set[tuple[str, str]]:
        used.clear()
        for seed in seeds:
            generate(seed, split)
            play(seed, split)
        return set(used)

    original = requests.draw_frame
    monkeypatch.setattr(requests, "draw_frame", draw)
    train, odd = wordings("train", range(3000)), wordings("test", range(1, 3000, 2))
    assert len(odd) > 100
    assert not train & odd
    even = wordings("test", range(0, 3000, 2))
    assert not even & odd
    assert len(even & train) > 150


def test_questions_differ_between_seeds_and_splits() -> None:
    train, test = ({repr(generate(seed, split)) for seed in range(1000)} for split in SPLITS)
    assert len(train) == len(test) == 1000
    assert not train & test  # the names of tools alone see to that


@pytest.mark.parametrize("split", SPLITS)
def test_prompts_and_answers_stay_short(tokenizer: Tokenizer, template: ChatTemplate, split: Split) -> None:
    examples = [generate(seed, split) for seed in range(400)]
    prompts = sorted(len(template.encode(example.messages, tools=example.tools)) for example in examples)
    answers = sorted(len(encode_reply(example.reply, tokenizer)) for example in examples)
    assert sum(prompts) / len(prompts) < 180
    assert prompts[-20] < 250
    assert answers[-20] <= 50
    assert answers[-1] <= 64


def test_the_right_reply_is_accepted_as_a_model_writes_it(tokenizer: Tokenizer) -> None:
    for seed in range(200):
        example = generate(seed, "test")
        assert accept(example, parse_reply(encode_reply(example.reply, tokenizer), tokenizer))


@given(seed=SEEDS, data=st.data())
def test_a_changed_call_is_refused(seed: int, data: st.DataObject) -> None:
    example = variant(data.draw(st.sampled_from(["first", "next"])), start=seed)
    call, *rest = example.calls
    wrong = [call._replace(name=call.name + "s"), call._replace(arguments={**call.arguments, "extra": 1})]
    for key, value in call.arguments.items():
        other = {name: it for name, it in call.arguments.items() if name != key}
        wrong.append(call._replace(arguments=other))
        wrong.append(call._replace(arguments={**other, f"{key}s": value}))
        changes: list[Any] = [None, [value], {"value": value}]
        if isinstance(value, str):
            changes += [value + "s", value[:-1], value[::-1] + value]
        else:
            changes += [str(value), value + 1]
        if type(value) is int:
            changes += [float(value)]
        wrong += [call._replace(arguments={**other, key: change}) for change in changes]
    for one in wrong:
        assert not accept(example, Reply(calls=(one, *rest)))


@given(seed=SEEDS)
def test_order_number_and_company_of_calls_count(seed: int) -> None:
    example = variant("first", start=seed)
    calls = example.calls
    assert accept(example, Reply("\n ", calls=calls))
    for wrong in (calls[1:], (*calls, calls[0]), () if len(calls) < 2 else calls[::-1]):
        assert not accept(example, Reply(calls=wrong))
    for reply in (Reply("Sure.", calls=calls), Reply("", "Hm.", calls), Reply(calls=calls, faults=("A fault.",))):
        assert not accept(example, reply)


def test_the_order_of_arguments_does_not_matter() -> None:
    example = next(it for seed in range(200) if len((it := generate(seed, "test")).reply.calls) == 1)
    [call] = example.calls
    assert accept(example, Reply(calls=(call._replace(arguments=dict(sorted(call.arguments.items(), reverse=True))),)))


@given(seed=SEEDS)
def test_other_words_are_refused_and_white_space_is_not(seed: int) -> None:
    example = variant("answer", start=seed)
    answer = example.answer
    assert accept(example, Reply(f"\n{answer} "))
    for wrong in (answer[:-1], answer.lower(), f"{answer} {answer}", answer[1:], ""):
        assert not accept(example, Reply(wrong))
    for reply in (Reply(answer, "Hm."), Reply(answer, calls=(ToolCall("f", {}),)), Reply(answer, faults=("A fault.",))):
        assert not accept(example, reply)


@pytest.mark.parametrize(
    ("found", "right", "same"),
    [
        (3, 3.0, True),
        (3.0, 3.0, True),
        (3.0, 3, False),
        (True, 1, False),
        (True, 1.0, False),
        (1, True, False),
        (True, True, True),
        ("1", 1, False),
        (0.1 + 0.2, 0.3, False),
    ],
)
def test_a_number_counts_by_value_and_everything_else_by_type_too(found: Any, right: Any, same: bool) -> None:
    assert is_same_call(ToolCall("f", {"a": found}), ToolCall("f", {"a": right})) is same
    example = replace(variant("first"), calls=(ToolCall("f", {"a": right}),))
    assert accept(example, Reply(calls=(ToolCall("f", {"a": found}),))) is same


@pytest.mark.parametrize("draw", [generate, play])
def test_an_unknown_split_is_refused_by_name(draw: Any) -> None:
    with pytest.raises(ValueError, match="'valid'; use 'train' or 'test'"):
        draw(0, "valid")
