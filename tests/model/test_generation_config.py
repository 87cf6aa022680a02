import json
from pathlib import Path
from typing import Any

import pytest

from mezzotint.model.fields import ConfigError
from mezzotint.model.generation_config import GenerationDefaults, generation_json, read_generation

RELEASED = {
    "max_new_tokens": 256,
    "max_denoising_steps": 48,
    "sampler_config": {"_cls_name": "EntropyBoundSamplerConfig", "entropy_bound": 0.1},
    "t_min": 0.4,
    "t_max": 0.8,
    "stability_threshold": 1,
    "confidence_threshold": 0.005,
    "eos_token_id": [1, 106, 50],
    "pad_token_id": 0,
}


def read(raw: dict[str, Any], folder: Path) -> GenerationDefaults:
    (folder / "generation_config.json").write_text(json.dumps(raw))
    return read_generation(folder)


def test_the_released_file_is_what_a_missing_one_means_but_for_eos(tmp_path: Path) -> None:
    assert read_generation(tmp_path) == GenerationDefaults()
    assert read(RELEASED, tmp_path) == GenerationDefaults(eos_ids=(1, 106, 50))


def test_every_number_is_read_from_the_file(tmp_path: Path) -> None:
    raw = {
        "max_denoising_steps": 12,
        "sampler_config": {"_cls_name": "EntropyBoundSamplerConfig", "entropy_bound": 0.3},
        "t_min": 0,
        "t_max": 2,
        "stability_threshold": 0,
        "confidence_threshold": 0.5,
        "eos_token_id": 7,
    }
    expected = GenerationDefaults(
        max_denoising_steps=12,
        t_min=0.0,
        t_max=2.0,
        entropy_bound=0.3,
        stability_threshold=0,
        confidence_threshold=0.5,
        eos_ids=(7,),
    )
    assert read(raw, tmp_path) == expected
    assert read(generation_json(expected, max_new_tokens=5, pad_id=0), tmp_path) == expected


def test_nulls_and_keys_that_change_nothing_are_accepted(tmp_path: Path) -> None:
    raw = dict.fromkeys(RELEASED, None) | {"return_dict_in_generate": True, "transformers_version": "5.24.0"}
    assert read(raw, tmp_path) == GenerationDefaults()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"block_length": 32}, "block_length is 32; an unknown key"),
        (
            {"sampler_config": {"_cls_name": "Gumbel"}},
            'sampler_config: _cls_name is "Gumbel"; only "EntropyBound',
        ),
        ({"sampler_config": {"threshold": 0.9}}, "sampler_config: threshold is 0.9; an unknown key"),
        ({"sampler_config": {"entropy_bound": 0}}, "entropy_bound is 0; must be a number greater than 0"),
        ({"t_max": 0.4}, "t_max is 0.4; must be a number greater than 0.4"),
        ({"max_denoising_steps": 0}, "max_denoising_steps is 0; must be a whole number of at least 1"),
        ({"stability_threshold": 1.5}, "stability_threshold is 1.5; must be a whole number of at least 0"),
    ],
)
def test_what_cannot_be_honoured_is_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        read(RELEASED | change, tmp_path)
