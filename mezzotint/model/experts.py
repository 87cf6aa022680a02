"""Router and experts of a layer; the dense MLP beside them lives in layers."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mezzotint.model.device import is_awaited
from mezzotint.model.grouped import group, multiply
from mezzotint.model.layers import RMSNorm, gelu


class Routing(NamedTuple):
    """Which experts each token visits, both [T, top_k]: ids `chosen`, and weights in float32 or wider."""

    chosen: Tensor
    weights: Tensor


class Router(nn.Module):
    """Chooses top_k experts a token from the raw residual stream."""

    def __init__(self, width: int, experts: int, top_k: int, eps: float) -> None:
        super().__init__()
        self.top_k = top_k
        self.norm = RMSNorm(width, eps, scaled=False)
        self.proj = nn.Linear(width, experts, bias=False)
        self.scale = nn.Parameter(torch.ones(width))
        self.per_expert_scale = nn.Parameter(torch.ones(experts))

    def forward(self, x: Tensor) -> Routing:
        """x [T, width] → Routing. The product is in x's dtype, the softmax in float32 or wider."""
        scaled = self.norm(x) * self.scale * x.shape[-1] ** -0.5
        scores = F.linear(scaled, self.proj.weight)
        wide = torch.float64 if x.dtype == torch.float64 else torch.float32
        top = F.softmax(scores, -1, dtype=wide).topk(self.top_k, -1)
        weights = top.values / top.values.sum(-1, keepdim=True)
        return Routing(top.indices, weights * self.per_expert_scale[top.indices])


class Experts(nn.Module):
    """All experts of a layer as two stacked tensors; gate rows stand above up rows."""

    def __init__(self, width: int, inner: int, experts: int) -> None:
        super().__init__()
        self.gate_up_proj = nn.Parameter(torch.empty(experts, 2 * inner, width))
        self.down_proj = nn.Parameter(torch.empty(experts, width, inner))

    @classmethod
    def of(cls, gate_up_proj: Tensor, down_proj: Tensor) -> "Experts":
        """Experts on given stacks [E, 2 · inner, width] and [E, width, inner], for inference."""
        made = cls(0, 0, 0)
        made.gate_up_proj = nn.Parameter(gate_up_proj, requires_grad=False)
        made.down_proj = nn.Parameter(down_proj, requires_grad=False)
        return made

    def forward(self, x: Tensor, routing: Routing) -> Tensor:
        """x [T, width] → [T, width], the weighted sum over each token's experts.

        Tokens are sorted by expert, so each expert that is visited does one product over a contiguous slice; back in
        their own order the slots of a token are added first to last, which every device does alike at every run.
        """
        top_k = routing.chosen.shape[-1]
        if is_awaited(x):
            return self.mix_steadily(x, routing)
        if x.shape[0] == 1:
            return self._mix_one(x, routing)
        visits = routing.chosen.reshape(-1)
        order = visits.argsort(stable=True)
        counts = torch.bincount(visits, minlength=self.gate_up_proj.shape[0]).tolist()
        parts = [
            self._visit(expert, rows) for expert, rows in enumerate(x[order // top_k].split(counts)) if rows.shape[0]
        ]
        visited = torch.cat(parts)
        return _weigh(torch.empty_like(visited).index_copy(0, order, visited), routing)

    def mix_steadily(self, x: Tensor, routing: Routing) -> Tensor:
        """The same sum, in shapes that do not depend on what tokens chose, for a device that is not waited for."""
        visits, top_k = routing.chosen.reshape(-1), routing.chosen.shape[-1]
        groups = group(visits, self.gate_up_proj.shape[0])
        gate, up = multiply(x[groups.order // top_k], self.gate_up_proj, groups).chunk(2, -1)
        visited = multiply(gelu(gate) * up, self.down_proj, groups)
        return _weigh(torch.empty_like(visited).index_copy(0, groups.order, visited), routing)

    def _mix_one(self, x: Tensor, routing: Routing) -> Tensor:
        """The same sum for a single token, in the same order, without sorting anything on the device."""
        return _weigh(torch.cat([self._visit(expert, x) for expert in routing.chosen[0].tolist()]), routing)

    def _visit(self, expert: int, rows: Tensor) -> Tensor:
        gate, up = F.linear(rows, self.gate_up_proj[expert]).chunk(2, -1)
        return F.linear(gelu(gate) * up, self.down_proj[expert])


def _weigh(visited: Tensor, routing: Routing) -> Tensor:
    """visited [T · top_k, width], what each slot's expert says → [T, width], weighted and added in slot order."""
    slots = visited.view(*routing.weights.shape, -1) * routing.weights.unsqueeze(-1)
    return slots.to(visited.dtype).sum(1)
