"""Answers under real grammars: whatever a model says, what is finished is valid, in every decoder."""

import json
import re
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch

from mezzotint import LLM, SamplingParams
from mezzotint.model.assistant import AssistantNetwork
from mezzotint.model.assistant_weights import write_assistant
from mezzotint.tasks import FAMILIES
from mezzotint.text.call_grammar import compile_calls
from mezzotint.text.grammar import Grammars
from mezzotint.text.parse import parse_reply
from mezzotint.text.tokenizer import Tokenizer
from mezzotint.train.drafter import drafter_config
from mezzotint.types import DecoderName
from tests.llm.tiny import CHAT
from tests.text.test_schema import draw_schema
from tests.text.walks import is_valid, read_suite

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "set_light",
            "parameters": {
                "type": "object",
                "properties": {"room": {"enum": ["hall", "attic"]}, "level": {"type": "integer", "maximum": 9}},
                "required": ["room"],
            },
        },
    }
]
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
}


@pytest.fixture(scope="module")
def lab() -> LLM:
    return LLM("lab")


def decoders(llm: LLM) -> list[DecoderName]:
    """All that this checkpoint has; mtp needs a drafter."""
    return ["diffusion", "ar", "verified", *(["mtp"] if (llm.path.parent / "lab-drafter").is_dir() else [])]


def judge(llm: LLM, schemas: list[tuple[Any, str]], room: int) -> int:
    """Answer under each schema in every decoder; all that is finished has to be valid. Returns: how many are."""
    finished = 0
    for seed, (schema, draft) in enumerate(schemas):
        grammar = llm.grammars.from_schema(schema)
        fits = grammar.start().closure(room - 1) is not None
        for decoder in decoders(llm):
            params = SamplingParams(decoder=decoder, max_tokens=room, seed=seed)
            [completion] = llm.generate(CHAT, params, grammar=grammar)
            if completion.finish_reason == "stop":
                finished += 1
                assert is_valid(schema, json.loads(completion.text), draft), (decoder, schema, completion.text)
            else:
                assert not fits, (decoder, schema, completion.text)
                assert grammar.start().count_valid(completion.token_ids) == room == len(completion.token_ids)
    return finished


def test_every_finished_answer_of_an_untrained_model_is_valid_under_random_nested_schemas(llm: LLM) -> None:
    schemas = [(draw_schema(Random(seed), 2), "draft2020-12") for seed in range(24)]
    assert judge(llm, schemas, 60) > 30


def test_every_finished_answer_of_an_untrained_model_is_valid_under_schemas_of_the_public_suite(
    llm: LLM, data_dir: Path
) -> None:
    accepted = []
    for group in Random(3).sample(read_suite(data_dir), 60):
        try:
            llm.grammars.from_schema(group.declared)
        except ValueError:
            continue
        if group.draft != "draft3":  # which nobody judges
            accepted.append((group.declared, group.draft))
    assert len(accepted) > 15
    assert judge(llm, accepted[:20], 40) > 30


def test_every_finished_answer_is_valid_where_an_untrained_drafter_guesses(llm: LLM, tmp_path: Path) -> None:
    drafter = AssistantNetwork(drafter_config(llm.model.config, guesses=2))
    for parameter in drafter.parameters():
        torch.nn.init.normal_(parameter, 0, 0.2, generator=torch.Generator().manual_seed(0))
    write_assistant(drafter, tmp_path / "drafter", dtype=torch.float32)
    guided = LLM(str(llm.path), drafter=str(tmp_path / "drafter"))
    guesses = 0
    for seed in range(200, 208):
        schema = draw_schema(Random(seed), 2)
        grammar = guided.grammars.from_schema(schema)
        [completion] = guided.generate(CHAT, SamplingParams(decoder="mtp", max_tokens=80, seed=seed), grammar=grammar)
        assert completion.finish_reason == "stop"
        assert is_valid(schema, json.loads(completion.text)), (schema, completion.text)
        guesses += completion.receipt.draft_forwards
    assert guesses > 0


def test_every_finished_answer_of_lab_is_valid(lab: LLM) -> None:
    schemas = [(draw_schema(Random(seed), 2), "draft2020-12") for seed in range(100, 106)]
    assert judge(lab, schemas, 90) > 15


@pytest.mark.parametrize("decoder", ["diffusion", "ar", "verified"])
@pytest.mark.parametrize("room", [1, 2, 5, 9, 14, 30])
def test_an_answer_ends_wherever_its_shortest_completion_fits(llm: LLM, decoder: DecoderName, room: int) -> None:
    grammar = llm.grammars.from_schema(PERSON)
    shortest = grammar.start().closure(99)
    assert shortest is not None
    [completion] = llm.generate(CHAT, SamplingParams(decoder=decoder, max_tokens=room, seed=1), grammar=grammar)
    assert completion.finish_reason == ("stop" if len(shortest) < room else "length")
    assert len(completion.token_ids) <= room


