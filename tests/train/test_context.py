"""What an encode recorded: as inference keeps it, one copy a canvas, and a way back for the gradient."""

import pytest
import torch
from torch import Generator, Tensor

from mezzotint.model.kv import Pair
from mezzotint.train.context import Contexts, RecordedKV
from tests.train.tiny import SHAPE, VOCABULARY, WIDTH, tiny_model

TOKENS = 12


def draw_ids(rows: int, count: int, seed: int = 0) -> Tensor:
    return torch.randint(VOCABULARY, (rows, count), generator=Generator().manual_seed(seed))


def fill(rows: int) -> tuple[RecordedKV, list[Pair]]:
    """A record of random keys and values that ask for a gradient, and these."""
    generator, kv, pairs = Generator().manual_seed(1), RecordedKV(), []
    for index, layer in enumerate(SHAPE.layers):
        shape = (rows, layer.kv_heads, TOKENS, layer.head_dim)
        k, v = (torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(2))
        pairs.append(kv.place(index, k.requires_grad_(), v.requires_grad_()))
    kv.advance(TOKENS)
    return kv, pairs


def test_an_encode_says_the_same_into_a_record_as_into_a_cache() -> None:
    model, ids = tiny_model(), draw_ids(2, TOKENS)
    record, cache = RecordedKV(), model.new_kv(2, TOKENS + WIDTH)
    assert torch.equal(model.encode(ids, record), model.encode(ids, cache))
    assert record.length == cache.length == TOKENS


def test_a_canvas_reads_a_record_as_it_reads_a_cache_and_changes_neither() -> None:
    model, ids = tiny_model(), draw_ids(2, TOKENS)
    record, cache = RecordedKV(), model.new_kv(2, TOKENS + WIDTH)
    model.encode(ids, record)
    model.encode(ids, cache)
    for seed in (5, 6, 5):
        canvas = draw_ids(2, WIDTH, seed)
        assert torch.equal(model.denoise(canvas, record), model.denoise(canvas, cache))
    assert record.length == TOKENS


def test_a_second_encode_is_refused() -> None:
    model, record = tiny_model(), RecordedKV()
    model.encode(draw_ids(1, TOKENS), record)
    with pytest.raises(ValueError, match="holds one encode, here of 12 tokens"):
        model.encode(draw_ids(1, 2), record)


def test_rows_come_in_the_asked_order_and_as_often() -> None:
    model, ids = tiny_model(), draw_ids(3, TOKENS)
    record = RecordedKV()
    model.encode(ids, record)
    lengths, index = torch.tensor([12, 7, 3]), torch.tensor([2, 0, 2, 1])
    chosen = Contexts(record, lengths).rows(index)
    assert chosen.lengths.tolist() == [3, 12, 3, 7]
    canvas = draw_ids(4, WIDTH)
    together = model.denoise(canvas, chosen.kv, lengths=chosen.lengths)
    for row, source in enumerate(index.tolist()):
        alone = Contexts(record, lengths).rows(torch.tensor([source]))
        found = model.denoise(canvas[row : row + 1], alone.kv, lengths=alone.lengths)
        assert torch.allclose(found[0], together[row], rtol=0, atol=1e-12)


def test_the_gradient_reaches_what_a_canvas_sees_and_nothing_behind_it() -> None:
    model = tiny_model()
    kv, pairs = fill(2)
    contexts = Contexts(kv, torch.tensor([9, 4])).rows(torch.tensor([0, 0, 1]))
    hidden = model.denoise(draw_ids(3, WIDTH), contexts.kv, lengths=contexts.lengths)
    hidden.square().mul(torch.arange(16)).sum().backward()
    for layer, pair in zip(SHAPE.layers, pairs, strict=True):
        assert pair.v.grad is not None
        touched = pair.v.grad.abs().amax((1, 3)) > 0
        oldest = [0, 0] if layer.kind == "full_attention" else [9 - 5, 0]
        for row, (first, length) in enumerate(zip(oldest, (9, 4), strict=True)):
            assert touched[row].nonzero()[:, 0].tolist() == list(range(first, length))
