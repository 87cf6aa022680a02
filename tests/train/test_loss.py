"""The objective: no leak into a canvas, the numbers of inference, and the plain means that were promised."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from mezzotint.decoding.canvas import Pins
from mezzotint.decoding.sampler import SAMPLERS
from mezzotint.train.config import Plan, TrainConfig
from mezzotint.train.context import Contexts, RecordedKV
from mezzotint.train.data import Batch, collate
from mezzotint.train.loss import Canvases
from mezzotint.train.onpolicy import visit_states
from tests.train.tiny import (
    END,
    OPEN,
    PAD,
    VOCABULARY,
    WIDTH,
    Watched,
    cut,
    draw_samples,
    noisy,
    run,
    tiny_model,
)

PLAIN = TrainConfig(canvases=2, conditioned=0.0, prompt_share=1.0)
CONDITIONED = replace(PLAIN, conditioned=1.0)
ON_POLICY = Plan(easy=False, causal_weight=1.0, budget=3, mined=False)

# Prompts of 7 and 10 tokens, answers of three blocks each, the last one partly filled.
SAMPLES = draw_samples((7, 11), (10, 9))
BLOCK = 1


def farthest(left: Tensor, right: Tensor) -> list[float]:
    """The largest absolute difference within each row."""
    return (left - right).abs().flatten(1).amax(1).tolist()


def change(batch: Batch, row: int, position: int) -> Batch:
    ids = batch.ids.clone()
    ids[row, position] = 3 + (ids[row, position] + 1) % (VOCABULARY - 3)
    return batch._replace(ids=ids)


def every(batch: Batch) -> Canvases:
    """One canvas for each row, all of it the block itself."""
    rows = torch.arange(len(batch.block))
    return Canvases(batch.block, batch.block, batch.pinned, rows, torch.zeros(len(rows)))


@pytest.mark.parametrize("config", [PLAIN, CONDITIONED], ids=["plain", "conditioned"])
def test_no_token_of_its_own_block_or_behind_it_moves_a_canvas(config: TrainConfig) -> None:
    model, batch = tiny_model(), cut(SAMPLES, BLOCK)
    canvases = noisy(batch, config)
    before = run(model, batch, canvases, config).canvases
    for row in range(2):
        for position in range(int(batch.context[row]), int(batch.lengths[row])):
            after = run(model, change(batch, row, position), canvases, config).canvases
            assert max(farthest(before, after)) < 1e-12, (row, position)


@pytest.mark.parametrize("config", [PLAIN, CONDITIONED], ids=["plain", "conditioned"])
def test_every_token_of_prompt_and_earlier_blocks_moves_its_own_canvases(config: TrainConfig) -> None:
    model, batch = tiny_model(), cut(SAMPLES, BLOCK)
    canvases = noisy(batch, config)
    before = run(model, batch, canvases, config).canvases
    for row in range(2):
        for position in range(int(batch.context[row])):
            after = run(model, change(batch, row, position), canvases, config).canvases
            moved = [distance > 1e-9 for distance in farthest(before, after)]
            assert moved == (canvases.rows == row).tolist(), (row, position)


@pytest.mark.parametrize("config", [PLAIN, CONDITIONED], ids=["plain", "conditioned"])
def test_a_canvas_never_moves_another(config: TrainConfig) -> None:
    model, batch = tiny_model(), cut(SAMPLES, BLOCK)
    canvases = noisy(batch, config)
    before = run(model, batch, canvases, config).canvases
    for index in range(4):
        ids = canvases.ids.clone()
        ids[index, 1] = (ids[index, 1] + 1) % VOCABULARY
        after = run(model, batch, canvases._replace(ids=ids), config).canvases
        assert [distance > 1e-9 for distance in farthest(before, after)] == [i == index for i in range(4)]


def test_causal_logits_are_to_the_bit_those_of_an_encode_without_canvases() -> None:
    model, batch = tiny_model(), cut(SAMPLES, BLOCK)
    positions = torch.arange(batch.ids.shape[1] - 1)
    real = positions < batch.lengths[:, None] - 1
    alone = model.logits(model.encode(batch.ids, model.new_kv(2, 40))[:, :-1][real])
    for config in (PLAIN, CONDITIONED, replace(PLAIN, canvases=5)):
        found = run(model, batch, noisy(batch, config), config)
        assert torch.equal(found.causal, alone)
    assert torch.equal(run(model, batch, every(batch), PLAIN, ON_POLICY._replace(budget=2)).causal, alone)


def inferred(model: Watched, batch: Batch, canvases: Canvases, index: int, *, steps: int) -> Tensor:
    """Logits of one canvas as inference has them before or after a first step, behind a cache of its own."""
    row = int(canvases.rows[index])
    start, context = int(batch.prompt_lengths[row]), int(batch.context[row])
    kv = model.new_kv(1, context + WIDTH)
    model.encode(batch.ids[row : row + 1, :start], kv)
    for block in range(start, context, WIDTH):
        model.encode(batch.ids[row : row + 1, block : block + WIDTH], kv)
    canvas, soft = canvases.ids[index : index + 1], None
    for _ in range(steps):
        reading = model.read(
            model.denoise(canvas, kv, soft)[0],
            temperature=0.4 + 0.4 * float(canvases.noise[index]),
            proposal_temperature=1.0,
            uniforms=torch.zeros(WIDTH, dtype=torch.float64),
            with_soft=True,
        )
        assert reading.soft is not None
        soft = reading.soft[None]
    return model.logits(model.denoise(canvas, kv, soft))[0]


@pytest.mark.parametrize("block", [0, 1, 2])
@pytest.mark.parametrize(("config", "steps"), [(PLAIN, 0), (CONDITIONED, 1)], ids=["step 0", "step 1"])
def test_a_canvas_is_trained_on_the_logits_of_inference(block: int, config: TrainConfig, steps: int) -> None:
    model, batch = tiny_model(), cut(SAMPLES, block)
    canvases = noisy(batch, config)
    canvases = canvases._replace(noise=canvases.noise.double())  # or the temperatures would differ by a rounding
    trained = run(model, batch, canvases, config).canvases
    with torch.no_grad():
        for index in range(4):
            found = inferred(model, batch, canvases, index, steps=steps)
            other = inferred(model, batch, canvases, index, steps=1 - steps)
            assert float((trained[index] - found).abs().max()) < 1e-10
            assert float((trained[index] - other).abs().max()) > 1e-4, "the soft embedding changes nothing"


def test_half_of_the_canvases_have_a_soft_embedding_of_exactly_zero() -> None:
    config = TrainConfig(canvases=5)
    batch = cut(SAMPLES, BLOCK)
    soft = run(tiny_model(), batch, noisy(batch, config), config).fed.soft
    assert soft is not None
    assert sorted((soft != 0).flatten(1).any(1).tolist()) == [False] * 5 + [True] * 5


def test_a_zero_soft_embedding_is_to_the_bit_no_soft_embedding() -> None:
    model, batch = tiny_model(), cut(SAMPLES, 0)
    kv = model.new_kv(2, 30)
    model.encode(batch.ids[:, :7], kv)
    zero = torch.zeros(2, WIDTH, 16, dtype=torch.float64)
    assert torch.equal(model.denoise(batch.block, kv, zero), model.denoise(batch.block, kv))


def test_the_denoising_loss_is_the_plain_mean_over_all_tokens_of_all_canvases() -> None:
    batch = cut(SAMPLES, 2)  # partly filled blocks: what fills them counts too
    canvases = noisy(batch, CONDITIONED)
    assert 0 < int((canvases.ids != canvases.targets).sum()) < canvases.ids.numel()
    found = run(tiny_model(), batch, canvases, CONDITIONED)
    surprises = -found.canvases.log_softmax(-1).gather(-1, canvases.targets[..., None])
    assert float(found.losses.denoise) == pytest.approx(float(surprises.mean()), abs=1e-12)


def test_the_causal_loss_covers_the_answers_and_a_tenth_of_the_prompts() -> None:
    model, batch = tiny_model(), cut(SAMPLES, BLOCK)
    prompts, answers = list[float](), list[float]()
    for sample in SAMPLES:
        whole = torch.tensor([sample.prompt + sample.answer])
        log_p = model.logits(model.encode(whole, model.new_kv(1, 30))).detach().log_softmax(-1)
        for position in range(1, whole.shape[1]):
            part = prompts if position < len(sample.prompt) else answers
            part.append(-float(log_p[0, position - 1, whole[0, position]]))
    expected = sum(answers) / len(answers) + 0.1 * sum(prompts) / len(prompts)
    found = run(model, batch, every(batch), PLAIN).losses
    assert float(found.causal) == pytest.approx(expected, abs=1e-12)


def test_the_total_is_the_sum_with_the_planned_weight() -> None:
    batch = cut(SAMPLES, BLOCK)
    found = run(tiny_model(), batch, every(batch), PLAIN, Plan(easy=False, causal_weight=0.3, budget=None, mined=False))
    expected = float(found.losses.denoise) + 0.3 * float(found.losses.causal)
    assert float(found.losses.total.detach()) == pytest.approx(expected, abs=1e-12)


def test_the_denoising_loss_alone_trains_every_weight() -> None:
    model, batch = tiny_model(), cut(SAMPLES, BLOCK)
    plan = Plan(easy=False, causal_weight=0.0, budget=None, mined=False)
    run(model, batch, noisy(batch, CONDITIONED), CONDITIONED, plan).losses.total.backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.abs().max() > 0, name


def test_padding_changes_no_loss() -> None:
    model, batch = tiny_model(), cut(SAMPLES[:1], BLOCK)
    canvases = noisy(batch, CONDITIONED)
    tight = run(model, batch, canvases, CONDITIONED).losses
    expected = [float(loss.detach()) for loss in tight]
    for filler in (PAD, 5):
        padding = torch.full((1, 9), filler)
        wide = batch._replace(ids=torch.cat((batch.ids, padding), 1))
        loose = run(model, wide, canvases, CONDITIONED).losses
        assert [float(loss.detach()) for loss in loose] == pytest.approx(expected, abs=1e-12)


def test_a_row_has_the_same_logits_alone_and_beside_a_longer_one() -> None:
    model, both = tiny_model(), cut(SAMPLES, BLOCK)
    canvases = noisy(both, CONDITIONED)
    together = run(model, both, canvases, CONDITIONED).canvases
    for row, sample in enumerate(SAMPLES):
        own = canvases.rows == row
        kept = Canvases(*(part[own] for part in canvases))._replace(rows=torch.zeros(2, dtype=torch.long))
        alone = run(model, cut([sample], BLOCK), kept, CONDITIONED).canvases
        assert max(farthest(alone, together[own])) < 1e-12


def test_on_an_on_policy_step_the_sampler_makes_half_of_each_rows_canvases() -> None:
    config = replace(CONDITIONED, canvases=5)
    model, batch = tiny_model(), cut(SAMPLES, BLOCK)
    canvases = noisy(batch, config)._replace(ids=torch.full((10, WIDTH), 7))
    fed = run(model, batch, canvases, config, ON_POLICY).fed
    kept = (fed.ids == 7).all(1).tolist()
    assert kept == [False, False, True, True, True] * 2
    conditioned = run(model, batch, canvases, config).fed
    assert fed.soft is not None
    assert conditioned.soft is not None
    assert torch.equal(fed.soft[kept], conditioned.soft[kept])
    generator, kv = torch.Generator().manual_seed(0), RecordedKV()
    torch.randperm(10, generator=generator)  # the choice of whom to condition
    model.encode(batch.ids, kv)
    sampler = replace(SAMPLERS["report"], budget=3)
    pins = Pins(batch.pinned, batch.block)
    visited = visit_states(model, Contexts(kv, batch.context), sampler, pins, kept=2, generator=generator).states
    replaced = ~torch.tensor(kept)
    assert torch.equal(fed.ids[replaced], visited.ids)
    assert torch.equal(fed.soft[replaced], visited.soft)
    assert visited.soft.any()


def test_on_a_mined_step_the_sampler_makes_all_canvases_of_what_it_gets_wrong_and_no_others() -> None:
    config, mined = replace(CONDITIONED, canvases=3), ON_POLICY._replace(mined=True)
    model, batch = tiny_model(), cut(SAMPLES, BLOCK)
    generator, kv = torch.Generator().manual_seed(0), RecordedKV()
    torch.randperm(6, generator=generator)  # the choice of whom to condition
    model.encode(batch.ids, kv)
    sampler, contexts = replace(SAMPLERS["report"], budget=3), Contexts(kv, batch.context)
    pins = Pins(torch.zeros_like(batch.pinned), batch.block)
    visits = visit_states(model, contexts, sampler, pins, kept=3, generator=generator)
    right = batch._replace(block=torch.stack([visits.ended[0], (visits.ended[1] + 1) % VOCABULARY]))
    right = right._replace(pinned=pins.mask)
    canvases = noisy(right, config)._replace(ids=torch.full((6, WIDTH), 7))
    fed = run(model, right, canvases, config, mined).fed
    assert (fed.ids[:3] == 7).all(), "the first row came out right"
    assert torch.equal(fed.ids[3:], visits.states.ids[3:])
    assert fed.soft is not None
    assert torch.equal(fed.soft[3:], visits.states.soft[3:])


def test_sharpening_adds_the_entropy_of_what_is_right_already() -> None:
    config = replace(CONDITIONED, on_policy=1.0, sharpen=0.25)
    model, batch = tiny_model(), cut(SAMPLES, BLOCK)
    canvases = noisy(batch, config)
    guessed = run(model, batch, canvases, config, ON_POLICY).canvases.argmax(-1)
    canvases = canvases._replace(targets=torch.where(canvases.targets % 2 == 0, guessed, canvases.targets))
    found = run(model, batch, canvases, config, ON_POLICY)
    p = (2 * found.canvases).softmax(-1)
    entropies = -(p * p.log()).sum(-1)[guessed == canvases.targets]
    added = float(found.losses.total.detach() - found.losses.denoise - found.losses.causal)
    assert added == pytest.approx(0.25 * float(entropies.mean()), abs=1e-12)
    noise_only = run(model, batch, canvases, config).losses
    assert torch.equal(noise_only.total.detach(), noise_only.denoise + noise_only.causal)


# What follows draws the noise. Targets lie outside the vocabulary, so that a replaced token always shows.


def corrupted(config: TrainConfig, *, width: int = 40, rows: int = 300, easy: bool = False) -> tuple[Canvases, Tensor]:
    """Canvases and which of their tokens were replaced."""
    batch = collate(draw_samples(*[(3, 3)] * rows), OPEN, width, 0, pad_id=PAD, fill_id=END)
    canvases = noisy(batch._replace(block=torch.full((rows, width), VOCABULARY)), config, easy=easy)
    return canvases, canvases.ids != VOCABULARY


def test_a_share_of_the_prompt_tokens_is_drawn_anew_each_step_and_keeps_the_mean() -> None:
    model, batch = tiny_model(), cut(SAMPLES, BLOCK)
    canvases, config = noisy(batch, PLAIN), replace(PLAIN, prompt_share=0.5, prompt_weight=1.0)
    whole = float(run(model, batch, canvases, replace(config, prompt_share=1.0)).losses.causal)
    answer = float(run(model, batch, canvases, replace(config, prompt_share=0.0)).losses.causal)
    drawn = [float(run(model, batch, canvases, config, seed=seed).losses.causal) for seed in range(40)]
    assert len(set(drawn)) > 30
    assert sum(drawn) / len(drawn) == pytest.approx(whole, abs=0.15 * (whole - answer))


def test_a_given_token_is_never_replaced() -> None:
    batch = collate(draw_samples(*[(3, 3)] * 300), OPEN, 40, 0, pad_id=PAD, fill_id=END)
    pinned = torch.rand(300, 40) < 0.5
    batch = batch._replace(block=torch.full((300, 40), VOCABULARY), pinned=pinned)
    canvases = noisy(batch, TrainConfig(canvases=4, all_noise=1.0))
    assert torch.equal(canvases.ids == VOCABULARY, canvases.pinned)
    assert torch.equal(canvases.pinned, pinned.repeat_interleave(4, 0))


def test_a_given_token_carries_its_own_embedding_where_there_is_a_signal_and_none_elsewhere() -> None:
    model, batch = tiny_model(), cut(SAMPLES, BLOCK)
    batch = batch._replace(pinned=torch.arange(WIDTH).expand(2, -1) % 3 == 0)
    config = replace(CONDITIONED, conditioned=0.5)
    fed = run(model, batch, noisy(batch, config), config).fed
    assert fed.soft is not None
    signalled = fed.soft.flatten(1).any(1)
    assert signalled.tolist().count(True) == len(signalled) // 2
    given = model.embed(batch.block).repeat_interleave(config.canvases, 0)
    pinned = batch.pinned.repeat_interleave(config.canvases, 0)
    assert torch.equal(fed.soft[signalled][pinned[signalled]], given[signalled][pinned[signalled]])
    assert not fed.soft[~signalled].any()


def test_noise_shares_are_stratified_within_a_row() -> None:
    canvases, _ = corrupted(TrainConfig(canvases=4, all_noise=0.0))
    strata = (canvases.noise.view(-1, 4) * 4).long().sort(-1).values
    assert (strata == torch.arange(4)).all()
    quarters = torch.histc(canvases.noise % 0.25, 5, 0, 0.25)
    assert (quarters / quarters.sum() - 0.2).abs().max() < 0.05


def test_each_token_is_replaced_at_the_odds_of_its_canvas() -> None:
    canvases, replaced = corrupted(TrainConfig(span_noise=0.0, all_noise=0.0))
    shares = replaced.double().mean(-1)
    assert (shares - canvases.noise).abs().max() < 0.35
    assert abs(float((shares - canvases.noise).mean())) < 0.01
    ids = torch.bincount(canvases.ids[replaced], minlength=VOCABULARY) / int(replaced.sum())
    assert len(ids) == VOCABULARY
    assert (ids * VOCABULARY - 1).abs().max() < 0.15


def test_a_tenth_is_pure_noise_from_first_to_last_token() -> None:
    canvases, replaced = corrupted(TrainConfig())
    pure = canvases.noise == 1
    assert 0.07 < float(pure.double().mean()) < 0.13
    assert replaced[pure].all()


def test_three_tenths_are_noisy_in_one_run_of_their_share() -> None:
    width = 40
    canvases, replaced = corrupted(TrainConfig(all_noise=0.0), width=width)
    starts = (replaced & ~replaced.roll(1, -1)).sum(-1)
    long_enough = (canvases.noise > 0.2) & (canvases.noise < 0.8)
    one_run = starts[long_enough] <= 1
    assert 0.24 < float(one_run.double().mean()) < 0.36
    runs, count = canvases.noise[long_enough][one_run], replaced[long_enough][one_run].sum(-1)
    assert ((count - runs * width).abs() <= 1).all()


def test_an_easy_canvas_is_never_noisier_than_was_asked() -> None:
    canvases, replaced = corrupted(TrainConfig(easy_noise=0.5, span_noise=1.0), easy=True)
    assert 0.45 < float(canvases.noise.max()) < 0.5
    assert int(replaced.sum(-1).max()) <= 20


def test_what_is_not_replaced_is_the_target() -> None:
    batch = cut(SAMPLES, BLOCK)
    canvases = noisy(batch, TrainConfig(canvases=6))
    assert torch.equal(canvases.targets, batch.block.repeat_interleave(6, 0))
    assert canvases.rows.tolist() == [0] * 6 + [1] * 6
    unchanged = canvases.ids == canvases.targets
    assert unchanged[canvases.noise.argmin()].sum() > unchanged[canvases.noise.argmax()].sum()
