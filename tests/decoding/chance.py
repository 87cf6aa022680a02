"""Whether counts fit the law that they are said to follow; no test lives here."""

from collections.abc import Sequence


def fits(counts: Sequence[int], law: Sequence[float]) -> bool:
    """Pearson's chi-square test at about 1 in 10,000; where the law gives no mass there may be no count.

    law: masses in any scale. Expected counts should be 5 or more.
    """
    scale = sum(counts) / sum(law)
    cells = [(count, mass * scale) for count, mass in zip(counts, law, strict=True)]
    if any(count for count, expected in cells if not expected):
        return False
    statistic = sum((count - expected) ** 2 / expected for count, expected in cells if expected)
    freedom = sum(expected > 0 for _, expected in cells) - 1
    spread = 2 / (9 * freedom)  # Wilson and Hilferty: the cube root of a chi-square is nearly normal
    return statistic < freedom * float(1 - spread + 3.72 * spread**0.5) ** 3
