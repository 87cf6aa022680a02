"""The checkpoints that the tests of this room share."""

from collections.abc import Callable

import pytest

from tests.contract.reference import SHAPES, Twin, diffusion_twin


@pytest.fixture(scope="session")
def twin_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Twin]:
    """The DiffusionGemma checkpoint of a named shape, written once."""
    made: dict[str, Twin] = {}

    def find(name: str) -> Twin:
        if name not in made:
            made[name] = diffusion_twin(SHAPES[name], tmp_path_factory.mktemp("diffusion"))
        return made[name]

    return find


@pytest.fixture(scope="session")
def published(twin_of: Callable[[str], Twin]) -> Twin:
    """The shape nearest to the published checkpoint."""
    return twin_of("published pattern")
