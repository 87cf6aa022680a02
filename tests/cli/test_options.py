"""The shared flags: each stands for an option of the engine, and the help tells true defaults."""

import re
from collections.abc import Callable
from dataclasses import MISSING, fields
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from typer.testing import CliRunner, Result

from mezzotint import LLM, SamplingParams
from mezzotint.cli import app
from mezzotint.cli.options import Decoding, Loading, Target, choose_target
from mezzotint.decoding.presets import preset
from mezzotint.model.locate import BUNDLED

# A value that is not the default, and the flags under which it means something.
DECODING: dict[str, tuple[Any, list[str]]] = {
    "decoder": ("ar", []),
    "sampler": ("jax", []),
    "max_tokens": (7, []),
    "temperature": (0.5, []),
    "steps": (3, []),
    "canvas_length": (32, []),
    "drop_after_end": (True, []),
    "gate": ("text", []),
    "entropy_bound": (0.3, []),
    "threshold": (0.7, ["--sampler", "refine"]),
    "editing_threshold": (0.6, ["--sampler", "refine"]),
    "top_k": (4, ["--decoder", "ar"]),
    "top_p": (0.9, ["--decoder", "ar"]),
    "min_p": (0.1, ["--decoder", "ar"]),
    "thinking_budget": (9, []),
    "answer_reserve": (5, []),
    "min_tokens": (3, []),
    "logit_bias": ({5: 2.0, 7: float("-inf")}, []),
    "presence_penalty": (0.5, ["--decoder", "ar"]),
    "frequency_penalty": (0.5, ["--decoder", "ar"]),
    "repetition_penalty": (1.5, ["--decoder", "ar"]),
    "draft_tokens": (5, ["--decoder", "verified"]),
    "draft_steps": (2, ["--decoder", "verified"]),
    "draft_tail": ("fresh", ["--decoder", "verified"]),
    "logprobs": (2, []),
    "prompt_logprobs": (0, []),
    "seed": (11, []),
    "ignore_eos": (True, []),
}


# An object that no flag could spell, what concerns several prompts at once, of which no verb has more than one, and
# what a verb knows: a talk goes on, so its turns share what is encoded.
IN_PYTHON_ALONE = {"costs", "memory_bytes", "shared"}
SHARED: dict[str, dict[str, Any]] = {"generate": {}, "chat": {"shared": True}}


class _SeenError(Exception):
    """What a stand-in for LLM was asked."""


class _Recorder:
    """Stands for LLM: keeps its options and stop strings, and raises with the request."""

    options: dict[str, Any] = {}  # noqa: RUF012 (each test has its own subclass)
    stop: Any = None
    tokenizer, path = None, BUNDLED / "lab"

    def __init__(self, **options: Any) -> None:
        type(self).options = options

    def stream(self, prompt: Any, params: SamplingParams, *, grammar: Any, stop: Any) -> Any:
        type(self).stop = stop
        raise _SeenError(params)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> type[_Recorder]:
    own = type("_OwnRecorder", (_Recorder,), {})
    monkeypatch.setattr("mezzotint.cli.answer.LLM", own)
    return own


@pytest.mark.parametrize("verb", [["generate", "Hello"], ["chat"]])
@pytest.mark.parametrize("name", [field.name for field in fields(SamplingParams)])
def test_every_option_of_a_request_has_a_flag_that_is_honoured(
    cli: Callable[..., Result], recorder: type[_Recorder], verb: list[str], name: str
) -> None:
    value, beside = DECODING[name]
    flag = f"--{name.replace('_', '-')}"
    written = ",".join(f"{id}={number}" for id, number in value.items()) if isinstance(value, dict) else str(value)
    given = [flag] if value is True else [flag, written]
    result = cli(*verb, *beside, *given, model="lab", input="Hello\n")
    assert isinstance(result.exception, _SeenError), result.output
    [params] = result.exception.args
    named = dict(zip([flag.removeprefix("--") for flag in beside[::2]], beside[1::2], strict=True))
    assert params == SamplingParams(**{name: value}, **named)  # type: ignore[arg-type]


