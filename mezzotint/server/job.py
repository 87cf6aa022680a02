"""A body as the engine's words: a prompt, options, a grammar, stops; nothing is answered here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mezzotint.llm import PRESETS, Prompt, SamplingParams
from mezzotint.server.errors import ApiError, refuse
from mezzotint.server.form import Write, only_one, read_format, read_structured, write_calls
from mezzotint.server.history import read_history
from mezzotint.server.protocol import (
    BlankBody,
    ChatBody,
    CompletionBody,
    DiffusionOptions,
    InfillBody,
    RouteOptions,
    Sampled,
)
from mezzotint.server.target import read_target
from mezzotint.text.document import Blank
from mezzotint.text.prompt import Chat

# Tokens of thoughts that an effort may take; the highest take what they need.
_THOUGHTS = {"minimal": 128, "low": 512, "medium": 2048, "high": None, "xhigh": None, "max": None}
_OPTIONS = (
    "temperature top_p top_k min_p min_tokens seed presence_penalty frequency_penalty repetition_penalty ignore_eos"
).split()
_DIFFUSION = "steps entropy_bound canvas_length drop_after_end sampler".split()
FIELDS = frozenset(Sampled.model_fields) | {"logprobs", "prompt_logprobs", "steps", "sampler", "decoder"}


@dataclass(frozen=True, kw_only=True)
class Job:
    """One prompt to answer. options: fields of SamplingParams but max_tokens, which depends on the prompt's length.

    max_tokens: None takes the server's. write: what makes the grammar that the answer follows. judge: what makes the
    grammar of right calls, where an answer that follows none may hold some. drafts: whether a stream tells of every
    step. peeks: whether it tells of the first one how unsure it was. deadline_s: None takes the server's.
    """

    prompt: Prompt
    options: Mapping[str, Any]
    max_tokens: int | None = None
    write: Write | None = None
    judge: Write | None = None
    stop: tuple[str, ...] = ()
    n: int = 1
    drafts: bool = False
    peeks: bool = False
    deadline_s: float | None = None

    def params(self, max_tokens: int) -> SamplingParams:
        """Its options. Raises: ApiError naming option, value and remedy."""
        # A grammar keeps what a preset's gate would look for from being written.
        options = {name: value for name, value in self.options.items() if name != "gate" or self.write is None}
        try:
            return SamplingParams(max_tokens=max_tokens, **options)
        except ValueError as error:
            raise refuse(error, FIELDS) from error


def read_chat(body: ChatBody, served: str) -> Job:
    """Take a chat over. Raises: ApiError naming field, value and remedy."""
    if body.max_tokens is not None and body.max_completion_tokens not in (None, body.max_tokens):
        told = f"max_tokens is {body.max_tokens} and max_completion_tokens {body.max_completion_tokens}; give one"
        raise ApiError(400, told, param="max_completion_tokens")
    options = _sampling(body, served)
    if body.top_logprobs is not None and not body.logprobs:
        raise ApiError(400, f"top_logprobs is {body.top_logprobs} without logprobs; set that", param="top_logprobs")
    if body.logprobs:
        options["logprobs"] = body.top_logprobs or 0
    thinking = _read_thinking(body, options)
    tools = body.tools or []
    write = only_one(read_format(body.response_format), read_structured(body.structured_outputs))
    choice = ("auto" if tools else "none") if body.tool_choice is None else body.tool_choice
    if choice == "none":
        tools = []
    calls = write_calls(tools, choice, parallel=body.parallel_tool_calls is not False, thinking=thinking)
    if thinking and (write or calls):
        told = "thoughts are asked for, and an answer that follows a grammar has none; leave one of the two out"
        raise ApiError(400, told, param="reasoning_effort")
    is_free = bool(tools) and calls is None
    return Job(
        prompt=Chat(messages=read_history(body.messages), tools=tools, thinking=thinking),
        judge=write_calls(tools, "required", parallel=True, thinking=False) if is_free else None,
        options=options,
        max_tokens=body.max_completion_tokens if body.max_tokens is None else body.max_tokens,
        write=only_one(write, calls),
        **_common(body),
    )


def read_completion(body: CompletionBody, served: str) -> list[Job]:
    """Take a completion over. Returns: a job a prompt. Raises: ApiError naming field, value and remedy."""
    options = _sampling(body, served)
    if body.logprobs is not None:
        options["logprobs"] = body.logprobs
        if body.echo:
            options["prompt_logprobs"] = body.logprobs
    common: dict[str, Any] = {
        "options": options,
        "max_tokens": 16 if body.max_tokens is None else body.max_tokens,  # OpenAI's own default here
        "write": read_structured(body.structured_outputs),
        **_common(body),
    }
    if body.echo and body.stream:
        raise ApiError(
            400, "echo is given with stream; ask for the whole reply, or write the prompt yourself", param="echo"
        )
    if body.suffix:
        _check_suffix(body)
    return [Job(prompt=prompt, **common) for prompt in list_texts(body.prompt)]


def _check_suffix(body: CompletionBody) -> None:
    """What fills a blank has no use for what shapes a whole answer."""
    unused = "echo logprobs stop structured_outputs min_tokens ignore_eos".split()
    for name in unused:
        if getattr(body, name):
            raise ApiError(400, f"{name} is given with suffix, and a blank has no use for it; drop one", param=name)
    if read_deadline(body.x_route) is not None or (body.x_diffusion is not None and body.x_diffusion.drafts):
        told = "a deadline or drafts are given with suffix, and a blank is filled in one piece; drop them"
        raise ApiError(400, told, param="suffix")
    if not isinstance(body.prompt, str) or (body.n or 1) > 1:
        raise ApiError(400, "suffix is given with several prompts, token ids or answers; send one text", param="suffix")


def read_infill(body: InfillBody, served: str) -> Job:
    """Take a document's options over. Raises: ApiError naming field, value and remedy."""
    if body.x_diffusion is not None and body.x_diffusion.drafts:
        raise ApiError(
            400, "x_diffusion.drafts is true, and blanks are not streamed; leave it out", param="x_diffusion"
        )
    options = {name: getattr(body, name) for name in ("temperature", "seed") if getattr(body, name) is not None}
    options = shape(served, body.model, body.x_diffusion, None, options)
    return Job(prompt="", options=options, max_tokens=body.max_tokens)


