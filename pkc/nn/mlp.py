"""The feed-forward block of a transformer on several ranks."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from pkc.nn.linear import ColumnParallelLinear, RowParallelLinear, alike, as_made, project
from pkc.torch.activated import ACTIVATIONS

torch: Any = importlib.import_module("torch")
_nn: Any = torch.nn


class TensorParallelMLP(torch.nn.Module):
    """`down(activation(up(x)))`, or `down(activation(gate(x)) * up(x))` if `gated`.

    `up` and `gate` are column-parallel layers to `inner` features, `down` is a row-parallel one back to `hidden`;
    options as for those. Rank r has inner features r * inner / ranks and on. `activation` is a function, a module, or
    one of the names "gelu", "gelu_tanh", "silu" and "relu". With sequence parallelism these, `nn.GELU`, `nn.SiLU` and
    `nn.ReLU`, and `gelu`, `silu` and `relu` of `nn.functional`, are computed where their operand is, unless the layers
    or the activation have hooks, or others are in their places. Raises `ValueError` for anything else.
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
        if not callable(activation) and activation not in list(ACTIVATIONS):
            raise ValueError(f"activation is {activation!r}; it must be a function or one of {', '.join(ACTIVATIONS)}")
        self.activation: Callable[[Any], Any] = activation if callable(activation) else ACTIVATIONS[activation]
        self.up = ColumnParallelLinear(hidden, inner, bias, **options)
        self.gate = ColumnParallelLinear(hidden, inner, bias, **options) if gated else None
        self.down = RowParallelLinear(inner, hidden, bias, **options)

    def forward(self, x: Any) -> Any:
        return self.down(self._inner(x))

    def _inner(self, x: Any) -> Any:
        layers, name = [self.up] if self.gate is None else [self.gate, self.up], _name(self.activation)
        if name is not None and self._as_made(x, layers) and self.up.sequence_parallel:
            return _fused(x, layers, name)
        if self.gate is None:
            return self.activation(self.up(x))
        up, gate = project(x, [self.up, self.gate])
        return self.activation(gate) * up

    def _as_made(self, x: Any, layers: list[ColumnParallelLinear]) -> bool:
        """Whether nobody has put something else in place of the layers or of the activation, or hooks on them."""
        return (
            alike(layers)
            and as_made(self.activation)
            and all(layer.bias is None or layer.bias.dtype == x.dtype for layer in layers)
        )


def _fused(x: Any, layers: list[ColumnParallelLinear], activation: str) -> Any:
    """What the activation makes of the first layer's result, times that of the second one, if there are two."""
    first, rights = layers[0], [layer.weight.t() for layer in layers]
    biases = [layer.bias for layer in layers if layer.bias is not None]
    learned, kept = (
        torch.is_grad_enabled() and any(each.requires_grad for each in some) for some in (rights, (x, *rights, *biases))
    )
    found, _, _ = torch.ops.pkc.fused_all_gather_matmul_activation(
        x, rights, biases, activation, first.sequence_dim, first.group, return_A=learned, return_products=kept
    )
    return found


def _name(activation: Any) -> str | None:
    """What operators know a function or a module of torch by."""
    if type(activation) is _nn.GELU:
        return {"none": "gelu", "tanh": "gelu_tanh"}[activation.approximate]
    modules = {_nn.SiLU: "silu", _nn.ReLU: "relu"}
    found = (name for name, function in ACTIVATIONS.items() if function is activation)
    return modules.get(type(activation)) or next(found, None)
