"""Public traces of real services: when requests came and how long they were; the words are real text, not theirs.

What a trace tells of shared prefixes is kept: requests that share a block of it begin with the same text.
"""

import csv
import gzip
import hashlib
import json
import lzma
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from random import Random
from typing import NamedTuple

from mezzotint.bench.prose import cut, read_prose
from mezzotint.bench.task import AnyText, Hop, Task, Workload
from mezzotint.tasks.library import bundled_tokenizer

_AZURE = "https://github.com/Azure/AzurePublicDataset, data/AzureLLMInferenceTrace_{}.csv (CC-BY-4.0)"
_MOONCAKE = "https://github.com/kvcache-ai/Mooncake, FAST25-release/traces/conversation_trace.jsonl (Apache-2.0)"
_BLOCK = 512  # tokens of Mooncake's blocks
_SAMPLE = 40_000  # characters by which the tokens of a text are counted


class _Source(NamedTuple):
    files: tuple[str, ...]
    public: str


TRACES: dict[str, _Source] = {
    "azure-code": _Source(("azure_llm_2023_code.csv.gz", "AzureLLMInferenceTrace_code.csv"), _AZURE.format("code")),
    "azure-conv": _Source(("azure_llm_2023_conv.csv.gz", "AzureLLMInferenceTrace_conv.csv"), _AZURE.format("conv")),
    "mooncake": _Source(("mooncake_conversation_trace.jsonl.xz", "conversation_trace.jsonl"), _MOONCAKE),
}


class Arrival(NamedTuple):
    """One request of a trace: seconds from the first, tokens in and out, and blocks of its prompt by their hashes."""

    at_s: float
    prompt_tokens: int
    output_tokens: int
    blocks: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TraceConfig:
    """Which trace, and how it is scaled to what answers.

    file: None looks for it in `folder`. scale: of all lengths. most_prompt, most_output: tokens; longer ones are cut.
    prose: a text to cut prompts from. skip: requests of the trace before the first that is used.
    Raises: ValueError naming field, value and remedy.
    """

    name: str
    file: Path | None = None
    folder: Path | None = None
    scale: float = 1.0
    most_prompt: int = 100_000
    most_output: int = 4096
    ignore_eos: bool = False
    prose: Path | None = None
    skip: int = 0

    def __post_init__(self) -> None:
        if self.name not in TRACES:
            raise ValueError(f"trace is {self.name!r}; choose from {', '.join(TRACES)}")
        if not 0 < self.scale < float("inf"):
            raise ValueError(f"scale is {self.scale:g}; it must be positive and finite")
        for field in ("most_prompt", "most_output"):
            if getattr(self, field) < 1:
                raise ValueError(f"{field} is {getattr(self, field)}; give at least 1 token")
        if self.skip < 0:
            raise ValueError(f"skip is {self.skip}; give 0 or more requests")


def trace_workload(config: TraceConfig, tokens_of_text: float, *, seed: int, retrieval_s: float = 0.0) -> Workload:
    """A trace's requests, their prompts cut from real text; any answer that says something is accepted.

    tokens_of_text: tokens that a character makes, see `measure_tokens`; what came of it is told by the server's usage.
    Raises: ValueError naming the public source where the file is absent; OSError.
    """
    path = find_trace(config)
    arrivals = read_trace(path)[config.skip :]
    if not arrivals:
        raise ValueError(f"skip is {config.skip}, and {path} has no request behind that; skip fewer")
    text, first_s = read_prose(config.prose), arrivals[0].at_s

    def make(index: int) -> Task:
        words = _write_prompt(text, arrivals[index], index, config, tokens_of_text, seed)
        hop = Hop(
            messages=({"role": "user", "content": words},),
            verifier=AnyText(),
            max_tokens=min(config.most_output, max(1, round(arrivals[index].output_tokens * config.scale))),
            extra={"ignore_eos": True} if config.ignore_eos else {},
        )
        number = seed * 1_000_000 + index
        return Task(id=f"{config.name} {number}", family="trace", seed=number, hops=(hop,), retrieval_s=retrieval_s)

    told = f"lengths × {config.scale:g}, prompts of at most {config.most_prompt} tokens cut from real text"
    return Workload(
        name=config.name,
        make=make,
        note=f"arrivals and lengths of {config.name}, {told}; any answer that is not empty is accepted",
        digest=_digest(path, config, text, tokens_of_text, seed),
        size=len(arrivals),
        arrivals=[arrival.at_s - first_s for arrival in arrivals],
    )


