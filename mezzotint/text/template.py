"""A checkpoint's chat template, from messages to prompt ids; what messages may hold lives in `messages`.

User text is text (contract 12), so a control token must come from the template alone. No control token can
begin inside a user's string if no such string holds the character that control tokens begin with. Hence each
such character is swapped, before the template runs, for a private-use one that occurs nowhere in the chat;
control tokens are then found in what was rendered, and the text between them is swapped back.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any, NoReturn, Self

import jinja2
import jinja2.meta
from jinja2.filters import do_dictsort
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from mezzotint.text.files import read_object, read_text
from mezzotint.text.messages import check_chat
from mezzotint.text.tokenizer import Tokenizer

_THOUGHT_BEGIN, _THOUGHT_END = "<|channel>", "<channel|>"


class ChatTemplate:
    """One compiled template and the tokenizer whose control tokens it writes."""

    def __init__(self, source: str, tokenizer: Tokenizer) -> None:
        """Compile a template in the sandbox.

        Raises: ValueError for a syntax error.
        """
        environment = _environment()
        try:
            self._template = environment.from_string(source)
            self._reads = jinja2.meta.find_undeclared_variables(environment.parse(source))
        except jinja2.TemplateSyntaxError as error:
            raise ValueError(f"chat template, line {error.lineno}: {error.message}; correct the template") from error
        self._source = source
        self._tokenizer = tokenizer

    @classmethod
    def from_directory(cls, directory: Path, tokenizer: Tokenizer) -> Self:
        """Read chat_template.jinja, or chat_template in tokenizer_config.json, of a checkpoint's directory.

        Raises: FileNotFoundError with neither; ValueError for a damaged file, or a template that does not
        compile.
        """
        file, config = directory / "chat_template.jinja", directory / "tokenizer_config.json"
        if file.is_file():
            return cls(read_text(file), tokenizer)
        source = read_object(config).get("chat_template") if config.is_file() else None
        if not isinstance(source, str):
            raise FileNotFoundError(
                f"{file} does not exist and {config} has no chat_template; put the model's template there"
            )
        return cls(source, tokenizer)

    def encode(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        thinking: bool = False,
        add_generation_prompt: bool = True,
    ) -> list[int]:
        """Write a chat as the template does; messages and tools are as `messages.check_chat` describes.

        Thoughts in assistant messages, from `<|channel>` to `<channel|>`, are left out.
        Any other control token in the caller's strings is encoded as ordinary text.
        Returns: prompt ids, ending where the model's turn begins if `add_generation_prompt`.
        Raises: ValueError for a malformed chat, for one that the template refuses, and for tools or thinking
        where the template knows none.
        Source: contract 12.
        """
        for option, name in ((tools, "tools"), (thinking, "enable_thinking")):
            if option and name not in self._reads:
                raise ValueError(f"the chat template of this checkpoint does not read {name}; leave it out")
        chat = check_chat(messages, tools)
        for message in chat.messages:
            if message["role"] == "assistant" and "content" in message:
                message["content"] = self._without_thoughts(message["content"])
        marks = self._choose_marks(chat)
        restore = {ord(mark): chr(character) for character, mark in marks.items()}
        try:
            rendered = self._template.render(
                **self._tokenizer.named_tokens,
                messages=_translate(chat.messages, marks),
                tools=_translate(chat.tools, marks) or None,
                enable_thinking=thinking,
                add_generation_prompt=add_generation_prompt,
                restore_marks=restore,
            )
        except (jinja2.TemplateError, TypeError, RecursionError) as error:
            raise ValueError(f"the chat template refuses this chat: {error}; correct the messages") from error
        return self._tokenizer.encode_rendered(rendered, restore)

    def _without_thoughts(self, content: str | list[dict[str, Any]]) -> str | list[dict[str, Any]]:
        if isinstance(content, list):
            return [{**part, "text": self._without_thoughts(part["text"])} for part in content]
        if not {_THOUGHT_BEGIN, _THOUGHT_END} <= self._tokenizer.control.keys():
            return content
        return "".join(part.split(_THOUGHT_BEGIN)[0] for part in content.split(_THOUGHT_END))

    def _choose_marks(self, chat: Any) -> dict[int, str]:
        """For each character that begins a control token, one that neither chat nor template holds."""
        taken = set(json.dumps(chat, ensure_ascii=False)).union(self._source)
        beginnings = sorted({ord(control[0]) for control in self._tokenizer.control})
        private = chain(range(0xE000, 0xF900), range(0xF0000, 0xFFFFE), range(0x100000, 0x10FFFE))
        marks = list(islice((chr(code) for code in private if chr(code) not in taken), len(beginnings)))
        if len(marks) < len(beginnings):
            raise ValueError("the chat holds every private-use character of Unicode; leave one out")
        return dict(zip(beginnings, marks, strict=True))


def _translate(value: Any, table: Mapping[int, str]) -> Any:
    if isinstance(value, str):
        return value.translate(table)
    if isinstance(value, list):
        return [_translate(item, table) for item in value]
    if isinstance(value, dict):
        return {key.translate(table): _translate(item, table) for key, item in value.items()}
    return value


def _environment() -> jinja2.Environment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters |= {"dictsort": _dictsort, "tojson": _tojson}
    environment.globals |= {"raise_exception": _raise_exception, "strftime_now": _strftime_now}
    return environment


@jinja2.pass_context
def _dictsort(
    context: Context,
    value: Mapping[Any, Any],
    case_sensitive: bool = False,
    by: Any = "key",
    reverse: bool = False,
) -> list[tuple[Any, Any]]:
    """Sort as jinja does, by keys as the user spelled them."""
    originals = {_translate(key, context["restore_marks"]): key for key in value}
    plain = {key: value[original] for key, original in originals.items()}
    return [(originals[key], item) for key, item in do_dictsort(plain, case_sensitive, by, reverse)]


@jinja2.pass_context
def _tojson(
    context: Context,
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Write JSON without HTML's escapes; a mark is no character of the user's, so it is never escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, separators=separators, sort_keys=sort_keys)
    if not ensure_ascii:
        return text
    marks = context["restore_marks"]
    return "".join(c if c.isascii() or ord(c) in marks else json.dumps(c)[1:-1] for c in text)


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _strftime_now(format: str) -> str:
    return datetime.now().strftime(format)
