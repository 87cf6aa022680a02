"""A body as the engine's words: a prompt, options, a grammar, stops; nothing is answered here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mezzotint.llm import PRESETS, Prompt, SamplingParams
from mezzotint.server.errors import ApiError, refuse
from mezzotint.server.history import read_history
from mezzotint.server.protocol import (
    ChatBody,
    CompletionBody,
    DiffusionOptions,
    InfillBody,
    RouteOptions,
    Sampled,
    StructuredOutputs,
)
from mezzotint.server.target import read_target
from mezzotint.text.call_grammar import MOST_CALLS, compile_calls
from mezzotint.text.grammar import Grammar, Grammars
from mezzotint.text.prompt import Chat

# Tokens of thoughts that an effort may take; the highest take what they need.
_THOUGHTS = {"minimal": 128, "low": 512, "medium": 2048, "high": None, "xhigh": None, "max": None}
_OPTIONS = (
    "temperature top_p top_k min_p min_tokens seed presence_penalty frequency_penalty repetition_penalty ignore_eos"
).split()
_DIFFUSION = "steps entropy_bound canvas_length drop_after_end sampler".split()
FIELDS = frozenset(Sampled.model_fields) | {"logprobs", "prompt_logprobs", "steps", "sampler", "decoder"}

Write = Callable[[Grammars], Grammar]


@dataclass(frozen=True, kw_only=True)
class Job:
    """One prompt to answer. options: fields of SamplingParams but max_tokens, which depends on the prompt's length.

    max_tokens: None takes the server's. write: what makes the grammar that the answer follows. judge: what makes the
    grammar of right calls, where an answer that follows none may hold some. drafts: whether a stream tells of every
    step. deadline_s: None takes the server's.
    """

    prompt: Prompt
    options: Mapping[str, Any]
    max_tokens: int | None = None
    write: Write | None = None
    judge: Write | None = None
    stop: tuple[str, ...] = ()
    n: int = 1
    drafts: bool = False
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
    write = _only(_read_format(body.response_format), _read_structured(body.structured_outputs))
    choice = body.tool_choice or ("auto" if tools else "none")
    if choice == "none":
        tools = []
    calls = write_calls(tools, choice, parallel=body.parallel_tool_calls is not False, thinking=thinking)
    is_free = bool(tools) and calls is None
    return Job(
        prompt=Chat(messages=read_history(body.messages), tools=tools, thinking=thinking),
        judge=write_calls(tools, "required", parallel=True, thinking=False) if is_free else None,
        options=options,
        max_tokens=body.max_completion_tokens if body.max_tokens is None else body.max_tokens,
        write=_only(write, calls),
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
        "write": _read_structured(body.structured_outputs),
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
    if not isinstance(body.prompt, str) or (body.n or 1) > 1:
        raise ApiError(400, "suffix is given with several prompts, token ids or answers; send one text", param="suffix")


def read_infill(body: InfillBody, served: str) -> Job:
    """Take a document's options over. Raises: ApiError naming field, value and remedy."""
    options = {name: getattr(body, name) for name in ("temperature", "seed") if getattr(body, name) is not None}
    options = shape(served, body.model, body.x_diffusion, None, options)
    return Job(prompt="", options=options, max_tokens=body.max_tokens)


def list_texts(prompt: str | Sequence[Any]) -> list[Prompt]:
    """The prompts of a completion: a text, ids, or a list of either."""
    if isinstance(prompt, str):
        return [prompt]
    if not prompt:
        raise ApiError(400, "prompt is empty; give text or token ids", param="prompt")
    return [list(prompt)] if isinstance(prompt[0], int) else list(prompt)


