"""A prompt and its options, found to be in order before any work; who answers it lives in alone and together."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from mezzotint.decoding.blank import Blank, lay_blank
from mezzotint.decoding.conflicts import check_conflicts
from mezzotint.decoding.limits import required_positions
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.random import fresh_seed
from mezzotint.decoding.thoughts import open_thoughts
from mezzotint.engine.request import Request
from mezzotint.llm.checkpoint import Checkpoint
from mezzotint.model.kv import kv_bytes
from mezzotint.model.memory import available_bytes
from mezzotint.text.grammar import Grammar
from mezzotint.text.inspect import TextInspector
from mezzotint.text.prompt import Chat, Prompt
from mezzotint.text.stop import StopScanner, check_stops
from mezzotint.types import Constraint


class Asked(NamedTuple):
    """A prompt's ids with its options.

    positions: how many it may touch, whoever answers it. blank: where text behind the answer is given.
    constraint: the beginning of a grammar that the answer follows. stop: where stop strings may end it, before any id.
    inspector: what reads its blocks, where they have to pass a gate.
    """

    ids: list[int]
    params: SamplingParams
    seed: int
    positions: int
    blank: Blank | None
    constraint: Constraint | None
    stop: StopScanner | None
    inspector: TextInspector | None = None


def accept(
    prompt: Prompt,
    params: SamplingParams,
    checkpoint: Checkpoint,
    grammar: Grammar | None = None,
    stop: str | Sequence[str] = (),
) -> Asked:
    """Read a prompt. Raises: ValueError naming what is wrong with it or its options, and the remedy."""
    ids, behind, blank = checkpoint.encode(prompt), checkpoint.prompts.encode_ends(prompt), None
    config = checkpoint.model.config
    if behind:
        if params.decoder != "diffusion":
            told = f"ends is given, but decoder {params.decoder!r} sees only what is before"
            raise ValueError(f"{told}: use 'diffusion' or drop it")
        if params.gate != "off":
            raise ValueError(f"ends is given, and gate is {params.gate!r}, but a blank has no block to mend; drop one")
        if params.bounds_thinking:
            raise ValueError("ends is given together with a bound on thinking, but a blank holds no thoughts; drop one")
        width = checkpoint.limits.of(params).canvas_length
        blank = lay_blank(behind, params.max_tokens, width, config.eos_ids[0])
        params = replace(params, max_tokens=width)
    if params.decoder == "mtp" and checkpoint.drafter is None:
        raise ValueError(
            f"decoder is 'mtp', which needs a drafter, and {checkpoint.path} has none; name one or use 'verified'"
        )
    if params.decoder in ("diffusion", "verified") and config.family != "diffusion_gemma":
        raise ValueError(
            f"{checkpoint.path} is a {config.family} checkpoint without a canvas; use decoder 'ar' or 'mtp'"
        )
    if grammar is not None:
        grammar.check_tokenizer(checkpoint.tokenizer, str(checkpoint.path))
    constraint = None if grammar is None else grammar.start()
    scanner, inspector = _scan_stops(stop, checkpoint), _inspect(prompt, ids, params, checkpoint)
    check_conflicts(
        params,
        checkpoint.limits,
        is_constrained=constraint is not None,
        is_stopped=scanner is not None,
        is_inspected=inspector is not None,
    )
    if constraint is not None and behind:
        raise ValueError("ends is given together with a grammar, which says what the whole answer is; drop one")
    positions = required_positions(len(ids), params, checkpoint.limits, is_constrained=constraint is not None)
    seed = fresh_seed() if params.seed is None else params.seed
    return Asked(ids, params, seed, positions, blank, constraint, scanner, inspector)


def make_request(
    id: str, asked: Asked, checkpoint: Checkpoint, *, deadline_s: float | None = None, priority: int = 0
) -> Request:
    """What an engine is asked for a prompt that was found to be in order."""
    return Request(
        id=id,
        prompt=tuple(asked.ids),
        params=replace(asked.params, seed=asked.seed),
        pins={} if asked.blank is None else {0: asked.blank.pins},
        constraint=asked.constraint,
        stopper=asked.stop,
        inspector=asked.inspector,
        bounds=checkpoint.bounds,
        priority=priority,
        deadline_s=deadline_s,
    )


def _scan_stops(stop: str | Sequence[str], checkpoint: Checkpoint) -> StopScanner | None:
    stops = check_stops(stop)
    if not stops:
        return None
    if checkpoint.tokenizer is None:
        raise ValueError(f"{checkpoint.path} has no tokenizer.json, and stop strings are text; add the file")
    return StopScanner(checkpoint.tokenizer, stops)


def _inspect(
    prompt: Prompt, ids: Sequence[int], params: SamplingParams, checkpoint: Checkpoint
) -> TextInspector | None:
    """What reads the blocks of an answer, where they have to pass a gate; None without a tokenizer too."""
    if params.gate == "off" or checkpoint.tokenizer is None:
        return None
    is_chat = isinstance(prompt, Chat) or (not isinstance(prompt, str) and not isinstance(prompt[0], int))
    is_turn = is_chat and not (isinstance(prompt, Chat) and prompt.begins)
    return TextInspector(checkpoint.tokenizer, ids, opened=open_thoughts(ids, checkpoint.limits), is_turn=is_turn)


def check_memory(asked: Asked, checkpoint: Checkpoint) -> None:
    """Refuse what the plain loop would have no memory for. Raises: ValueError with need, have and remedy."""
    model = checkpoint.model
    need, have = kv_bytes(model.config, asked.positions, model.dtype), available_bytes(model.device)
    if need > have:
        raise ValueError(
            f"keys and values of {asked.positions} tokens need {need:,} bytes and {model.device} has {have:,}; "
            "shorten the prompt or ask for fewer tokens"
        )
