"""Which axis of an accumulator each one-dimensional tile of a role lies along."""

from __future__ import annotations

from xdsl.ir import Operation, Region, SSAValue

from pkc.dialect.program import TasksOp
from pkc.dialect.reductions import RowReduction
from pkc.dialect.roles import CommitOp, ConsumeOp
from pkc.dialect.scans import CumSumOp
from pkc.dialect.tile import AnyMmaOp, BroadcastOp, MmaWaitOp, TransposeOp, tile_type
from pkc.dialect.types import TileType
from pkc.passes.analysis.joined import Groups, passed_on
from pkc.passes.analysis.pointwise import is_spread


def infer_axes(region: Region) -> dict[SSAValue, tuple[int, ...]]:
    """The axes of every tile value: (0, 1), (0,) along rows, (1,) along columns, () for a scalar.

    One-dimensional tiles that are combined lie along the same axis; a row reduction gives rows, a broadcast names the
    axis. A tile of which nothing tells the axis lies along columns, as one row, if it is reduced or meets no MMA, and
    else along rows. Of a tile of more than two axes, rows go through all but the last: tiles of several axes that have
    a number for each of these lie along rows, too.
    """
    groups = _Groups()
    for op in region.walk():
        _unify(op, groups)
    for op in region.walk():
        if isinstance(op, RowReduction | CumSumOp) and _rank(op.tile) == 1:
            groups.axis.setdefault(groups.root(op.tile), 1)
    for op in region.walk():
        if isinstance(op, TasksOp) and is_spread(op):
            for value in (value for inner in op.walk() for value in tiles_of(inner) if _rank(value) == 1):
                groups.axis.setdefault(groups.root(value), 1)
    return {value: _axes(value, groups) for op in region.walk() for value in tiles_of(op)}


def lying_both_ways(region: Region) -> list[BroadcastOp]:
    """The broadcasts along columns of tiles that lie along rows too."""
    groups = _Groups()
    ops = list(region.walk())
    for op in ops:
        _unify(op, groups)
    spread = [op for op in ops if isinstance(op, BroadcastOp) and _rank(op.tile) == 1 and (_rank(op.result) or 0) > 1]
    across = [op for op in spread if op.positions[0] == tile_type(op.result).rank - 1]
    along = {groups.root(op.tile) for op in spread if op not in across}
    along |= {groups.root(op.result) for op in ops if isinstance(op, RowReduction) and _rank(op.result) == 1}
    return [op for op in across if groups.root(op.tile) in along]


class _Groups(Groups[SSAValue]):
    """Values known to lie along the same axis, and that axis."""

    def __init__(self) -> None:
        super().__init__()
        self.axis: dict[SSAValue, int] = {}

    def join(self, first: SSAValue, second: SSAValue) -> None:
        root = self.root(second)
        super().join(first, second)
        if root in self.axis:
            self.axis[self.root(root)] = self.axis[root]

    def put(self, value: SSAValue, axis: int) -> None:
        self.axis[self.root(value)] = axis


def lies_across(op: BroadcastOp, of_tile: tuple[int, ...], of_result: tuple[int, ...]) -> bool:
    """Whether a broadcast has a tile along the rows of one tile and along the columns of another, by the axes that the
    tile and the result lie along."""
    rank = tile_type(op.result).rank
    if of_result == (0,) and rank > 1:  # several axes are rows, of which each thread counts through all
        return op.positions != ()
    if rank > 2 and of_tile:
        return op.positions not in ((rank - 1,), tuple(range(rank - 1)))
    along_last = tuple(int(position == rank - 1) for position in op.positions)
    mixed = len(op.positions) > 1 and rank > len(op.positions)
    return mixed or (len(of_result) == 2 and of_tile not in ((), along_last))


def _rank(value: SSAValue) -> int | None:
    return value.type.rank if isinstance(value.type, TileType) else None


def tiles_of(op: Operation) -> list[SSAValue]:
    """The tiles that an operation uses and makes, and those that its blocks begin with."""
    found = [value for value in (*op.operands, *op.results) if isinstance(value.type, TileType)]
    for region in op.regions:
        for block in region.blocks:
            found += [value for value in block.args if isinstance(value.type, TileType)]
    return found


def _unify(op: Operation, groups: _Groups) -> None:
    if isinstance(op, RowReduction):
        if _rank(op.result):
            groups.put(op.result, 0)
        return
    if isinstance(op, BroadcastOp):
        result = _rank(op.result)
        if _rank(op.tile) == 1 and result is not None and result > 1:
            groups.put(op.tile, int(op.positions[0] == result - 1))
        elif result is not None and op.positions == tuple(range(result - 1)) and op.positions:
            groups.put(op.tile, 0)
        elif _rank(op.tile) == 1:
            groups.join(op.tile, op.result)
        return
    for same in passed_on(op):
        _join_all(groups, same)
    if not op.regions and not isinstance(op, AnyMmaOp | TransposeOp | MmaWaitOp | ConsumeOp | CommitOp):
        _join_all(groups, [*op.operands, *op.results])


def _join_all(groups: _Groups, values: list[SSAValue]) -> None:
    first: dict[int, SSAValue] = {}
    for value in values:
        if rank := _rank(value):
            groups.join(first.setdefault(rank, value), value)


def _axes(value: SSAValue, groups: _Groups) -> tuple[int, ...]:
    rank = _rank(value)
    if rank == 1:
        return (groups.axis.get(groups.root(value), 0),)
    of_rows = rank and groups.axis.get(groups.root(value)) == 0
    return (0,) if of_rows else tuple(range(rank or 0))
