"""What clients may send, field by field: honoured, inert, or refused; how it is carried out lives in the routes.

A field is honoured if it shapes the answer; inert if it cannot change it (a label, a hint to a cache); refused if we
would have to ignore it. A refused one passes as long as it says what we do anyway. What is none of these is unknown,
and refused by name too. Source: contract 8.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

ROUTED = "x-mezzotint-routed"  # a header of requests for which a fleet has chosen already


class Refusal(NamedTuple):
    """Values of a refused field that pass, and what to do instead of others."""

    neutral: tuple[Any, ...]
    remedy: str


class Body(BaseModel):
    """One request's JSON. What is not declared is refused by name."""

    model_config = ConfigDict(extra="forbid")
    inert: ClassVar[frozenset[str]] = frozenset()
    refused: ClassVar[Mapping[str, Refusal]] = MappingProxyType({})

    @model_validator(mode="after")
    def _refuse(self) -> Self:
        for name, refusal in self.refused.items():
            value = getattr(self, name)
            if value is not None and value not in refusal.neutral:
                raise ValueError(f"{name} is {value!r}; {refusal.remedy}")
        return self

    @classmethod
    def honoured(cls) -> list[str]:
        """Names of the fields that shape the answer."""
        return [name for name in cls.model_fields if name not in cls.inert and name not in cls.refused]


class DiffusionOptions(BaseModel):
    """`x_diffusion`: how a canvas is denoised. drafts: whether a stream tells of every denoising step."""

    model_config = ConfigDict(extra="forbid")
    steps: int | None = None
    entropy_bound: float | None = None
    canvas_length: int | None = None
    drop_after_end: bool | None = None
    sampler: str | None = None
    preset: Literal["fast", "balanced", "best"] | None = None
    drafts: bool = False


class RouteOptions(BaseModel):
    """`x_route`: who answers, and within what. deadline_ms: from arrival to the last token.

    What only a fleet can honour is refused without one: max_cost_usd, of all attempts together; max_attempts; risk, of
    missing the deadline, that is borne; accept, what an answer has to pass before its first byte leaves; explore,
    whether the request may be spent on learning.
    """

    model_config = ConfigDict(extra="forbid")
    decoder: Literal["diffusion", "ar", "verified", "mtp"] | None = None
    deadline_ms: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_cost_usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_attempts: int | None = Field(default=None, ge=1, le=8)
    risk: float | None = Field(default=None, gt=0, lt=1)
    accept: dict[str, Any] | None = None
    explore: bool | None = None


class StreamOptions(BaseModel):
    """Of a stream. include_usage: whether a last chunk without choices tells the usage."""

    model_config = ConfigDict(extra="forbid")
    include_usage: bool = False
    include_obfuscation: bool | None = None  # inert: padding against eavesdroppers, of which there is none here


class StructuredOutputs(BaseModel):
    """vLLM's name for a grammar that the answer follows; exactly one."""

    model_config = ConfigDict(extra="forbid")
    json_: dict[str, Any] | bool | None = Field(default=None, alias="json")
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None


class TemplateOptions(BaseModel):
    """`chat_template_kwargs`: what a chat template is told."""

    model_config = ConfigDict(extra="forbid")
    enable_thinking: bool | None = None


_LABELS = frozenset(
    "user metadata safety_identifier prompt_cache_key prompt_cache_retention prompt_cache_options".split()
)
_NOT_STORED = Refusal((False,), "nothing is stored here; leave it at false")
_TIER = Refusal(("auto", "default"), "there is one tier; leave it at auto")
_MODERATION = Refusal((), "nothing is moderated here; leave it out")


class Sampled(Body):
    """What every text endpoint knows: how tokens are drawn, and where an answer ends."""

    model: str
    stream: bool = False
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    min_tokens: int | None = None
    n: int | None = Field(default=None, ge=1)
    stop: str | list[str] | None = None
    seed: int | None = None
    logit_bias: dict[str, float] | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    ignore_eos: bool | None = None
    structured_outputs: StructuredOutputs | None = None
    x_diffusion: DiffusionOptions | None = None
    x_route: RouteOptions | None = None
    user: Any = None


