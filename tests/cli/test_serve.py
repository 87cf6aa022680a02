"""A server's process keeps few products by shape, whichever token counts its batches have."""

import os
import subprocess
import sys

import pytest

from mezzotint.cli.serve import CACHES

# Bytes in use of the heap after products of many shapes, beyond those after a few.
_GROWTH = """
import ctypes, torch

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
        "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]

libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Info
torch.set_num_threads(1)
weight = torch.randn(384, 256, dtype=torch.bfloat16)

def in_use(shapes):
    for tokens in shapes:
        torch.nn.functional.linear(torch.randn(tokens, 256, dtype=torch.bfloat16), weight)
    info = libc.mallinfo2()
    return info.uordblks + info.hblkhd

with torch.inference_mode():
    before = in_use(range(20, 120))
    print(in_use(range(120, 520)) - before)
"""


def grow(**environment: str) -> int:
    kept = {name: value for name, value in os.environ.items() if name not in CACHES}
    done = subprocess.run(
        [sys.executable, "-c", _GROWTH], env=kept | environment, capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the heap is asked by glibc's mallinfo2")
def test_products_of_ever_new_shapes_do_not_fill_the_memory_of_a_server() -> None:
    bounded, unbounded = grow(**CACHES), grow()
    if unbounded < 20 << 20:
        pytest.skip("this processor's products keep nothing by shape")
    assert bounded < unbounded / 20
