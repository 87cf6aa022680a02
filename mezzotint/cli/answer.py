"""One answer: a checkpoint opened, its events followed and shown as they come; no flag is declared here."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from mezzotint.cli.options import Decoding, Loading, choose_target
from mezzotint.cli.receipt import receipt_line
from mezzotint.cli.watch import watching
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.presets import preset
from mezzotint.llm import LLM, BlockEvent, Completion, DraftEvent, Event, Prompt
from mezzotint.llm.checkpoint import Checkpoint, load_checkpoint
from mezzotint.model.locate import BUNDLED
from mezzotint.model.weights import inspect_checkpoint
from mezzotint.text.grammar import Grammar
from mezzotint.types import Receipt

Show = AbstractContextManager[Callable[[Event], None]]


class Setup(NamedTuple):
    """A checkpoint that is ready, and what every prompt asks of it."""

    llm: LLM
    params: SamplingParams


class Answer(NamedTuple):
    """A finished answer, and the seconds from the request to its first final tokens."""

    completion: Completion
    first_text_s: float


def set_up(loading: Loading, decoding: Decoding, *, shared: bool = False) -> Setup:
    """Check what the flags ask, then load the checkpoint. shared: see LLM.

    Raises: ValueError naming flag, value and remedy.
    """
    target = choose_target(loading.model, decoding.decoder)
    asked = asdict(decoding) | {"decoder": target.decoder}
    given = {name: value for name, value in asked.items() if value is not None}
    params = preset(given.pop("preset"), **given) if "preset" in given else SamplingParams(**given)
    options = {name: value for name, value in asdict(loading).items() if value is not None}
    llm = LLM(**options | {"model": target.model} | ({"shared": True} if shared else {}))
    _tell_left_out(llm.path)
    return Setup(llm, params)


def load_alone(loading: Loading) -> Checkpoint:
    """Load a checkpoint for whoever brings an engine of his own. Raises: ValueError naming flag, value and remedy."""
    checkpoint = load_checkpoint(
        loading.model,
        dtype=loading.dtype,
        device=loading.device or "cpu",
        threads=loading.threads,
        compiled=bool(loading.compiled),
        drafter=loading.drafter,
    )
    _tell_left_out(checkpoint.path)
    return checkpoint


def _tell_left_out(folder: Path) -> None:
    """One line on standard error if the checkpoint can see; lab's tower is noise that its format demands."""
    if folder.parent != BUNDLED and (count := inspect_checkpoint(folder).vision_tensors):
        note = f"text only for now: {count} vision tensors of this checkpoint are left out"
        Console(stderr=True).print(Text(note, style="dim"), soft_wrap=True)


def answer(
    llm: LLM,
    prompt: Prompt,
    params: SamplingParams,
    show: Show,
    grammar: Grammar | None = None,
    stop: Sequence[str] = (),
) -> Answer:
    """Follow one prompt to its end. Raises: ValueError before anything is shown if it cannot be honoured."""
    started = time.perf_counter()
    first_text_s: float | None = None
    events = llm.stream(prompt, params, grammar=grammar, stop=stop)
    with show as draw:
        for event in events:
            if first_text_s is None and not isinstance(event, DraftEvent):
                first_text_s = time.perf_counter() - started
            draw(event)
    assert isinstance(event, Completion)
    assert first_text_s is not None
    return Answer(event, first_text_s)


def silent() -> Show:
    """Show nothing."""
    return nullcontext(lambda event: None)


@contextmanager
def writing() -> Iterator[Callable[[Event], None]]:
    """Write final text to standard output as it comes, and end its line, however it ends."""

    def write(event: Event) -> None:
        if isinstance(event, BlockEvent):
            print(event.text, end="", flush=True)

    try:
        yield write
    finally:
        print(flush=True)


def drawing(llm: LLM, params: SamplingParams) -> Show:
    """Draw the canvas on standard error, so that standard output holds nothing but the answer."""
    return watching(Console(stderr=True), llm.tokenizer, params.max_tokens)


def print_receipt(receipt: Receipt) -> None:
    """The last line of an answer in text form, dim in a terminal."""
    Console().print(Text(receipt_line(receipt), style="dim"), soft_wrap=True)
