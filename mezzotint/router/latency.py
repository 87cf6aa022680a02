"""How long an arm takes, from the structure of its work: forwards × time of one; no acceptance, no choice.

  canvas:        T = queue + prefill(uncached)·a_p + blocks·(steps + 1)·t_fwd(b, ctx)
  ar:            T = queue + prefill(uncached)·a_p + n_out·t_fwd(b, ctx)
  mtp, verified: n_out ÷ tokens per forward in the place of n_out
  elsewhere:     log T is linear in log input and log output tokens, beside a residual of the last hour

t_fwd(b, ctx) = c0 + c1·b + c2·ctx by non-negative least squares, b the requests at the engine once this one is there.
"""

from collections.abc import Callable
from math import ceil, exp, log, log1p

from mezzotint.router.averages import Line, Means, Ratios
from mezzotint.router.record import Attempt
from mezzotint.types import ArmTraits

_FORWARDS = 500.0  # half-life of what a forward takes
_MOST_FORWARDS = 25.0  # that one answer counts as, so that ten long ones do not wash out all others
_ATTEMPTS = 100.0  # half-life of everything else, in attempts
_QUEUE = 8.0  # of the time in the queue, which is a state of now
_HOUR_S = 3600.0
_ALL = "*"
_ANSWER = 48.0  # tokens of an answer of which nothing is known
_STEPS = 8.0  # of a block of which nothing is known


class Outputs:
    """Tokens of answers by class, whoever wrote them."""

    def __init__(self) -> None:
        """Nothing is known."""
        self._means = Means(_ATTEMPTS)

    def note(self, kind: str, tokens: int) -> None:
        """Take one answer's length."""
        for key in _heads(kind):
            self._means.note(key, tokens)

    def mean(self, kind: str, most: int) -> float:
        """Expected tokens of an answer that may have `most`."""
        found = _ANSWER
        for key in _heads(kind):
            found = self._means.mean(key, found)
        return max(1.0, min(found, most))