def write_calls(
    tools: Sequence[Mapping[str, Any]], choice: str | Mapping[str, Any], *, parallel: bool, thinking: bool
) -> Write | None:
    """The grammar of what may be answered where `tools` are declared; None where anything may.

    choice: auto, required, or the name of the one to call. With thoughts, which a grammar does not know, auto lets
    the model write as it will. Raises: ApiError for a choice that there is not.
    """
    if not tools:
        if choice not in ("none", "auto"):
            raise ApiError(
                400, f"tool_choice is {choice!r}, and no tools are declared; declare them", param="tool_choice"
            )
        return None
    for index, tool in enumerate(tools):
        function = tool.get("function")
        if tool.get("type", "function") != "function" or not isinstance(function, Mapping) or "name" not in function:
            told = f'tools[{index}] is {tool!r}; declare {{"type": "function", "function": {{"name": ...}}}}'
            raise ApiError(400, told, param="tools")
    only = _named(choice)
    if only is None and choice not in ("auto", "required"):
        told = f'tool_choice is {choice!r}; give none, auto, required or {{"type": "function", "function": {{...}}}}'
        raise ApiError(400, told, param="tool_choice")
    if thinking and choice == "auto":
        return None
    how: Literal["auto", "required"] = "auto" if choice == "auto" else "required"
    most = MOST_CALLS if parallel else 1
    return lambda grammars: compile_calls(grammars, tools, choice=how, only=only, max_calls=most)


def _named(choice: str | Mapping[str, Any]) -> str | None:
    if not isinstance(choice, Mapping):
        return None
    named = choice.get("function", choice)
    name = named.get("name") if isinstance(named, Mapping) else None
    if choice.get("type") != "function" or not isinstance(name, str):
        told = f'tool_choice is {choice!r}; name a function: {{"type": "function", "function": {{"name": ...}}}}'
        raise ApiError(400, told, param="tool_choice")
    return name


def shape(
    served: str, model: str, diffusion: DiffusionOptions | None, route: RouteOptions | None, options: dict[str, Any]
) -> dict[str, Any]:
    """Add to `options` what a model's name and our extensions say of who answers, and how."""
    target = read_target(model, served)
    told = None if route is None else route.decoder
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


def _read_format(given: Mapping[str, Any] | None) -> Write | None:
    kind = None if given is None else given.get("type")
    if given is None or kind == "text":
        return None
    if kind == "json_object":
        return lambda grammars: grammars.from_schema({"type": "object"})
    holder = given.get("json_schema")
    if kind == "json_schema" and isinstance(holder, Mapping) and isinstance(holder.get("schema"), Mapping):
        schema = holder["schema"]
        return lambda grammars: grammars.from_schema(schema)
    told = '{"type": "text" | "json_object"} or {"type": "json_schema", "json_schema": {"name": ..., "schema": {...}}}'
    raise ApiError(400, f"response_format is {given!r}; give {told}", param="response_format")


def write_schema(schema: Mapping[str, Any]) -> Write:
    """The grammar of JSON texts that a schema describes."""
    return lambda grammars: grammars.from_schema(schema)


def _read_structured(given: StructuredOutputs | None) -> Write | None:
    if given is None:
        return None
    said = {name: value for name, value in dict(given).items() if value is not None}
    if len(said) != 1:
        told = f"structured_outputs names {', '.join(said) or 'nothing'}; name one of json, regex, choice, grammar"
        raise ApiError(400, told, param="structured_outputs")
    [(name, value)] = said.items()
    return {
        "json_": lambda grammars: grammars.from_schema(value),
        "regex": lambda grammars: grammars.from_regex(value),
        "choice": lambda grammars: grammars.from_choices(value),
        "grammar": lambda grammars: grammars.from_lark(value),
    }[name]


def _only(first: Write | None, second: Write | None) -> Write | None:
    if first and second:
        told = (
            "an answer follows one grammar: give one of response_format, structured_outputs, and tools to choose from"
        )
        raise ApiError(400, told, param="response_format")
    return first or second


def preset_options(preset: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options with those of a preset. Raises: ApiError where they contradict each other."""
    bundle = PRESETS[preset]
    for name, decided in bundle.items():
        if options.get(name, decided) != decided:
            told = f"{name} is {options[name]!r}, but preset {preset!r} decides it as {decided!r}; leave one out"
            raise ApiError(400, told, param=name)
    return {**options, **bundle}
