"""The representation of tiles in a run: arrays of elements, values with bounds, or terms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from xdsl.ir import Operation

from pkc.semantics import tile_ops
from pkc.sim.array import Array

TileFunction: TypeAlias = Callable[[Operation], Callable[..., Any]]
MakeArray: TypeAlias = Callable[..., Array]
"""A constructor with the signature of `Array`."""


class Backing(NamedTuple):
    """How the memory of an array is made, and what an operation on tiles computes."""

    make_array: MakeArray
    tile_function: TileFunction


ELEMENTS = Backing(Array, tile_ops.value)
