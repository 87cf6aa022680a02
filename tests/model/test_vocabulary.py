"""The pass in chunks says what the plain form says of the same input, by the exact law, and stays small."""

from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import TensorWeakRef

from mezzotint.model.vocabulary import Head, full_logits, read_logits, read_vocabulary
from mezzotint.types import Reading

D = 16
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-4, torch.bfloat16: 2e-2}
EXACT = (torch.float64, torch.float32)
TEMPERATURES = [(0.8, 0.8), (0.4, 0.4), (0.8, 0.0), (0.8, 0.3), (0.4, 1.5)]
MILD, EXTREME = 0.5, 11.0  # of hidden states: logits of a few nats, and caps of 30 that are nearly reached


class Subject(NamedTuple):
    head: Head
    hidden: Tensor
    uniforms: Tensor


def subject(
    V: int, rows: int, dtype: torch.dtype = torch.float64, softcap: float = 30.0, spread: float = MILD
) -> Subject:
    generator = torch.Generator().manual_seed(V + rows)
    weight = torch.randn(V, D, generator=generator, dtype=torch.float64).to(dtype)
    hidden = (torch.randn(rows, D, generator=generator, dtype=torch.float64) * spread).to(dtype)
    uniforms = torch.rand(rows, generator=generator, dtype=torch.float64)
    return Subject(Head(weight, 4.0, softcap), hidden, uniforms)


def integers(V: int, rows: int, dtype: torch.dtype = torch.float64) -> Subject:
    """A subject whose products are exact in any order, so that equal logits are equal bit for bit."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.randint(-3, 4, (V, D), generator=generator).to(dtype)
    hidden = torch.randint(-2, 3, (rows, D), generator=generator).to(dtype)
    return Subject(Head(weight, 1.0, 0.0), hidden, torch.full((rows,), 0.5, dtype=torch.float64))


def read(
    of: Subject,
    temperature: float | Tensor = 0.8,
    proposal_temperature: float | Tensor = 0.8,
    *,
    with_soft: bool = True,
    chunk: int | None = None,
) -> Reading:
    return read_vocabulary(
        of.head,
        of.hidden,
        temperature=temperature,
        proposal_temperature=proposal_temperature,
        uniforms=of.uniforms,
        with_soft=with_soft,
        chunk=chunk,
    )


def read_plainly(of: Subject, temperature: float | Tensor = 0.8, proposal_temperature: float | Tensor = 0.8) -> Reading:
    return read_logits(
        of.head,
        full_logits(of.head, of.hidden),
        temperature=temperature,
        proposal_temperature=proposal_temperature,
        uniforms=of.uniforms,
        with_soft=True,
    )


def assert_near(ours: Tensor, plain: Tensor, tolerance: float) -> None:
    """Relative to each number, or to a hundredth of a nat where it is smaller."""
    assert ours.dtype == plain.dtype
    torch.testing.assert_close(ours, plain, rtol=tolerance, atol=tolerance / 100)


def assert_rows_near(ours: Tensor | None, plain: Tensor | None, tolerance: float) -> None:
    """Relative to the largest number of each row: the others may be small because terms cancel."""
    assert ours is not None
    assert plain is not None
    assert ours.dtype == plain.dtype
    furthest = (ours.double() - plain.double()).abs().amax(-1)
    assert bool((furthest <= tolerance * plain.double().abs().amax(-1)).all())


def assert_proposals_fit(of: Subject, reading: Reading, temperature: float, proposal_temperature: float) -> None:
    """Every uniform lies in its token's interval of the plain form, give or take the tolerance of sums."""
    tolerance = TOLERANCE[of.hidden.dtype]
    logits, token = full_logits(of.head, of.hidden), reading.proposal[:, None]
    p = (logits.double() / (proposal_temperature or temperature)).softmax(-1)
    assert_near(reading.log_prob.double(), p.gather(-1, token)[:, 0].log(), tolerance)
    if proposal_temperature == 0:
        assert torch.equal(reading.proposal, reading.argmax)
        return
    high = p.cumsum(-1).gather(-1, token)[:, 0]
    low = high - p.gather(-1, token)[:, 0]
    assert bool((low - tolerance <= of.uniforms).all())
    assert bool((of.uniforms <= high + tolerance).all())


