"""Log-probabilities of an answer's tokens, as objects and as a table; what they are is said in decoding.score."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from mezzotint.llm import Completion
from mezzotint.text.tokenizer import Tokenizer
from mezzotint.types import Score


def scores(completion: Completion, tokenizer: Tokenizer | None) -> dict[str, Any]:
    """The objects `logprobs` and `prompt_logprobs`, in nats, of those that were asked for."""
    told: dict[str, Any] = {}
    if completion.scores is not None:
        doubts = completion.uncertainty or [None] * len(completion.scores)
        told["logprobs"] = [
            {**_score(id, one, tokenizer), "uncertainty": doubt}
            for id, one, doubt in zip(completion.token_ids, completion.scores, doubts, strict=True)
        ]
    if completion.prompt_scores is not None:
        told["prompt_logprobs"] = [
            None if one is None else {"logprob": one.logprob, "top_logprobs": _top(one, tokenizer)}
            for one in completion.prompt_scores
        ]
    return told


def print_scores(completion: Completion, tokenizer: Tokenizer | None) -> None:
    """A row a token of the prompt, by its number, and of the answer, as far as their scores were asked for."""
    if completion.prompt_scores is not None:
        asked = Table("prompt", "logprob", "likeliest", box=None, header_style="dim")
        for place, known in enumerate(completion.prompt_scores):
            asked.add_row(
                str(place), *(("", "") if known is None else (f"{known.logprob:.3f}", _likely(known, tokenizer)))
            )
        Console(markup=False).print(asked)
    if completion.scores is None:
        return
    table = Table("token", "logprob", "uncertainty", "likeliest", box=None, header_style="dim")
    doubts = completion.uncertainty or [None] * len(completion.scores)
    for id, one, doubt in zip(completion.token_ids, completion.scores, doubts, strict=True):
        said = "" if doubt is None else f"{doubt:.3f}"
        table.add_row(repr(_spell(id, tokenizer)), f"{one.logprob:.3f}", said, _likely(one, tokenizer))
    Console(markup=False).print(table)


def _likely(score: Score, tokenizer: Tokenizer | None) -> str:
    return "  ".join(f"{_spell(id, tokenizer)!r} {value:.2f}" for id, value in score.top)


def _score(id: int, score: Score, tokenizer: Tokenizer | None) -> dict[str, Any]:
    told = {"token": _spell(id, tokenizer), "token_id": id, "logprob": score.logprob}
    return {**told, "top_logprobs": _top(score, tokenizer)}


def _top(score: Score, tokenizer: Tokenizer | None) -> Sequence[dict[str, Any]]:
    return [{"token": _spell(id, tokenizer), "token_id": id, "logprob": value} for id, value in score.top]


def _spell(id: int, tokenizer: Tokenizer | None) -> str:
    """The text of one id; bytes that are no character of their own as they are written in an error."""
    if tokenizer is None:
        return str(id)
    try:
        return tokenizer.token_bytes(id).decode(errors="backslashreplace")
    except ValueError:  # vocabularies may have holes
        return f"<{id}>"
