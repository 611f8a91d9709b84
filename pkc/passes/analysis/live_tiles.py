"""How many elements of tiles a role has in registers at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect.access import GatherOp, LoadOp
from pkc.dialect.elementwise import CompareOp
from pkc.dialect.fences import FenceOp
from pkc.dialect.program import RoleOp, TasksOp
from pkc.dialect.roles import ConsumeOp
from pkc.dialect.tile import FullOp, MmaIssueOp, MmaWaitOp, PositionsOp, SplatOp
from pkc.dialect.types import TileType, dtype_bytes, i1
from pkc.passes.analysis.chains import chain_of, is_view
from pkc.passes.analysis.dependence import maker
from pkc.passes.analysis.pointwise import is_pointwise
from pkc.targets.target import Target, target_of

_IN_MEMORY = (ConsumeOp, LoadOp, GatherOp)
"""Their results live in shared memory, and come to registers chunk by chunk."""

_MADE_WHERE_USED = (FullOp, SplatOp, PositionsOp, CompareOp)

_QUAD = 4
"""Lanes of a warp that share the rows of an accumulator: each of them has what there is once for a row."""


@dataclass(frozen=True)
class Peak:
    """The most registers of 32 bits that tiles need at once, over all threads of a role, and where."""

    registers: int
    op: Operation | None


def peak(role: RoleOp) -> Peak:
    """The peak of a role. A result may take the place of an operand that is not used again."""
    return _peak(role.body.block, frozenset(), target_of(role))


def _peak(block: Block, after: frozenset[SSAValue], target: Target) -> Peak:
    """Going backwards, with what lives on behind the block; tasks that go chunk by chunk have next to nothing live."""
    live, most = set(after), Peak(_registers(after, target), block.last_op)
    for op in reversed(list(block.ops)):
        if isinstance(op, TasksOp) and is_pointwise(op):
            continue
        if _inside_chain(op):
            live = (live - set(op.results)) | _tiles(op.operands)
            continue
        live -= set(op.results)
        inside = _tiles(_from_outside(op))
        for region in op.regions:
            for inner in region.blocks:
                # What a loop uses lives through all its iterations; what it carries lives as the values inside.
                behind = live if isinstance(op, scf.IfOp) else live | inside
                most = max(most, _peak(inner, frozenset(behind), target), key=_needed)
        live |= inside | _tiles(op.operands) | _tiles(_read_until(op))
        most = max(most, Peak(_registers(live, target), op), key=_needed)
    return most


def _inside_chain(op: Operation) -> bool:
    """Whether an operation is in a chain but not its first: one element at a time takes the place of its operands."""
    before = op.prev_op
    while isinstance(before, FenceOp):
        before = before.prev_op
    return before is not None and chain_of(op) is not None and chain_of(before) == chain_of(op)


def _read_until(op: Operation) -> Iterable[SSAValue]:
    """What an MMA in flight reads until an operation waits for it."""
    issued = op.issued.owner if isinstance(op, MmaWaitOp) else None
    return (issued.a, issued.b) if isinstance(issued, MmaIssueOp) else ()


def _needed(found: Peak) -> int:
    return found.registers


def _from_outside(op: Operation) -> Iterator[SSAValue]:
    """What the operations inside of `op` use of those outside."""
    for inner in op.walk():
        if inner is not op:
            yield from (value for value in inner.operands if not op.is_ancestor(maker(value)))


def _tiles(values: Iterable[SSAValue]) -> set[SSAValue]:
    """The tiles in registers behind values, other views of a tile being that tile."""
    found: set[SSAValue] = set()
    for value in values:
        seen = value
        while isinstance(seen.owner, Operation) and is_view(seen.owner) and seen.owner.operands:
            seen = seen.owner.operands[0]
        if isinstance(seen.type, TileType) and not isinstance(seen.owner, (*_IN_MEMORY, *_MADE_WHERE_USED)):
            found.add(seen)
    return found


def _registers(values: Iterable[SSAValue], target: Target) -> int:
    return sum(_size(value.type, target) for value in values if isinstance(value.type, TileType))


def _size(kind: TileType, target: Target) -> int:
    elements = 1
    for extent in kind.shape:
        elements *= extent
    if kind.element_type == i1:
        return 0
    if kind.rank < 2:
        return elements * _QUAD
    # A warpgroup has registers for all rows that it multiplies, whether or not the tile has them.
    elements = elements // kind.shape[0] * max(kind.shape[0], target.mma.rows)
    return elements * dtype_bytes(kind.element_type) // target.arch.register_bytes