@pytest.mark.parametrize(("temperature", "proposal_temperature"), TEMPERATURES)
@pytest.mark.parametrize("spread", [MILD, EXTREME])
@pytest.mark.parametrize(
    ("V", "rows", "softcap", "chunk"),
    [
        (997, 300, 30.0, 100),
        (4099, 1, 30.0, 700),
        (4099, 200, 0.0, None),
        (3, 300, 30.0, 1),
        (1, 2, 0.0, None),
    ],
)
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_the_pass_in_chunks_equals_the_plain_form(
    dtype: torch.dtype,
    V: int,
    rows: int,
    softcap: float,
    chunk: int | None,
    spread: float,
    temperature: float,
    proposal_temperature: float,
) -> None:
    of = subject(V, rows, dtype, softcap, spread)
    ours = read(of, temperature, proposal_temperature, chunk=chunk)
    plain = read_plainly(of, temperature, proposal_temperature)
    assert_near(ours.entropy, plain.entropy, TOLERANCE[dtype])
    assert_rows_near(ours.soft, plain.soft, TOLERANCE[dtype])
    assert_proposals_fit(of, ours, temperature, proposal_temperature)
    if dtype in EXACT:
        assert torch.equal(ours.argmax, plain.argmax)
    else:
        logits = full_logits(of.head, of.hidden)
        assert bool((logits.gather(-1, ours.argmax[:, None])[:, 0] >= logits.amax(-1) - 0.25).all())
    if dtype == torch.float64:
        assert torch.equal(ours.proposal, plain.proposal)
    differing = int((ours.proposal != plain.proposal).sum())
    assert differing <= (0.02 if dtype == torch.float32 else 0.3) * rows


@pytest.mark.parametrize("chunk", [1, 7, 61, 62, 63, 640, 3970, 10_000])
def test_chunks_of_any_size_draw_the_same_ids(chunk: int) -> None:
    of = subject(3970, 50)  # 62 ids a bin, the last bin with 2
    default, ours = read(of), read(of, chunk=chunk)
    assert torch.equal(ours.argmax, default.argmax)
    assert torch.equal(ours.proposal, default.proposal)
    assert_near(ours.entropy, default.entropy, 1e-12)
    assert_near(ours.log_prob, default.log_prob, 1e-12)
    assert_rows_near(ours.soft, default.soft, 1e-12)


def test_a_row_says_alone_what_it_says_in_a_batch() -> None:
    of = subject(997, 40)
    together = read(of, chunk=100)
    for row in (0, 17, 39):
        one = of._replace(hidden=of.hidden[row : row + 1], uniforms=of.uniforms[row : row + 1])
        alone = read(one, chunk=100)
        assert alone.argmax == together.argmax[row]
        assert alone.proposal == together.proposal[row]
        assert_near(alone.entropy, together.entropy[row : row + 1], 1e-12)
        assert_near(alone.log_prob, together.log_prob[row : row + 1], 1e-12)
        assert alone.soft is not None
        assert together.soft is not None
        assert_rows_near(alone.soft, together.soft[row : row + 1], 1e-12)


MIXED = [*TEMPERATURES, (0.8, 0.0), (0.05, 0.0), (100.0, 30.0)]


@pytest.mark.parametrize("form", ["plain", "whole", "in chunks"])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_rows_of_any_temperatures_in_one_pass_say_what_they_say_among_their_like(dtype: torch.dtype, form: str) -> None:
    def read_all(temperature: float | Tensor, proposal_temperature: float | Tensor) -> Reading:
        if form == "plain":
            return read_plainly(of, temperature, proposal_temperature)
        return read(of, temperature, proposal_temperature, chunk=100 if form == "in chunks" else None)

    of, own = subject(997, 8 * 40, dtype), torch.arange(8 * 40) % 8
    warm, drawn_at = torch.tensor(MIXED, dtype=torch.float64)[own].unbind(-1)
    mixed = read_all(warm, drawn_at)
    for index, temperatures in enumerate(MIXED):
        alike = read_all(*temperatures)
        assert torch.equal(mixed.argmax[own == index], alike.argmax[own == index])
        assert torch.equal(mixed.proposal[own == index], alike.proposal[own == index])
        assert torch.equal(mixed.entropy[own == index], alike.entropy[own == index])
        # The pass forms these of products of fewer rows, where sums may take another order.
        assert_near(mixed.log_prob[own == index], alike.log_prob[own == index], TOLERANCE[dtype])
        assert mixed.soft is not None
        assert alike.soft is not None
        assert_rows_near(mixed.soft[own == index], alike.soft[own == index], TOLERANCE[dtype] / 100)


