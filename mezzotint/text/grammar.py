"""Grammars for one tokenizer: a schema, a regular expression, Lark or choices, compiled once; `matcher` follows them.

llguidance is given our own reading of the vocabulary: what is forced is written as the tokenizer writes text, and no
text holds a control token (contract 12) or an id that no text has.
"""

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from llguidance import LLMatcher, LLParserLimits, LLTokenizer, TokenizerWrapper

from mezzotint.text.closure import prefer
from mezzotint.text.matcher import Matcher, refuse
from mezzotint.text.schema import COMPACT, JsonForm, narrow_schema
from mezzotint.text.schema_document import write_json
from mezzotint.text.schema_hints import find_hints
from mezzotint.text.schema_patterns import strip_pattern
from mezzotint.text.tokenizer import Tokenizer

_KEPT = 256  # compiled grammars
_KEPT_TEXTS = 4096  # forced ones, with their ids
_LONGEST = 1 << 18  # characters of a grammar
_LONGEST_EXAMPLE = 48  # ids
_MOST_CHOICES = 1024
_MOST_ITEMS = 16_000  # of a row of the parser; 1,000 optional members take 4,000
_CLOSING = ("<tool_call|>", '<|"|>')
# What a grammar may name; the others begin or end turns, pad, or stand for what is not text.
_NAMEABLE = frozenset('<|channel> <channel|> <|tool_call> <tool_call|> <|"|>'.split())
_NEVER_WRITTEN = re.compile(rb"<unused\d+>|\[multimodal\]")
# Lark: no token is named within a string, a regular expression or a comment.
_LARK = re.compile(r'"(?:\\.|[^"\\\n])*"|/(?!/)(?:\\.|[^/\\\n])+/|(?://|#)[^\n]*|(?P<token><[^<>\s]+>)')


class Grammar(NamedTuple):
    """One compiled grammar.

    text: what was compiled. template: its first place. tokenizer: whose ids it knows. restricted: by which keywords a
    schema was narrowed, and in how many places.
    """

    text: str
    template: Matcher
    tokenizer: Tokenizer
    restricted: Mapping[str, int] = MappingProxyType({})

    def start(self) -> Matcher:
        """Go to the beginning.

        Returns: a place of its own, the constraint of one request.
        """
        return self.template.copy()

    def check_tokenizer(self, tokenizer: Tokenizer | None, owner: str) -> None:
        """Refuse to be used with other ids. tokenizer: of `owner`, a checkpoint.

        Raises: ValueError naming both vocabularies and the remedy.
        """
        if tokenizer is self.tokenizer or (tokenizer and tokenizer.fingerprint == self.tokenizer.fingerprint):
            return
        used = f"{owner} has no tokenizer" if tokenizer is None else f"{owner} has that of {tokenizer.describe()}"
        told = f"the grammar was compiled for the vocabulary of {self.tokenizer.describe()}, and {used}"
        raise ValueError(f"{told}; compile it with the grammars of the model that answers")


