"""Puts every prompt to every arm and verifies what comes back; what the answers add up to lives in score."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from mezzotint.evaluate.config import Arm, EvaluateConfig, Prompt
from mezzotint.evaluate.local import find_borders
from mezzotint.llm import LLM, Completion
from mezzotint.tasks import FAMILIES, Example
from mezzotint.text.call_grammar import compile_calls
from mezzotint.text.detect import Finding, detect
from mezzotint.text.grammar import Grammar
from mezzotint.text.parse import Reply, encode_reply
from mezzotint.text.prompt import Chat


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One prompt answered by one arm.

    accepted: whether the task's verifier takes it. findings: signs in its content that the writing went wrong.
    """

    prompt: Prompt
    arm: Arm
    example: Example
    completion: Completion
    accepted: bool
    findings: tuple[Finding, ...]

    def record(self) -> dict[str, Any]:
        """The answer as one JSON object: prompt, arm, both texts, findings and the receipt."""
        receipt = self.completion.receipt
        return {
            **asdict(self.prompt),
            **asdict(receipt),  # the arm's decoder, its sampler and budget as resolved, and the answer's seed
            "temperature": self.arm.temperature,
            "form": self.arm.form,
            "preset": self.arm.preset,
            "forwards": receipt.forwards,
            "tokens_per_forward": receipt.tokens_per_forward,
            "budget_hits": receipt.budget_hits,
            "finish_reason": self.completion.finish_reason,
            "accepted": self.accepted,
            "findings": [finding._asdict() for finding in self.findings],
            "text": self.completion.text,
            "expected": self.example.answer,
        }


def answer_prompts(llm: LLM, config: EvaluateConfig) -> Iterator[Answer]:
    """Answer the prompts of every task one at a time, all arms at one prompt before the next.

    Every other prompt meets the arms in reverse (A B, B A, A B …), so that a machine that slows down slows
    all alike. One answer before the first, to warm up, is not reported.
    Returns: config.n × tasks × arms answers.
    """
    arms = config.arms
    _answer(llm, config.prompts(config.tasks[0])[0], arms[0])
    for task in config.tasks:
        for prompt in config.prompts(task):
            for arm in arms if prompt.index % 2 == 0 else arms[::-1]:
                yield _answer(llm, prompt, arm)


def _answer(llm: LLM, prompt: Prompt, arm: Arm) -> Answer:
    family = FAMILIES[prompt.task]
    example = family.generate(prompt.seed, "test")
    params = arm.params(max_tokens=answer_limit(llm, example), seed=prompt.seed)
    sees_ends = arm.decoder == "diffusion"
    chat = Chat(
        messages=example.messages,
        tools=example.tools,
        thinking=example.thinking,
        begins=example.begins,
        ends=example.ends if sees_ends else "",
    )
    [completion] = llm.generate(chat, params, grammar=grammar_of(llm, example) if arm.form == "grammar" else None)
    verify = family.accept if sees_ends else family.accept_continuation or family.accept
    reply = llm.parse(completion)
    return Answer(
        prompt=prompt,
        arm=arm,
        example=example,
        completion=completion,
        accepted=verify(example, reply),
        findings=_inspect(llm, example, completion, reply),
    )


def grammar_of(llm: LLM, example: Example) -> Grammar:
    """What the prompt of an example declares: the schema of its JSON, its labels, or its tools."""
    if example.tools:
        return compile_calls(llm.grammars, example.tools)
    assert example.schema is not None  # config names the tasks that declare one
    if example.family == "choose":  # whose labels are answered bare
        return llm.grammars.from_choices(example.schema["enum"])
    return llm.grammars.from_schema(example.schema)


def _inspect(llm: LLM, example: Example, completion: Completion, reply: Reply) -> tuple[Finding, ...]:
    """Signs in what a reader sees, beyond what prompt and right answer repeat; calls of tools may stand alone."""
    if reply.calls and not reply.content.strip():
        return ()
    assert llm.tokenizer is not None  # parse has read the reply with it
    told = [message["content"] for message in example.messages if isinstance(message.get("content"), str)]
    seams = find_borders(completion, llm.tokenizer)
    findings = detect(reply.content, seams=seams, known="\n".join([example.answer, *told]))
    is_whole = completion.finish_reason == "stop" and not example.begins and not example.ends
    return tuple(finding for finding in findings if is_whole or finding.kind != "bracket")


def answer_limit(llm: LLM, example: Example) -> int:
    """Tokens that an answer may have: the right one, what it ends with and its end in whole canvases, and one more.

    The same for every arm; so a wrong answer may ramble for a canvas, not for ever.
    """
    width = llm.limits.canvas_length
    assert llm.tokenizer is not None  # without one no chat could be encoded
    right = len(encode_reply(example.reply, llm.tokenizer)) + len(llm.tokenizer.encode_text(example.ends)) + 1
    return -(-right // width) * width + width
