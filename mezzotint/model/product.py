"""x · Wᵀ with W packed once for the CPU's matrix kernels, where they have a layout of their own."""

import torch
from torch import Tensor
from torch.nn import functional as F

_PACKABLE = (torch.float32, torch.bfloat16)


class Product:
    """A matrix [out, in] that is multiplied often and never changes; equals F.linear."""

    def __init__(self, weight: Tensor) -> None:
        """Pack `weight` if it lives on a CPU whose kernels repack it at every call otherwise."""
        self._weight = weight
        self._packed: Tensor | None = None
        if weight.device.type == "cpu" and weight.dtype in _PACKABLE and torch.backends.mkldnn.is_available():
            # What torch's own compiler emits for a frozen linear layer; there is no public name for it.
            self._packed = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), None)

    @property
    def size(self) -> int:
        """Width of the result."""
        return self._weight.shape[0]

    def __call__(self, x: Tensor) -> Tensor:
        """x [..., in] → [..., out]."""
        if self._packed is None:
            return F.linear(x, self._weight)
        result: Tensor = torch.ops.mkldnn._linear_pointwise(x, self._packed, None, "none", [], "")
        return result
