"""Run as machine code, a request gets the very bits that its plain loop gets, in every type of weights."""

from copy import deepcopy
from functools import cache

import pytest
import torch

from mezzotint.decoding.program import Event
from mezzotint.engine.request import Request
from mezzotint.model.compiled import compile_model
from mezzotint.model.diffusion_gemma import DiffusionGemma
from tests.engine.tiny import ASKED, PINS, PLAIN, Run, engine, model, request, settled, tokens_of
from tests.model.compiler import needs_compiler

pytestmark = needs_compiler

DTYPES = [torch.float32, torch.bfloat16]
# Half of them begin alike, so that pages are shared.
PROMPTS = [tokens_of(99, 14) + tokens_of(size, size) if size % 2 else tokens_of(size, size) for size in range(1, 28, 3)]
REQUESTS = [
    request(name, PROMPTS[index % len(PROMPTS)], params, **({"pins": PINS} if name == "default" else {}))
    for index, (name, params) in enumerate(ASKED.items())
    if params.decoder != "mtp"
]


@cache
def compiled(dtype: torch.dtype) -> DiffusionGemma:
    return compile_model(deepcopy(model()).to(dtype))


@torch.inference_mode()
def alone(asked: Request, dtype: torch.dtype) -> list[Event]:
    assert asked.params.seed is not None
    return list(settled(PLAIN[asked.params.decoder](compiled(dtype), asked, asked.params.seed)))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("page_size", "chunk_tokens", "max_rows"), [(1, 3, 16), (3, 8, 16), (4, 512, 16), (4, 16, 1)])
def test_a_request_gets_its_plain_loops_bits_whoever_runs_beside_it(
    dtype: torch.dtype, page_size: int, chunk_tokens: int, max_rows: int
) -> None:
    run = Run(engine(compiled(dtype), page_size=page_size, chunk_tokens=chunk_tokens, max_rows=max_rows))
    run.submit(*REQUESTS)
    run.finish()
    for asked in REQUESTS:
        assert run.told[asked.id] == alone(asked, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows_that_yield_their_pages_get_the_same_bits(dtype: torch.dtype) -> None:
    run = Run(engine(compiled(dtype), pages=(22, 60), page_size=3, chunk_tokens=16, hasty=True))
    run.submit(*REQUESTS)
    run.finish()
    assert run.engine.stats().preemptions > 3
    for asked in REQUESTS:
        assert run.told[asked.id] == alone(asked, dtype)
