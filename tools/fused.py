"""A kernel that engines or trainers fuse, and the same in torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Tensors = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """`sizes` has dimensions, constants and scalars; `torch` gives the `outputs`; `ints` are the ranges of integers,
    `scale` the deviation of floats that is not 1; `bytes` and `flops` are what must move and be multiplied."""

    sizes: Mapping[str, float]
    outputs: tuple[str, ...]
    torch: Callable[[Any, Tensors], tuple[Any, ...]]
    bytes: float
    flops: float = 0
    ints: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    scale: Mapping[str, float] = field(default_factory=dict[str, float])
    file: str = ""
