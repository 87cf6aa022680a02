"""MODEL[:DECODER][:PRESET], the name by which a client says who is to answer; what a preset is decoding says."""

from typing import NamedTuple, get_args

from mezzotint.llm import PRESETS
from mezzotint.server.errors import ApiError
from mezzotint.types import DecoderName

DECODERS: tuple[str, ...] = get_args(DecoderName)
GOALS = ("auto", "auto:fast", "auto:cheap", "auto:best")


class Target(NamedTuple):
    """A model's name taken apart; None is what was not said."""

    model: str
    decoder: str | None
    preset: str | None


def read_target(name: str, served: str) -> Target:
    """Take a name apart. served: the name of the only model here.

    Raises: ApiError 404 for another model, 400 for a decoder or preset that there is not. Source: contract 9.
    """
    if name in GOALS:
        told = "a server that was started with --fleet routes chats and responses, and nothing else"
        raise ApiError(400, f"model is {name!r}, but {told}; name {served!r}", code="not_routed", param="model")
    decoder = preset = None
    rest = name.removeprefix(served) if name == served or name.startswith(f"{served}:") else None
    if rest is None:
        told = f"the model {name!r} is not here; there is {served!r}, alone or as {served}:DECODER"
        raise ApiError(404, told, kind="not_found_error", code="model_not_found", param="model")
    for part in rest.split(":")[1:]:
        if part in DECODERS and decoder is None and preset is None:
            decoder = part
        elif part in PRESETS and preset is None:
            preset = part
        else:
            known = f"MODEL[:DECODER][:PRESET] with decoders {', '.join(DECODERS)} and presets {', '.join(PRESETS)}"
            raise ApiError(400, f"model is {name!r}, of which {part!r} is unknown; write {known}", param="model")
    return Target(served, decoder, preset)
