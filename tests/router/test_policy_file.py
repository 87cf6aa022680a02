"""The policy's file: what it says is read back, what it leaves out keeps its default, what is wrong is named."""

from dataclasses import replace
from pathlib import Path

import pytest

from mezzotint.router.policy_file import PolicyConfig, Weights, dump_policy, load_policy, read_policy


def test_an_empty_file_is_the_policy_as_it_comes() -> None:
    assert read_policy("") == PolicyConfig()


def test_a_written_policy_is_read_back_equal() -> None:
    config = PolicyConfig(
        exploration=0.05,
        patience=7,
        crossover=2,
        forbidden=("old", 'odd "name"\\'),
        pins={"schema-*": "canvas", "auto:fast": "plain", "tab\t": "canvas"},
        weights={**PolicyConfig().weights, "best": Weights(time=2.0, money=0.5, miss_s=90.0)},
    )
    assert read_policy(dump_policy(config)) == config


def test_one_weight_of_one_goal_can_be_changed_alone() -> None:
    usual = PolicyConfig().weights["cheap"]
    config = read_policy("[weights.cheap]\nmoney = 3.5")
    assert config.weights["cheap"] == replace(usual, money=3.5)
    assert config.weights["fast"] == PolicyConfig().weights["fast"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("exploraton = 0.1", "exploraton"),
        ("[weights.quick]\ntime = 1", "quick"),
        ("[weights.fast]\nhaste = 1", "haste"),
        ("exploration = 0.9", "between 0 and 0.5"),
        ("exploration = nan", "exploration is nan"),
        ("patience = 0", "at least 1"),
        ("crossover = 1.5", "crossover"),
        ("[weights.fast]\ntime = 0\nmoney = 0", "above 0"),
        ("[weights.fast]\ntime = -1", "time"),
        ("[weights.fast]\ntime = inf", "time"),
        ('forbidden = ["a"]\n[pins]\n"code-*" = "a"', "pins sends 'code-\\*' to 'a'"),
        ("exploration 0.1", "no TOML"),
    ],
)
def test_a_mistake_is_refused_by_name(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        read_policy(text)


def test_a_mistake_in_a_file_is_told_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text("patience = 'long'")
    with pytest.raises(ValueError, match=r"policy\.toml: patience is 'long'"):
        load_policy(path)


def test_an_arm_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(ValueError, match="'gone', which is not there; there are canvas, plain"):
        PolicyConfig(pins={"*": "gone"}).check_arms(frozenset({"plain", "canvas"}))
