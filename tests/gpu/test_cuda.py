"""The same answers on a GPU; these tests run only where there is one."""

import pytest
import torch

from mezzotint.decoding.generate import Block, Limits, generate_blocks, generate_tokens
from mezzotint.decoding.params import SamplingParams
from mezzotint.model.device import send
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.experts import Routing
from mezzotint.model.ragged import denoise_spans
from mezzotint.model.vocabulary import read_vocabulary
from tests.model.rows import LAYOUTS, House, canvas_of
from tests.model.test_experts import case
from tests.model.test_fused import CONFIGS, random_model, trace

pytestmark = pytest.mark.gpu

LIMITS = Limits(vocab_size=96, canvas_length=8, max_positions=512, end_ids=())
PROMPT = list(range(5, 25))


@pytest.fixture
def pair() -> tuple[DiffusionGemma, DiffusionGemma]:
    raw = CONFIGS["half of the experts"]
    return random_model(raw, torch.float64), random_model(raw, torch.float64).to("cuda")


@torch.inference_mode()
def test_logits_on_a_gpu_equal_those_on_the_cpu(pair: tuple[DiffusionGemma, DiffusionGemma]) -> None:
    host, device = (trace(model) for model in pair)
    for own, expected in zip(device, host, strict=True):
        assert (own.cpu() - expected).abs().max() <= 1e-9 * expected.abs().max()


@torch.inference_mode()
def test_a_canvas_settles_to_the_same_tokens_on_a_gpu(pair: tuple[DiffusionGemma, DiffusionGemma]) -> None:
    params = SamplingParams(max_tokens=20, steps=4, ignore_eos=True)
    host, device = (
        [event.tokens for event in generate_blocks(model, PROMPT, params, 3, LIMITS) if isinstance(event, Block)]
        for model in pair
    )
    assert device == host


@torch.inference_mode()
def test_tokens_drawn_on_a_gpu_are_those_of_the_cpu(pair: tuple[DiffusionGemma, DiffusionGemma]) -> None:
    params = SamplingParams(decoder="ar", max_tokens=12, top_k=20, ignore_eos=True)
    host, device = (
        [event.tokens for event in generate_tokens(model, PROMPT, params, 3, LIMITS) if isinstance(event, Block)]
        for model in pair
    )
    assert device == host


@torch.inference_mode()
def test_rows_of_their_own_lengths_may_be_named_from_the_host(pair: tuple[DiffusionGemma, DiffusionGemma]) -> None:
    ids, lengths = torch.arange(24).view(2, 12), torch.tensor([4, 3])
    states = []
    for model in pair:
        kv = model.new_kv(2, 12)
        model.encode(ids[:, :4], kv)
        states.append(model.denoise(ids[:, 4:], kv, lengths=lengths).cpu())
    assert (states[1] - states[0]).abs().max() <= 1e-9 * states[0].abs().max()


@torch.inference_mode()
def test_experts_on_a_gpu_say_the_same_at_every_run() -> None:
    experts, x, routing = case(torch.float32)
    many = Routing(*(part.repeat(400, 1).to("cuda") for part in routing))
    tokens, experts = x.repeat(400, 1).to("cuda"), experts.to("cuda")
    first = experts(tokens, many)
    assert all(torch.equal(experts(tokens, many), first) for _ in range(20))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@torch.inference_mode()
def test_nothing_in_a_step_waits_for_the_gpu_before_its_reading(dtype: torch.dtype) -> None:
    model = random_model(CONFIGS["half of the experts"], dtype).to("cuda")
    house = House(model, LAYOUTS["scattered"])
    spans = [house.span(row, len(canvas_of(row))) for row in range(3)]
    canvases = torch.cat([canvas_of(row) for row in range(3)])
    for mode in ("default", "error"):  # what depends on the model alone is worked out the first time
        torch.cuda.set_sync_debug_mode(mode)
        try:
            hidden = denoise_spans(model, canvases, None, spans, house.store)
            uniforms = send(torch.full((len(canvases),), 0.3, dtype=torch.float64), model.device)
            read_vocabulary(
                model.head,
                hidden,
                temperature=0.7,
                proposal_temperature=0.7,
                uniforms=uniforms,
                with_soft=True,
            )
        finally:
            torch.cuda.set_sync_debug_mode("default")
