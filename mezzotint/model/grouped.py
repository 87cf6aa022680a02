"""Products of rows with the matrix that each row chose, in shapes and steps that do not depend on the choices.

A device is never waited for: that is the difference from cutting the rows by the number of those that chose alike.
"""

from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

_FEW = 4  # matrices a row, from which rows are few
_ALIGNED = 16  # bytes of a row, without which the kernel refuses


class Groups(NamedTuple):
    """Rows sorted by what they chose. order: [T] the rows, in order of their matrices. chosen: [T] in that order.

    ends: [G] int32, where the rows of each matrix end in that order.
    """

    order: Tensor
    chosen: Tensor
    ends: Tensor


def group(chosen: Tensor, number: int) -> Groups:
    """Sort rows by their choices [T] among `number` matrices; equal ones stay in their order."""
    order = chosen.argsort(stable=True)
    ones = torch.ones_like(chosen, dtype=torch.int32)
    counts = torch.zeros(number, dtype=torch.int32, device=chosen.device).scatter_add_(0, chosen, ones)
    return Groups(order, chosen[order], counts.cumsum(0, dtype=torch.int32))


def multiply(rows: Tensor, matrices: Tensor, groups: Groups) -> Tensor:
    """rows [T, D] in the order of `groups` with matrices [G, O, D] → [T, O], each with the one that it chose.

    In one kernel where there is one that waits for nothing; elsewhere few rows each bring their own matrix, and many
    are multiplied with every matrix, which costs up to G times as much.
    """
    if _has_kernel(rows, matrices):
        return F.grouped_mm(rows, matrices.transpose(1, 2), offs=groups.ends)
    form = multiply_few if _FEW * len(rows) <= len(matrices) else multiply_all
    return form(rows, matrices, groups)


def multiply_few(rows: Tensor, matrices: Tensor, groups: Groups) -> Tensor:
    """The same for few rows, as of a single token: only matrices that were chosen are read, a copy for each row."""
    return torch.bmm(matrices[groups.chosen], rows[:, :, None])[:, :, 0]


def multiply_all(rows: Tensor, matrices: Tensor, groups: Groups) -> Tensor:
    """The slow form of `multiply`."""
    out = rows.new_zeros(len(rows), matrices.shape[1])
    for index, matrix in enumerate(matrices):
        out = torch.where((groups.chosen == index)[:, None], F.linear(rows, matrix), out)
    return out


def _has_kernel(rows: Tensor, matrices: Tensor) -> bool:
    """Whether torch 2.13 groups such products without asking the device for `ends`, as it does for others."""
    widths = rows.shape[1], matrices.shape[1]
    is_aligned = all(width * rows.element_size() % _ALIGNED == 0 for width in widths)
    return rows.dtype == torch.bfloat16 and is_aligned and (not rows.is_cuda or _is_recent(rows.device))


@cache
def _is_recent(device: torch.device) -> bool:
    major, _ = torch.cuda.get_device_capability(device)
    return major in (9, 10)
