"""What a scraper reads: counters of answers, gauges of the engine, histograms of what answers took."""

from collections.abc import Iterable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from mezzotint.engine.stats import Stats
from mezzotint.server.backend import Backend
from mezzotint.types import Receipt

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_COUNTS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)


class Metrics:
    """The figures of one server, in a registry of their own."""

    def __init__(self, backend: Backend) -> None:
        self._registry = CollectorRegistry()
        given: Any = {"registry": self._registry, "namespace": "mezzotint"}
        by = ("decoder",)
        self._requests = Counter("requests", "HTTP requests.", ("path", "status"), **given)
        self._tokens = Counter("output_tokens", "Tokens of answers.", by, **given)
        self._prompt = Counter("prompt_tokens", "Tokens of prompts.", **given)
        self._hits = Counter("budget_hits", "Canvases that spent their steps.", **given)
        self._seconds = Histogram(
            "answer_seconds",
            "From submission to the last token.",
            by,
            buckets=_SECONDS,
            **given,
        )
        self._queue = Histogram("queue_seconds", "Before admission.", buckets=_SECONDS, **given)
        self._steps = Histogram("denoise_steps", "Of a canvas.", buckets=_COUNTS, **given)
        self._per_forward = Histogram(
            "tokens_per_forward",
            "Of an answer.",
            by,
            buckets=_COUNTS,
            **given,
        )
        self._attempts = Counter("router_attempts", "Of arms to answer.", ("arm", "outcome"), **given)
        self._cost = Counter("router_cost_usd", "Of attempts, failed ones too.", ("arm",), **given)
        told, labels = "Of routed requests; not accepted ones by how they ended.", ("arm", "kind", "outcome")
        self._accepted = Histogram("router_time_to_accepted_seconds", told, labels, buckets=_SECONDS, **given)
        self._registry.register(_Engine(backend, compatible=backend.config.compatible_metrics))

    def count_request(self, path: str, status: int) -> None:
        """One HTTP request was answered."""
        self._requests.labels(path, str(status)).inc()

    def count_answer(self, receipt: Receipt) -> None:
        """One answer is whole."""
        self._tokens.labels(receipt.decoder).inc(receipt.output_tokens)
        self._prompt.inc(receipt.prompt_tokens)
        self._hits.inc(receipt.budget_hits if receipt.decoder == "diffusion" else 0)
        self._seconds.labels(receipt.decoder).observe(receipt.queue_s + receipt.prefill_s + receipt.generation_s)
        self._queue.observe(receipt.queue_s)
        self._per_forward.labels(receipt.decoder).observe(receipt.tokens_per_forward)
        if receipt.decoder == "diffusion":
            for steps in receipt.denoise_steps:
                self._steps.observe(steps)

    def count_attempt(self, arm: str, outcome: str, cost_usd: float) -> None:
        """An arm has tried."""
        self._attempts.labels(arm, outcome).inc()
        self._cost.labels(arm).inc(cost_usd)

    def count_settled(self, arm: str, kind: str, outcome: str, seconds: float) -> None:
        """A routed request has ended, by the arm that was tried last."""
        self._accepted.labels(arm, kind, outcome).observe(seconds)

    def write(self) -> bytes:
        """All of it, in Prometheus' text form."""
        return generate_latest(self._registry)


class _Engine(Collector):
    """An engine's own figures, read when they are asked for."""

    def __init__(self, backend: Backend, *, compatible: bool) -> None:
        self._backend, self._compatible = backend, compatible

    def describe(self) -> Iterable[Metric]:
        """Nothing: figures are not read before the engine runs."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Read the engine."""
        stats = self._backend.service.stats()
        used = stats.full.used / max(1, sum(stats.full))
        yield from _gauges("mezzotint_", stats, used)
        counted = {
            "submitted_requests": (stats.submitted, "Requests that the engine took."),
            "finished_requests": (stats.finished, "Those that have their answer."),
            "engine_steps": (stats.steps, "Steps that ran a forward."),
            "encodes": (stats.encodes.forwards, "Causal forwards."),
            "denoises": (stats.denoises.forwards, "Denoise forwards."),
            "emitted_tokens": (stats.emitted_tokens, "Final tokens."),
            "prefix_tokens": (stats.prefix_tokens, "Prompt tokens that a prefix seen before spared."),
            "preemptions": (stats.preemptions, "Requests that gave back their memory for a while."),
        }
        for name, (value, told) in counted.items():
            yield CounterMetricFamily(f"mezzotint_{name}", told, value=value)
        failed = CounterMetricFamily("mezzotint_failed_requests", "Without an answer, by kind.", labels=["kind"])
        for kind, value in stats.failed.items():
            failed.add_metric([kind], value)
        yield failed
        if self._compatible:
            labels = ["model_name"]
            for name, value in (("num_requests_running", stats.running), ("num_requests_waiting", stats.waiting)):
                gauge = GaugeMetricFamily(f"vllm:{name}", "As vLLM calls it.", labels=labels)
                gauge.add_metric([self._backend.name], value)
                yield gauge
            gauge = GaugeMetricFamily("vllm:kv_cache_usage_perc", "As vLLM calls it: a share of 1.", labels=labels)
            gauge.add_metric([self._backend.name], used)
            yield gauge


def _gauges(prefix: str, stats: Stats, used: float) -> Iterable[Metric]:
    yield GaugeMetricFamily(f"{prefix}requests_running", "Requests that run.", value=stats.running)
    yield GaugeMetricFamily(f"{prefix}requests_waiting", "Requests that wait.", value=stats.waiting)
    yield GaugeMetricFamily(f"{prefix}kv_used_share", "Pages that rows use, of all.", value=used)
