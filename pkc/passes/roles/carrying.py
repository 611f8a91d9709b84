"""What the threads of a role do with tiles: carry them, copy rows that a table names, add them up."""

from __future__ import annotations

from math import prod

from xdsl.ir import Operation

from pkc.dialect.access import AddToArrayOp, AllReduceOp, LoadOp, ReduceOp, Scatter, StoreOp
from pkc.dialect.by_table import GatherOp
from pkc.dialect.pk import TILE
from pkc.dialect.program import RoleOp, packed
from pkc.dialect.roles import CommitOp
from pkc.dialect.tile import tile_type
from pkc.dialect.transfers import moves_async, needs_threads, stage_of
from pkc.dialect.types import TileType, dtype_bytes, i32
from pkc.passes.roles.straddling import on_several_ranks
from pkc.targets.layout import CHUNK
from pkc.targets.target import target_of

_LONG = 512
"""So many elements of a row, which threads move one by one, are no short row."""

_MAKE_TILES = frozenset((*TILE, ReduceOp))


def unpacks(role: RoleOp) -> bool:
    """Whether threads of a role load tiles from packets."""
    return any(isinstance(op, LoadOp) and packed(op) for op in role.walk())


def sends_packets(role: RoleOp) -> bool:
    """Whether threads of a role store tiles in packets."""
    return any(isinstance(op, StoreOp) and packed(op) for op in role.walk())


def carries_tiles(role: RoleOp) -> bool:
    """Whether threads of a role move tiles, not short rows, between arrays and stages, each tile to one rank."""
    return any(map(is_carried, role.walk()))


def is_carried(op: Operation) -> bool:
    """Whether threads carry the tile of an access between an array and a stage."""
    if isinstance(op, Scatter):
        return True
    if isinstance(op, StoreOp | AddToArrayOp):
        return (
            needs_threads(op)
            and stage_of(op.tile) is not None
            and not on_several_ranks(op)
            and _is_long(tile_type(op.tile))
        )
    if not isinstance(op, LoadOp | GatherOp) or not needs_threads(op):
        return False
    return _is_long(tile_type(op.result)) and any(isinstance(use.operation, CommitOp) for use in op.result.uses)


def _is_long(kind: TileType) -> bool:
    """Whether a tile has rows, or is a row that takes the threads of a warp long."""
    return kind.rank > 1 or prod(kind.shape) >= _LONG


def copied_rows(role: RoleOp) -> list[GatherOp]:
    """The gathers whose rows threads copy, which go on while these are on their way."""
    return [op for op in role.walk() if isinstance(op, GatherOp) and moves_async(op)]


def rows_of_a_thread(op: GatherOp, warps: int) -> int:
    """Of how many rows each of the threads of so many warps copies a chunk, and so keeps the address; 0 if not all copy
    as many, or too many."""
    if not op.of_rows:
        return 0
    kind, target = tile_type(op.result), target_of(op)
    threads = warps * target.arch.warp
    chunks = prod(kind.shape) * dtype_bytes(kind.element_type) // CHUNK
    known = isinstance(op.rows.owner, Operation) and op.rows.owner.parent is not op.parent
    return chunks // threads if known and chunks % threads == 0 and chunks <= target.threads.addresses * threads else 0


def gathers(role: RoleOp) -> bool:
    """Whether threads load rows that a table picks, or tiles that are here or elsewhere, several at once."""
    return any(
        (isinstance(op, GatherOp) and needs_threads(op) and not moves_async(op))
        or (isinstance(op, LoadOp) and op.local is not None and is_carried(op))
        for op in role.walk()
    )


def adds(role: RoleOp) -> bool:
    """Whether a role computes with tiles; positions of rows in a table are addresses."""
    made = (op for op in role.walk() if type(op) in _MAKE_TILES)
    types = [result.type for op in made for result in op.results]
    tables = [kind for kind in types if isinstance(kind, TileType) and kind.element_type == i32 and kind.rank == 1]
    return len(tables) < len(types) or any(isinstance(op, AllReduceOp) for op in role.walk())