@pytest.mark.parametrize("given", [torch.ones(3), torch.ones(4, 1), torch.tensor(1.0)])
def test_temperatures_of_another_number_of_rows_are_refused(given: Tensor) -> None:
    with pytest.raises(ValueError, match=r"^4 rows were given temperatures .*; give one, or one a row$"):
        read(subject(70, 4), given)
    with pytest.raises(ValueError, match="4 rows were given temperatures"):
        read(subject(70, 4), 0.8, given)


def test_more_rows_than_one_sweep_takes_keep_their_order() -> None:
    of = subject(70, 1100)
    ours, plain = read(of), read_plainly(of)
    assert torch.equal(ours.argmax, plain.argmax)
    assert torch.equal(ours.proposal, plain.proposal)
    assert_near(ours.entropy, plain.entropy, 1e-10)
    assert_near(ours.log_prob, plain.log_prob, 1e-10)
    assert_rows_near(ours.soft, plain.soft, 1e-10)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("chunk", [1, 100, None])
def test_the_lowest_of_equal_ids_is_the_argmax(dtype: torch.dtype, chunk: int | None) -> None:
    of = integers(700, 60, dtype)
    twice = torch.cat((of.head.weight, of.head.weight))
    of = of._replace(head=of.head._replace(weight=twice))
    logits = full_logits(of.head, of.hidden)
    first = [row.index(max(row)) for row in logits.tolist()]
    assert read(of, chunk=chunk).argmax.tolist() == first
    assert read(of, 0.8, 0.0, chunk=chunk).proposal.tolist() == first


