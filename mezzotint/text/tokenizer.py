"""A checkpoint's vocabulary, from text to ids and back; chats and their templates live in `template`."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Self

import tokenizers

from mezzotint.text.files import damaged, read_object, read_text

_DEFAULT_NAMES = {"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>"}
_BYTE_FALLBACK = {
    "type": "Sequence",
    "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ],
}


class Tokenizer:
    """One vocabulary, its control tokens kept apart from text.

    A control token is one that tokenizer.json marks as special. `control` gives its id by its spelling,
    `named_tokens` its spelling by its role in tokenizer_config.json, such as "bos_token"; `directory` is where it was
    read from, if it was.
    """

    def __init__(
        self, vocabulary: tokenizers.Tokenizer, named_tokens: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Take over a vocabulary: it must not be used elsewhere, for how it reads control tokens is changed.

        Raises: ValueError when ids could not be turned back into text, when a control token is made of
        ordinary text or takes white space along, or when a beginning, an end or padding has no token.
        """
        self.directory: Path | None = None
        self.named_tokens = {**_DEFAULT_NAMES, **named_tokens}
        added = vocabulary.get_added_tokens_decoder()
        self.control = {token.content: id for id, token in sorted(added.items()) if token.special}
        self.control_ids = frozenset(self.control.values())
        self.vocab_size = max(vocabulary.get_vocab_size(with_added_tokens=False), max(added, default=-1) + 1)
        self.bos_id = self._named_id("bos_token")
        self.eos_id = self._named_id("eos_token")
        self.pad_id = self._named_id("pad_token")
        self._vocabulary = vocabulary
        self._vocabulary.encode_special_tokens = True
        self._vocabulary.no_truncation()  # some files keep the lengths that training was set to
        self._vocabulary.no_padding()
        self._added = {id: token.content for id, token in added.items()}
        self._spell = _find_spelling(vocabulary)
        longest_first = sorted(self.control, key=len, reverse=True)
        self._control_pattern = re.compile(f"({'|'.join(map(re.escape, longest_first))})")
        self._check_control([token for token in added.values() if token.special])

    @classmethod
    def from_directory(cls, directory: Path) -> Self:
        """Read tokenizer.json and, where there is one, tokenizer_config.json from a checkpoint's directory.

        Raises: FileNotFoundError without tokenizer.json; ValueError for a file that is damaged, or a vocabulary that
        cannot be honoured.
        """
        file = directory / "tokenizer.json"
        if not file.is_file():
            raise FileNotFoundError(
                f"{file} does not exist; name a checkpoint directory that holds tokenizer.json, "
                "beside config.json and the weights"
            )
        named_tokens = _read_named_tokens(directory / "tokenizer_config.json")
        tokenizer = cls(_read_vocabulary(file), named_tokens)
        tokenizer.directory = directory
        return tokenizer

    @cached_property
    def fingerprint(self) -> str:
        """What tells this vocabulary, its merges and control tokens from any other: 64 hexadecimal digits."""
        return sha256(self._vocabulary.to_str().encode()).hexdigest()

    def describe(self) -> str:
        """Where this vocabulary is from and how large it is, for messages."""
        origin = "a tokenizer made in memory" if self.directory is None else str(self.directory)
        return f"{origin} ({self.vocab_size} ids, {self.fingerprint[:8]})"

    def encode_text(self, text: str) -> list[int]:
        """Encode a string in which everything is text, a spelled-out control token too; no id is added.

        Returns: ids, none of them a control token's.
        Raises: ValueError for half a surrogate pair, which no UTF-8 can hold.
        Source: contract 12.
        """
        try:
            text.encode()  # here, for the tokenizer itself would say that this is no string
        except UnicodeEncodeError as error:
            raise ValueError(
                f"the text has half a surrogate pair, {text[error.start]!a}, at index {error.start}; "
                "send whole characters"
            ) from error
        return self._vocabulary.encode(text, add_special_tokens=False).ids

    def encode_rendered(self, text: str, restore: Mapping[int, str] = MappingProxyType({})) -> list[int]:
        """Encode a string that a template wrote: control tokens in it are control tokens.

        `restore` is a table for str.translate, applied to what lies between the control tokens.
        Returns: ids.
        """
        ids: list[int] = []
        for index, piece in enumerate(self._control_pattern.split(text)):
            if index % 2:  # the pattern's group: text and control tokens alternate
                ids.append(self.control[piece])
            else:
                ids += self.encode_text(piece.translate(restore))
        return ids

    def token_bytes(self, id: int) -> bytes:
        """Spell one token; a character may begin in one token and end in another.

        Returns: its part of the UTF-8 text; for a control token its name.
        Raises: ValueError for an id outside the vocabulary.
        """
        if (added := self._added.get(id)) is not None:
            return added.encode()
        if not 0 <= id < self.vocab_size or (token := self._vocabulary.id_to_token(id)) is None:
            raise ValueError(f"token id {id} is not in the vocabulary, which ends at {self.vocab_size - 1}")
        return self._spell(token)

    def decode(self, ids: Iterable[int], *, keep_control: bool = False) -> str:
        """Turn ids back into text, without control tokens unless they are asked for.

        Returns: text, with U+FFFD for bytes that are not UTF-8.
        Raises: ValueError for an id outside the vocabulary.
        """
        kept = (id for id in ids if keep_control or id not in self.control_ids)
        return b"".join(map(self.token_bytes, kept)).decode(errors="replace")

    def _named_id(self, name: str) -> int:
        spelling = self.named_tokens[name]
        if spelling not in self.control:
            raise ValueError(
                f"{name} is {spelling!r}, which is not among the tokens that tokenizer.json marks as special "
                f"({', '.join(self.control) or 'none'}); name one of them in tokenizer_config.json"
            )
        return self.control[spelling]

    def _check_control(self, tokens: list[tokenizers.AddedToken]) -> None:
        for token in tokens:
            if token.lstrip or token.rstrip or token.single_word:
                raise ValueError(
                    f"control token {token.content!r} has lstrip, rstrip or single_word set, which is not "
                    "supported; set all three to false in tokenizer.json"
                )
            if not self.control_ids.isdisjoint(self.encode_text(token.content)):
                raise ValueError(
                    f"control token {token.content!r} also comes out of ordinary text, so that a user could "
                    "write it; remove the merges that build it from tokenizer.json"
                )


