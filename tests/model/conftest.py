from pathlib import Path

import pytest
import torch

from mezzotint.model.config import parse_config
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.weights import write_checkpoint
from tests.model.checkpoints import RAW, random_model


@pytest.fixture(scope="module")
def model() -> DiffusionGemma:
    return random_model(parse_config(RAW))


@pytest.fixture
def folder(model: DiffusionGemma, tmp_path: Path) -> Path:
    write_checkpoint(model, tmp_path, dtype=torch.float32)
    return tmp_path