@pytest.mark.parametrize(("V", "proposal_temperature"), [(2, 0.8), (40, 1.7), (64, 0.8), (200, 1.7)])
def test_random_uniforms_draw_by_the_exact_law(
    V: int, proposal_temperature: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 200_000
    monkeypatch.setattr("mezzotint.model.vocabulary._ROWS", n // 10)  # fewer sweeps of more rows
    one = subject(V, 1)
    uniforms = torch.rand(n, generator=torch.Generator().manual_seed(V), dtype=torch.float64)
    drawn = read(
        one._replace(hidden=one.hidden.expand(n, D), uniforms=uniforms),
        0.8,
        proposal_temperature,
        with_soft=False,
    ).proposal
    expected = n * (full_logits(one.head, one.hidden)[0] / proposal_temperature).softmax(-1)
    counts = torch.bincount(drawn, minlength=V)
    frequent = expected >= 5  # below that the statistic has no chi-square law
    chi_square = float(((counts - expected).square() / expected)[frequent].sum())
    freedom = int(frequent.sum()) - 1
    assert freedom >= 1
    assert chi_square < freedom + 4 * (2 * freedom) ** 0.5
    assert int(counts[~frequent].sum()) < 5 * V


@pytest.mark.parametrize("V", [40, 200, 1000])
@pytest.mark.parametrize("dtype", EXACT, ids=str)
def test_an_even_grid_of_uniforms_gives_every_id_its_share(V: int, dtype: torch.dtype) -> None:
    n = 10_000
    one = subject(V, 1, dtype)
    grid = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    many = one._replace(hidden=one.hidden.expand(n, D), uniforms=grid)
    drawn = read(many, with_soft=False, chunk=130).proposal
    shares = n * (full_logits(one.head, one.hidden)[0].double() / 0.8).softmax(-1)
    assert float((torch.bincount(drawn, minlength=V) - shares).abs().max()) < 1.1
    assert bool((drawn.diff() >= 0).all())


def test_the_borders_of_the_uniforms_find_the_first_and_the_last_id_with_mass() -> None:
    weight = torch.full((300, 1), -2000.0, dtype=torch.float64)
    weight[[7, 130, 131, 250]] = 1.0
    of = Subject(
        Head(weight, 1.0, 0.0),
        torch.ones(3, 1, dtype=torch.float64),
        torch.tensor([0, 1 - 2**-53, 0.5], dtype=torch.float64),
    )
    assert read(of).proposal.tolist() == read_plainly(of).proposal.tolist() == [7, 250, 131]


def test_entropy_and_soft_embedding_keep_their_temperature_whatever_the_proposals_have() -> None:
    of = subject(997, 20)
    cold, hot = read(of, 0.8, 0.1, chunk=100), read(of, 0.8, 2.0, chunk=100)
    assert not torch.equal(cold.proposal, hot.proposal)
    assert_near(cold.entropy, hot.entropy, 1e-12)
    assert_rows_near(cold.soft, hot.soft, 1e-12)


def test_a_certain_row_has_no_entropy_and_its_soft_embedding_is_its_token() -> None:
    weight = 40 * torch.eye(D, dtype=torch.float64)
    of = Subject(Head(weight, 2.0, 0.0), weight, torch.linspace(0, 0.99, D, dtype=torch.float64))
    sure = read(of)
    assert sure.proposal.tolist() == list(range(D))
    assert sure.entropy.tolist() == [0.0] * D
    assert sure.log_prob.tolist() == [0.0] * D
    torch.testing.assert_close(sure.soft, 2 * weight)


class Watch(TorchDispatchMode):
    """Counts rows of products, and weighs what is allocated: the largest tensor, and all alive at once."""

    def __init__(self, given: Subject) -> None:
        super().__init__()
        tensors = given.head.weight, given.hidden, given.uniforms
        self.given = {tensor.untyped_storage().data_ptr() for tensor in tensors}
        self.multiplied_rows = self.largest_numel = self.peak_bytes = 0
        self.seen: list[TensorWeakRef] = []

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.addmm):
            self.multiplied_rows += len(result)
        for out in result if isinstance(result, tuple | list) else [result]:
            if isinstance(out, Tensor) and out.untyped_storage().data_ptr() not in self.given:
                self.largest_numel = max(self.largest_numel, out.numel())
                self.seen.append(TensorWeakRef(out))
        alive = [tensor for reference in self.seen if (tensor := reference()) is not None]
        blocks = {storage.data_ptr(): storage.nbytes() for storage in map(Tensor.untyped_storage, alive)}
        self.seen = [TensorWeakRef(tensor) for tensor in alive]
        self.peak_bytes = max(self.peak_bytes, sum(blocks.values()))
        return result


def watch(of: Subject, **options: Any) -> Watch:
    with Watch(of) as watching:
        read(of, **options)
    return watching


@pytest.mark.parametrize("rows", [40, 300, 700])
@pytest.mark.parametrize("proposal_temperature", [0.0, 0.8, 0.5])
def test_no_tensor_is_as_large_as_the_logits(rows: int, proposal_temperature: float) -> None:
    V = 20_000
    of = subject(V, rows, torch.float32)
    largest = watch(of, proposal_temperature=proposal_temperature).largest_numel
    assert 1 << 18 < largest <= 1 << 19 < rows * V


def test_a_canvas_before_a_full_vocabulary_needs_less_than_64_megabytes() -> None:
    V, rows, width = 262_144, 256, 640
    weight = torch.ones(V, 1, dtype=torch.bfloat16)
    hidden = torch.zeros(rows, 1, dtype=torch.bfloat16)
    uniforms = torch.full((rows,), 0.3, dtype=torch.float64)  # all rows look at one bin again: the worst case
    peak_bytes = watch(Subject(Head(weight, 1.0, 30.0), hidden, uniforms)).peak_bytes
    by_width = rows * width * (4 + 2 + 2 + 8)  # soft embedding, its part, result, and a float64 in passing
    assert 4_000_000 < peak_bytes + by_width < 64_000_000


def test_without_a_soft_embedding_the_second_product_is_not_formed() -> None:
    of = subject(6400, 20)
    assert watch(of, proposal_temperature=0.0, chunk=1600).multiplied_rows == 2 * 20 * 4
    assert watch(of, proposal_temperature=0.0, chunk=1600, with_soft=False).multiplied_rows == 20 * 4
    assert read(of, with_soft=False).soft is None


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("flat", [0, 1, 20])
def test_chunks_that_hold_nothing_of_a_row_stay_out_of_its_soft_embedding(dtype: torch.dtype, flat: int) -> None:
    of = subject(6400, 40, dtype, softcap=0.0, spread=0.2)
    of.head.weight[:40] *= 3
    of.hidden[flat:] = of.head.weight[flat:40] * 5  # sure of a token of the first chunk
    plain, ours = read_plainly(of, 0.8, 0.0), read(of, 0.8, 0.0, chunk=100)
    assert_rows_near(ours.soft, plain.soft, TOLERANCE[dtype])
    assert_near(ours.entropy, plain.entropy, TOLERANCE[dtype])
    first, second = 64 * 40, 40 + 63 * flat
    assert watch(of, proposal_temperature=0.0, chunk=100).multiplied_rows == first + second


def test_weights_that_want_gradients_get_none() -> None:
    of = subject(100, 3, torch.float32)
    of = of._replace(head=of.head._replace(weight=nn.Parameter(of.head.weight)))
    reading = read(of)
    assert reading.soft is not None
    assert not reading.soft.requires_grad
    with torch.inference_mode():
        assert torch.equal(read(of).entropy, reading.entropy)
