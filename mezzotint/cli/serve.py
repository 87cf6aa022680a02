"""`mezzotint serve`: a checkpoint behind the interfaces of OpenAI's clients."""

import os
from pathlib import Path
from typing import Annotated

import typer

from mezzotint.cli.flags import unfold
from mezzotint.cli.options import Loading, choose_target


@unfold
def serve(
    loading: Loading,
    host: Annotated[str, typer.Option(help="Where it listens; others than this machine need an --api-key.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Its port; 0 takes any that is free.")] = 8000,
    name: Annotated[
        str | None, typer.Option(help="What clients call the model; the name it was loaded by unless given.")
    ] = None,
    api_key: Annotated[
        list[str] | None,
        typer.Option(help="A key that lets clients in, may be given several times; also MEZZOTINT_API_KEYS, with commas."),
    ] = None,
    rate: Annotated[str | None, typer.Option(help="Most requests of a key, as 60/minute; any number unless given.")] = None,
    max_waiting: Annotated[int, typer.Option(help="Requests that may wait; more are refused with 429.")] = 128,
    max_rows: Annotated[int, typer.Option(help="Requests answered at once, memory permitting.")] = 64,
    deadline: Annotated[float, typer.Option(help="Seconds that an answer may take, where a request names none.")] = 600.0,
    kv_bytes: Annotated[
        int | None, typer.Option(help="Memory of keys and values; half of what is free, at most 64 contexts, unless given.")
    ] = None,
    cors: Annotated[
        list[str] | None, typer.Option(help="A page's origin that may ask from a browser; any unless given.")
    ] = None,
    vllm_metrics: Annotated[
        bool, typer.Option("--vllm-metrics", help="Gauges under vLLM's names too, for routers that read those.")
    ] = False,
) -> None:
    """Serve a model over HTTP: chats, completions, responses, choices, blanks, tokens, health and metrics.

    Model names are MODEL or MODEL:DECODER. The log is one line of JSON a request, on standard error.
    """
    # Importing torch takes seconds, and --help is not to wait for it: see options.
    from mezzotint.engine.config import EngineConfig
    from mezzotint.llm.checkpoint import load_checkpoint
    from mezzotint.server import Backend, ServerConfig
    from mezzotint.server.run import open_socket, serve

    keys = tuple(api_key or ()) + tuple(filter(None, os.environ.get("MEZZOTINT_API_KEYS", "").split(",")))
    config = ServerConfig(
        host=host,
        port=port,
        api_keys=keys,
        rate=rate,
        max_waiting=max_waiting,
        deadline_s=deadline,
        cors_origins=tuple(cors or ("*",)),
        compatible_metrics=vllm_metrics,
    )
    engine = EngineConfig(memory_bytes=kv_bytes, max_rows=max_rows)
    target = choose_target(loading.model, None)
    if target.decoder is not None:
        told = "clients choose the decoder, as MODEL:DECODER: name the model alone"
        raise ValueError(f"model is {loading.model!r}; {told}")
    listening = open_socket(host, port)
    checkpoint = load_checkpoint(
        target.model,
        dtype=loading.dtype,
        device=loading.device or "cpu",
        threads=loading.threads,
        compiled=bool(loading.compiled),
        drafter=loading.drafter,
    )
    backend = Backend(name or Path(target.model).name, checkpoint, config, engine)
    at = listening.getsockname()
    print(f"serving {backend.name} on http://{at[0]}:{at[1]}", flush=True)
    serve(backend, listening)
