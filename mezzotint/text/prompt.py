"""Whatever a caller gives as a prompt, as token ids: text, a chat, or ids already."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from mezzotint.text.template import ChatTemplate
from mezzotint.text.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class Chat:
    """A chat with what a template is told beside its messages, and what already stands in the model's turn.

    messages, tools: as `messages.check_chat` describes. begins: text that the answer follows. ends: text that stands
    right behind the answer, before the end of the turn, so that the answer fills the blank between.
    """

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] = ()
    thinking: bool = False
    begins: str = ""
    ends: str = ""


Prompt = str | Sequence[int] | Sequence[Mapping[str, Any]] | Chat

_KINDS = "text, token ids, a list of message objects, or a Chat"


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
        """Text stands as it is behind <bos>; a chat is rendered by the template, `begins` behind it; ids are checked.

        Raises: ValueError naming what is wrong and what works.
        """
        return [_check_id(part, vocab_size) for part in self._parts(prompt)]

    def encode_ends(self, prompt: Prompt) -> list[int]:
        """What stands behind the answer: the `ends` of a Chat and its end of turn, or nothing."""
        if not isinstance(prompt, Chat) or not prompt.ends:
            return []
        tokenizer = self._need_tokenizer()
        return [*tokenizer.encode_text(prompt.ends), tokenizer.control.get("<turn|>", tokenizer.eos_id)]

    def _parts(self, prompt: Prompt) -> Sequence[Any]:
        if isinstance(prompt, str):
            tokenizer = self._need_tokenizer()
            return [tokenizer.bos_id, *tokenizer.encode_text(prompt)]
        if isinstance(prompt, Chat):
            return self._render(prompt)
        messages = [part for part in _check_list(prompt) if isinstance(part, Mapping)]
        if not messages or len(messages) < len(prompt):
            return prompt
        return self._render(Chat(messages=messages))

    def _render(self, chat: Chat) -> list[int]:
        tokenizer = self._need_tokenizer()
        if self.template is None:
            raise ValueError(f"{self._directory} has no chat template; give prompts as text or token ids")
        ids = self.template.encode(chat.messages, tools=chat.tools, thinking=chat.thinking)
        return ids + tokenizer.encode_text(chat.begins)

    def _need_tokenizer(self) -> Tokenizer:
        if self.tokenizer is None:
            raise ValueError(f"{self._directory} has no tokenizer.json; give prompts as token ids")
        return self.tokenizer


def list_prompts(prompts: Prompt | Sequence[Prompt]) -> list[Prompt]:
    """One prompt or several as a list: a list of messages or of ids is one prompt, any other list is several.

    Raises: ValueError for an empty list, or for what is no list at all.
    """
    if isinstance(prompts, str | Chat):
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
