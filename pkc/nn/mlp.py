"""The feed-forward block of a transformer on several ranks."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from pkc.nn.linear import ColumnParallelLinear, RowParallelLinear, project
from pkc.torch.activated import ACTIVATIONS

torch: Any = importlib.import_module("torch")
_nn: Any = torch.nn


class TensorParallelMLP(torch.nn.Module):
    """`down(activation(up(x)))`, or `down(activation(gate(x)) * up(x))` if `gated`.

    `up` and `gate` are column-parallel layers to `inner` features, `down` is a row-parallel one back to `hidden`;
    options as for those. Rank r has inner features r * inner / ranks and on. `activation` is a function, a module, or
    one of the names "gelu", "gelu_tanh", "silu" and "relu"; with sequence parallelism these, and torch's functions and
    modules for them, are computed where their operand is. Raises `ValueError` for another name.
    """

    def __init__(
        self,
        hidden: int,
        inner: int,
        bias: bool = True,
        *,
        activation: str | Callable[[Any], Any] = torch.nn.functional.gelu,
        gated: bool = False,
        **options: Any,
    ) -> None:
        torch.nn.Module.__init__(self)
        if isinstance(activation, str) and activation not in ACTIVATIONS:
            raise ValueError(f"activation is {activation!r}; it must be a function or one of {', '.join(ACTIVATIONS)}")
        self.activation: Callable[[Any], Any] = activation if callable(activation) else ACTIVATIONS[activation]
        self.up = ColumnParallelLinear(hidden, inner, bias, **options)
        self.gate = ColumnParallelLinear(hidden, inner, bias, **options) if gated else None
        self.down = RowParallelLinear(inner, hidden, bias, **options)

    def forward(self, x: Any) -> Any:
        return self.down(self._inner(x))

    def _inner(self, x: Any) -> Any:
        layers, name = [self.up] if self.gate is None else [self.gate, self.up], _name(self.activation)
        if name is None or not self.up.sequence_parallel:
            first, *others = project(x, layers)
            made = self.activation(first)
            return made * others[0] if others else made
        rights = [layer.weight.t() for layer in layers]
        biases = [layer.bias for layer in layers if layer.bias is not None]
        kept = torch.is_grad_enabled() and (x.requires_grad or any(right.requires_grad for right in rights))
        found, _, _ = torch.ops.pkc.fused_all_gather_matmul_activation(
            x, rights, biases, name, self.up.sequence_dim, self.up.group, return_A=kept, return_products=kept
        )
        return found


def _name(activation: Any) -> str | None:
    """What operators know a function or a module of torch by."""
    if isinstance(activation, _nn.GELU):
        return {"none": "gelu", "tanh": "gelu_tanh"}[activation.approximate]
    modules = {_nn.SiLU: "silu", _nn.ReLU: "relu"}
    found = (name for name, function in ACTIVATIONS.items() if function is activation)
    return modules.get(type(activation)) or next(found, None)
