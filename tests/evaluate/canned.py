"""A stand-in for the model that answers as it is told, and what it was asked."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

from mezzotint.llm import Completion, SamplingParams
from mezzotint.text.parse import Reply
from mezzotint.text.prompt import Chat
from mezzotint.types import FinishReason, Receipt

PAD, END = 0, 1


class Call(NamedTuple):
    prompt: Chat
    params: SamplingParams


def completion(
    text: str,
    params: SamplingParams,
    *,
    steps: tuple[int, ...] = (),
    encodes: int = 0,
    tokens: int = 8,
    reason: FinishReason = "stop",
) -> Completion:
    """An answer that took 0.25 s to prefill and 0.5 s to generate; its characters and ends make `tokens` tokens."""
    is_canvas = params.decoder == "diffusion"
    receipt = Receipt(
        decoder=params.decoder,
        sampler=(params.sampler or "report") if is_canvas else None,
        seed=params.seed or 0,
        prompt_tokens=5,
        output_tokens=tokens,
        denoise_steps=steps,
        block_tokens=tuple(tokens // len(steps) for _ in steps),
        step_budget=(params.steps or 48) if is_canvas else 0,
        canvas_length=8 if is_canvas else 0,
        encodes=encodes,
        prefill_s=0.25,
        generation_s=0.5,
    )
    ids = [*map(ord, text), *[END] * tokens][:tokens]
    return Completion(text=text, token_ids=ids, finish_reason=reason, receipt=receipt)


class CannedLLM:
    """Answers with `reply(call)`; a text has as many tokens as characters."""

    def __init__(self, reply: Callable[[Call], Completion], canvas_length: int = 8) -> None:
        self.calls: list[Call] = []
        self.limits = SimpleNamespace(canvas_length=canvas_length)
        self.tokenizer = SimpleNamespace(
            encode_text=lambda text: list(map(ord, text)),
            token_bytes=lambda id: chr(id).encode(),
            control={"<pad>": PAD, "<eos>": END},
            control_ids={PAD, END},
            pad_id=PAD,
            eos_id=END,
        )
        self._reply = reply

    def parse(self, completion: Completion) -> Reply:
        return Reply(completion.text)

    def generate(self, prompts: Any, params: SamplingParams, *, grammar: Any = None) -> list[Completion]:
        self.calls.append(Call(prompts, params))
        return [self._reply(self.calls[-1])]


def say_nothing(call: Call) -> Completion:
    return completion("", call.params)
