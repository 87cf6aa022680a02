"""How a verb takes dataclasses: each field becomes a flag; which flags there are, they say."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from types import MappingProxyType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer


def unfold(verb: Callable[..., None], helps: Mapping[str, str] = MappingProxyType({})) -> Callable[..., None]:
    """Give a verb one flag for each field of the dataclasses among its parameters.

    A flag has its field's name, type and default; its help stands in `helps`, or as a typer.Option in the
    field's annotation. A tuple of numbers is written 1,2,3 and a mapping from names to numbers a=1,b=2.
    Returns: the verb with flags, as typer reads it; the verb itself is called with whole dataclasses.
    """
    hints = get_type_hints(verb, include_extras=True)
    folded: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[Parameter] = []
    for parameter in signature(verb).parameters.values():
        plain = parameter.replace(annotation=hints[parameter.name], kind=Parameter.KEYWORD_ONLY)
        parameters += _flags(hints[parameter.name], helps) if parameter.name in folded else [plain]

    @wraps(verb)
    def run(**given: Any) -> None:
        for name, part in folded.items():
            given[name] = part(**{field.name: given.pop(field.name) for field in fields(part)})
        verb(**given)

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _flags(part: Any, helps: Mapping[str, str]) -> list[Parameter]:
    hints = get_type_hints(part, include_extras=True)
    return [_flag(field, hints[field.name], helps.get(field.name)) for field in fields(part)]


def _flag(field: Field[Any], hint: Any, help: str | None) -> Parameter:
    default: Any = field.default if field.default_factory is MISSING else field.default_factory()
    if get_origin(hint) is tuple:
        kind = get_args(hint)[0]
        option = typer.Option(parser=partial(_numbers, kind), metavar="N,N,…", help=help)
        hint, default = Annotated[Any, option], ",".join(map(str, default))
    elif get_origin(hint) is dict:
        option = typer.Option(parser=_shares, metavar="NAME=SHARE,…", help=help)
        hint, default = Annotated[Any, option], ",".join(f"{name}={share}" for name, share in default.items())
    elif get_origin(hint) is not Annotated:
        hint = Annotated[hint, typer.Option(help=help)]
    return Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _numbers(kind: type[int] | type[float], text: str) -> tuple[float, ...]:
    return tuple(_number(part, kind) for part in text.split(","))


def _shares(text: str) -> dict[str, float]:
    pairs = [part.partition("=") for part in text.split(",")]
    return {name.strip(): _number(share, float) for name, _, share in pairs}


def _number(text: str, kind: type[int] | type[float]) -> float:
    try:
        return kind(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no number; write numbers with commas between them") from None
