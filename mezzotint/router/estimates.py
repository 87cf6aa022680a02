"""All that is believed of a fleet's arms, learnt from attempts: time, acceptance, drift; no choice is made."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log

from mezzotint.router.acceptance import Acceptance, Answering, Belief
from mezzotint.router.averages import Means
from mezzotint.router.drift import DriftWatch
from mezzotint.router.latency import ArmLatency, Outputs, load_bucket
from mezzotint.router.record import Ask, Attempt, Outcome
from mezzotint.types import ArmTraits

FADED = 0.1  # what counts are worth once the arm has changed
_REMEASURED = 40  # answers at each load, until which more is explored once an arm has changed
_REMEMBERED = 8192  # decisions whose verdict may still be overruled
_ANSWERED: frozenset[Outcome] = frozenset({"accepted", "rejected", "unverified"})
_SILENT: frozenset[Outcome] = frozenset({"timeout", "error"})
_VERDICTS: dict[Outcome, bool] = {"accepted": True, "rejected": False, "malformed": False, "empty": False}


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What one answer of an arm is expected to be. seconds: without verification. deviation: of their logarithm.

    acceptance: the belief, once it answers. answering: the probability that it does.
    """

    seconds: float
    deviation: float
    late_s: float
    cost_usd: float
    acceptance: Belief
    answering: float


