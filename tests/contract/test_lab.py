"""The bundled model: a genuine checkpoint for transformers, small enough to ship, and good at what it is for."""

from pathlib import Path

import pytest
import torch
import transformers

from benchmarks.distribution import draw_both
from mezzotint.llm import LLM, Completion, SamplingParams
from mezzotint.model.weights import inspect_checkpoint, resolve
from mezzotint.tasks import FAMILIES, Example
from mezzotint.text.parse import Reply

FOLDER = resolve("lab")
EXTRACT = FAMILIES["extract"]
DRAWN, ALPHA = 120, 0.01


@pytest.fixture(scope="module")
def oracle() -> transformers.PreTrainedModel:
    model, report = transformers.DiffusionGemmaForBlockDiffusion.from_pretrained(
        FOLDER, dtype=torch.float32, output_loading_info=True
    )
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    assert not report["mismatched_keys"]
    return model.eval()


@pytest.fixture(scope="module")
def lab() -> LLM:
    return LLM("lab", dtype="float32")


def held_out(count: int) -> list[Example]:
    return [EXTRACT.generate(seed, "test") for seed in range(count)]


def answers(lab: LLM, examples: list[Example], params: SamplingParams) -> list[Completion]:
    return lab.generate([list(example.messages) for example in examples], params)


def test_it_is_small_enough_to_ship_and_every_tensor_is_accounted_for() -> None:
    assert sum(file.stat().st_size for file in Path(FOLDER).iterdir()) <= 32_000_000
    report = inspect_checkpoint(FOLDER)
    assert report.dtype == torch.bfloat16
    assert report.config.canvas_length == 64
    assert report.config.vocab_size <= 4096
    assert report.vision_bytes < 16_384


@torch.inference_mode()
def test_transformers_computes_the_same_logits_from_it(oracle: transformers.PreTrainedModel, lab: LLM) -> None:
    prompt = torch.tensor([lab.encode(list(held_out(1)[0].messages))])
    canvas = torch.randint(2048, (1, 64), generator=torch.Generator().manual_seed(0))
    theirs = oracle(input_ids=prompt, decoder_input_ids=canvas).logits
    kv = lab.model.new_kv(1, prompt.shape[1] + 64)
    lab.model.encode(prompt, kv)
    ours = lab.model.logits(lab.model.denoise(canvas, kv))
    assert (ours - theirs).abs().max() <= 2e-4


@torch.inference_mode()
def test_transformers_generates_with_it_and_ends_its_turn(oracle: transformers.PreTrainedModel, lab: LLM) -> None:
    assert lab.tokenizer is not None
    torch.manual_seed(0)
    accepted = 0
    for example in held_out(4):
        prompt = torch.tensor([lab.encode(list(example.messages))])
        sequence = oracle.generate(input_ids=prompt, max_new_tokens=64).sequences[0, prompt.shape[1] :].tolist()
        assert lab.tokenizer.control["<turn|>"] in sequence
        accepted += EXTRACT.accept(example, Reply(lab.tokenizer.decode(sequence)))
    assert accepted >= 1


@pytest.mark.slow
def test_transformers_draws_its_answers_from_the_same_distribution(
    oracle: transformers.PreTrainedModel, lab: LLM
) -> None:
    """Both sides answer the same prompts with random numbers of their own, and no more than chance sets them apart.

    Each of the two tests fails equal sides once in a hundred at most, the prompts being shared. Of sides that pass 98
    and 85 %, the first finds nine in ten.
    """
    drawn = draw_both(lab, oracle, DRAWN)
    assert min(sum(side.accepted) for side in drawn) >= 0.75 * DRAWN
    assert drawn.rates.p_value >= ALPHA, drawn.rates
    assert drawn.steps.p_value >= ALPHA, drawn.steps


def test_ar_answers_most_held_out_prompts_exactly(lab: LLM) -> None:
    examples = held_out(16)
    texts = answers(lab, examples, SamplingParams(decoder="ar", temperature=0, max_tokens=64))
    assert sum(EXTRACT.accept(e, Reply(a.text)) for e, a in zip(examples, texts, strict=True)) >= 12


def test_diffusion_answers_many_held_out_prompts_at_three_tokens_a_forward(lab: LLM) -> None:
    examples = held_out(16)
    given = answers(lab, examples, SamplingParams(max_tokens=64, seed=0))
    assert sum(EXTRACT.accept(e, Reply(a.text)) for e, a in zip(examples, given, strict=True)) >= 8
    tokens = sum(answer.receipt.output_tokens for answer in given)
    assert tokens / sum(answer.receipt.forwards for answer in given) >= 3
    assert all(answer.finish_reason == "stop" for answer in given)
