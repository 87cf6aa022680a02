"""Arms as they are written, and whom they ask."""

import pytest

from mezzotint.bench.arm import Way, read_arm


def test_an_arm_is_a_model_with_its_budget_and_others_by_kind_of_hop_and_for_a_second_try() -> None:
    arm = read_arm("org/lab:diffusion@8,plan=lab:ar,retry=other")
    assert arm.name == "org/lab:diffusion@8,plan=lab:ar,retry=other"
    usual, plan, retry = Way("org/lab:diffusion", 8), Way("lab:ar", None, 0.0), Way("other")
    assert [arm.way(kind, 0) for kind in ("", "plan", "tool")] == [usual, plan, usual]
    assert [arm.way(kind, 1) for kind in ("", "plan", "tool")] == [retry] * 3
    assert read_arm("lab").way("", 1) == Way("lab")


def test_quality_is_compared_with_greedy_decoders_unless_a_temperature_is_given() -> None:
    told = {name: read_arm(f"lab{name}").usual.temperature for name in ("", ":diffusion", ":ar", ":verified", ":mtp")}
    assert told == {"": None, ":diffusion": None, ":ar": 0.0, ":verified": 0.0, ":mtp": 0.0}
    assert read_arm("lab:ar", 0.7).usual.temperature == 0.7


def test_a_request_says_no_more_than_was_asked_for() -> None:
    assert Way("m").body == {"model": "m"}
    assert Way("m", 4, 0.5).body == {"model": "m", "temperature": 0.5, "x_diffusion": {"steps": 4}}


def test_an_at_sign_that_no_number_follows_belongs_to_the_name() -> None:
    assert read_arm("model@main").usual == Way("model@main")


@pytest.mark.parametrize("text", ["", ",plan=a", "a,b", "a,plan=", "a,judge=b", "a,plan=b,plan=c"])
def test_another_form_is_refused_with_the_right_one(text: str) -> None:
    with pytest.raises(ValueError, match=r"write MODEL\[@STEPS\]\[,plan=MODEL\]"):
        read_arm(text)
