"""Questions answered by a server that speaks OpenAI's protocol; how several are asked lives in ask."""

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from json import JSONDecodeError
from typing import Any, TypeVar

import openai
import stamina

from mezzotint.evaluate.config import FORMS
from mezzotint.evaluate.history import write_history
from mezzotint.evaluate.question import AnswerError, Cost, Question, Said

_ATTEMPTS, _LONGEST_WAIT_S = 6, 60.0
_PASSING = (openai.APIConnectionError, openai.RateLimitError, openai.InternalServerError, openai.ConflictError)
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class EndpointOptions:
    """How a server is asked; None leaves an option to it.

    decoder, sampler, steps, preset: of servers like ours; others refuse them, or ought to. form: `grammar` asks for
    answers in the form that a question declares. timeout_s: for one try.
    Raises: ValueError naming option, value and remedy, for what no server is to be asked about.
    """

    decoder: str | None = None
    sampler: str | None = None
    steps: int | None = None
    preset: str | None = None
    temperature: float | None = None
    form: str = "free"
    timeout_s: float = 600.0

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise ValueError(f"form is {self.form!r}; choose from {', '.join(FORMS)}")
        if self.temperature is not None and not 0 <= self.temperature < float("inf"):
            raise ValueError(f"temperature is {self.temperature:g}; give 0 or more, and a finite number")


class EndpointAnswerer:
    """A model behind OpenAI's protocol."""

    def __init__(self, url: str, model: str, key: str, options: EndpointOptions) -> None:
        """url: up to and with /v1."""
        self._url, self._model, self._options = url.rstrip("/"), model, options
        self._client = openai.AsyncOpenAI(base_url=url, api_key=key, max_retries=0, timeout=options.timeout_s)
        self._has_infill = True  # until one says that it has not

    @property
    def traits(self) -> Mapping[str, Any]:
        """See Answerer."""
        options = asdict(self._options)
        del options["timeout_s"]
        return {"model": self._model, "url": self._url, **options}

    async def answer(self, question: Question, seed: int) -> Said:
        """See Answerer."""
        shared = {"model": self._model, "max_tokens": question.max_tokens, "seed": seed, "extra_body": self._extra()}
        if self._options.temperature is not None:
            shared["temperature"] = self._options.temperature
        if question.around is not None:
            return await self._fill(question.around, shared)
        create: Any = self._client.chat.completions.create
        asked = {**shared, **self._declare(question), "messages": write_history(question.messages)}
        response, seconds = await call_patiently(lambda: create(**asked))
        with _reading():
            choice = _only_choice(response)
            message = _checked(choice.message.model_dump(exclude_none=True, warnings=False))
            return _said(message, choice.finish_reason, *_told(response), seconds)

    async def __aenter__(self) -> "EndpointAnswerer":
        """It itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let go of connections."""
        await self._client.close()

    async def _fill(self, around: tuple[str, str], shared: Mapping[str, Any]) -> Said:
        """Fill a blank by /v1/infill, as our servers do, or where that is not there by a completion with a suffix."""
        before, behind = around
        if self._has_infill:
            blank = {"max_tokens": shared["max_tokens"]}
            body = {**shared, **shared["extra_body"], "document": [before, blank, behind]}
            del body["extra_body"]
            try:
                told, seconds = await call_patiently(lambda: self._client.post("/infill", cast_to=dict, body=body))
            except ValueError as error:
                if not isinstance(error.__cause__, openai.NotFoundError):
                    raise
                self._has_infill = False
            else:
                with _reading():
                    [middle] = told["middles"]
                    message = _checked({"role": "assistant", "content": middle["text"]})
                    return _said(message, middle["finish_reason"], told["metrics"], None, seconds)
        create: Any = self._client.completions.create
        response, seconds = await call_patiently(lambda: create(prompt=before, suffix=behind, **shared))
        with _reading():
            choice = _only_choice(response)
            message = _checked({"role": "assistant", "content": choice.text})
            return _said(message, choice.finish_reason, *_told(response), seconds)

    def _extra(self) -> dict[str, Any]:
        options, extra = self._options, dict[str, Any]()
        given = {"sampler": options.sampler, "steps": options.steps, "preset": options.preset}
        if canvas := {name: value for name, value in given.items() if value is not None}:
            extra["x_diffusion"] = canvas
        if options.decoder is not None:
            extra["x_route"] = {"decoder": options.decoder}
        return extra

    def _declare(self, question: Question) -> dict[str, Any]:
        """What beside the messages describes the answer."""
        told: dict[str, Any] = {"tools": list(question.tools)} if question.tools else {}
        extra = self._extra()
        if question.thinking:
            extra["chat_template_kwargs"] = {"enable_thinking": True}
        if self._options.form == "grammar" and not question.tools:  # tools are declared whatever the form
            if question.choices:
                extra["structured_outputs"] = {"choice": list(question.choices)}
            elif question.schema is not None:
                schema = {"name": "answer", "schema": question.schema, "strict": True}
                told["response_format"] = {"type": "json_schema", "json_schema": schema}
            else:
                raise ValueError(f"form is 'grammar', but question {question.id} declares none; ask for 'free'")
        return {**told, "extra_body": extra}


