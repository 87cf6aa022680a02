"""`mezzotint serve`: a checkpoint behind the interfaces of OpenAI's clients."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from mezzotint.cli.flags import unfold
from mezzotint.cli.options import Loading, choose_target


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
    cors: Annotated[list[str] | None, _option("A page's origin that may ask from a browser; any unless given.")] = None
    otel: Annotated[
        bool, _option("Send a span an answer by OpenTelemetry, as its environment variables say.", "--otel")
    ] = False
    vllm_metrics: Annotated[
        bool, _option("Gauges under vLLM's names too, for routers that read those.", "--vllm-metrics")
    ] = False


@unfold
def serve(loading: Loading, serving: Serving) -> None:
    """Serve a model over HTTP: chats, completions, responses, choices, blanks, tokens, health, figures, a playground.

    Clients name MODEL, MODEL:DECODER or MODEL:PRESET. The log is a line of JSON a request, on standard error.
    """
    # oneDNN keeps machine code for 1,024 shapes, and batches of many requests have ever new ones: memory for little.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
    # Importing torch takes seconds, and --help is not to wait for it: see options.
    from mezzotint.cli.answer import load_alone
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
    engine = EngineConfig(memory_bytes=serving.kv_bytes, max_rows=serving.max_rows)
    target = choose_target(loading.model, None)
    if target.decoder is not None:
        raise ValueError(f"model is {loading.model!r}, but clients choose the decoder: name the model alone")
    tracer = load_tracer() if serving.otel else None
    listening = open_socket(serving.host, serving.port)
    backend = Backend(serving.name or Path(target.model).name, load_alone(loading), config, engine)
    backend.tracer = tracer
    host, port = listening.getsockname()[:2]
    print(f"serving {backend.name} on http://{host}:{port}", flush=True)
    serve(backend, listening)
