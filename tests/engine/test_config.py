import pytest

from mezzotint.engine.config import EngineConfig


@pytest.mark.parametrize("name", ["page_size", "chunk_tokens", "max_rows", "max_waiting", "memory_bytes"])
def test_a_size_below_one_is_refused_by_name_with_its_value(name: str) -> None:
    with pytest.raises(ValueError, match=rf"{name} is 0; .* at least 1"):
        EngineConfig(**{name: 0})
    assert getattr(EngineConfig(**{name: 1}), name) == 1


def test_a_config_is_keyword_only_and_frozen() -> None:
    with pytest.raises(TypeError, match="positional"):
        EngineConfig(1)  # type: ignore[misc]
    with pytest.raises(AttributeError, match="cannot assign"):
        EngineConfig().page_size = 8  # type: ignore[misc]