class Estimates:
    """The state that a policy decides from."""

    def __init__(self, arms: Sequence[ArmTraits], clock: Callable[[], float]) -> None:
        """clock: seconds."""
        outputs = Outputs()
        self._traits = {arm.name: arm for arm in arms}
        self._latency = {arm.name: ArmLatency(arm, outputs, clock) for arm in arms}
        self._answering = Answering(clock)
        self._verifying = Means(100.0)
        self._drift = DriftWatch()
        self._last: OrderedDict[str, Attempt] = OrderedDict()
        self._overruled: dict[str, bool] = {}
        self.acceptance = Acceptance()
        self._seen = Means(100.0)
        self._cached = Means(50.0)
        self._to_remeasure: dict[int, int] = {}

    def note(self, attempt: Attempt) -> bool:
        """Learn from what an arm did; an arm that is not known, or a caller who left, teaches nothing.

        Returns: whether the arm seems to have changed, so that what was known of its time, or else of its acceptance,
        counts only a tenth.
        """
        if attempt.arm not in self._traits or attempt.outcome == "cancelled":
            return False
        has_answered = attempt.outcome in _ANSWERED
        self._answering.note(attempt.arm, answered=attempt.outcome not in _SILENT)
        self._last[attempt.decision] = attempt
        while len(self._last) > _REMEMBERED:
            gone, _ = self._last.popitem(last=False)
            self._overruled.pop(gone, None)
        verdict = _VERDICTS.get(attempt.outcome)
        has_changed = has_answered and self._note_time(attempt)
        return (verdict is not None and self._note_verdict(attempt, verdict)) or has_changed

    def note_outcome(self, decision: str, accepted: bool) -> bool:
        """Let a late verdict on a decision's last answer stand for what was believed of it.

        Returns: whether the decision is still remembered; without it nothing is learnt.
        """
        attempt = self._last.get(decision)
        if attempt is None or attempt.outcome not in _ANSWERED:
            return attempt is not None
        before = self._overruled.get(decision, _VERDICTS.get(attempt.outcome))
        self._overruled[decision] = accepted
        if before is None:
            self._note_verdict(attempt, accepted)
        elif before != accepted:
            change = 1.0 if accepted else -1.0
            self._count_verdict(attempt, change, -change)
        return True

    def estimate(self, ask: Ask, arm: ArmTraits, cached: float | None, in_flight: int) -> Estimate:
        """What is expected of an arm.

        cached: tokens of the prompt that its engine holds; None for what it usually holds of this class. in_flight: at
        its engine, this request included.
        """
        model = self._latency[arm.name]
        held = self._cached.mean(f"{arm.engine} {ask.kind}", 0.0) if cached is None else cached
        uncached = max(1.0, ask.prompt_tokens - held)
        seconds = model.predict(ask.kind, uncached, ask.prompt_tokens, ask.most_tokens, in_flight)
        output = model.tokens(ask.kind, ask.most_tokens)
        tokens = ask.prompt_tokens * arm.input_price + output * arm.output_price
        return Estimate(
            seconds=seconds,
            deviation=model.ratios.deviation,
            late_s=seconds * model.ratios.quantile(1.0 - ask.risk) / model.ratios.bias,
            cost_usd=tokens / 1e6 + seconds * arm.busy_price / in_flight,
            acceptance=self.acceptance.first(ask.kind, writer_of(arm)),
            answering=self._answering.rate(arm.name),
        )

    def verify_s(self, ask: Ask) -> float:
        """Expected seconds of one verification."""
        return self._verifying.mean(ask.kind, self._verifying.plain("", 0.0)) if ask.verifies else 0.0

    def attempts(self, arm: str) -> float:
        """Answers of an arm that its time was learnt from."""
        return self._latency[arm].attempts

    def tokens(self, arm: str, kind: str, most: int) -> float:
        """Expected tokens of an arm's answer."""
        return self._latency[arm].tokens(kind, most)

    def seen(self, arm: str, in_flight: int) -> float:
        """Answers of an arm at about a load, faded."""
        return self._seen.count(f"{arm} {load_bucket(in_flight)}")

    def is_to_remeasure(self, bucket: int) -> bool:
        """Whether an arm has changed since little was answered at this load."""
        return self._to_remeasure.get(bucket, 0) > 0

    def distrust(self) -> None:
        """Let all that is known count only a tenth: it was seen under another configuration."""
        for arm in self._traits:
            self._distrust_time(arm)
        for writer in {writer_of(arm) for arm in self._traits.values()}:
            self._distrust_acceptance(writer)

    def _distrust_time(self, arm: str) -> None:
        self._latency[arm].fade(FADED)
        self._measure_anew()

    def _distrust_acceptance(self, writer: str) -> None:
        self.acceptance.fade(writer, FADED)
        self._measure_anew()

    def _measure_anew(self) -> None:
        """Explore more at every load that was met; as only arms that are not far apart are, that is the crossover."""
        self._to_remeasure = dict.fromkeys(self._to_remeasure, _REMEASURED)

    def _note_time(self, attempt: Attempt) -> bool:
        """Returns: whether the arm's speed has changed."""
        if attempt.verify_s:
            for key in ("", attempt.kind):
                self._verifying.note(key, attempt.verify_s)
        bucket = load_bucket(attempt.in_flight)
        self._to_remeasure[bucket] = self._to_remeasure.get(bucket, 0) - 1
        self._seen.note(f"{attempt.arm} {bucket}", 1.0)
        self._cached.note(f"{self._traits[attempt.arm].engine} {attempt.kind}", attempt.cached_tokens)
        model = self._latency[attempt.arm]
        deviation = model.ratios.deviation
        ratio = model.note(attempt)
        has_changed = ratio is not None and self._drift.note_time(attempt.arm, bucket, log(ratio), deviation)
        if has_changed:
            self._distrust_time(attempt.arm)
        return has_changed

    def _note_verdict(self, attempt: Attempt, accepted: bool) -> bool:
        """Returns: whether the arm's acceptance has changed."""
        has_changed, writer = False, writer_of(self._traits[attempt.arm])
        if attempt.after is None:
            expected = self.acceptance.first(attempt.kind, writer).mean
            has_changed = self._drift.note_verdict(writer, accepted, expected)
        if has_changed:
            self._distrust_acceptance(writer)
        self._count_verdict(attempt, float(accepted), float(not accepted))
        return has_changed

    def _count_verdict(self, attempt: Attempt, good: float, bad: float) -> None:
        before = self._traits.get(attempt.after) if attempt.after is not None else None
        writer = writer_of(self._traits[attempt.arm])
        self.acceptance.note(attempt.kind, writer, None if before is None else writer_of(before), good, bad)


def writer_of(arm: ArmTraits) -> str:
    """Whose distribution an arm's answers have, so that arms of one writer share what is known of acceptance.

    `mtp` and `verified` write what `ar` of the same engine writes; another seed is all that may differ. Source:
    contract 4.
    """
    return f"{arm.engine} ar" if arm.is_local and arm.decoder in ("ar", "mtp", "verified") else arm.name
