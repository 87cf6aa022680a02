"""A fleet's file: what it may say, what it may not, and where its keys come from."""

from pathlib import Path
from typing import Any

import pytest

from mezzotint.router.config import FleetConfig, JudgeConfig, LocalArmConfig, RemoteArmConfig, read_fleet
from tests.disk import ROOT

REMOTE = '[[remote]]\nname = "far"\nurl = "http://127.0.0.1:1/v1"\nmodel = "m"\ncontext = 100\n'


def read(folder: Path, text: str) -> FleetConfig:
    file = folder / "fleet.toml"
    file.write_text(text)
    return read_fleet(file)


def test_a_file_says_what_its_arms_are_and_the_rest_has_defaults(tmp_path: Path) -> None:
    text = (
        'busy_price = 1\npolicy = "p.toml"\n[[local]]\nname = "a"\nsteps = 8\n'
        f'{REMOTE}abilities = ["tools"]\n[commands]\nok = ["true"]\n[judge]\nurl = "http://x"\nmodel = "j"\n'
    )
    assert read(tmp_path, text) == FleetConfig(
        local=(LocalArmConfig(name="a", steps=8),),
        remote=(
            RemoteArmConfig(
                name="far", url="http://127.0.0.1:1/v1", model="m", context=100, abilities=frozenset({"tools"})
            ),
        ),
        busy_price=1.0,
        ledger=tmp_path / "ledger.sqlite",
        policy=tmp_path / "p.toml",
        commands={"ok": ("true",)},
        judge=JudgeConfig(url="http://x", model="j"),
    )


def test_the_example_is_a_fleet() -> None:
    config = read_fleet(ROOT / "examples" / "fleet.toml")
    assert config.names == ("canvas-8", "canvas-best", "ar", "verified")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no arm"),
        ("x = [", "fleet.toml"),
        ("[[local]]\nname = 'a'\nspeed = 3\n", "local.0.speed: no such key"),
        ("surprise = 1\n[[local]]\nname = 'a'\n", "surprise: no such key"),
        ("[[local]]\nname = 'auto:x'\n", "not 'auto'"),
        ("[[local]]\nname = 'a b'\n", "use letters"),
        ("[[local]]\nname = 'a'\n[[local]]\nname = 'a'\n", "of several arms"),
        ("[[local]]\nname = 'a'\ndecoder = 'magic'\n", "local.0.decoder"),
        (f'{REMOTE}api_key = "sk-1"\n', "remote.api_key holds a key"),
        (f'{REMOTE}key = "sk-1"\n', "key_env"),
        (f"{REMOTE}most_in_flight = 0\n", "at least 1"),
        (f"{REMOTE}first_s = 0\n", "above 0"),
        (f"{REMOTE}input_price = -1\n", "negative"),
        (f'{REMOTE}abilities = ["flying"]\n', "flying"),
        (REMOTE.replace("http://", ""), "begins with http"),
        ("busy_price = -1\n[[local]]\nname = 'a'\n", "busy_price"),
    ],
)
def test_what_a_file_says_wrong_is_told_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ValueError, match=r"fleet\.toml") as wrong:
        read(tmp_path, text)
    assert told in str(wrong.value)
    assert "sk-1" not in str(wrong.value)


def test_a_key_comes_from_the_environment_and_is_missed_before_anything_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = read(tmp_path, f'{REMOTE}key_env = "FAR_KEY"\n')
    monkeypatch.delenv("FAR_KEY", raising=False)
    with pytest.raises(ValueError, match="FAR_KEY, which is not set"):
        config.check_keys()
    monkeypatch.setenv("FAR_KEY", "secret")
    config.check_keys()
    keys: list[Any] = [arm.key for arm in config.remote]
    assert keys == ["secret"]
    assert "secret" not in repr(config)
