"""The page on serving has the lists that the bodies declare."""

import pytest

from mezzotint.server.document import BEGIN, rewrite, write_fields
from tests.disk import document


def test_the_lists_on_the_page_are_those_of_the_bodies() -> None:
    page = document("docs/serving.md")
    assert rewrite(page) == page, "run `make docs`"


def test_every_field_is_on_the_page_once_for_its_path() -> None:
    [part] = [part for part in write_fields().split("### ") if part.startswith("/v1/chat/completions")]
    for name in ("messages", "audio", "prompt_cache_key", "x_diffusion"):
        assert part.count(f"`{name}`") == 1


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match=BEGIN):
        rewrite("# Serving")