def _read_vocabulary(file: Path) -> tokenizers.Tokenizer:
    text = read_text(file)
    try:
        return tokenizers.Tokenizer.from_str(text)
    except Exception as error:  # the library has no class of its own for what it cannot parse
        raise damaged(file, str(error)) from error


def _read_named_tokens(file: Path) -> dict[str, str]:
    if not file.is_file():
        return {}
    named = {name: value for name, value in read_object(file).items() if name.endswith("_token")}
    spelled = {name: value.get("content") if isinstance(value, dict) else value for name, value in named.items()}
    return {name: value for name, value in spelled.items() if isinstance(value, str)}


def _find_spelling(vocabulary: tokenizers.Tokenizer) -> Callable[[str], bytes]:
    decoder = json.loads(vocabulary.decoder.__getstate__()) if vocabulary.decoder else None
    if decoder and decoder["type"] == "ByteLevel":
        byte_of_character = _byte_of_character()
        return lambda token: bytes(byte_of_character[character] for character in token)
    if decoder == _BYTE_FALLBACK:
        return _spell_with_byte_fallback
    raise ValueError(
        f"tokenizer.json decodes by {decoder}; known are ByteLevel, and Replace of '▁' by a space, "
        "ByteFallback and Fuse in sequence"
    )


def _spell_with_byte_fallback(token: str) -> bytes:
    if re.fullmatch("<0x[0-9A-F]{2}>", token):
        return bytes([int(token[3:5], 16)])
    return token.replace("▁", " ").encode()


def _byte_of_character() -> dict[str, int]:
    """Invert GPT-2's spelling of bytes: what prints stands for itself, the others follow from U+0100."""
    printing = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printing]
    return {chr(byte): byte for byte in printing} | {chr(256 + i): byte for i, byte in enumerate(others)}