@pytest.mark.parametrize("verb", [["generate", "Hello"], ["chat"]])
@pytest.mark.parametrize("stops", [(), ("\n",), ("\n\n", "<end>", "-")])
def test_every_stop_string_is_honoured(
    cli: Callable[..., Result], recorder: type[_Recorder], verb: list[str], stops: tuple[str, ...]
) -> None:
    given = [part for stop in stops for part in ("--stop", stop)]
    result = cli(*verb, *given, model="lab", input="Hello\n")
    assert isinstance(result.exception, _SeenError), result.output
    assert recorder.stop == stops


@pytest.mark.parametrize("verb", [["generate", "Hello"], ["chat"]])
@pytest.mark.parametrize(("name", "value"), [("device", "cpu"), ("dtype", "float64"), ("threads", 1)])
def test_every_option_of_a_checkpoint_is_honoured(
    cli: Callable[..., Result], recorder: type[_Recorder], verb: list[str], name: str, value: Any
) -> None:
    cli(*verb, f"--{name}", str(value), model="somewhere", input="Hello\n")
    assert recorder.options == {"model": "somewhere", name: value, **SHARED[verb[0]]}


@pytest.mark.parametrize("verb", [["generate", "Hello"], ["chat"]])
def test_compile_is_honoured(cli: Callable[..., Result], recorder: type[_Recorder], verb: list[str]) -> None:
    cli(*verb, "--compile", model="somewhere", input="Hello\n")
    assert recorder.options == {"model": "somewhere", "compiled": True, **SHARED[verb[0]]}


def test_compile_is_honoured_where_the_model_is_an_argument(recorder: type[_Recorder]) -> None:
    CliRunner().invoke(app, ["evaluate", "somewhere", "--compile"])
    assert recorder.options == {"model": "somewhere", "compiled": True}


@pytest.mark.parametrize("verb", [["generate", "Hello"], ["chat"]])
def test_a_preset_is_asked_for_by_name_with_what_else_is_asked(
    cli: Callable[..., Result], recorder: type[_Recorder], verb: list[str]
) -> None:
    result = cli(*verb, "--preset", "best", "--max-tokens", "7", model="lab", input="Hello\n")
    assert isinstance(result.exception, _SeenError), result.output
    assert result.exception.args == (preset("best", max_tokens=7),)
    refused = cli(*verb, "--preset", "fast", model="lab:ar", input="Hello\n")
    assert "decoder is 'ar', but preset 'fast' decides it as 'diffusion'" in str(refused.exception) + refused.output


def test_no_flag_is_missing_and_none_is_too_many() -> None:
    assert [field.name for field in fields(Decoding)] == ["preset", *(field.name for field in fields(SamplingParams))]
    assert {field.name for field in fields(Loading)} == set(signature(LLM).parameters) - IN_PYTHON_ALONE
    assert set(DECODING) == {field.name for field in fields(SamplingParams)}


def test_the_defaults_that_the_help_tells_are_the_real_ones() -> None:
    real = {field.name: field.default for field in fields(SamplingParams)}
    parameters = signature(LLM).parameters.values()
    real |= {each.name: each.default for each in parameters if each.default is not Parameter.empty}
    assert MISSING not in real.values()
    told = {name: found[1] for name, text in helps().items() if (found := re.search(r"; (\S+) unless given", text))}
    assert told == {name: str(real[name]) for name in told}
    assert {name for name, value in real.items() if value is not None and value is not False} == {
        *told,
        "model",
    }
    assert Loading().model == real["model"]


def helps() -> dict[str, str]:
    hints = get_type_hints(Loading, include_extras=True) | get_type_hints(Decoding, include_extras=True)
    return {name: hint.__metadata__[0].help for name, hint in hints.items()}


def test_a_model_string_is_taken_apart_at_its_last_colon() -> None:
    assert choose_target("lab", None) == Target("lab", None)
    assert choose_target("lab", "ar") == Target("lab", "ar")
    assert choose_target("lab:ar", None) == Target("lab", "ar")
    assert choose_target("owner/name:diffusion", "diffusion") == Target("owner/name", "diffusion")


def test_a_folder_with_a_colon_in_its_name_is_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "run:ar"
    folder.mkdir()
    assert choose_target(str(folder), None) == Target(str(folder), None)
    assert choose_target(f"{folder}:ar", None) == Target(str(folder), "ar")


def test_two_decoders_for_one_model_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^model is 'lab:ar', but --decoder is 'diffusion'"):
        choose_target("lab:ar", "diffusion")