class Grammars:
    """The grammars of one tokenizer; those compiled last are kept."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Read the vocabulary, which takes seconds for a quarter of a million ids."""
        spellings = [_spell(tokenizer, id) for id in range(tokenizer.vocab_size)]
        never = tokenizer.control_ids | _find_never_written(spellings, tokenizer)
        texts = {id: spelling for id, spelling in enumerate(spellings) if id not in never}
        closing = tuple(tokenizer.control[name] for name in _CLOSING if name in tokenizer.control)
        self._tokenizer = tokenizer
        barred = frozenset(id for name, id in tokenizer.control.items() if name not in _NAMEABLE)
        self._preferences = prefer(texts, barred, closing)
        self._vocabulary = LLTokenizer(TokenizerWrapper(_Vocabulary(tokenizer, spellings, never)))
        self._limits = LLParserLimits(verbose_errors=False, max_items_in_row=_MOST_ITEMS)
        self._compile = lru_cache(maxsize=_KEPT)(self._compile_anew)
        self._read_schema = lru_cache(maxsize=_KEPT)(self._read_schema_anew)

    def from_schema(self, schema: Mapping[str, Any] | bool, form: JsonForm = COMPACT) -> Grammar:
        """Compile a JSON Schema, narrowed as `schema.narrow_schema` says.

        Returns: the grammar of JSON texts, properties in the order of the schema.
        Raises: ValueError for a schema that cannot be honoured whole, naming the keyword.
        """
        return self._read_schema(write_json(schema), form)

    def from_regex(self, pattern: str) -> Grammar:
        """Compile a regular expression that the whole answer matches, in the syntax of Rust's regex crate.

        Returns: the grammar.
        Raises: ValueError for a pattern that does not compile.
        """
        text = LLMatcher.grammar_from_regex(pattern)
        self._compile(text)  # what is too complex is refused before an example is looked for
        example = self.exemplify(strip_pattern(pattern))
        return self._grammar(text, (example,) if example else ())

    def from_lark(self, text: str, hints: Sequence[str] = ()) -> Grammar:
        """Compile a grammar in llguidance's variant of Lark; control tokens in it are named by their spelling.

        hints: texts that an answer needs before it can end; they are tried, not trusted.
        Returns: the grammar.
        Raises: ValueError for a text that does not compile, or a token that an answer must not hold.
        """
        for match in _LARK.finditer(text):
            if (name := match["token"]) and not (name in _NAMEABLE and name in self._tokenizer.control):
                known = ", ".join(sorted(_NAMEABLE & self._tokenizer.control.keys())) or "none"
                raise ValueError(f"the grammar names the token {name}; of this tokenizer it may name {known}")
        return self._grammar(LLMatcher.grammar_from_lark(text), hints)

    def from_choices(self, choices: Sequence[str]) -> Grammar:
        """Compile a list of texts of which the answer is one.

        Returns: the grammar.
        Raises: ValueError for no choice, an empty one, or too many.
        """
        if not 0 < len(choices) <= _MOST_CHOICES or not all(choices):
            raise ValueError(f"{len(choices)} choices were given; give 1 to {_MOST_CHOICES}, none of them empty")
        return self._grammar(LLMatcher.grammar_from_lark(f"start: {' | '.join(map(quote, choices))}"))

    def exemplify(self, pattern: str) -> str | None:
        """Look for a short text that a regular expression matches whole.

        Returns: the text; None where none is found soon, or the expression does not compile.
        """
        try:
            found = self._grammar(LLMatcher.grammar_from_regex(pattern)).start().closure(_LONGEST_EXAMPLE)
        except ValueError:
            return None
        return self._tokenizer.decode(found) if found else None

    def _read_schema_anew(self, schema: str, form: JsonForm) -> Grammar:
        narrowed = narrow_schema(json.loads(schema), form)
        options: Any = {
            "item_separator": form.item_separator,
            "key_separator": form.key_separator,
            "whitespace_flexible": False,
        }
        try:
            text = LLMatcher.grammar_from_json_schema(json.dumps(narrowed.schema), overrides=options)
        except ValueError as error:  # true and false are no objects
            raise ValueError(f"the schema allows no value: {error}; say what is allowed") from error
        self._compile(text)  # as in from_regex
        hints = find_hints(narrowed.schema, self.exemplify)
        inner = [quote(text)[1:-1] for text in (*hints.members, *hints.texts)]
        return self._grammar(text, inner, narrowed.restricted)

    def _grammar(
        self, text: str, hints: Sequence[str] = (), restricted: Mapping[str, int] = MappingProxyType({})
    ) -> Grammar:
        ids = tuple(tuple(self._tokenizer.encode_text(hint)) for hint in hints)
        template = Matcher(self._compile(text).deep_copy(), self._preferences._replace(hints=ids))
        return Grammar(text, template, self._tokenizer, MappingProxyType(dict(restricted)))

    def _compile_anew(self, text: str) -> LLMatcher:
        if len(text) > _LONGEST:
            raise ValueError(f"the grammar has {len(text)} characters; at most {_LONGEST} are allowed, so shorten it")
        matcher = LLMatcher(self._vocabulary, text, log_level=0, limits=self._limits)
        probe = matcher.deep_copy()  # some limits show only where the forced beginning ends
        probe.consume_tokens(probe.compute_ff_tokens())
        probe.compute_bitmask()
        if probe.is_error():
            refuse(probe.get_error())
        return matcher


def quote(text: str) -> str:
    """Write a text as a string of Lark, which is one of JSON too.

    Returns: the string with its quotes.
    """
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() or c > "\uffff" else f"\\u{ord(c):04x}" for c in quoted)


class _Vocabulary:
    """What llguidance asks of a tokenizer."""

    def __init__(self, tokenizer: Tokenizer, spellings: list[bytes], never: frozenset[int]) -> None:
        self.bos_token_id, self.eos_token_id = tokenizer.bos_id, tokenizer.eos_id
        self.tokens = spellings
        self.special_token_ids = sorted(never)  # in no text, whatever it may be
        # llguidance asks again at every step of a forced text.
        self._encode = lru_cache(maxsize=_KEPT_TEXTS)(lambda text: tokenizer.encode_text(text.decode()))

    def __call__(self, text: bytes) -> list[int]:
        return self._encode(text)


def _spell(tokenizer: Tokenizer, id: int) -> bytes:
    try:
        return tokenizer.token_bytes(id)
    except ValueError:  # vocabularies may have holes
        return b""


def _find_never_written(spellings: list[bytes], tokenizer: Tokenizer) -> frozenset[int]:
    """Ids that no text has: placeholders, holes, bytes of no character, and all but one of those spelled alike."""
    alike = defaultdict(list)
    for id, spelling in enumerate(spellings):
        alike[spelling].append(id)
    never = {*alike.pop(b"", ()), *alike.pop(b"\xff", ())}
    for spelling, ids in alike.items():
        if _NEVER_WRITTEN.fullmatch(spelling):
            never.update(ids)
        elif len(ids) > 1:
            written = set(tokenizer.encode_text(spelling.decode(errors="replace"))).intersection(ids)
            never.update(set(ids) - (written or {min(ids)}))
    return frozenset(never)
