"""Which members an object may have: closed where a schema is silent, counted where it counts them."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mezzotint.text.schema_bounds import JsonForm

_KEY = "^[^\\u0000-\\u001f]{1,64}$"  # of a member that no schema names


class Named(NamedTuple):
    """Members that the branches of a schema name or require, and whether a branch describes members without a name."""

    names: tuple[str, ...]
    describes_others: bool


def close_object(
    own: Mapping[str, Any], branches: Named, anything: Callable[[], Any], form: JsonForm, restricted: Counter[str]
) -> dict[str, Any]:
    """Let an object have the members that are named, where nothing is said of others; else bound their number and keys.

    own: an object's keywords, `anything` gives the schema of a value that is not described.
    Returns: the keywords that change.
    """
    properties, required = own.get("properties", {}), own.get("required", ())
    others = own.get("additionalProperties", True)
    is_silent = others in (True, {})
    listed = dict.fromkeys((*properties, *required, *branches.names))
    if branches.describes_others or (not is_silent and listed):
        return {}
    if listed or "patternProperties" in own:
        if not is_silent:
            return {}
        restricted["additionalProperties"] += 1
        unknown = {name: True if name in branches.names else anything() for name in listed if name not in properties}
        return {"properties": {**properties, **unknown}, "additionalProperties": False}
    if others is False:
        return {}
    restricted["propertyNames"] += 1
    members = {"patternProperties": {_KEY: anything() if is_silent else others}, "additionalProperties": False}
    if "maxProperties" in own:
        return members
    restricted["maxProperties"] += 1
    return {**members, "maxProperties": max(form.max_members, own.get("minProperties", 0))}


def count_members(own: Mapping[str, Any], restricted: Counter[str]) -> dict[str, Any]:
    """Write minProperties as names that are required, and maxProperties as names that are not allowed.

    A grammar counts members only where all that are named are required, and two members of one name as two.
    Returns: the keywords, counts kept only where a grammar counts right.
    Raises: ValueError for a minProperties that members without a name would have to reach.
    """
    counted = {key: value for key, value in own.items() if key not in ("minProperties", "maxProperties")}
    least, most = own.get("minProperties", 0), own.get("maxProperties")
    properties, required = dict(own.get("properties", {})), list(own.get("required", ()))
    is_closed = own.get("additionalProperties") is False and "patternProperties" not in own
    optional = [name for name, value in properties.items() if name not in required and value is not False]
    if least > len(required):
        restricted["minProperties"] += bool(optional)
        added, optional = optional[: least - len(required)], optional[least - len(required) :]
        counted["required"] = required = [*required, *added]
        if least > len(required) + (not is_closed):
            raise ValueError(
                f"minProperties is {least}, and {len(required)} members have names; name more of them in properties"
            )
        if least > len(required):
            counted["minProperties"] = least
    if most is not None and (not is_closed or len(required) + len(optional) > most):
        kept = optional[: max(0, most - len(required))] if is_closed else []
        restricted["maxProperties"] += len(kept) < len(optional)
        if optional:
            counted["properties"] = properties | {name: False for name in optional if name not in kept}
        if not is_closed or most < len(required):
            counted["maxProperties"] = most
    return counted
