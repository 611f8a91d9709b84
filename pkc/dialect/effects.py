"""Memory effects of pk operations, and the resources they act on.

A trait here decides correctness, because DCE, CSE and LICM act on it. An operation that gives a tile is free of effects
but not speculatable: hoisting it would lengthen the life of its registers. A load is dropped when unused, and merged
with an equal load when nothing is written between them. Signals and waits both read and write, so they stay where they
are, and no loads are merged across them.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from xdsl.ir import Operation
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind, Resource


@dataclass(frozen=True)
class ArrayMemory(Resource):
    """Elements of private arrays and parallel global layouts, on any rank."""

    def name(self) -> str:
        return "Array"


@dataclass(frozen=True)
class SignalMemory(Resource):
    """Signal counters, on any rank."""

    def name(self) -> str:
        return "Signal"


_READ = EffectInstance(MemoryEffectKind.READ, resource=ArrayMemory())
_WRITE = EffectInstance(MemoryEffectKind.WRITE, resource=ArrayMemory())
_SIGNAL = frozenset(
    (
        EffectInstance(MemoryEffectKind.READ, resource=SignalMemory()),
        EffectInstance(MemoryEffectKind.WRITE, resource=SignalMemory()),
    )
)


@dataclass(frozen=True)
class Console(Resource):
    """What a program prints."""

    def name(self) -> str:
        return "Console"


class Prints(MemoryEffect):
    """Prints, which has an order, and nothing to do with arrays."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        return {EffectInstance(MemoryEffectKind.WRITE, resource=Console())}


class ReadsArray(MemoryEffect):
    """Reads elements of an array."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        return {_READ}


class WritesArray(MemoryEffect):
    """Writes elements of an array."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        return {_WRITE}


class UpdatesArray(MemoryEffect):
    """Reads and writes elements of an array."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        return {_READ, _WRITE}


class OrdersMemory(MemoryEffect):
    """Signals or waits: array accesses do not move across."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        return {_READ, _WRITE, *_SIGNAL}
