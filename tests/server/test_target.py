"""MODEL[:DECODER][:PRESET] is taken apart, and what is unknown is refused by name."""

import pytest

from mezzotint.server.errors import ApiError
from mezzotint.server.target import Target, read_target


def test_a_name_says_model_decoder_and_preset() -> None:
    assert read_target("lab", "lab") == Target("lab", None, None)
    assert read_target("lab:ar", "lab") == Target("lab", "ar", None)
    assert read_target("lab:fast", "lab") == Target("lab", None, "fast")
    assert read_target("a:b:verified:best", "a:b") == Target("a:b", "verified", "best")


@pytest.mark.parametrize("name", ["gpt", "labs", "LAB", ""])
def test_another_model_is_not_found(name: str) -> None:
    with pytest.raises(ApiError, match="is not here; there is 'lab'") as raised:
        read_target(name, "lab")
    assert raised.value.status == 404


@pytest.mark.parametrize("name", ["lab:", "lab:quick", "lab:ar:ar", "lab:fast:ar", "lab:fast:best", "lab:ar:"])
def test_an_unknown_part_is_named(name: str) -> None:
    with pytest.raises(ApiError, match="is unknown; write MODEL") as raised:
        read_target(name, "lab")
    assert raised.value.status == 400
