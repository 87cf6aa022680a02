"""What a request keeps between two denoising steps besides its pages: one canvas of floats, and vectors."""

import gc
from collections.abc import Iterable
from types import FunctionType, ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mezzotint.decoding.program import Denoise
from mezzotint.engine.row import Row
from mezzotint.engine.table import PageTable
from tests.engine.tiny import ASKED, CANVAS, PINS, Run, engine, request

WIDTH = 16  # of the tiny model
# Of [C] each: canvases, what was accepted and committed, the step's reading and randomness, pins; and two numbers.
VECTORS, NUMBERS = 16, 2


def tensors_of(roots: Iterable[object]) -> list[Tensor]:
    """Every tensor that is kept by objects, generators at their yield included; but no pages, code or weights."""
    found, waiting, seen = list[Tensor](), list[object](roots), set[int]()
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, PageTable | ModuleType | nn.Module | type):
            continue
        seen.add(id(thing))
        if isinstance(thing, Tensor):
            found.append(thing)
        elif isinstance(thing, FunctionType):  # what it closes over is kept, its module's globals are not its own
            waiting += [cell.cell_contents for cell in thing.__closure__ or ()]
        else:
            waiting += gc.get_referents(thing)
    return found


def sizes_of(tensors: Iterable[Tensor]) -> list[int]:
    """Elements of each memory that tensors keep alive, whole even where they are a part of it; largest first."""
    memories: dict[int, tuple[Tensor, int]] = {}
    for tensor in tensors:
        memory = tensor.untyped_storage()
        memories[memory.data_ptr()] = tensor, memory.nbytes() // tensor.element_size()
    return sorted((size for _, size in memories.values()), reverse=True)


def denoising(*asked: Any) -> list[Row]:
    """Rows of one batch, each between two steps of its canvas."""
    run = Run(engine())
    run.submit(*asked)
    for _ in range(3):  # prefill, and two steps
        run.step()
    rows = list(run.engine._rows.values())
    assert all(isinstance(row.need, Denoise) and row.need.soft is not None for row in rows)
    return rows


@pytest.mark.parametrize("name", [name for name, params in ASKED.items() if params.decoder == "diffusion"])
@pytest.mark.parametrize("pins", [{}, PINS])
def test_a_request_keeps_one_canvas_of_floats_and_a_few_vectors(name: str, pins: Any) -> None:
    if ASKED[name].steps in (1, 2) or (pins and ASKED[name].max_tokens <= CANVAS):
        pytest.skip("it has no step between two others, or no block for the pins")
    [row] = denoising(request("alone", 10, ASKED[name], pins=pins))
    largest, *others = sizes_of(tensors_of([row]))
    assert largest == CANVAS * WIDTH
    assert max(others) <= CANVAS
    assert sum(others) <= VECTORS * CANVAS + NUMBERS


def test_neighbours_keep_no_more_each_than_one_alone() -> None:
    rows = denoising(*[request(f"row {number}", 10 + number, ASKED["endless"]) for number in range(5)])
    sizes = sizes_of(tensors_of(rows))
    assert sum(sizes) <= len(rows) * (CANVAS * WIDTH + VECTORS * CANVAS + NUMBERS)


def test_what_lies_in_a_frame_a_closure_or_a_field_is_found() -> None:
    def program() -> Any:
        held = torch.zeros(3)
        yield lambda: held

    kept, closed = torch.zeros(5), torch.zeros(7)
    started = program()
    next(started)
    found = sizes_of(tensors_of([started, {"field": (kept[:2],)}, lambda: closed]))
    assert found == [7, 5, 3]
