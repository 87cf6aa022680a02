"""One canvas with blanks: what is fed in, what comes out, what it costs, and how a length is chosen."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from mezzotint.decoding.candidates import count_copied
from mezzotint.decoding.canvas import pin_positions
from mezzotint.decoding.filling import Filling, Lengths, Row
from mezzotint.decoding.gap import Gap, Seam, Slot
from mezzotint.decoding.generate import settle_canvas
from mezzotint.decoding.infill import Canvas, fill_canvas
from mezzotint.decoding.program import Block, Denoise, Encode, drive
from mezzotint.decoding.random import SeededCanvas
from mezzotint.decoding.sampler import SAMPLERS
from tests.decoding.network import END, C, Scripted, V, following, limits, sure_of
from tests.decoding.one_by_one import run_one_by_one

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


def fill(
    network: Scripted,
    gaps: Sequence[Gap],
    how: Filling,
    held: int = 0,
    together: list[tuple[type, int]] | None = None,
) -> tuple[Canvas, list[int]]:
    """The canvas, and the steps of the rows that were denoised besides; together: see run_one_by_one."""
    kv = network.new_kv(1, 64)
    kv.ids = PROMPT[:held]
    program = fill_canvas(PROMPT, held, gaps, [gap.most for gap in gaps], how)
    told = list(drive(run_one_by_one(program, together), network, kv))
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


def scored(network: Scripted, *head: int) -> list[list[int]]:
    """The texts that the causal pass has compared: all that was encoded with the same ids at its end."""
    encoded = [forward.ids for forward in network.forwards[1:] if forward.kind == "e"]
    return [ids for ids in encoded if ids[-len(head) :] == list(head)]


def test_the_middle_that_is_chosen_is_the_likeliest_to_a_full_causal_forward() -> None:
    network = Scripted()
    canvas, _ = fill(network, [Gap(4, PLAIN, PLAIN, (7, 8))], filling("candidates", surplus={V}))
    values = {tuple(row[:-2]): causal(row) for row in scored(network, 7, 8)}
    best = max(values.values())
    good = [middle for middle, value in values.items() if value >= best - 0.5]
    assert canvas.filled[0].tokens == min(good, key=len)


def test_rows_of_all_lengths_are_one_forward_a_step_and_all_that_is_scored_is_one() -> None:
    network, together = Scripted(), list[tuple[type, int]]()
    how = filling("candidates", surplus={V})
    canvas, others = fill(network, [Gap(4, PLAIN, PLAIN, (7, 8))], how, together=together)
    tried, finished, compared = together[:2], together[2:-1], together[-1]
    assert tried == [(Denoise, 4)] * 2, "lengths 1 to 4, two steps each"
    assert others == [2]
    assert finished[0] == (Denoise, 3), "nothing is denoised where the blank is empty"
    assert len(finished) == canvas.steps
    assert compared == (Encode, 4 + 4), "none, three lengths, and what ar wrote cut at four places"
    drawn = [forward for forward in network.forwards[1:] if forward.kind == "e" and len(forward.ids) == 1]
    assert canvas.encodes == 1 + len(drawn) == 1 + 3, "the prompt says the first token"


def test_many_rows_are_scored_some_at_a_time_and_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    how, whole = filling("candidates", surplus={V}), list[tuple[type, int]]()
    one, _ = fill(Scripted(), [Gap(4, PLAIN, PLAIN, (7, 8))], how, together=whole)
    monkeypatch.setattr("mezzotint.decoding.candidates.MOST_ROWS", 3)
    parts = list[tuple[type, int]]()
    again, _ = fill(Scripted(), [Gap(4, PLAIN, PLAIN, (7, 8))], how, together=parts)
    assert [size for kind, size in parts if kind is Encode] == [3, 3, 2]
    assert again == one._replace(encodes=one.encodes + 2)


def test_what_ar_writes_blind_to_what_follows_is_taken_where_it_is_likelier_with_it() -> None:
    """The canvas knows nothing; the causal pass writes 9 10 and would go on, but 7 8 is likely behind these two."""

    def continuation(context: list[int]) -> Tensor:
        wanted = {(): 9, (9,): 10, (9, 10): 11, (9, 10, 7): 8}.get(tuple(context[len(PROMPT) :]), 5)
        logits = sure_of([wanted], 6.0)[0]
        logits[7] = 5.5 if context[len(PROMPT) :] == [9, 10] else 0
        return logits

    network = Scripted(beliefs=lambda canvas, context, step: sure_of([12] * C), continuation=continuation)
    canvas, _ = fill(network, [Gap(4, PLAIN, PLAIN, (7, 8))], filling("candidates"))
    assert (canvas.filled[0].tokens, canvas.filled[0].is_full) == ((9, 10), False)


def test_what_ar_writes_behind_an_earlier_blank_and_a_seam_follows_them() -> None:
    gaps = [Gap(2, PLAIN, PLAIN, (7,)), Gap(2, Seam((5,), ((5,),)), PLAIN, (6,))]
    network = Scripted(beliefs=lambda canvas, context, step: sure_of([9] * C))
    fill(network, gaps, filling("candidates"))
    starts = [f.ids for f in network.forwards[1:] if f.kind == "e" and f.ids[-2:] == [7, 5]]
    assert len(starts) == 1, "it is encoded once, to write on behind it"


def test_a_copy_of_what_follows_is_four_of_its_tokens_at_the_end_of_a_middle() -> None:
    def copied(*middle: int, behind: tuple[int, ...] = (9, 10, 11, 12, 13)) -> int:
        slots = [Slot((), len(middle), (behind[0],), behind[1:])]
        return count_copied(Row(slots, [*middle, *behind], 0), 0, filling("candidates"))

    assert copied(14, 9, 10, 11, 12) == 4
    assert copied(14, 9, 10, 11, 12, PAD, PAD) == 4, "pads are no part of it"
    assert copied(9, 10, 11, 12, 13) == 5
    assert copied(14, 9, 10, 11) == copied(9, 10, 11, 12, 14) == copied() == 0


@pytest.mark.parametrize(("doubt", "middle"), [(5.0, ()), (20.0, (13, 9, 10, 11, 12))])
def test_a_middle_that_ends_with_what_follows_has_to_be_much_likelier(doubt: float, middle: tuple[int, ...]) -> None:
    """Where nothing stands in the blank what follows is likely by e^-doubt; behind its own copy it is certain."""
    behind = (9, 10, 11, 12)

    def beliefs(canvas: list[int], context: list[int], step: int) -> Tensor:
        is_copy = canvas[5:] == [9, 10, 11]
        return sure_of([13, *behind, 9, 10, 11]) if is_copy else sure_of([14] * C, 1.0)

    def continuation(context: list[int]) -> Tensor:
        written = context[len(PROMPT) :]
        if written:
            turn = len(written) - (written[0] == 13)
            return sure_of([15 if written[0] == 15 else behind[turn % 4]])[0]
        logits = torch.zeros(V)
        logits[15], logits[13], logits[9] = 40, 39, 40 - doubt
        return logits

    network = Scripted(beliefs=beliefs, continuation=continuation)
    canvas, _ = fill(network, [Gap(5, PLAIN, PLAIN, behind)], filling("candidates"))
    assert canvas.filled[0].tokens == middle


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


def count_open(canvas: list[int]) -> int:
    """How many places stand before [7, 8] and what fills the canvas up."""
    return len("".join(map(chr, canvas)).rstrip(chr(FILL))) - 2


def test_the_lengths_that_are_denoised_to_the_end_are_those_the_canvas_is_surest_of() -> None:
    def beliefs(canvas: list[int], context: list[int], step: int) -> Tensor:
        return {1: 0.5, 2: 30.0, 3: 20.0, 4: 25.0}[count_open(canvas)] * sure_of([9] * C, 1.0)

    network = Scripted(beliefs=beliefs)
    fill(network, [Gap(4, PLAIN, PLAIN, (7, 8))], filling("candidates"))
    denoised = [count_open(forward.ids) for forward in network.forwards if forward.kind == "d"]
    assert denoised[:8] == [1, 2, 3, 4] * 2
    assert sorted({*denoised[8:]}) == [2, 3, 4]


def test_every_length_is_judged_by_the_same_text_behind_it() -> None:
    network = Scripted(continuation=lambda context: sure_of([8])[0] / 8)
    behind = (7, 8, 9, 10, 11, 12, 13)
    fill(network, [Gap(4, PLAIN, PLAIN, behind)], filling("candidates", surplus={V}))
    rows = scored(network, *behind[:4])
    assert len(rows) == 4 + 4
    assert all(len(row) <= 8 for row in rows)


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
