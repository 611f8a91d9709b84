"""What operations do to memory: what xDSL's traits say, each class asked once.

xDSL looks through the traits of a class for every operation, several times in each walk that merges or drops some.
"""

from __future__ import annotations

from functools import cache

from xdsl.ir import Operation
from xdsl.traits import (
    IsTerminator,
    MemoryEffect,
    MemoryEffectKind,
    OpTrait,
    RecursiveMemoryEffect,
    SymbolOpInterface,
)

from pkc.dialect.program import PER_CTA, TasksOp

Kinds = frozenset[MemoryEffectKind]

READS: Kinds = frozenset({MemoryEffectKind.READ})


@cache
def has_trait(kind: type[Operation], trait: type[OpTrait]) -> bool:
    """Whether the operations of a class have a trait."""
    return kind.has_trait(trait)


def effect_kinds(op: Operation, known: dict[Operation, Kinds | None] | None = None) -> Kinds | None:
    """How an operation uses memory; None if that is not known. `known` keeps what was found of operations that have
    regions, for as long as these do not change."""
    traits = _memory_traits(type(op))
    if not traits:
        return None
    if op.regions and known is not None and op in known:
        return known[op]
    found = _found(op, traits, known)
    if op.regions and known is not None:
        known[op] = found
    return found


def is_side_effect_free(op: Operation) -> bool:
    """Whether an operation surely uses no memory."""
    return effect_kinds(op) == frozenset()


def only_reads(op: Operation, known: dict[Operation, Kinds | None] | None = None) -> bool:
    """Whether an operation surely does nothing to memory but read it, if that."""
    kinds = effect_kinds(op, known)
    return kinds is not None and kinds <= READS


def is_needless(op: Operation, known: dict[Operation, Kinds | None] | None = None) -> bool:
    """Whether nothing but its results could make an operation matter."""
    kind = type(op)
    if has_trait(kind, IsTerminator) or has_trait(kind, SymbolOpInterface) or _counts_on(op):
        return False
    return only_reads(op, known)


def _counts_on(op: Operation) -> bool:
    """Whether tasks stand in others, and CTAs number them: those of the next list there go on from theirs."""
    return isinstance(op, TasksOp) and PER_CTA in op.attributes and isinstance(op.parent_op(), TasksOp)


@cache
def _memory_traits(kind: type[Operation]) -> tuple[MemoryEffect, ...]:
    return tuple(kind.get_traits_of_type(MemoryEffect))


def _found(
    op: Operation, traits: tuple[MemoryEffect, ...], known: dict[Operation, Kinds | None] | None
) -> Kinds | None:
    kinds: set[MemoryEffectKind] = set()
    for trait in traits:
        if isinstance(trait, RecursiveMemoryEffect):
            found = _inside(op, known)
        else:
            effects = trait.get_effects(op)
            found = None if effects is None else {effect.kind for effect in effects}
        if found is None:
            return None
        kinds |= found
    return frozenset(kinds)


def _inside(op: Operation, known: dict[Operation, Kinds | None] | None) -> Kinds | None:
    kinds: set[MemoryEffectKind] = set()
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                found = effect_kinds(inner, known)
                if found is None:
                    return None
                kinds |= found
    return frozenset(kinds)
