"""How threads have tiles that they read across their stage, where they fold what is a column there."""

from __future__ import annotations

from xdsl.ir import Region, SSAValue

from pkc.dialect.program import TasksOp
from pkc.dialect.reductions import FoldOp
from pkc.dialect.roles import AcquireOp, CommitOp, ConsumeOp
from pkc.dialect.tile import AnyMmaOp, BroadcastOp, FullOp, MmaWaitOp, SplatOp, TransposeOp, tile_type
from pkc.dialect.types import TileType
from pkc.passes.analysis.joined import Groups, passed_on
from pkc.passes.analysis.register_axes import tiles_of
from pkc.targets.layout import NEIGHBOURS, Fragment

SIDE = NEIGHBOURS
"""Rows side by side that a thread has at each place: neighbours of a row of the stage, 16 bytes of 16-bit elements."""

FEWEST, _MOST = 8, 32
"""Lanes of a row. As many as read 16 bytes of as many rows of a stage at the same column find them in all banks of
shared memory, for a swizzle puts them there; and no more than a warp has."""

_ELEMENTS = 2048
"""As many elements as two warpgroups keep of all rows, 8 in each thread."""

_APART = (AnyMmaOp, BroadcastOp, TransposeOp, MmaWaitOp, AcquireOp, ConsumeOp, CommitOp)
"""Operations whose tiles need not lie alike."""

_ANYHOW = (FullOp, SplatOp)
"""What makes constants, which lie as each use needs them."""


def folds_of(rows: int, length: int) -> int:
    """How many elements of each of so many rows, which lie across a stage, a loop keeps: one for each lane. 0 if the
    rows are too short, or no multiple."""
    count = _MOST
    while count > FEWEST and (count * rows > _ELEMENTS or length % count):
        count //= 2
    return 0 if length % count else count


def folded_lanes(region: Region) -> dict[SSAValue, int]:
    """The tiles that are folded across their stage, what they are computed of, and what is computed of them; each with
    the lanes that share its rows."""
    found: dict[SSAValue, int] = {}
    for op in region.walk():
        if isinstance(op, TasksOp):
            found |= folded_in(op)
    return found


def folded_in(tasks: TasksOp) -> dict[SSAValue, int]:
    """The same of tasks."""
    folds = [op for op in tasks.walk() if isinstance(op, FoldOp) and op.across is not None]
    if not folds:
        return {}
    groups = Groups[SSAValue]()
    for op in tasks.walk():
        alone = op.regions or not op.results or isinstance(op, _APART)
        alike = [] if alone else [[*op.operands, *op.results]]
        for values in (*alike, *passed_on(op)):
            tiles = [value for value in values if _has_rows(value) and not isinstance(value.owner, _ANYHOW)]
            for other in tiles[1:]:
                groups.join(tiles[0], other)
    lanes = {groups.root(op.result): tile_type(op.result).shape[-1] for op in folds}
    values = (value for op in tasks.walk() for value in tiles_of(op))
    return {value: lanes[groups.root(value)] for value in values if groups.root(value) in lanes}


def _has_rows(value: SSAValue) -> bool:
    return isinstance(value.type, TileType) and value.type.rank > 0


def across_stage(shape: tuple[int, ...], axes: tuple[int, ...], threads: int, lanes: int) -> Fragment:
    """How such a tile is spread over so many threads."""
    return Fragment(shape, axes, 1, threads // lanes * SIDE, lanes, together=1, side=SIDE)
