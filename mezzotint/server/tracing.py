"""A span an answer, by OpenTelemetry's conventions for generative models, where a tracer is brought; else nothing.

What sends spans on, and whereto, is OpenTelemetry's own affair: the SDK is set up by whoever starts the server, and by
`mezzotint serve --otel` from its usual environment variables.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from mezzotint.llm.entry import Asked
from mezzotint.types import Receipt

Note = Callable[[Receipt], None]


class Span(Protocol):
    """Of OpenTelemetry's span what is used here."""

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        """Add what is known now."""


class Tracer(Protocol):
    """Of OpenTelemetry's tracer what is used here."""

    def start_as_current_span(self, name: str) -> AbstractContextManager[Any]:
        """Open a span; an exception that leaves the block is recorded on it."""


@contextmanager
def trace_answer(tracer: Tracer | None, model: str, asked: Asked) -> Iterator[Note]:
    """A span around one answer. Yields: what takes its receipt once it is whole."""
    if tracer is None:
        yield lambda receipt: None
        return
    params = asked.params
    with tracer.start_as_current_span(f"chat {model}") as span:
        span.set_attributes(
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "mezzotint",
                "gen_ai.request.model": model,
                "gen_ai.request.max_tokens": params.max_tokens,
                "gen_ai.request.temperature": params.temperature,
                "gen_ai.request.seed": str(asked.seed),
                "mezzotint.decoder": params.decoder,
            }
        )
        yield lambda receipt: span.set_attributes(_describe(receipt))


def load_tracer() -> Tracer:
    """The tracer of an SDK that sends spans by OTLP, as its environment variables say.

    Raises: ValueError where it is not installed.
    """
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise ValueError(f"otel is asked for, but {error.name} is not installed; install mezzotint[otel]") from error
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    tracer: Tracer = trace.get_tracer("mezzotint")
    return tracer


def _describe(receipt: Receipt) -> dict[str, Any]:
    return {
        "gen_ai.usage.input_tokens": receipt.prompt_tokens,
        "gen_ai.usage.output_tokens": receipt.output_tokens,
        "mezzotint.cached_tokens": receipt.cached_tokens,
        "mezzotint.forwards": receipt.forwards,
        "mezzotint.tokens_per_forward": receipt.tokens_per_forward,
        "mezzotint.denoise_steps": list(receipt.denoise_steps),
        "mezzotint.queue_s": receipt.queue_s,
    }
