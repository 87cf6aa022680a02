"""Stop strings: where the text of a growing answer ends, and what of it may leave before that is known."""

from collections.abc import Iterable, Sequence

from mezzotint.text.detokenize import Detokenizer
from mezzotint.text.tokenizer import Tokenizer

_MOST, _LONGEST = 16, 256  # strings, and characters of one


class StopScanner:
    """One growing answer, read character by character up to the first place where a stop string is complete.

    It is text as it is told, thoughts and calls too, control tokens left out, so a string may span tokens and what
    control tokens part. Of strings that are complete at the same character the longest counts, so how text is cut into
    tokens is no matter. found: the string that ended the answer, None while it goes on.
    """

    def __init__(self, tokenizer: Tokenizer, stops: str | Sequence[str]) -> None:
        """Before any id. Raises: ValueError as check_stops."""
        self._tokenizer, self._stops = tokenizer, check_stops(stops)
        self._text = Detokenizer(tokenizer)
        self._held: list[str | int] = []  # characters that may belong to a stop string, and control ids among them
        self._begun = ""  # those characters: the longest end of the text with which a stop string begins
        self.found: str | None = None

    def restart(self) -> "StopScanner":
        """The same strings, before any id."""
        return StopScanner(self._tokenizer, self._stops)

    def count_kept(self, ids: Sequence[int]) -> int | None:
        """Take further ids that are final.

        Returns: how many of them stand, up to and including the one that completes a stop string; None if none does.
        """
        for index, id in enumerate(ids):
            self._take(id)
            if self.found is not None:
                return index + 1
        return None

    def push(self, ids: Iterable[int]) -> list[int]:
        """Take the next ids and give those of the text that no stop string can begin in any longer.

        Returns: control ids as they came, other text in ids that spell it; nothing of a stop string or behind it.
        """
        free: list[str | int] = []
        for id in ids:
            if self.found is None:
                free += self._take(id)
        return self._spell(free)

    def flush(self) -> list[int]:
        """End the answer. Returns: what was held back, which is no stop string now."""
        if self.found is not None:
            return []
        rest = [*self._held, *self._text.flush()]
        self._held, self._begun = [], ""
        return self._spell(rest)

    def _take(self, id: int) -> list[str | int]:
        """Go on by one id. Returns: what is free now."""
        if id in self._tokenizer.control_ids:
            self._held.append(id)
            return self._release()
        free: list[str | int] = []
        for character in self._text.push([id]):
            self._held.append(character)
            self._begun += character
            complete = [stop for stop in self._stops if self._begun.endswith(stop)]
            if complete:
                self._begun = self.found = max(complete, key=len)
                return free + self._release()
            while not any(stop.startswith(self._begun) for stop in self._stops):
                self._begun = self._begun[1:]
            free += self._release()
        return free

    def _release(self) -> list[str | int]:
        """Take what stands before the held characters that may belong to a stop string."""
        surplus = sum(isinstance(item, str) for item in self._held) - len(self._begun)
        free: list[str | int] = []
        while self._held and (surplus or isinstance(self._held[0], int)):
            free.append(self._held.pop(0))
            surplus -= isinstance(free[-1], str)
        return free

    def _spell(self, items: Iterable[str | int]) -> list[int]:
        ids, text = list[int](), ""
        for item in items:
            if isinstance(item, str):
                text += item
            else:
                ids, text = [*ids, *self._tokenizer.encode_text(text), item], ""
        return ids + self._tokenizer.encode_text(text)


def check_stops(stops: str | Sequence[str]) -> tuple[str, ...]:
    """One stop string or several, as a tuple.

    Raises: ValueError for one that is empty, too long, no string or no text, or for too many of them.
    """
    if not isinstance(stops, Sequence):
        raise ValueError(f"stop is {stops!r}; give a string or several")
    given = (stops,) if isinstance(stops, str) else tuple(stops)
    if len(given) > _MOST:
        raise ValueError(f"stop has {len(given)} strings; give at most {_MOST}")
    for each in given:
        if not isinstance(each, str):
            raise ValueError(f"stop holds {each!r}; give strings")
        if not each:
            raise ValueError("stop holds an empty string, with which every answer would end at once; leave it out")
        if len(each) > _LONGEST:
            raise ValueError(f"stop holds a string of {len(each)} characters; give at most {_LONGEST}")
        if any(character == "\ufffd" or "\ud800" <= character <= "\udfff" for character in each):
            raise ValueError(f"stop holds {each!a}, of which a part is no whole character; give text")
    return given
