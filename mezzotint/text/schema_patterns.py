"""Regular expressions of JSON Schema in the dialect of the grammar, and formats as such expressions."""

import re

_SPACE = r"\t\n\x0B\f\r \u{A0}\u{1680}\u{2000}-\u{200A}\u{2028}\u{2029}\u{202F}\u{205F}\u{3000}\u{FEFF}"
# ECMA-262, which JSON Schema refers to, has other sets of characters by these names than Rust.
_SETS = {"s": _SPACE, "d": "0-9", "w": "0-9A-Za-z_"}
_INSIDE = {f"\\{name}": it for name, it in _SETS.items()} | {
    f"\\{name.upper()}": f"[^{it}]" for name, it in _SETS.items()
}
_OUTSIDE = {
    **_INSIDE,
    **{f"\\{name}": f"[{it}]" for name, it in _SETS.items()},
    ".": r"[^\n\r\u{2028}\u{2029}]",
}
_PIECE = re.compile(r"\\u\{[^}]*\}|\\u[0-9A-Fa-f]{4}|\\.|.", re.DOTALL)
_REPEATED = re.compile(r"(?P<piece>\[(?:\\.|[^\]])*\]|(?<!\\)\.)(?P<times>[*+])\??")

_DATE = (
    r"[1-9][0-9]{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    r"|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_LABEL = r"[A-Za-z0-9]{1,12}(?:-[A-Za-z0-9]{1,12}){0,2}"
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_HOURS = r"T(?:[0-9]{1,4}H(?:[0-9]{1,4}M(?:[0-9]{1,4}S)?)?|[0-9]{1,4}M(?:[0-9]{1,4}S)?|[0-9]{1,4}S)"
_DAYS = r"(?:[0-9]{1,4}Y(?:[0-9]{1,4}M(?:[0-9]{1,4}D)?)?|[0-9]{1,4}M(?:[0-9]{1,4}D)?|[0-9]{1,4}D)"
_PATH = r"[A-Za-z0-9._~-]{0,40}"
# Narrower than the standards where these hang on more than a pattern: no leap day or second, no quoted mailbox, no
# international host.
FORMATS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}T{_TIME}",
    "duration": f"P(?:{_DAYS}(?:{_HOURS})?|{_HOURS}|[0-9]{{1,4}}W)",
    "email": rf"[A-Za-z0-9_+-]{{1,20}}(?:\.[A-Za-z0-9_+-]{{1,20}}){{0,2}}@{_LABEL}(?:\.{_LABEL}){{1,3}}",
    "hostname": rf"{_LABEL}(?:\.{_LABEL}){{0,4}}",
    "ipv4": rf"{_BYTE}(?:\.{_BYTE}){{3}}",
    "ipv6": "[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){7}",
    "uuid": "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    "uri": rf"[a-z][a-z0-9+]{{0,11}}://{_LABEL}(?:\.{_LABEL}){{0,4}}(?::[0-9]{{1,4}})?(?:/{_PATH}){{0,8}}(?:\?{_PATH})?(?:#{_PATH})?",
}


def translate_pattern(pattern: str) -> str:
    """Write a pattern of JSON Schema so that Rust reads what ECMA-262 would.

    Returns: the pattern; what neither knows is left for the grammar to refuse.
    """
    inside, translated = False, []
    for piece in _PIECE.findall(pattern):
        if re.fullmatch(r"\\u[0-9A-Fa-f]{4}", piece):
            translated.append(f"\\u{{{piece[2:]}}}")
        else:
            translated.append((_INSIDE if inside else _OUTSIDE).get(piece, piece))
        inside = (inside or piece == "[") and piece != "]"
    return "".join(translated)


def strip_pattern(pattern: str) -> str:
    """Cut a pattern down to what it insists on: no anchors at its ends, nothing repeated that need not be.

    Returns: a pattern whose matches are likely, not certain, to lie in texts that the whole pattern matches.
    """
    loose = _REPEATED.sub(lambda match: match["piece"] if match["times"] == "+" else "", pattern)
    return re.sub(r"^\^|(?<!\\)\$$", "", loose)
