"""One canvas with blanks: what is fed in, what comes out, what it costs, and how a length is chosen."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from mezzotint.decoding.canvas import pin_positions
from mezzotint.decoding.gap import Gap, Seam
from mezzotint.decoding.generate import settle_canvas
from mezzotint.decoding.infill import Canvas, Filling, Lengths, fill_canvas
from mezzotint.decoding.program import Block, drive
from mezzotint.decoding.random import SeededCanvas
from mezzotint.decoding.sampler import SAMPLERS
from tests.decoding.network import END, C, Scripted, V, following, limits, sure_of

PROMPT, PAD, FILL = [3, 1, 4], 0, 2
PLAIN = Seam()


def filling(lengths: Lengths = "surplus", **changes: Any) -> Filling:
    given: dict[str, Any] = {
        "lengths": lengths,
        "sampler": replace(SAMPLERS["report"], budget=3),
        "temperature": 1.0,
        "randomness": lambda attempt: SeededCanvas(seed=5, block=0, width=C, vocab_size=V, attempt=attempt),
        "limits": limits(),
        "shape": None,
        "surplus": {PAD, END},
        "fill_id": FILL,
    }
    return Filling(**{**given, **changes})


def fill(network: Scripted, gaps: Sequence[Gap], how: Filling, held: int = 0) -> tuple[Canvas, list[int]]:
    """The canvas, and the steps of the rows that were denoised besides."""
    kv = network.new_kv(1, 64)
    kv.ids = PROMPT[:held]
    told = list(drive(fill_canvas(PROMPT, held, gaps, [gap.most for gap in gaps], how), network, kv))
    assert isinstance(told[-1], Canvas)
    return told[-1], [event.steps for event in told if isinstance(event, Block)]


def saying(*tokens: int) -> Scripted:
    return Scripted(beliefs=lambda canvas, context, step: sure_of(list(tokens)))


def test_one_row_is_denoised_with_what_follows_in_view() -> None:
    network = Scripted()
    canvas, others = fill(network, [Gap(4, PLAIN, PLAIN, (7, 8))], filling())
    assert network.kinds() == "e" + "d" * canvas.steps
    assert (others, canvas.encodes) == ([], 0)
    assert all(forward.ids[4:] == [7, 8, FILL, FILL] for forward in network.forwards[1:])


def test_pads_and_ends_are_left_out_wherever_they_stand() -> None:
    [one] = fill(saying(9, PAD, 10, END, 9, 9, 9, 9), [Gap(4, PLAIN, PLAIN, (7,))], filling())[0].filled
    assert (one.tokens, one.is_full) == ((9, 10), False)
    [one] = fill(saying(9, PAD, 10, 11, 9, 9, 9, 9), [Gap(4, PLAIN, PLAIN, (7,))], filling())[0].filled
    assert (one.tokens, one.is_full) == ((9, 10, 11), True)


def test_several_blanks_share_a_canvas_and_each_gets_its_own() -> None:
    gaps = [Gap(2, PLAIN, PLAIN, (7, 8)), Gap(3, PLAIN, PLAIN, (6,))]
    canvas, _ = fill(saying(9, 10, 1, 1, 11, 12, PAD, 1), gaps, filling())
    assert [one.tokens for one in canvas.filled] == [(9, 10), (11, 12)]
    assert [one.is_full for one in canvas.filled] == [True, False]


def test_a_blank_of_one_token_behaves_as_a_canvas_with_one_open_position() -> None:
    network, how = Scripted(), filling(surplus={V})
    [one] = fill(network, [Gap(1, PLAIN, PLAIN, (7, 8, 9, 10, 11, 12, 13))], how)[0].filled
    alone = Scripted()
    kv = alone.new_kv(1, 64)
    alone.encode(torch.tensor([PROMPT]), kv)
    pins = pin_positions({place: 6 + place for place in range(1, C)}, C)
    *_, last = settle_canvas(alone, kv, how.sampler, how.randomness(0), pins, how.limits)
    assert one.tokens == (int(last.output[0, 0]),)
    assert [forward.ids for forward in network.forwards] == [forward.ids for forward in alone.forwards]


def test_seams_are_read_in_one_forward_in_which_they_are_open_and_then_pinned() -> None:
    gaps = [Gap(3, Seam((5,), ((5, 10),)), Seam((6,), ((6, 11),)), (7, 8))]
    network = saying(10, 9, 9, 9, 11, 1, 1, 1)
    canvas, others = fill(network, gaps, filling())
    assert others == [1]
    read, *rest = network.forwards[1:]
    assert read.ids[5:] == [7, 8, FILL]
    assert all((f.ids[0], f.ids[2:]) == (10, [11, 7, 8, FILL, FILL, FILL]) for f in rest)
    assert canvas.filled[0]._replace(tokens=()) == ((10,), (), (11,), True)


def test_what_the_context_holds_is_not_encoded_again() -> None:
    network = Scripted()
    again = fill(network, [Gap(4, PLAIN, PLAIN, (7,))], filling(), held=2)
    assert network.forwards[0].ids == PROMPT[2:]
    assert again == fill(Scripted(), [Gap(4, PLAIN, PLAIN, (7,))], filling())
    whole = Scripted()
    fill(whole, [Gap(4, PLAIN, PLAIN, (7,))], filling("candidates"), held=3)
    assert whole.forwards[0].ids == PROMPT[2:], "what follows the prompt has to be read"


def causal(ids: Sequence[int]) -> float:
    """Log-probability of ids behind the prompt, each from a context of its own."""
    total = 0.0
    for place, id in enumerate(ids):
        total += float(following([*PROMPT, *ids[:place]]).double().log_softmax(-1)[id])
    return total


def test_the_middle_that_is_chosen_is_the_likeliest_to_a_full_causal_forward() -> None:
    network = Scripted()
    canvas, others = fill(network, [Gap(4, PLAIN, PLAIN, (7, 8))], filling("candidates", surplus={V}))
    rows = [forward.ids for forward in network.forwards[1:] if forward.kind == "e"]
    assert canvas.encodes == len(rows) == 4, "none, and three lengths"
    assert all(row[-2:] == [7, 8] for row in rows)
    values = {tuple(row[:-2]): causal(row) for row in rows}
    best = max(values.values())
    good = [middle for middle, value in values.items() if value >= best - 0.5]
    assert canvas.filled[0].tokens == min(good, key=len)
    assert others[:4] == [2, 2, 2, 2], "lengths 1 to 4, two steps each"
    assert network.kinds().count("d") == sum(others) + canvas.steps


@pytest.mark.parametrize(("better", "middle"), [(0.4, ()), (0.6, (9,))])
def test_a_longer_middle_has_to_be_likelier_by_half_a_nat(better: float, middle: tuple[int, ...]) -> None:
    def continuation(context: list[int]) -> Tensor:
        logits = torch.zeros(V)
        if context == PROMPT:
            logits[9], logits[7] = 9 + better, 9
        elif context == [*PROMPT, 9]:
            logits[7] = 40
        return logits

    network = Scripted(beliefs=lambda canvas, context, step: sure_of([9] * C), continuation=continuation)
    canvas, _ = fill(network, [Gap(2, PLAIN, PLAIN, (7, 8))], filling("candidates"))
    assert canvas.filled[0].tokens == middle


def test_the_lengths_that_are_denoised_to_the_end_are_those_the_canvas_is_surest_of() -> None:
    def beliefs(canvas: list[int], context: list[int], step: int) -> Tensor:
        room = canvas.index(7)
        return {1: 0.5, 2: 30.0, 3: 20.0, 4: 25.0}[room] * sure_of([9] * C, 1.0)

    network = Scripted(beliefs=beliefs)
    fill(network, [Gap(4, PLAIN, PLAIN, (7, 8))], filling("candidates"))
    rows = [forward.ids for forward in network.forwards[1:] if forward.kind == "e"]
    assert [len(row) - 2 for row in rows] == [0, 2, 3, 4]


def test_every_length_is_judged_by_the_same_text_behind_it() -> None:
    network = Scripted(continuation=lambda context: sure_of([8])[0] / 8)
    behind = (7, 8, 9, 10, 11, 12, 13)
    fill(network, [Gap(4, PLAIN, PLAIN, behind)], filling("candidates", surplus={V}))
    rows = [forward.ids for forward in network.forwards[1:] if forward.kind == "e"]
    assert all(tuple(row[-4:]) == behind[:4] and len(row) <= 8 for row in rows)


@pytest.mark.parametrize("second", [2, 0])
def test_lengths_of_several_blanks_are_decided_from_the_left(second: int) -> None:
    def continuation(context: list[int]) -> Tensor:
        """Two tokens of 9 before a 7, `second` before a 6."""
        behind = context[len(PROMPT) :]
        if 7 not in behind:
            return sure_of([9 if len(behind) < 2 else 7])[0]
        return sure_of([9 if len(behind) - behind.index(7) - 1 < second else 6])[0]

    network = Scripted(beliefs=lambda canvas, context, step: sure_of([9] * C), continuation=continuation)
    gaps = [Gap(3, PLAIN, PLAIN, (7,)), Gap(second or 1, PLAIN, PLAIN, (6,))]
    canvas, _ = fill(network, gaps, filling("candidates"))
    assert [one.tokens for one in canvas.filled] == [(9, 9), (9,) * second]
