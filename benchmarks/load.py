"""`make load`: a server with lab under four times the requests that it can answer, some rude; then it is killed.

    python -m benchmarks.load                 # 2,000 requests
    python -m benchmarks.load --n 200         # a short trial
    python -m benchmarks.load --compile       # lab as machine code

Requests come at fixed times whatever became of those before. Some leave in the midst, some read slowly, some are
too large, some are no JSON. It fails if an accepted request is neither answered nor refused, or is answered twice, if
memory grows, if accepted requests take longer than the queue allows, or if the server is not ready again in time.
"""

import argparse
import asyncio
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any, NamedTuple

import httpx2

from benchmarks.machine import describe_run
from benchmarks.report import markdown_table, run_table
from mezzotint.tasks import FAMILIES

ROWS, WAITING = 8, 16  # requests answered at once, and those that may wait
OVERLOAD, ALONE, PACE = 4.0, 20, 60  # times the measured rate; requests that measure it alone, and together
GROWTH, SLACK, READY_S = 1.05, 1.2, 10.0
KINDS = {"whole": 0.4, "streamed": 0.38, "leaves": 0.1, "slow": 0.06, "too large": 0.03, "no JSON": 0.03}


class Ended(NamedTuple):
    """What became of one request: how, with which status, after how many seconds."""

    kind: str
    outcome: str
    taken_s: float


@dataclass
class Server:
    """A `mezzotint serve` as a process of its own."""

    url: str = ""
    process: "subprocess.Popen[str] | None" = None
    started_s: float = 0.0
    arguments: list[str] = field(default_factory=list)

    def start(self, port: int = 0) -> float:
        """Start it and wait until it is ready. Returns: seconds that took."""
        given = [sys.executable, "-m", "mezzotint", "serve", "--port", str(port), "--threads", "1"]
        given += self.arguments
        # So little memory that all of it is touched before the first third is over.
        given += ["--max-rows", str(ROWS), "--max-waiting", str(WAITING), "--kv-bytes", str(32 << 20)]
        started = time.perf_counter()
        self.process = subprocess.Popen(given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.url = line.rsplit(" ", 1)[-1].strip()
        while True:
            with suppress(httpx2.HTTPError):
                if httpx2.get(f"{self.url}/health/ready").status_code == 200:
                    return time.perf_counter() - started
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with {self.process.returncode}: {line!r}")
            time.sleep(0.02)

    def memory(self) -> int:
        """Resident bytes."""
        assert self.process is not None
        with open(f"/proc/{self.process.pid}/statm") as statm:
            return int(statm.read().split()[1]) * 4096

    def figure(self, name: str) -> float:
        """One figure of /metrics, all its labels added up."""
        lines = httpx2.get(f"{self.url}/metrics").text.splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.split("{")[0].split(" ")[0] == name)

    def kill(self) -> None:
        """As the machine would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()


def main(arguments: Sequence[str]) -> int:
    """Run it all and print what was found. Returns: 1 if something is not as it must be."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--n", type=int, default=2000, help="requests under overload")
    parser.add_argument("--compile", action="store_true", help="serve lab as machine code")
    parser.add_argument("--seed", type=int, default=0, help="of who does what")
    options = parser.parse_args(arguments)
    if options.n < 100:
        parser.error(f"--n is {options.n}; give 100 or more, or percentiles say nothing")
    server = Server(arguments=["--compile"] if options.compile else [])
    ready_s = server.start()
    try:
        faults = asyncio.run(run(server, options.n, random.Random(options.seed), arguments))
        faults += [f"ready after {ready_s:.1f} s, more than {READY_S:g}"] * (ready_s > READY_S)
        faults += asyncio.run(kill_and_start(server))
    finally:
        server.kill()
    print("", *(f"FAULT: {fault}" for fault in faults), sep="\n")
    return 1 if faults else 0