def find_trace(config: TraceConfig) -> Path:
    """The file of a trace. Raises: ValueError naming where it can be had."""
    if config.file is not None:
        if not config.file.is_file():
            raise ValueError(f"trace file {config.file} is not there; get it from {TRACES[config.name].public}")
        return config.file
    for name in TRACES[config.name].files:
        if config.folder is not None and (path := config.folder / name).is_file():
            return path
    where = f"in {config.folder}" if config.folder is not None else "without a folder of traces"
    raise ValueError(
        f"trace {config.name} is not to be found {where}: get it from {TRACES[config.name].public}, and name the file"
    )


def read_trace(path: Path) -> list[Arrival]:
    """The requests of a trace, by their arrival. Raises: ValueError for a file that is none of the known traces."""
    data = path.read_bytes()
    data = gzip.decompress(data) if path.suffix == ".gz" else lzma.decompress(data) if path.suffix == ".xz" else data
    lines = data.decode("utf-8-sig").splitlines()
    try:
        read = _read_azure(lines) if lines[0].startswith("TIMESTAMP") else _read_mooncake(lines)
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise ValueError(f"{path} is no trace of Azure or Mooncake: {error!r}") from error
    return sorted(read)


def measure_tokens(path: Path | None) -> float:
    """Tokens that a character of a text makes, counted as the bundled model does. path: see read_prose."""
    sample = read_prose(path)[:_SAMPLE]
    return len(bundled_tokenizer().encode_text(sample)) / len(sample)


def _read_azure(lines: Sequence[str]) -> list[Arrival]:
    rows = list(csv.DictReader(line for line in lines if line))
    times = [datetime.fromisoformat(row["TIMESTAMP"][:26]).timestamp() for row in rows]
    first_s = min(times)
    return [
        Arrival(at_s - first_s, int(row["ContextTokens"]), int(row["GeneratedTokens"]))
        for at_s, row in zip(times, rows, strict=True)
    ]


def _read_mooncake(lines: Sequence[str]) -> list[Arrival]:
    rows = [json.loads(line) for line in lines if line]
    return [
        Arrival(row["timestamp"] / 1000, row["input_length"], row["output_length"], tuple(row["hash_ids"]))
        for row in rows
    ]


def _write_prompt(
    text: str, arrival: Arrival, index: int, config: TraceConfig, tokens_of_text: float, seed: int
) -> str:
    """Real text of the right length; a block that two requests share is the same text in both."""
    tokens = min(config.most_prompt, max(1, round(arrival.prompt_tokens * config.scale)))
    if not arrival.blocks:
        return cut(text, Random(f"trace/{seed}/{index}").randrange(len(text)), tokens, tokens_of_text)
    size = max(1, round(_BLOCK * config.scale))
    blocks = arrival.blocks[: -(-tokens // size)]
    words = "".join(
        cut(text, Random(f"block/{seed}/{block}").randrange(len(text)), size, tokens_of_text) for block in blocks
    )
    return words[: max(1, round(tokens / tokens_of_text))]


def _digest(path: Path, config: TraceConfig, text: str, tokens_of_text: float, seed: int) -> str:
    told = hashlib.sha256(path.read_bytes() + text.encode())
    told.update(f"{config.scale} {config.most_prompt} {config.most_output} {config.ignore_eos}".encode())
    told.update(f"{config.skip} {tokens_of_text:.6f}".encode())
    return f"{config.name} {told.hexdigest()[:16]} seed {seed}"
