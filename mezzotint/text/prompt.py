"""Whatever a caller gives as a prompt, as token ids: text, a chat, or ids already."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from mezzotint.text.template import ChatTemplate
from mezzotint.text.tokenizer import Tokenizer

Prompt = str | Sequence[int] | Sequence[Mapping[str, Any]]

_KINDS = "text, token ids, or a list of message objects"


class PromptEncoder:
    """A checkpoint's tokenizer and chat template, each optional: token ids need neither."""

    def __init__(self, directory: Path, tokenizer: Tokenizer | None, template: ChatTemplate | None) -> None:
        self._directory = directory
        self.tokenizer, self.template = tokenizer, template

    @classmethod
    def from_directory(cls, directory: Path) -> Self:
        """Read what the checkpoint has. Raises: ValueError for a file that cannot be honoured."""
        if not (directory / "tokenizer.json").is_file():
            return cls(directory, None, None)
        tokenizer = Tokenizer.from_directory(directory)
        try:
            return cls(directory, tokenizer, ChatTemplate.from_directory(directory, tokenizer))
        except FileNotFoundError:  # a base model has none; a chat will be refused by name
            return cls(directory, tokenizer, None)

    def encode(self, prompt: Prompt, vocab_size: int) -> list[int]:
        """Text stands as it is behind <bos>; a chat is rendered by the template; all ids are checked.

        Raises: ValueError naming what is wrong and what works.
        """
        return [_check_id(part, vocab_size) for part in self._parts(prompt)]

    def _parts(self, prompt: Prompt) -> Sequence[Any]:
        if isinstance(prompt, str):
            tokenizer = self._need_tokenizer()
            return [tokenizer.bos_id, *tokenizer.encode_text(prompt)]
        messages = [part for part in _check_list(prompt) if isinstance(part, Mapping)]
        if not messages or len(messages) < len(prompt):
            return prompt
        self._need_tokenizer()
        if self.template is None:
            raise ValueError(f"{self._directory} has no chat template; give prompts as text or token ids")
        return self.template.encode(messages)

    def _need_tokenizer(self) -> Tokenizer:
        if self.tokenizer is None:
            raise ValueError(f"{self._directory} has no tokenizer.json; give prompts as token ids")
        return self.tokenizer


def list_prompts(prompts: Prompt | Sequence[Prompt]) -> list[Prompt]:
    """One prompt or several as a list: a list of messages or of ids is one prompt, any other list is several.

    Raises: ValueError for an empty list, or for what is no list at all.
    """
    if isinstance(prompts, str):
        return [prompts]
    if not _check_list(prompts):
        raise ValueError("prompts is empty; give at least one")
    first = prompts[0]
    return [prompts] if isinstance(first, int | Mapping) else list(prompts)  # type: ignore[list-item, arg-type]


def _check_list(given: Any) -> Sequence[Any]:
    if isinstance(given, bytes | bytearray) or not isinstance(given, Sequence):  # bytes would pass for ids
        raise ValueError(f"a prompt is {given!r}; give {_KINDS}")
    return given


def _check_id(part: Any, vocab_size: int) -> int:
    if isinstance(part, bool) or not isinstance(part, int):
        raise ValueError(f"a prompt holds {part!r}; give {_KINDS}")
    if not 0 <= part < vocab_size:
        raise ValueError(
            f"token id {part} lies outside the vocabulary of this checkpoint; ids go from 0 to {vocab_size - 1}"
        )
    return part