class ChatBody(Sampled):
    """POST /v1/chat/completions."""

    inert = _LABELS | {"prediction"}
    refused = MappingProxyType(
        {
            "audio": Refusal((), "this model writes text alone; leave it out"),
            "modalities": Refusal((["text"],), "this model writes text alone; leave it at ['text']"),
            "web_search_options": Refusal((), "nothing is searched here; declare a tool instead"),
            "functions": Refusal(([],), "it was replaced by tools; declare them there"),
            "function_call": Refusal(("none", "auto"), "it was replaced by tool_choice; use that"),
            "verbosity": Refusal(("medium",), "the model has no such dial; say in the prompt how long answers are"),
            "service_tier": _TIER,
            "store": _NOT_STORED,
            "moderation": _MODERATION,
        }
    )
    messages: list[dict[str, Any]]
    max_completion_tokens: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    response_format: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    chat_template_kwargs: TemplateOptions | None = None
    metadata: Any = None
    safety_identifier: Any = None
    prompt_cache_key: Any = None
    prompt_cache_retention: Any = None
    prompt_cache_options: Any = None
    prediction: Any = None
    audio: Any = None
    modalities: Any = None
    web_search_options: Any = None
    functions: Any = None
    function_call: Any = None
    verbosity: Any = None
    service_tier: Any = None
    store: Any = None
    moderation: Any = None


class CompletionBody(Sampled):
    """POST /v1/completions. prompt: text, token ids, or a list of either. suffix: text that stands behind it all."""

    inert = frozenset({"user"})
    refused = MappingProxyType({"best_of": Refusal((1,), "ask for n answers and choose among them")})
    prompt: str | list[int] | list[str] | list[list[int]]
    suffix: str | None = None
    echo: bool | None = None
    logprobs: int | None = None
    best_of: Any = None


class ResponsesBody(Body):
    """POST /v1/responses."""

    inert = _LABELS | {"include", "max_tool_calls"}
    refused = MappingProxyType(
        {
            "background": Refusal((False,), "an answer is awaited or streamed; leave it at false"),
            "background_options": Refusal((), "nothing runs in the background; leave it out"),
            "conversation": Refusal((), "nothing is stored here; send the whole talk as input"),
            "previous_response_id": Refusal((), "nothing is stored here; send the whole talk as input"),
            "context_management": Refusal(([],), "nothing is cut out of a talk here; send what is to be read"),
            "prompt": Refusal((), "there are no stored prompts; write it as instructions and input"),
            "truncation": Refusal(("disabled",), "nothing is cut out of a talk; leave it at disabled"),
            "access_programs": Refusal(([],), "there are none here; leave it out"),
            "image": Refusal((), "this model writes text alone; leave it out"),
            "service_tier": _TIER,
            "moderation": _MODERATION,
            "store": Refusal((False,), "nothing is stored here; set it to false"),
        }
    )
    model: str
    input: str | list[dict[str, Any]]
    instructions: str | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_logprobs: int | None = None
    text: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    reasoning: dict[str, Any] | None = None
    x_diffusion: DiffusionOptions | None = None
    x_route: RouteOptions | None = None
    user: Any = None
    metadata: Any = None
    safety_identifier: Any = None
    prompt_cache_key: Any = None
    prompt_cache_retention: Any = None
    prompt_cache_options: Any = None
    include: Any = None
    max_tool_calls: Any = None
    background: Any = None
    background_options: Any = None
    conversation: Any = None
    previous_response_id: Any = None
    context_management: Any = None
    prompt: Any = None
    truncation: Any = None
    access_programs: Any = None
    image: Any = None
    service_tier: Any = None
    moderation: Any = None
    store: Any = None


class ChooseBody(Body):
    """POST /v1/choose: how likely each of several texts is as the whole answer. prompt or messages."""

    model: str
    choices: list[str]
    prompt: str | None = None
    messages: list[dict[str, Any]] | None = None
    seed: int | None = Field(default=None, ge=0, lt=2**64)


class BlankBody(BaseModel):
    """A blank of a document. max_tokens: None takes the request's."""

    model_config = ConfigDict(extra="forbid")
    max_tokens: int | None = None
    hint: str | None = None


class InfillBody(Body):
    """POST /v1/infill: a document of texts and blanks; the blanks are filled."""

    model: str
    document: list[str | BlankBody]
    lengths: Literal["surplus", "candidates"] = "surplus"
    raw: bool = False
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    x_diffusion: DiffusionOptions | None = None


class TokenizeBody(Body):
    """POST /tokenize: the ids of a prompt or of messages."""

    model: str | None = None
    prompt: str | None = None
    messages: list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None


class DetokenizeBody(Body):
    """POST /detokenize: the text of ids, control tokens spelled out."""

    model: str | None = None
    tokens: list[int]