async def run(server: Server, n: int, rng: random.Random, arguments: Sequence[str]) -> list[str]:
    """Measure alone, then together, then under overload. Returns: what is wrong."""
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
    async with httpx2.AsyncClient(base_url=server.url, timeout=120, limits=limits) as http:
        await ask(http, "whole", 0, rng)
        alone = [(await ask(http, "whole", at, rng)).taken_s for at in range(ALONE)]
        started = time.perf_counter()
        await asyncio.gather(*(_take_turns(http, lane, rng) for lane in range(ROWS)))
        rate = ROWS * (PACE // ROWS) / (time.perf_counter() - started)
        kinds = rng.choices(list(KINDS), list(KINDS.values()), k=n)
        first, late = await _overload(server, http, kinds, OVERLOAD * rate, rng)
        while server.figure("mezzotint_requests_running") + server.figure("mezzotint_requests_waiting"):
            await asyncio.sleep(0.1)
    ended, grown = [*first, *late], server.memory()
    return report(server, ended, alone, rate, arguments, grown)


async def _take_turns(http: httpx2.AsyncClient, lane: int, rng: random.Random) -> None:
    for at in range(PACE // ROWS):
        await ask(http, "whole", 1000 + lane * PACE + at, rng)


async def _overload(
    server: Server, http: httpx2.AsyncClient, kinds: Sequence[str], rate: float, rng: random.Random
) -> tuple[list[Ended], list[Ended]]:
    """Send requests at a rate; memory is noted after a third. Returns: what became of that third, and of the others."""
    started, tasks = time.perf_counter(), []
    for at, kind in enumerate(kinds):
        await asyncio.sleep(max(0.0, started + at / rate - time.perf_counter()))
        tasks.append(asyncio.create_task(ask(http, kind, at, rng)))
        if at == len(kinds) // 3:
            server.started_s = float(server.memory())
    ended = await asyncio.gather(*tasks)
    return ended[: len(kinds) // 3], ended[len(kinds) // 3 :]


async def ask(http: httpx2.AsyncClient, kind: str, at: int, rng: random.Random) -> Ended:
    """Send one request of a kind and see what becomes of it."""
    content, stream = _body(kind, at), kind in ("streamed", "slow", "leaves") and rng.random() < 0.9
    if kind not in ("too large", "no JSON"):
        content = json.dumps({**json.loads(content), "stream": stream}).encode()
    patience = rng.uniform(0.01, 1.0) if kind == "leaves" else 100.0
    started = time.perf_counter()
    try:
        async with asyncio.timeout(patience):
            outcome = await _read(http, content, f"load-{at}-{kind.replace(' ', '-')}", slow=kind == "slow")
    except TimeoutError:
        outcome = "left" if kind == "leaves" else "hung"
    except httpx2.HTTPError as error:
        outcome = f"broken: {type(error).__name__}"
    return Ended(kind, outcome, time.perf_counter() - started)


async def _read(http: httpx2.AsyncClient, content: bytes, id: str, *, slow: bool) -> str:
    headers = {"content-type": "application/json", "x-request-id": id}
    async with http.stream("POST", "/v1/chat/completions", content=content, headers=headers) as response:
        text = ""
        async for part in response.aiter_text(64 if slow else None):
            text += part
            if slow:
                await asyncio.sleep(0.02)
    if response.headers["x-request-id"] != id:
        return "another's answer"
    if response.status_code != 200:
        return f"refused {response.status_code}" if "error" in json.loads(text) else "no reason"
    if response.headers["content-type"].startswith("text/event-stream"):
        return "answered" if text.count("data: [DONE]") == 1 and text.count('"finish_reason":"') == 1 else "cut"
    return "answered" if len(json.loads(text)["choices"]) == 1 else "cut"


def _body(kind: str, at: int) -> bytes:
    if kind == "no JSON":
        return b'{"model": "lab", "messages": ['
    example = FAMILIES["extract"].generate(at % 200, "test")
    model = ("lab", "lab:ar", "lab:verified")[at % 3] if at >= 0 else "lab"
    body: dict[str, Any] = {"model": model, "messages": [dict(message) for message in example.messages]}
    body |= {"max_tokens": 64, "temperature": 0, "seed": at}
    if kind == "too large":
        body["user"] = "x" * (5 << 20)
    return json.dumps(body).encode()


def report(
    server: Server, ended: Sequence[Ended], alone: Sequence[float], rate: float, arguments: Sequence[str], grown: int
) -> list[str]:
    """Print the figures. Returns: what is wrong."""
    counts = Counter((each.kind, each.outcome) for each in ended)
    taken = sorted(each.taken_s for each in ended if each.outcome == "answered" and each.kind != "slow")
    alone_p95, p95 = quantiles(alone, n=20)[-1], quantiles(taken, n=20)[-1]
    allowed = SLACK * ((ROWS + WAITING) / rate + alone_p95)
    submitted, finished = (server.figure(f"mezzotint_{name}_requests_total") for name in ("submitted", "finished"))
    failed = server.figure("mezzotint_failed_requests_total")
    print(run_table(describe_run(arguments, "load")))
    print(
        "",
        markdown_table(["request", "what became of it", "n"], [[*key, str(n)] for key, n in sorted(counts.items())]),
        sep="\n",
    )
    rows = [
        ["answers alone, p50 and p95", f"{median(alone):.3f} s, {alone_p95:.3f} s", "", str(len(alone))],
        [f"service rate, {ROWS} at once", f"{rate:.2f} /s", "", str(PACE)],
        ["answers under overload, p50", f"{median(taken):.2f} s", "", str(len(taken))],
        ["p95", f"{p95:.2f} s", f"≤ {allowed:.2f} s", str(len(taken))],
        [
            "memory after a third, at the end",
            f"{server.started_s / 2**20:.0f}, {grown / 2**20:.0f} MiB",
            "< 5 % more",
            "",
        ],
        ["taken by the engine: finished + failed", f"{submitted:.0f}: {finished:.0f} + {failed:.0f}", "equal", ""],
    ]
    print("", markdown_table(["figure", "value", "asked for", "n"], rows), sep="\n")
    known = {"answered", "left", "refused 429", "refused 413", "refused 400"}
    faults = [f"{n} x {kind}: {outcome}" for (kind, outcome), n in counts.items() if outcome not in known]
    faults += [f"p95 is {p95:.2f} s, allowed are {allowed:.2f}"] * (p95 > allowed)
    faults += ["memory grew"] * (grown > GROWTH * server.started_s)
    faults += ["a request that the engine took has no end"] * (submitted != finished + failed)
    return faults


async def kill_and_start(server: Server) -> list[str]:
    """Kill the server amid answers and start it again on its port. Returns: what is wrong."""
    port = int(server.url.rsplit(":", 1)[1])
    async with httpx2.AsyncClient(base_url=server.url, timeout=30) as http:
        asked = [asyncio.create_task(ask(http, "streamed", at, random.Random(at))) for at in range(4)]
        await asyncio.sleep(0.2)
        server.kill()
        ended = await asyncio.gather(*asked)
    ready_s = await asyncio.to_thread(server.start, port)
    async with httpx2.AsyncClient(base_url=server.url, timeout=30) as http:
        again = await ask(http, "whole", 1, random.Random(0))
    outcomes = Counter(each.outcome for each in ended)
    print(
        "", f"Killed amid 4 streams, whose readers saw {dict(outcomes)}; ready again after {ready_s:.1f} s.", sep="\n"
    )
    faults = [f"ready {ready_s:.1f} s after a kill, more than {READY_S:g}"] * (ready_s > READY_S)
    return faults + ["no answer after the restart"] * (again.outcome != "answered")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
