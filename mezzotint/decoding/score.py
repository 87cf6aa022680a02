"""Log-probabilities of tokens under the causal pass, before a request's temperature, bias, filters or grammar."""

from collections.abc import Generator, Sequence

import torch
from torch import Tensor

from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.program import Block, Encode, Encoded, Prefilled
from mezzotint.types import Score


def score(logits: Tensor, tokens: Sequence[int], top: int) -> list[Score]:
    """What logits [N, V] say of N tokens, each behind those before it. top: how many of the likeliest are told."""
    log_p = logits.double().log_softmax(-1)
    best = log_p.topk(min(top, log_p.shape[-1]), -1)
    return [
        Score(float(row[token]), tuple(zip(ids, values, strict=True)))
        for row, token, ids, values in zip(log_p, tokens, best.indices.tolist(), best.values.tolist(), strict=True)
    ]


def encode_prompt(
    prompt: list[int], params: SamplingParams, *, read: int, width: int
) -> Generator[Encode | Prefilled, Encoded | None, Encoded | None]:
    """Encode a prompt and say so, with its own log-probabilities if they are asked for.

    read: 1 if what follows it is wanted. width: tokens whose logits, [width, V], may be held at once.
    Returns: what its last token says, None if read is 0.
    """
    top = params.prompt_logprobs
    if top is None:
        encoded = yield Encode(prompt, 0, read)
        yield Prefilled(len(prompt))
        return encoded
    scores: list[Score] = []
    for at in range(0, len(prompt), width):
        part = prompt[at : at + width]
        encoded = yield Encode(part, at, len(part))
        assert encoded is not None
        following = prompt[at + 1 : at + 1 + len(part)]
        scores += score(encoded.logits[: len(following)], following, top)
    yield Prefilled(len(prompt), (None, *scores))
    return encoded


def commit_block(
    block: Block, at: int, before: Encoded | None, params: SamplingParams, *, is_last: bool
) -> Generator[Encode | Block, Encoded | None, Encoded | None]:
    """Tell a block and encode its tokens at `at`, which the last block does not need.

    If scores are asked for, it is told behind the encode that scores it, and the last one takes an encode for that.
    before: what the tokens before `at` say. Returns: what the block says of what follows, where it is scored.
    """
    if params.logprobs is None:
        yield block
        if not is_last:
            yield Encode(block.tokens, at, 0)
        return None
    encoded = yield Encode(block.tokens, at, len(block.tokens))
    assert before is not None
    assert encoded is not None
    logits = torch.cat([before.logits[-1:], encoded.logits[:-1]])
    yield block._replace(scores=tuple(score(logits, block.tokens, params.logprobs)))
    return encoded
