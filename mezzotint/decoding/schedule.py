"""How warm each denoising step is and how many positions it must have committed; nothing is drawn here."""


def step_temperature(step: int, budget: int, t_min: float, t_max: float) -> float:
    """Temperature of `step` (counting up from 0) of `budget`: linear from t_max to just above t_min.

    Source: the report's Algorithm 1; t_min itself is never reached.
    """
    return t_min + (t_max - t_min) * (budget - step) / budget


def commit_target(step: int, budget: int, count: int) -> int:
    """Positions of `count` that refinement must have committed after `step`: ⌈(step + 1) · count ÷ budget⌉.

    Source: diffusers' BlockRefinement schedule.
    """
    return -(-(step + 1) * count // budget)


def clean_share(step: int, budget: int) -> float:
    """Share of positions that the discrete DDIM path holds clean before `step`."""
    return step / budget
