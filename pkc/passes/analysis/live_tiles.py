"""How many elements of tiles a role has in registers at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import prod

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect.access import LoadOp
from pkc.dialect.by_table import GatherOp
from pkc.dialect.elementwise import CompareOp
from pkc.dialect.fences import FenceOp
from pkc.dialect.program import RoleOp, TasksOp
from pkc.dialect.roles import ConsumeOp
from pkc.dialect.tile import (
    FullOp,
    MmaIssueOp,
    MmaWaitOp,
    PositionsOp,
    RepeatOp,
    SplatOp,
    chain_of,
    pieces_of,
    tile_type,
)
from pkc.dialect.types import TileType, dtype_bytes, i1
from pkc.passes.analysis.chains import behind_views
from pkc.passes.analysis.clusters import in_cta
from pkc.passes.analysis.dependence import maker, role_around
from pkc.passes.analysis.folded_columns import across_stage, folded_in
from pkc.passes.analysis.pointwise import is_pointwise, is_spread
from pkc.passes.analysis.register_axes import infer_axes
from pkc.passes.analysis.row_lanes import lanes_for, of_rows
from pkc.targets.target import Target, target_of

_IN_NO_REGISTERS = frozenset((ConsumeOp, LoadOp, GatherOp, FullOp, SplatOp, PositionsOp, RepeatOp, CompareOp))
"""The results of the first three live in shared memory, and come to registers chunk by chunk; the others' are made
where they are used."""

_Size = Callable[[SSAValue], int]
_Axes = Callable[[], Mapping[SSAValue, tuple[int, ...]]]

_QUAD = 4
"""Lanes of a warp that share the rows of an accumulator: each of them has what there is once for a row."""


@dataclass(frozen=True)
class Peak:
    """The most registers of 32 bits that tiles need at once, over all threads of a role, and where."""

    registers: int
    op: Operation | None
    tiles: tuple[tuple[SSAValue, int], ...] = ()
    """The tiles, each with its registers, the largest first."""


def peak(role: RoleOp) -> Peak:
    """The peak of a role. A result may take the place of an operand that is not used again."""
    target = target_of(role)
    groups = max(1, (role.warps.value.data if role.warps is not None else 0) // target.arch.warpgroup)

    def beside_mma(value: SSAValue) -> int:
        return _beside_mma(tile_type(value), groups, target) // _pieces(value)

    return _peak(role.body.block, frozenset(), beside_mma, cache(lambda: infer_axes(role.body)))


def registers_of(block: Block) -> int:
    """The most registers that tiles of a block without MMA need at once, wherever they lie, and before chains of
    operations are fused."""

    def size(value: SSAValue) -> int:
        kind = tile_type(value)
        return 0 if kind.element_type == i1 else prod(kind.shape) * _register_bytes(kind) // 4

    return _peak(block, frozenset(), size, dict).registers


def _pieces(value: SSAValue) -> int:
    """In how many pieces a product is computed: one of them is in registers."""
    return max(1, pieces_of(value.owner)) if isinstance(value.owner, Operation) else 1


def _peak(block: Block, after: frozenset[SSAValue], size: _Size, axes: _Axes) -> Peak:
    """Going backwards, with what lives on behind the block; tasks that go chunk by chunk have next to nothing live."""
    live, most = set(after), _together(after, block.last_op, size)
    for op in reversed(list(block.ops)):
        if isinstance(op, TasksOp) and is_pointwise(op):
            continue
        if _inside_chain(op):
            live = (live - set(op.results)) | _tiles(op.operands)
            continue
        live -= set(op.results)
        inside = _tiles(_from_outside(op))
        within = _spread(op, axes()) if isinstance(op, TasksOp) and is_spread(op) else size
        for region in op.regions:
            for inner in region.blocks:
                # What a loop uses lives through all its iterations; what it carries lives as the values inside.
                behind = live if isinstance(op, scf.IfOp) else live | inside
                most = max(most, _peak(inner, frozenset(behind), within, axes), key=_needed)
        live |= inside | _tiles(op.operands) | _tiles(_read_until(op))
        most = max(most, _together(live, op, size), key=_needed)
    return most


def _together(live: Iterable[SSAValue], op: Operation | None, size: _Size) -> Peak:
    each = sorted(((value, size(value)) for value in live), key=lambda one: -one[1])
    return Peak(sum(registers for _, registers in each), op, tuple(each))


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
        seen = behind_views(value)
        if isinstance(seen.type, TileType) and type(seen.owner) not in _IN_NO_REGISTERS:
            found.add(seen)
    return found


def _beside_mma(kind: TileType, groups: int, target: Target) -> int:
    """The registers of a tile that lies as the accumulators of MMAs, in so many warpgroups."""
    elements = prod(kind.shape)
    if kind.element_type == i1:
        return 0
    if kind.rank < 2:
        return elements * _QUAD
    # Warpgroups have registers for as many rows as they multiply at once, whether or not the tile has them.
    at_once = groups * target.mma.rows
    elements = elements // kind.shape[0] * (-(-kind.shape[0] // at_once) * at_once)
    return elements * _register_bytes(kind) // target.arch.register_bytes


def _register_bytes(kind: TileType) -> int:
    """Of each element: two of 16 or of 8 bits share a register."""
    return max(2, dtype_bytes(kind.element_type))


def _spread(tasks: TasksOp, axes: Mapping[SSAValue, tuple[int, ...]]) -> _Size:
    """The registers of the tiles of tasks without MMA, by tile."""
    role = role_around(tasks)
    assert role is not None
    arch = target_of(tasks).arch
    threads = arch.warp * (role.warps.value.data if role.warps is not None else arch.warpgroup)
    lanes, part, folded = lanes_for(tasks, axes, threads, arch.warp), in_cta(tasks), folded_in(tasks)

    def size(value: SSAValue) -> int:
        kind = part(tile_type(value))
        if kind.element_type == i1:
            return 0
        shape, across = tuple(kind.shape), folded.get(value)
        spread = across_stage(shape, axes[value], threads, across) if across else None
        each = (spread or of_rows(shape, axes[value], threads, lanes)).count
        # 16-bit elements of a tile of several axes share registers in pairs.
        return threads * (each if kind.rank < 2 else each * _register_bytes(kind) // arch.register_bytes)

    return size
