"""Spans, where a tracer is brought."""

from collections.abc import Iterator

import httpx2
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.server.running import Running

HELLO = {"model": "lab:ar", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4, "seed": 1}


@pytest.fixture
def spans(server: Running) -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    server.backend.tracer = provider.get_tracer("test")  # type: ignore[assignment]
    yield exporter
    server.backend.tracer = None
    provider.shutdown()


def test_an_answer_has_a_span_with_its_usage_and_its_work(http: httpx2.Client, spans: InMemorySpanExporter) -> None:
    told = http.post("/v1/chat/completions", json=HELLO).json()
    [span] = spans.get_finished_spans()
    assert span.name == "chat lab"
    assert span.attributes is not None
    assert span.attributes["gen_ai.usage.output_tokens"] == told["usage"]["completion_tokens"]
    assert span.attributes["mezzotint.forwards"] == told["metrics"]["diffusion"]["forwards"]
    assert span.attributes["mezzotint.decoder"] == "ar"


def test_an_answer_that_fails_has_a_span_that_says_so(http: httpx2.Client, spans: InMemorySpanExporter) -> None:
    late = {**HELLO, "max_tokens": 2000, "ignore_eos": True, "x_route": {"deadline_ms": 20}}
    assert http.post("/v1/chat/completions", json=late).status_code == 504
    [span] = spans.get_finished_spans()
    assert not span.status.is_ok