def test_verified_writes_what_ar_writes_under_a_schema() -> None:
    exact = LLM("lab", dtype="float32")
    for seed in range(5):
        example = FAMILIES["extract"].generate(seed, "test")
        assert example.schema is not None
        grammar = exact.grammars.from_schema(example.schema)
        for temperature in (0, 1):
            ar = SamplingParams(decoder="ar", max_tokens=96, seed=seed, temperature=temperature)
            prompt = list(example.messages)
            [expected] = exact.generate([prompt], ar, grammar=grammar)
            [told] = exact.generate([prompt], replace(ar, decoder="verified"), grammar=grammar)
            assert told.token_ids == expected.token_ids
            assert told.receipt.forced_tokens == expected.receipt.forced_tokens > 0


def test_several_prompts_under_a_grammar_get_what_each_gets_alone(llm: LLM) -> None:
    grammar = llm.grammars.from_schema(PERSON)
    for decoder in ("diffusion", "ar", "verified"):
        params = SamplingParams(decoder=decoder, max_tokens=30, seed=5)
        prompts = [[{"role": "user", "content": text}] for text in ("one", "another", "a third")]
        together = llm.generate(prompts, params, grammar=grammar)
        alone = [llm.generate(prompt, params, grammar=grammar)[0] for prompt in prompts]
        assert [each.text for each in together] == [each.text for each in alone]
        assert [each.receipt.forced_tokens for each in together] == [each.receipt.forced_tokens for each in alone]


@pytest.mark.parametrize("decoder", ["diffusion", "ar", "verified"])
def test_expressions_choices_lark_and_calls_are_followed(llm: LLM, decoder: DecoderName) -> None:
    params = SamplingParams(decoder=decoder, max_tokens=40, seed=2)
    [dated] = llm.generate(CHAT, params, grammar=llm.grammars.from_regex(r"\d{4}-\d{2}(-\d{2})?"))
    assert re.fullmatch(r"\d{4}-\d{2}(-\d{2})?", dated.text)
    [chosen] = llm.generate(CHAT, params, grammar=llm.grammars.from_choices(["yes", "no", "I do not know"]))
    assert chosen.text in ("yes", "no", "I do not know")
    [larked] = llm.generate(CHAT, params, grammar=llm.grammars.from_lark('start: "(" /[a-c]{1,3}/ ")"'))
    assert re.fullmatch(r"\([a-c]{1,3}\)", larked.text)
    assert llm.tokenizer is not None
    [called] = llm.generate(CHAT, params, grammar=compile_calls(llm.grammars, TOOLS, choice="required", max_calls=1))
    [call] = parse_reply(called.token_ids, llm.tokenizer).calls
    assert call.name == "set_light"
    assert call.arguments is not None
    assert is_valid(TOOLS[0]["function"]["parameters"], call.arguments)  # type: ignore[index]


def test_an_answer_streams_under_a_grammar_as_it_is_generated(llm: LLM) -> None:
    grammar, params = llm.grammars.from_schema(PERSON), SamplingParams(max_tokens=30, seed=5)
    *events, completion = llm.stream(CHAT, params, grammar=grammar)
    assert completion.text == llm.generate(CHAT, params, grammar=grammar)[0].text
    assert "".join(event.text for event in events if hasattr(event, "text")) == completion.text


def test_a_grammar_beside_what_stands_behind_the_answer_is_refused(llm: LLM) -> None:
    from mezzotint.text.prompt import Chat

    chat = Chat(messages=CHAT, begins="def f():\n", ends="\n")
    with pytest.raises(ValueError, match="ends is given together with a grammar"):
        llm.generate(chat, SamplingParams(max_tokens=8), grammar=llm.grammars.from_regex("a+"))


def test_a_grammars_costs_are_in_the_receipt(llm: LLM) -> None:
    [completion] = llm.generate(CHAT, SamplingParams(max_tokens=30), grammar=llm.grammars.from_choices(["yes"]))
    receipt = completion.receipt
    assert (receipt.forced_tokens, receipt.overridden_tokens, receipt.forwards) == (receipt.output_tokens, 0, 0)


def test_a_grammar_of_another_vocabulary_is_refused_and_one_of_the_same_is_not(llm: LLM, tmp_path: Path) -> None:
    own = llm.path / "tokenizer.json"
    other = json.loads(own.read_text())
    vocabulary = other["model"]["vocab"]
    first, second = [word for word in vocabulary if len(word) == 1][-2:]
    vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]
    (tmp_path / "tokenizer.json").write_text(json.dumps(other))
    params = SamplingParams(max_tokens=8)
    foreign = Grammars(Tokenizer.from_directory(tmp_path)).from_regex("[ab]{2}")
    with pytest.raises(ValueError, match=rf"compiled for the vocabulary of {tmp_path} .* and {llm.path} has that of"):
        llm.generate(CHAT, params, grammar=foreign)
    same = Grammars(Tokenizer.from_directory(llm.path)).from_regex("[ab]{2}")
    assert re.fullmatch("[ab]{2}", llm.generate(CHAT, params, grammar=same)[0].text)
