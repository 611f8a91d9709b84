"""The feed-forward block of a transformer on several ranks."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from pkc.nn.linear import ColumnParallelLinear, RowParallelLinear, project

torch: Any = importlib.import_module("torch")


class TensorParallelMLP(torch.nn.Module):
    """`down(activation(up(x)))`, or `down(activation(gate(x)) * up(x))` if `gated`.

    `up` and `gate` are column-parallel layers to `inner` features, `down` is a row-parallel one back to `hidden`;
    options as for those. Rank r has inner features r * inner / ranks and on.
    """

    def __init__(
        self,
        hidden: int,
        inner: int,
        bias: bool = True,
        *,
        activation: Callable[[Any], Any] = torch.nn.functional.gelu,
        gated: bool = False,
        **options: Any,
    ) -> None:
        torch.nn.Module.__init__(self)
        self.activation = activation
        self.up = ColumnParallelLinear(hidden, inner, bias, **options)
        self.gate = ColumnParallelLinear(hidden, inner, bias, **options) if gated else None
        self.down = RowParallelLinear(inner, hidden, bias, **options)

    def forward(self, x: Any) -> Any:
        if self.gate is None:
            return self.down(self.activation(self.up(x)))
        up, gate = project(x, [self.up, self.gate])
        return self.down(self.activation(gate) * up)
