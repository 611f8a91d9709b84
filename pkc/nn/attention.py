"""Attention on several ranks: of heads that are shared out, and of a sequence that is."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Literal

import pkc.torch
from pkc.nn.linear import ColumnParallelLinear, RowParallelLinear, project

torch: Any = importlib.import_module("torch")


class ContextParallelAttention(torch.nn.Module):
    """softmax(Q K^T * scale) V of a sequence of which each rank has a shard, equally long ones.

    Tensors are [batch, heads, positions, features]; K and V may have fewer heads, each of which serves several of Q.
    With `method="ring"` keys and values come round the ring, and with `zigzag` shards are in zigzag order, so that with
    `causal` all ranks have the same work; with `method="ulysses"` each rank computes some of the heads. Raises
    `ValueError` for another method, or for `zigzag` without the ring.
    """

    def __init__(
        self,
        *,
        causal: bool = False,
        scale: float | None = None,
        method: Literal["ring", "ulysses"] = "ring",
        zigzag: bool = False,
        group: Any = None,
    ) -> None:
        torch.nn.Module.__init__(self)
        if method not in ("ring", "ulysses"):
            raise ValueError(f"method is {method!r}; it must be 'ring' or 'ulysses'")
        if zigzag and method != "ring":
            raise ValueError("zigzag is an order of the ring's shards")
        self.causal, self.scale, self.method, self.zigzag = causal, scale, method, zigzag
        self.group = pkc.torch.name_of(group)

    def forward(self, q: Any, k: Any, v: Any) -> Any:
        if self.method == "ulysses":
            return torch.ops.pkc.ulysses_attention(q, k, v, self.group, self.causal, self.scale)
        return torch.ops.pkc.ring_attention(q, k, v, self.group, self.causal, self.scale, self.zigzag)[0]

    def extra_repr(self) -> str:
        return f"method={self.method}, causal={self.causal}, zigzag={self.zigzag}"


class TensorParallelAttention(torch.nn.Module):
    """The attention block of a transformer: `out(attention(query(x), key(x), value(x)))`.

    `query`, `key` and `value` are column-parallel layers, so that rank r has heads r * heads / ranks and on; `out` is a
    row-parallel one back to `hidden`; options as for those. `groups` is the number of heads of keys and values, by
    default `heads`. x is [positions, batch, hidden], or [positions, hidden]; with `sequence_dim=1` it is [batch,
    positions, hidden]. `rotate` gets queries and keys as [batch, heads, positions, features], and gives them with their
    positions in. `context` attends in place of one GPU's attention, such as a `ContextParallelAttention`, whose group
    has the ranks that share a sequence. Raises `ValueError` if the ranks cannot share the heads.
    """

    def __init__(
        self,
        hidden: int,
        heads: int,
        bias: bool = True,
        *,
        groups: int | None = None,
        causal: bool = True,
        rotate: Callable[[Any, Any], tuple[Any, Any]] | None = None,
        context: Callable[[Any, Any, Any], Any] | None = None,
        **options: Any,
    ) -> None:
        torch.nn.Module.__init__(self)
        groups = heads if groups is None else groups
        if heads < 1 or groups < 1:
            raise ValueError(f"there are {heads} heads, {groups} of keys; there must be at least one of each")
        if hidden % heads or heads % groups:
            raise ValueError(f"{hidden} features, {heads} heads and {groups} heads of keys do not divide evenly")
        self.causal, self.features, self.rotate, self.context = causal, hidden // heads, rotate, context
        self.query = ColumnParallelLinear(hidden, hidden, bias, **options)
        self.key = ColumnParallelLinear(hidden, groups * self.features, bias, **options)
        self.value = ColumnParallelLinear(hidden, groups * self.features, bias, **options)
        self.out = RowParallelLinear(hidden, hidden, bias, **options)
        if groups % self.query.ranks:
            raise ValueError(f"{self.query.ranks} ranks cannot share {groups} heads of keys")

    def forward(self, x: Any) -> Any:
        q, k, v = (self._heads(y) for y in project(x, [self.query, self.key, self.value]))
        if self.rotate is not None:
            q, k = self.rotate(q, k)
        if self.context is None:
            found, _ = torch.ops.pkc.attention(q, k, v, self.causal)
        else:
            found = self.context(q, k, v)
        front = found.permute(0, 2, 1, 3) if self.out.sequence_dim else found.permute(2, 0, 1, 3)
        flat = front.flatten(2)
        return self.out(flat if x.dim() > 2 else flat.squeeze(1))

    def _heads(self, y: Any) -> Any:
        """[batch, heads, positions, features] of what a layer gives."""
        apart = (y if y.dim() > 2 else y.unsqueeze(1)).unflatten(-1, (-1, self.features))
        return apart.permute(0, 2, 1, 3) if self.out.sequence_dim else apart.permute(1, 2, 0, 3)
