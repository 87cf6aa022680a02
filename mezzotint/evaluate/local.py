"""Questions answered by a checkpoint in this process; how several are asked lives in ask."""

import asyncio
import json
from collections.abc import Mapping
from itertools import accumulate, islice
from typing import Any

from mezzotint.evaluate.config import Arm
from mezzotint.evaluate.question import AnswerError, Cost, Question, Said
from mezzotint.llm import LLM, Blank, Completion, GenerationError
from mezzotint.text.call_grammar import compile_calls
from mezzotint.text.grammar import Grammar
from mezzotint.text.parse import Reply, ReplyParser
from mezzotint.text.prompt import Chat
from mezzotint.text.tokenizer import Tokenizer
from mezzotint.types import Receipt


class LocalAnswerer:
    """A checkpoint that answers with the options of one arm, one question at a time."""

    def __init__(self, llm: LLM, name: str, arm: Arm) -> None:
        """name: what the checkpoint is called in results."""
        self._llm, self._name, self._arm = llm, name, arm

    @property
    def traits(self) -> Mapping[str, Any]:
        """See Answerer."""
        arm = self._arm
        return {
            "model": self._name,
            "url": None,
            "decoder": arm.decoder,
            "sampler": arm.sampler,
            "steps": arm.steps,
            "preset": arm.preset,
            "temperature": arm.temperature,
            "form": arm.form,
        }

    async def answer(self, question: Question, seed: int) -> Said:
        """See Answerer."""
        return await asyncio.to_thread(self._answer, question, seed)

    def _answer(self, question: Question, seed: int) -> Said:
        params = self._arm.params(max_tokens=question.max_tokens, seed=seed)
        try:
            if question.around is not None:
                before, behind = question.around
                filled = self._llm.infill([before, Blank(max_tokens=question.max_tokens), behind], params)
                [middle] = filled.middles
                message = {"role": "assistant", "content": middle.text}
                return Said(message=message, finish_reason=middle.finish_reason, cost=_cost(filled.receipt))
            chat = Chat(messages=question.messages, tools=question.tools, thinking=question.thinking)
            [completion] = self._llm.generate(chat, params, grammar=self._grammar(question))
        except (ValueError, GenerationError) as error:
            raise AnswerError(str(error)) from error
        assert self._llm.tokenizer is not None  # without one no chat could be encoded
        return Said(
            message=write_message(self._llm.parse(completion)),
            finish_reason=completion.finish_reason,
            cost=_cost(completion.receipt),
            seams=tuple(find_borders(completion, self._llm.tokenizer)),
        )

    def _grammar(self, question: Question) -> Grammar | None:
        if self._arm.form == "free":
            return None
        if question.tools:
            return compile_calls(self._llm.grammars, question.tools)
        if question.choices:
            return self._llm.grammars.from_choices(list(question.choices))
        if question.schema is not None:
            return self._llm.grammars.from_schema(question.schema)
        raise ValueError(f"form is 'grammar', but question {question.id} declares none; ask for the form 'free'")


def write_message(reply: Reply) -> dict[str, Any]:
    """A reply as an assistant's message in OpenAI's form."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.content}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{number}",
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for number, call in enumerate(reply.calls)
        ]
    if reply.faults:
        message["faults"] = list(reply.faults)
    return message


def find_borders(completion: Completion, tokenizer: Tokenizer) -> list[int]:
    """Where in the content of a completion each block but the first begins."""
    parser, rest = ReplyParser(tokenizer), iter(completion.token_ids)
    blocks = [islice(rest, count) for count in completion.receipt.block_tokens[:-1]]
    return list(accumulate(len(parser.push(block).content) for block in blocks))


def _cost(receipt: Receipt) -> Cost:
    return Cost(
        seconds=receipt.queue_s + receipt.prefill_s + receipt.generation_s,
        prompt_tokens=receipt.prompt_tokens,
        output_tokens=receipt.output_tokens,
        forwards=receipt.forwards,
        steps=receipt.denoise_steps,
        sampler=receipt.sampler,
        step_budget=receipt.step_budget,
        budget_hits=receipt.budget_hits,
    )
