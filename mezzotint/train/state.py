"""What an optimiser carries from step to step: float32 masters, their average, momenta; and its file."""

import os
import pickle
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from mezzotint.train.config import TrainConfig

_PARTS = {"step", "causal_loss", "masters", "average", "optimisers"}

Model = TypeVar("Model", bound=nn.Module)


class TrainState(Generic[Model]):
    """Float32 master weights behind a model of any dtype, an exponential average of them, and two optimisers.

    Muon updates hidden matrices (a stack of experts as single ones); AdamW the table, routers and vectors.
    causal_loss: its running mean in nats per token, which decides its weight; high until something is learnt.
    """

    def __init__(self, model: Model, config: TrainConfig) -> None:
        """Begin at step 0 with the model's weights and empty momenta."""
        self.model, self.config = model, config
        self.step, self.causal_loss = 0, 1.0
        self.masters = {name: p.detach().float().clone() for name, p in model.named_parameters()}
        self.average = {name: value.clone() for name, value in self.masters.items()}
        self._parts = {name: _matrices(value) for name, value in self.masters.items()}
        hidden = [part for name, parts in self._parts.items() if self._is_hidden(name) for part in parts]
        others = [part for name, parts in self._parts.items() if not self._is_hidden(name) for part in parts]
        self._optimisers: dict[str, torch.optim.Optimizer] = {
            "muon": torch.optim.Muon(hidden, weight_decay=config.weight_decay, adjust_lr_fn="match_rms_adamw"),
            "adamw": torch.optim.AdamW(others, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0, foreach=True),
        }

    def update(self) -> float:
        """Apply the model's gradients at this step's rate; returns the gradient norm before clipping.

        A step whose gradient is not finite moves no weight.
        """
        for name, parameter in self.model.named_parameters():
            gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            for part, own in zip(self._parts[name], _matrices(gradient.float()), strict=True):
                part.grad = own
            parameter.grad = None
        every = [part for parts in self._parts.values() for part in parts]
        norm = torch.nn.utils.clip_grad_norm_(every, self.config.clip)
        rate = self.config.rate(self.step)
        self._optimisers["muon"].param_groups[0]["lr"] = rate * self.config.matrix_rate
        self._optimisers["adamw"].param_groups[0]["lr"] = rate
        if torch.isfinite(norm):
            for optimiser in self._optimisers.values():
                optimiser.step()
        self.step += 1
        self._publish()
        return float(norm)

    def averaged(self, model: Model) -> Model:
        """Fill `model` (same shape) with the averaged weights and return it."""
        model.load_state_dict(self.model.state_dict() | self.average)
        return model

    def save(self, path: Path) -> None:
        """Write everything that a resume needs; an interrupted write leaves the old file whole."""
        whole = {
            "step": self.step,
            "causal_loss": self.causal_loss,
            "masters": self.masters,
            "average": self.average,
            "optimisers": {name: optimiser.state_dict() for name, optimiser in self._optimisers.items()},
        }
        partial = path.with_suffix(".partial")
        torch.save(whole, partial)
        os.replace(partial, path)

    def load(self, path: Path) -> None:
        """Continue from `path`, by the config of this state: the file holds none.

        Raises: ValueError for a damaged file, or one of a model of another shape.
        """
        whole = _read(path)
        stored, own = _shapes(whole["masters"]), _shapes(self.masters)
        if strays := stored.items() ^ own.items():
            name = min(name for name, _ in strays)
            raise ValueError(
                f"{path}: {name} has shape {stored.get(name)} in the file and {own.get(name)} in the model; "
                "start afresh with --fresh"
            )
        with torch.no_grad():
            for name, value in self.masters.items():
                value.copy_(whole["masters"][name])
                self.average[name].copy_(whole["average"][name])
        for name, optimiser in self._optimisers.items():
            optimiser.load_state_dict(whole["optimisers"][name])
        self.step, self.causal_loss = whole["step"], whole["causal_loss"]
        self._show_masters()

    def _is_hidden(self, name: str) -> bool:
        return self.masters[name].ndim > 1 and "embed" not in name and "router" not in name

    def _publish(self) -> None:
        # A young average forgets faster, or the first thousand steps would keep the random start.
        decay = min(self.config.ema, (1 + self.step) / (10 + self.step))
        averages, masters = list(self.average.values()), list(self.masters.values())
        torch._foreach_lerp_(averages, masters, 1 - decay)
        self._show_masters()

    @torch.no_grad()
    def _show_masters(self) -> None:
        for name, parameter in self.model.named_parameters():
            parameter.copy_(self.masters[name])


def _read(path: Path) -> dict[str, Any]:
    try:
        whole = torch.load(path, weights_only=True)
    except (RuntimeError, EOFError, KeyError, pickle.UnpicklingError) as error:
        raise ValueError(f"{path} is damaged and cannot be read; start afresh with --fresh") from error
    if not isinstance(whole, dict) or not whole.keys() >= _PARTS:
        raise ValueError(f"{path} is no state of a training run; start afresh with --fresh")
    return whole


def _shapes(weights: dict[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in weights.items()}


def _matrices(value: Tensor) -> list[Tensor]:
    """Views of a stack's matrices, or the tensor itself where it is none."""
    return list(value.unbind()) if value.ndim == 3 else [value]
