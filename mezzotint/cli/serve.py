"""`mezzotint serve`: a checkpoint behind the interfaces of OpenAI's clients."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from mezzotint.cli.flags import unfold
from mezzotint.cli.options import Loading, choose_target

# oneDNN, and torch's layer above it anew, keep 1,024 products by their shapes, of which batches of many requests have
# ever new ones: memory for nothing. Both read this once, at their first product.
CACHES = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64", "LRU_CACHE_CAPACITY": "64"}


def _option(help: str, *names: str) -> Any:
    return typer.Option(*names, help=help)


@dataclass(frozen=True, kw_only=True)
class Serving:
    """Where a server listens, who may ask, and how much; what values mean is said by ServerConfig and EngineConfig."""

    host: Annotated[str, _option("Where it listens; others than this machine need an --api-key.")] = "127.0.0.1"
    port: Annotated[int, _option("Its port; 0 takes any that is free.")] = 8000
    name: Annotated[str | None, _option("What clients call the model; as it was loaded unless given.")] = None
    api_key: Annotated[
        list[str] | None, _option("Lets clients in, may be given several times; also MEZZOTINT_API_KEYS, with commas.")
    ] = None
    rate: Annotated[str | None, _option("Most requests of a key, as 60/minute; any number unless given.")] = None
    max_waiting: Annotated[int, _option("Requests that may wait; more are refused with 429.")] = 128
    max_rows: Annotated[int, _option("Requests answered at once, memory permitting.")] = 64
    deadline: Annotated[float, _option("Seconds that an answer may take, where its request names none.")] = 600.0
    kv_bytes: Annotated[
        int | None, _option("Memory of keys and values; half of what is free when it starts unless given.")
    ] = None
    prefix_cache: Annotated[
        bool, typer.Option(help="Keep what prompts have in common for those that come; off to measure what comes anew.")
    ] = True
    cors: Annotated[list[str] | None, _option("A page's origin that may ask from a browser; any unless given.")] = None
    fleet: Annotated[
        Path | None, _option("A file of arms, among which model auto chooses for each request; see docs/fleet.md.")
    ] = None
    otel: Annotated[
        bool, _option("Send a span an answer by OpenTelemetry, as its environment variables say.", "--otel")
    ] = False
    vllm_metrics: Annotated[
        bool, _option("Gauges under vLLM's names too, for routers that read those.", "--vllm-metrics")
    ] = False


@unfold
def serve(
    loading: Loading,
    serving: Serving,
    served: Annotated[
        str | None, typer.Argument(metavar="[MODEL]", help="The same as --model, before which it goes.")
    ] = None,
) -> None:
    """Serve a model over HTTP: chats, completions, responses, choices, blanks, tokens, health, figures, a playground.

    Clients name MODEL, MODEL:DECODER or MODEL:PRESET; with --fleet also auto, auto:fast, auto:cheap, auto:best, or the
    name of an arm. The log is a line of JSON a request, on standard error.
    """
    for cache, size in CACHES.items():
        os.environ.setdefault(cache, size)
    # Importing torch takes seconds, and --help is not to wait for it: see options.
    from mezzotint.cli.answer import load_alone
    from mezzotint.cli.fleet import assemble, check_fleet
    from mezzotint.engine.config import EngineConfig
    from mezzotint.server import Backend, ServerConfig
    from mezzotint.server.run import open_socket, serve
    from mezzotint.server.tracing import load_tracer

    listed = filter(None, os.environ.get("MEZZOTINT_API_KEYS", "").split(","))
    config = ServerConfig(
        host=serving.host,
        port=serving.port,
        api_keys=(*(serving.api_key or ()), *listed),
        rate=serving.rate,
        max_waiting=serving.max_waiting,
        deadline_s=serving.deadline,
        cors_origins=tuple(serving.cors or ("*",)),
        compatible_metrics=serving.vllm_metrics,
    )
    engine = EngineConfig(memory_bytes=serving.kv_bytes, max_rows=serving.max_rows, prefix_cache=serving.prefix_cache)
    if served is not None:
        loading = replace(loading, model=served)
    target = choose_target(loading.model, None)
    if target.decoder is not None:
        raise ValueError(f"model is {loading.model!r}, but clients choose the decoder: name the model alone")
    name = serving.name or Path(target.model).name
    told = None if serving.fleet is None else check_fleet(serving.fleet, name)
    tracer = load_tracer() if serving.otel else None
    listening = open_socket(serving.host, serving.port)
    backend = Backend(name, load_alone(loading), config, engine)
    fleet = None if told is None else assemble(told, backend, loading)
    backend.tracer = tracer
    host, port = listening.getsockname()[:2]
    print(f"serving {backend.name} on http://{host}:{port}", flush=True)
    serve(backend, listening, fleet)
