"""x · Wᵀ with W packed once for the CPU's matrix kernels, where they have a layout of their own."""

import torch
from torch import Tensor
from torch.nn import functional as F


class Product:
    """A matrix [out, in] that is multiplied often and never changes; equals F.linear."""

    def __init__(self, weight: Tensor) -> None:
        """Pack `weight` if it lives on a CPU whose kernels repack it at every call otherwise.

        A packed copy is all that is kept; what is not packed is shared with the caller. size: width of the result.
        """
        self.size = weight.shape[0]
        self._packed = _is_packable(weight)
        # What torch's own compiler emits for a frozen linear layer; there is no public name for it.
        pack = torch.ops.mkldnn._reorder_linear_weight
        self._weight: Tensor = pack(weight.contiguous(), None) if self._packed else weight

    def __call__(self, x: Tensor) -> Tensor:
        """x [..., in] → [..., out]."""
        if not self._packed:
            return F.linear(x, self._weight)
        result: Tensor = torch.ops.mkldnn._linear_pointwise(x, self._weight, None, "none", [], "")
        return result


def _is_packable(weight: Tensor) -> bool:
    if weight.device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    if weight.dtype == torch.bfloat16:  # its kernels need instructions that older CPUs lack
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return weight.dtype == torch.float32
