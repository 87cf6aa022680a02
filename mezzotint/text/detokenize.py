"""Text out of ids as they arrive, never half a character; when a reply must stop is decided elsewhere."""

import codecs
from collections.abc import Iterable

from mezzotint.text.tokenizer import Tokenizer


class Detokenizer:
    """The text of one growing token sequence; all that it returns, joined, is `decode` of all ids."""

    def __init__(self, tokenizer: Tokenizer, *, keep_control: bool = False) -> None:
        self._tokenizer = tokenizer
        self._keep_control = keep_control
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, ids: Iterable[int]) -> str:
        """Take the next ids and give the text that no later id can change.

        Returns: text, empty while a character is incomplete.
        Raises: ValueError for an id outside the vocabulary.
        """
        control = frozenset() if self._keep_control else self._tokenizer.control_ids
        return self._utf8.decode(b"".join(self._tokenizer.token_bytes(id) for id in ids if id not in control))

    def flush(self) -> str:
        """End the sequence.

        Returns: U+FFFD for a character that was never completed, else nothing.
        """
        return self._utf8.decode(b"", final=True)
