"""Which arm answers while nothing is measured: a stated rule on load and length."""

from collections.abc import Sequence

from mezzotint.router.feasible import Option


def order_by_rule(options: Sequence[Option], crossover: int, expected_tokens: float) -> list[Option]:
    """Order arms by what is published of them.

    A canvas first iff fewer than `crossover` requests are at its engine and the answer is expected to fill half of it,
    else ar; local arms before others, and of equals the cheaper.
    """

    def rank(option: Option) -> tuple[bool, bool, float]:
        arm = option.arm
        is_canvas = arm.decoder == "diffusion" and arm.canvas_length is not None
        pays = is_canvas and option.load < crossover and expected_tokens >= (arm.canvas_length or 0) / 2
        is_plain = arm.decoder in ("ar", None)
        order = 0 if pays else 1 if is_plain else 3 if is_canvas else 2
        return (not arm.is_local, order > 0, order + arm.output_price / 1e9)

    return sorted(options, key=rank)
