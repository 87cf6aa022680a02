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
    """A row a token of the answer, if its scores were asked for."""
    if completion.scores is None:
        return
    table = Table("token", "logprob", "uncertainty", "likeliest", box=None, header_style="dim")
    doubts = completion.uncertainty or [None] * len(completion.scores)
    for id, one, doubt in zip(completion.token_ids, completion.scores, doubts, strict=True):
        likely = "  ".join(f"{_spell(other, tokenizer)!r} {value:.2f}" for other, value in one.top)
        table.add_row(
            repr(_spell(id, tokenizer)), f"{one.logprob:.3f}", "" if doubt is None else f"{doubt:.3f}", likely
        )
    Console(markup=False).print(table)


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
