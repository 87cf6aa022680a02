"""Whether a canvas whose first step is uncertain is worth finishing, learnt by bucket of its entropy."""

from bisect import bisect
from math import sqrt

from mezzotint.router.acceptance import Rates
from mezzotint.router.record import Attempt

_EDGES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)  # nats a position
_LEAST = 12.0  # verdicts of a bucket before it is believed


class FirstCanvas:
    """Acceptance of each arm by the entropy of its first canvas after its first step."""

    def __init__(self) -> None:
        """Nothing is known."""
        self._rates = Rates(0.7)

    def note(self, attempt: Attempt) -> None:
        """Take a verdict on an answer whose first entropy was seen; others teach nothing."""
        if attempt.first_entropy is not None and attempt.outcome in ("accepted", "rejected"):
            accepted = attempt.outcome == "accepted"
            self._rates.note(_path(attempt.arm, attempt.first_entropy), float(accepted), float(not accepted))

    def may_go_on(self, arm: str, entropy_nats: float, rest_s: float, otherwise_s: float) -> bool:
        """Whether finishing is expected to be accepted sooner than leaving.

        rest_s: what finishing takes. otherwise_s: until another arm's answer is accepted, which also follows where this
        one is rejected. So finishing pays iff rest_s < P(accepted)·otherwise_s.
        """
        path = _path(arm, entropy_nats)
        belief = self._rates.belief(path)
        if sum(self._rates.counts(path)) < _LEAST:
            return True
        return rest_s < (belief.mean + sqrt(belief.variance)) * otherwise_s  # left only where that is sure


def _path(arm: str, entropy_nats: float) -> tuple[str, ...]:
    return (arm, str(bisect(_EDGES, entropy_nats)))
