"""Whether this machine can compile kernels; no test lives here."""

import pytest
import torch

from mezzotint.model.native import check_compiled


def _can_compile() -> bool:
    try:
        check_compiled(compiled=True, device=torch.device("cpu"))
    except ValueError:
        return False
    return True


needs_compiler = pytest.mark.skipif(not _can_compile(), reason="no C++ compiler here")