async def call_patiently(call: Callable[[], Awaitable[T]]) -> tuple[T, float]:
    """Ask again what a server cannot answer now, up to six times, after as long as it says or longer and longer.

    Returns: what it said, and the seconds of the try that succeeded.
    Raises: AnswerError where none did, ValueError where none can: the address, the model or the key is wrong.
    """
    try:
        waits = {"wait_initial": 0.5, "wait_max": _LONGEST_WAIT_S / 2}
        async for attempt in stamina.retry_context(on=when_again, attempts=_ATTEMPTS, timeout=None, **waits):
            with attempt:
                begin = time.perf_counter()
                said = await call()
                return said, time.perf_counter() - begin
    except (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError) as error:
        raise ValueError(f"the server refuses: {error}; correct the URL, the model's name or the key") from error
    except (UnicodeDecodeError, JSONDecodeError) as error:
        raise AnswerError(f"the server's answer is no JSON: {error}") from error
    except openai.OpenAIError as error:
        raise AnswerError(f"{type(error).__name__}: {error}") from error
    raise AssertionError("an attempt returns or raises")


def when_again(error: Exception) -> bool | float:
    """Whether to ask again after an error, or after how many seconds, where the server says so; at most a minute."""
    if not isinstance(error, _PASSING):
        return False
    said = error.response.headers.get("retry-after", "") if isinstance(error, openai.APIStatusError) else ""
    return min(float(said), _LONGEST_WAIT_S) if said.isdecimal() else True


@contextmanager
def _reading() -> Iterator[None]:
    """Raises: AnswerError where what is read inside has not the form that OpenAI's protocol gives it."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise AnswerError(f"the server's answer has not the form of OpenAI's protocol ({error})") from error


def _checked(message: dict[str, Any]) -> dict[str, Any]:
    """The message, whose content and calls verifiers read. Raises: TypeError or KeyError for another form."""
    texts = [message.get("content") or "", message.get("reasoning_content") or "", message.get("reasoning") or ""]
    for call in message.get("tool_calls") or ():
        texts += [call["function"]["name"], call["function"].get("arguments") or ""]
    if wrong := [text for text in texts if not isinstance(text, str)]:
        raise TypeError(f"{wrong[0]!r} is no text")
    return message


def _only_choice(response: Any) -> Any:
    if not response.choices:
        raise AnswerError("the server answered without choices")
    return response.choices[0]


def _told(response: Any) -> tuple[Any, Any]:
    return (response.model_extra or {}).get("metrics"), response.usage


def _said(message: Mapping[str, Any], reason: str | None, metrics: Any, usage: Any, seconds: float) -> Said:
    metrics = metrics if isinstance(metrics, Mapping) else None
    work = metrics.get("diffusion") if metrics else None
    told: Mapping[str, Any] = work if isinstance(work, Mapping) else {}
    cost = Cost(
        seconds=seconds,
        prompt_tokens=usage.prompt_tokens if usage else None,
        output_tokens=usage.completion_tokens if usage else sum(told.get("block_tokens") or ()) or None,
        forwards=told.get("forwards"),
        steps=tuple(told.get("denoise_steps") or ()),
        sampler=told.get("sampler"),
        step_budget=told.get("step_budget"),
        budget_hits=told.get("budget_hits") or 0,
    )
    if metrics and isinstance(metrics.get("faults"), list):  # what the server found badly written
        message = {**message, "faults": metrics["faults"]}
    return Said(message=message, finish_reason=reason, cost=cost, metrics=metrics)
