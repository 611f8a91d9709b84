"""Steps of copy engines, in the indices of arrays and counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pkc.dialect.blocks import Block

Index: TypeAlias = Block | int


@dataclass(frozen=True)
class Box:
    """Elements of an array: positions along the dimensions that `indices` has, everything along the others."""

    array: str
    indices: Mapping[int, Index]


@dataclass(frozen=True)
class Copy:
    """A box of one array to a box of another."""

    source: Box
    target: Box


@dataclass(frozen=True)
class Wait:
    """Wait until a counter of this rank is at least `value`."""

    signal: str
    indices: tuple[int, ...]
    value: int


@dataclass(frozen=True)
class Raise:
    """A counter of a rank becomes `value`."""

    signal: str
    indices: tuple[int, ...]
    rank: int
    value: int


@dataclass(frozen=True)
class Reset:
    """All counters of a signal become zero on this rank."""

    signal: str


Step: TypeAlias = Copy | Wait | Raise | Reset

Strand: TypeAlias = list[Step]
"""Steps in order."""

Section: TypeAlias = list[Strand]
"""A single strand, or one for each task; strands do not wait for each other."""
