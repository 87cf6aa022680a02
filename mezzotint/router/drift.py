"""Whether what an arm does has changed: Page–Hinkley on standardised surprises; what follows from that lives in policy.

A change of load is no drift: each load has a detector of its own, whose first observations only teach it a mean.
"""

from dataclasses import dataclass, field

_ALLOWANCE = 0.25  # standard deviations that a mean may wander
_THRESHOLD = 20.0  # one false alarm in exp(2·0.25·20) ÷ (2·0.25²) ≈ 180,000 observations of unit variance
_WARM_UP = 20  # observations that only teach the mean
_CLIP = 3.0  # one stall is no drift


@dataclass
class PageHinkley:
    """The two-sided test on a stream of numbers of about unit variance."""

    count: int = 0
    mean: float = 0.0
    up: float = 0.0
    down: float = 0.0

    def note(self, value: float) -> bool:
        """Take one number.

        Returns: whether the mean has moved; if so all is forgotten and begins anew.
        Source: Page 1954; Hinkley 1971.
        """
        value = max(-_CLIP, min(_CLIP, value))
        self.count += 1
        if self.count > _WARM_UP:
            self.up = max(0.0, self.up + value - self.mean - _ALLOWANCE)
            self.down = max(0.0, self.down - value + self.mean - _ALLOWANCE)
        self.mean += (value - self.mean) / self.count
        if max(self.up, self.down) <= _THRESHOLD:
            return False
        self.count, self.mean, self.up, self.down = 0, 0.0, 0.0, 0.0
        return True


@dataclass
class DriftWatch:
    """One detector for each arm and load of its time, and one for each writer of its acceptance.

    Behind an alarm about an arm's time at one load, those at its other loads begin anew.
    """

    _time: dict[tuple[str, int], PageHinkley] = field(default_factory=dict)
    _acceptance: dict[str, PageHinkley] = field(default_factory=dict)

    def note_time(self, arm: str, bucket: int, log_ratio: float, deviation: float) -> bool:
        """Take the logarithm of actual ÷ predicted seconds. Returns: whether the arm's speed has changed."""
        has_changed = self._time.setdefault((arm, bucket), PageHinkley()).note(log_ratio / max(0.1, deviation))
        if has_changed:
            for key in [key for key in self._time if key[0] == arm]:
                del self._time[key]
        return has_changed

    def note_verdict(self, writer: str, accepted: bool, expected: float) -> bool:
        """Take a verdict and its expected rate. Returns: whether the writer's acceptance has changed."""
        deviation = max(0.2, (expected * (1.0 - expected)) ** 0.5)
        return self._acceptance.setdefault(writer, PageHinkley()).note((float(accepted) - expected) / deviation)