class ArmLatency:
    """The model of one arm's time."""

    def __init__(self, traits: ArmTraits, outputs: Outputs, clock: Callable[[], float]) -> None:
        """outputs: of all arms together. clock: seconds."""
        self._traits, self._outputs, self._clock = traits, outputs, clock
        self._forward = Line(3, _FORWARDS)
        self._prefill = Line(2, _ATTEMPTS)
        self._remote = Line(3, _ATTEMPTS, is_signed=True)
        self._work, self._rest = Means(_ATTEMPTS), Means(_ATTEMPTS)
        self._lengths, self._queues = Means(_ATTEMPTS), Means(_QUEUE)
        self._residual, self._residual_at = 0.0, clock()
        self.ratios = Ratios()
        self.attempts = 0.0

    def predict(self, kind: str, uncached: float, prompt: int, most: int, in_flight: int) -> float:
        """Expected seconds of one answer, without verification; in_flight: at the engine, this request included."""
        return self.ratios.bias * self._raw(kind, uncached, prompt, most, in_flight)

    def tokens(self, kind: str, most: int) -> float:
        """Expected tokens of this arm's answer: shrunk to what answers of the class have from anyone."""
        return min(most, self._lengths.mean(kind, self._outputs.mean(kind, most)))

    def note(self, attempt: Attempt) -> float | None:
        """Learn from an attempt that was answered.

        Returns: actual ÷ predicted seconds; None where nothing had been known.
        """
        ratio = self._note_ratio(attempt)
        self.attempts += 1
        self._outputs.note(attempt.kind, attempt.output_tokens)
        self._lengths.note(attempt.kind, attempt.output_tokens)
        if self._traits.is_local and attempt.forwards:
            self._note_local(attempt)
        else:
            self._note_remote(attempt)
        return ratio

    def fade(self, share: float) -> None:
        """Let what is known count only a share, and forget how well it was predicted."""
        for part in (self._forward, self._prefill, self._remote, self._work, self._rest, self._lengths, self._queues):
            part.fade(share)
        self.attempts *= share
        self.ratios.clear()

    def _note_ratio(self, attempt: Attempt) -> float | None:
        if not self.attempts:
            return None
        uncached = attempt.prompt_tokens - attempt.cached_tokens
        raw = self._raw(attempt.kind, uncached, attempt.prompt_tokens, 10**9, attempt.in_flight)
        ratio = max(1e-6, attempt.seconds - attempt.verify_s) / max(1e-6, raw)
        self.ratios.note(ratio)
        return ratio

    def _note_local(self, attempt: Attempt) -> None:
        context = attempt.prompt_tokens + attempt.output_tokens / 2
        per_forward = attempt.generation_s / attempt.forwards
        bucket, weight = load_bucket(attempt.in_flight), min(_MOST_FORWARDS, attempt.forwards)
        self._forward.note((1.0, attempt.in_flight, context), per_forward, weight, bucket)
        self._prefill.note((1.0, attempt.prompt_tokens - attempt.cached_tokens), attempt.prefill_s, group=bucket)
        spent = attempt.queue_s + attempt.prefill_s + attempt.generation_s + attempt.verify_s
        self._rest.note(_ALL, max(0.0, attempt.seconds - spent))
        self._queues.note(str(bucket), attempt.queue_s)
        for key in (_ALL, *_heads(attempt.kind)):
            if self._is_canvas:
                blocks = max(1, attempt.blocks)
                self._work.note(f"blocks {key}", blocks / self._blocks(attempt.output_tokens))
                self._work.note(f"forwards {key}", attempt.forwards / blocks)
            else:
                self._work.note(f"tokens {key}", max(1, attempt.output_tokens) / attempt.forwards)

    def _note_remote(self, attempt: Attempt) -> None:
        x = _sizes(attempt.prompt_tokens - attempt.cached_tokens, attempt.output_tokens)
        actual = log(max(1e-6, attempt.seconds - attempt.verify_s))
        if not self._remote.is_empty:
            error, now = actual - self._remote.predict(x), self._clock()
            share = max(0.1, 1.0 - exp(-max(0.0, now - self._residual_at) / _HOUR_S))
            self._residual += share * (error - self._residual)
            self._residual_at = now
        self._remote.note(x, actual)

    def _raw(self, kind: str, uncached: float, prompt: int, most: int, in_flight: int) -> float:
        output = self.tokens(kind, most)
        if self._forward.is_empty:
            return self._raw_remote(uncached, output)
        forward = self._forward.predict((1.0, in_flight, prompt + output / 2))
        queue = self._queues.plain(str(load_bucket(in_flight)), 0.0)
        prefill = self._prefill.predict((1.0, uncached))
        return queue + prefill + self._forwards(kind, output) * forward + self._rest.plain(_ALL, 0.0)

    def _raw_remote(self, uncached: float, output: float) -> float:
        return exp(min(20.0, self._remote.predict(_sizes(uncached, output)) + self._residual))

    def _forwards(self, kind: str, output: float) -> float:
        if self._is_canvas:
            blocks = self._blocks(output) * self._shrunk("blocks", kind, 1.0)
            return blocks * self._shrunk("forwards", kind, 1.0 + (self._traits.step_budget or _STEPS))
        return output / max(0.1, self._shrunk("tokens", kind, 1.0))

    def _shrunk(self, what: str, kind: str, unknown: float) -> float:
        found = self._work.plain(f"{what} {_ALL}", unknown)
        for key in _heads(kind):
            found = self._work.mean(f"{what} {key}", found)
        return found

    def _blocks(self, tokens: float) -> int:
        return max(1, ceil(tokens / (self._traits.canvas_length or 1)))

    @property
    def _is_canvas(self) -> bool:
        return self._traits.decoder == "diffusion" and self._traits.canvas_length is not None


def load_bucket(in_flight: int) -> int:
    """1, 2–3, 4–7, 8–15 … requests are buckets 0, 1, 2, 3 …"""
    return max(1, in_flight).bit_length() - 1


def _sizes(uncached: float, output: float) -> tuple[float, float, float]:
    return (1.0, log1p(max(0.0, uncached)), log1p(max(0.0, output)))


def _heads(kind: str) -> tuple[str, ...]:
    """The coarse class, and the class where it is finer."""
    coarse, mark, _ = kind.partition("#")
    return (coarse, kind) if mark else (coarse,)
