"""The tokenizers that the tests of this room share: the bundled model's, and Gemma 4's from the data."""

import lzma
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import mezzotint
from mezzotint.text.template import ChatTemplate
from mezzotint.text.tokenizer import Tokenizer

Message = dict[str, Any]


class Checkpoint(NamedTuple):
    """Our reading of a checkpoint's text side, and transformers' reading of the same files."""

    directory: Path
    tokenizer: Tokenizer
    template: ChatTemplate
    oracle: Any

    def oracle_ids(self, messages: list[Message], **options: Any) -> Any:
        """The prompt ids that transformers gives."""
        options = {"add_generation_prompt": True, **options}
        return self.oracle.apply_chat_template(messages, tokenize=True, return_dict=False, **options)

    def control_in(self, ids: list[int]) -> list[str]:
        """The control tokens among ids, in order."""
        spelled = {id: name for name, id in self.tokenizer.control.items()}
        return [spelled[id] for id in ids if id in spelled]


@pytest.fixture(scope="session")
def lab() -> Checkpoint:
    return _load(Path(mezzotint.__file__).parent / "checkpoints" / "lab")


@pytest.fixture(scope="session")
def gemma(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    directory = tmp_path_factory.mktemp("gemma")
    (directory / "tokenizer.json").write_bytes(lzma.decompress((data_dir / "gemma4_tokenizer.json.xz").read_bytes()))
    for name in ("tokenizer_config.json", "chat_template.jinja"):
        shutil.copyfile(data_dir / f"gemma4_{name}", directory / name)
    return _load(directory)


@pytest.fixture(scope="session", params=["lab", "gemma"])
def checkpoint(request: pytest.FixtureRequest) -> Checkpoint:
    loaded: Checkpoint = request.getfixturevalue(request.param)
    return loaded


def _load(directory: Path) -> Checkpoint:
    from transformers import AutoTokenizer  # here: only these tests need it, and it takes seconds

    tokenizer = Tokenizer.from_directory(directory)
    template = ChatTemplate.from_directory(directory, tokenizer)
    return Checkpoint(directory, tokenizer, template, AutoTokenizer.from_pretrained(directory))
