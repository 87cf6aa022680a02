"""What a ledger's figures hold for."""

from dataclasses import replace
from pathlib import Path

from mezzotint.router.fingerprint import fingerprint
from mezzotint.types import ArmTraits

ARM = ArmTraits(name="a", engine="e", is_local=True, context=100, abilities=frozenset({"tools", "seed"}))


def test_it_changes_with_weights_options_arms_and_prices_and_with_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"12")
    first = fingerprint([ARM], tmp_path, {"dtype": "float32"})
    same = replace(ARM, abilities=frozenset({"seed", "tools"}))
    assert fingerprint([same], tmp_path, {"dtype": "float32"}) == first
    others = {
        fingerprint([replace(ARM, input_price=1.0)], tmp_path, {"dtype": "float32"}),
        fingerprint([ARM, replace(ARM, name="b")], tmp_path, {"dtype": "float32"}),
        fingerprint([ARM], tmp_path, {"dtype": "bfloat16"}),
    }
    (tmp_path / "config.json").write_text("[]")
    others.add(fingerprint([ARM], tmp_path, {"dtype": "float32"}))
    (tmp_path / "model.safetensors").write_bytes(b"123")
    others.add(fingerprint([ARM], tmp_path, {"dtype": "float32"}))
    assert len(others | {first}) == 6