def read_document(document: Sequence[str | BlankBody]) -> list[str | Blank]:
    """Texts and blanks. Raises: ApiError for a blank that cannot be."""
    try:
        return [part if isinstance(part, str) else Blank(**part.model_dump(exclude_none=True)) for part in document]
    except ValueError as error:
        raise ApiError(400, f"document: {error}", param="document") from error


def list_texts(prompt: str | Sequence[Any]) -> list[Prompt]:
    """The prompts of a completion: a text, ids, or a list of either."""
    if isinstance(prompt, str):
        return [prompt]
    if not prompt:
        raise ApiError(400, "prompt is empty; give text or token ids", param="prompt")
    return [list(prompt)] if isinstance(prompt[0], int) else list(prompt)


def shape(
    served: str, model: str, diffusion: DiffusionOptions | None, route: RouteOptions | None, options: dict[str, Any]
) -> dict[str, Any]:
    """Add to `options` what a model's name and our extensions say of who answers, and how."""
    target = read_target(model, served)
    told = None if route is None else route.decoder
    _refuse_routing(served, route)
    if told is not None and target.decoder not in (None, told):
        message = f"model is {model!r}, but x_route.decoder is {told!r}: name one decoder"
        raise ApiError(400, message, param="x_route.decoder")
    decoder = target.decoder or told
    preset = target.preset or (diffusion and diffusion.preset)
    if target.preset and diffusion and diffusion.preset not in (None, target.preset):
        raise ApiError(400, f"model is {model!r}, but x_diffusion.preset is {diffusion.preset!r}", param="x_diffusion")
    if decoder:
        options["decoder"] = decoder
    for name in _DIFFUSION if diffusion else ():
        value = getattr(diffusion, name)
        if value is not None:
            options[name] = value
    return preset_options(preset, options) if preset else options


def _refuse_routing(served: str, route: RouteOptions | None) -> None:
    """One engine answers once: what asks for that passes, what a fleet alone can do does not."""
    if route is None:
        return
    said = {name: getattr(route, name) for name in ("max_cost_usd", "max_attempts", "risk", "accept", "explore")}
    for name, value in said.items():
        if value is not None and (name, value) not in (("max_attempts", 1), ("explore", False)):
            told = f"x_route.{name} is {value!r}, which model {served!r} cannot honour"
            remedy = "start the server with --fleet and ask for model 'auto', or leave it out"
            raise ApiError(400, f"{told}; {remedy}", param=f"x_route.{name}")


def _sampling(body: Sampled, served: str) -> dict[str, Any]:
    options = {name: getattr(body, name) for name in _OPTIONS if getattr(body, name) is not None}
    if body.logit_bias:
        try:
            options["logit_bias"] = {int(id): bias for id, bias in body.logit_bias.items()}
        except ValueError:
            raise ApiError(
                400, f"logit_bias is {body.logit_bias}; its keys are token ids", param="logit_bias"
            ) from None
    return shape(served, body.model, body.x_diffusion, body.x_route, options)


def _common(body: Sampled) -> dict[str, Any]:
    return {
        "stop": read_stops(body.stop),
        "n": body.n or 1,
        "drafts": bool(body.x_diffusion and body.x_diffusion.drafts),
        "deadline_s": read_deadline(body.x_route),
    }


def read_stops(stop: str | list[str] | None) -> tuple[str, ...]:
    """Stop strings as a tuple."""
    return () if not stop else (stop,) if isinstance(stop, str) else tuple(stop)


def read_deadline(route: RouteOptions | None) -> float | None:
    """Seconds, where a request names a deadline."""
    return None if route is None or route.deadline_ms is None else route.deadline_ms / 1000


def _read_thinking(body: ChatBody, options: dict[str, Any]) -> bool:
    told = None if body.chat_template_kwargs is None else body.chat_template_kwargs.enable_thinking
    effort = body.reasoning_effort
    if effort is None:
        return bool(told)
    if told is not None and told != (effort != "none"):
        message = f"reasoning_effort is {effort!r}, but chat_template_kwargs says enable_thinking {told}; give one"
        raise ApiError(400, message, param="reasoning_effort")
    if effort != "none" and _THOUGHTS[effort] is not None:
        options["thinking_budget"] = _THOUGHTS[effort]
    return effort != "none"


def preset_options(preset: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options with those of a preset. Raises: ApiError where they contradict each other."""
    bundle = PRESETS[preset]
    for name, decided in bundle.items():
        if options.get(name, decided) != decided:
            told = f"{name} is {options[name]!r}, but preset {preset!r} decides it as {decided!r}; leave one out"
            raise ApiError(400, told, param=name)
    return {**options, **bundle}
