"""How tiles that meet no MMA are spread over threads: each row over some lanes, as many rows at a time as can be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd, prod

from xdsl.ir import Operation, SSAValue

from pkc.dialect.interleaved import PickOp, ZipOp
from pkc.dialect.program import RoleOp, TasksOp
from pkc.dialect.reductions import FoldOp, RowReduction
from pkc.dialect.roles import AcquireOp, CommitOp, ConsumeOp
from pkc.dialect.scans import CumSumOp
from pkc.dialect.tile import TransposeOp, tile_type
from pkc.dialect.types import TileType
from pkc.dialect.windows import WindowOp
from pkc.passes.analysis.clusters import cluster_of, in_cta
from pkc.passes.analysis.pointwise import is_spread
from pkc.passes.analysis.register_axes import infer_axes, tiles_of
from pkc.targets.layout import NEIGHBOURS, Fragment
from pkc.targets.target import target_of

EXCHANGES = 2
"""In how many places CTAs of a cluster hand each other what they have of rows, in turn."""


_LINE = 8
"""Lanes that read what all banks of shared memory give at once, 16 bytes each (CUDA C++ Programming Guide, Shared
Memory). More would need one another for what fewer reduce by themselves."""


@dataclass(frozen=True)
class Lanes:
    """How rows of tiles are shared out: `count` threads have one, `together` neighbours each at a time."""

    count: int
    together: int = 2


def of_rows(shape: tuple[int, ...], axes: tuple[int, ...], threads: int, lanes: Lanes) -> Fragment:
    """How a tile is spread over so many threads; what has more than two axes is rows of its last one."""
    if axes == (0,):
        shape = (prod(shape),)
    elif len(shape) > 2:
        shape, axes = (prod(shape[:-1]), shape[-1]), (0, 1)
    return Fragment(shape, axes, 1, threads // lanes.count, lanes.count, lanes.together)


def lanes_for(tasks: Operation, axes: Mapping[SSAValue, tuple[int, ...]], threads: int, warp: int) -> Lanes:
    """The lanes of each row of the tiles of `tasks`: as many as read a line of shared memory, 16 bytes each, or a warp
    where they read less; fewer if no row has as many elements, and more if threads were left over. Of tiles that are
    read transposed neighbours in memory are those of other rows, so that one lane has a row, if there are as many."""
    rows, lengths, folds, part = 1, {2}, set[int](), in_cta(tasks)
    parts = (op for op in tasks.walk() if isinstance(op, PickOp | WindowOp | ZipOp))
    longer = {op.result if isinstance(op, ZipOp) else op.tile for op in parts}  # threads have parts of these alone
    for inner in tasks.walk():
        if isinstance(inner, FoldOp) and inner.across is None:
            folds.add(tile_type(inner.result).shape[-1])
        for value in () if isinstance(inner, AcquireOp | ConsumeOp | CommitOp) else tiles_of(inner):
            if value in longer:
                continue
            assert isinstance(value.type, TileType)
            if not value.type.rank:
                continue
            whole = of_rows(tuple(part(value.type).shape), axes[value], threads, Lanes(1))
            rows = max(rows, whole.shape[0] if 0 in whole.axes else 1)
            lengths.add(whole.columns)
    columns, divisible = max(lengths), all(length % NEIGHBOURS == 0 for length in lengths - {0, 2})
    # Where all threads get some. Parts of rows that are folded divide them.
    together = NEIGHBOURS if (divisible if folds else rows * columns >= NEIGHBOURS * threads) else 2
    if not folds and _is_read_across(tasks) and not _has_columns(tasks, axes):
        return shared_by(rows, columns, together, threads, 1, line=1)
    return shared_by(rows, gcd(*folds) if folds else columns, together, threads, warp)


def _is_read_across(tasks: Operation) -> bool:
    """Whether all tiles of several axes that come to some tasks are read transposed, and none leaves them."""
    if any(tile_type(tile).rank > 1 for op in tasks.walk() if isinstance(op, CommitOp) for tile in op.tiles):
        return False
    consumed = [value for op in tasks.walk() if isinstance(op, ConsumeOp) for value in op.results]
    uses = [use.operation for value in consumed if tile_type(value).rank > 1 for use in value.uses]
    return bool(uses) and all(isinstance(op, TransposeOp) for op in uses)


def _has_columns(tasks: Operation, axes: Mapping[SSAValue, tuple[int, ...]]) -> bool:
    """Whether tiles of one axis lie along columns, of which one lane of a row would have all elements."""
    made = (value for op in tasks.walk() for value in op.results if isinstance(value.type, TileType))
    return any(axes.get(value) == (1,) for value in made)


def shared_by(rows: int, columns: int, together: int, threads: int, warp: int, line: int = _LINE) -> Lanes:
    """The lanes of each of so many rows of a tile, of which each thread has so many neighbours `together`."""
    lanes, few = 1, line if together == NEIGHBOURS else warp
    while lanes * 2 * together <= columns and threads % (lanes * 2) == 0 and (lanes < few or threads // lanes > rows):
        lanes *= 2
    return Lanes(lanes, together)


def shared_words(role: RoleOp, warp: int) -> int:
    """Words of shared memory by which warps of a role hand each other what they have of a row: one for each, if any.
    In a cluster there are those of `cluster_words` in front."""
    axes, reducing = infer_axes(role.body), _reducing(role)
    if not reducing:
        return 0
    if cluster_of(role) > 1:
        return cluster_words(role, warp) + _warps(role)
    wide = any(lanes_for(op, axes, warp * _warps(role), warp).count > warp for op in reducing)
    return _warps(role) if wide or any(_reduces_rows(op, axes) for op in reducing) else 0


def cluster_words(role: RoleOp, warp: int) -> int:
    """Words of shared memory by which CTAs of a cluster hand each other what the warps of a role have of rows: an
    mbarrier for each place, and words for each row and CTA, as what comes next arrives beside what is read; behind
    them one for each warp, where several have one row and one of these sends."""
    arch, rows = target_of(role).arch, rows_at_once(role, warp)
    barriers = EXCHANGES * arch.mbarrier_bytes // arch.register_bytes
    return barriers + EXCHANGES * cluster_of(role) * rows + (_warps(role) if rows < _warps(role) else 0)


def rows_at_once(role: RoleOp, warp: int) -> int:
    """How many rows at most the warps of a role reduce at a time, if each row is one warp's or that of several."""
    axes, warps = infer_axes(role.body), _warps(role)
    lanes = (lanes_for(op, axes, warp * warps, warp).count for op in _reducing(role))
    return max((warps // max(1, count // warp) for count in lanes), default=0)


def _warps(role: RoleOp) -> int:
    return role.warps.value.data if role.warps is not None else 0


def _reducing(role: RoleOp) -> list[TasksOp]:
    """The tasks of a role whose warps share rows, if it has warps, and reduce them."""
    tasks = (op for op in role.walk() if isinstance(op, TasksOp) and is_spread(op)) if _warps(role) else ()
    return [op for op in tasks if any(isinstance(inner, RowReduction | CumSumOp) for inner in op.walk())]


def _reduces_rows(tasks: TasksOp, axes: Mapping[SSAValue, tuple[int, ...]]) -> bool:
    """Whether what is reduced is one number for each row, of which other warps have others."""
    return any(isinstance(op, RowReduction) and axes[op.tile] == (0,) for op in tasks.walk())
