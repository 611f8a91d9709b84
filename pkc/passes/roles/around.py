"""Rows that begin anywhere in memory, and come to a stage with what lies around them."""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.ir import Block, SSAValue

from pkc.dialect.access import AddToArrayOp, LoadOp, Scatter, StoreOp
from pkc.dialect.coordinates import BlockOp
from pkc.dialect.program import kernel_of, packed
from pkc.dialect.roles import CommitOp, ConsumeOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import TransposeOp, block_type, tile_type
from pkc.dialect.transfers import TMA, never_read_axes
from pkc.dialect.types import BlockType, PrivateType, dtype_bytes
from pkc.passes.analysis.clusters import cluster_of
from pkc.passes.analysis.pointwise import is_spread
from pkc.passes.analysis.row_lengths import between_rows
from pkc.targets.layout import AROUND, CHUNK
from pkc.targets.target import target_of

_ROWS = 2
"""Axes of a tile whose rows begin at equal distances."""


def rows_begin_anywhere(op: LoadOp | StoreOp) -> bool:
    """Whether the rows of an access are long, and are or begin at no multiple of what TMA moves."""
    kind = tile_type(op.result if isinstance(op, LoadOp) else op.tile)
    row = kind.shape[-1] * dtype_bytes(kind.element_type) if kind.rank else 0
    if row < AROUND or TMA not in target_of(op).transfers or cluster_of(op) > 1 or packed(op):
        return False
    return isinstance(op.indices[-1].type, BlockType) and (row % CHUNK != 0 or between_rows(op) % CHUNK != 0)


def surely_whole(block: SSAValue) -> bool:
    """Whether a block is whole, whatever the sizes are: one of a list that has no other, or no later one than these."""
    op = block.owner
    if not isinstance(op, BlockOp):
        return True
    kind = block_type(block)
    start = 0 if op.start is None else constant_of(op.start)
    stop = kind.of if op.stop is None else constant_of(op.stop)
    if start is None or not isinstance(stop, int) or op.in_shard:
        return False
    ends = _ends(op.index)
    last = ends[1] if ends is not None else None
    return (stop - start) % kind.extent == 0 or (last is not None and start + (last + 1) * kind.extent <= stop)


def _ends(number: SSAValue) -> tuple[int, int] | None:
    """The least and the greatest that an integer is in a loop over constants, as it is, or counted backwards."""
    op, known = number.owner, constant_of(number)
    if known is not None:
        return known, known
    if isinstance(op, arith.SubiOp):
        a, b = _ends(op.lhs), _ends(op.rhs)
        return None if a is None or b is None else (a[0] - b[1], a[1] - b[0])
    loop = op.parent_op() if isinstance(op, Block) else None
    if not isinstance(loop, scf.ForOp) or number is not loop.body.block.args[0]:
        return None
    first, stop = constant_of(loop.lb), constant_of(loop.ub)
    return None if first is None or stop is None else (first, stop - 1)


def comes_with_more(op: LoadOp) -> bool:
    """Whether a tile's rows, which begin anywhere, can each come with what lies around it: as all that goes through the
    same stages, of which threads go through the rows, or store them."""
    kernel, commits = kernel_of(op), [use.operation for use in op.result.uses]
    if kernel is None or not is_spread(kernel) or len(commits) != 1 or not isinstance(commits[0], CommitOp):
        return False
    channel, number = commits[0].channel, list(commits[0].tiles).index(op.result)
    users = [use.operation for use in channel.uses]
    made = [user.tiles[number].owner for user in users if isinstance(user, CommitOp)]
    read = [user.tiles[number] for user in users if isinstance(user, ConsumeOp)]
    return all(isinstance(load, LoadOp) and _fits_around(load) for load in made) and all(map(_goes_through_rows, read))


def _fits_around(op: LoadOp) -> bool:
    """Whether a copy of each row of a tile, with what lies around it, can bring the tile."""
    kind, target = tile_type(op.result), target_of(op)
    if TMA not in target.transfers or not target.shared_layout(kind).spare or kind.rank > _ROWS or packed(op):
        return False
    here = isinstance(op.array.type, PrivateType) and op.local is None and cluster_of(op) == 1
    blocks = [index for index in op.indices if isinstance(index.type, BlockType)]
    whole = all(axis in never_read_axes(op) or surely_whole(block) for axis, block in enumerate(blocks))
    inside = all(not isinstance(block.owner, BlockOp) or block.owner.outside is None for block in blocks)
    return here and whole and inside and len(list(op.result.uses)) == 1


def _goes_through_rows(tile: SSAValue) -> bool:
    """Whether threads read a staged tile as it lies, and store it, if they do, a row at a time."""
    for use in tile.uses:
        packs = isinstance(use.operation, StoreOp) and packed(use.operation)
        if packs or isinstance(use.operation, TransposeOp | AddToArrayOp | Scatter):
            return False
    return True
