"""Operands that their owners push to every rank: when that is possible, and the loops that the owner runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, BlockArgument, SSAValue

from pkc.dialect.by_table import GatherOp
from pkc.dialect.coordinates import BlockCountOp, BlockOp, BlockPositionOp, DimOp, RingPeerOp
from pkc.dialect.tile import block_type
from pkc.dialect.types import RANKS
from pkc.passes.analysis.dependence import differs_by_rank, sources
from pkc.passes.build import append
from pkc.passes.program_slices import Known, iterations_of
from pkc.passes.roles.remote_accesses import Read, shard_of


class CannotPushError(Exception):
    """The owner of a tile cannot know who reads it."""


@dataclass(frozen=True)
class Push:
    """How the loops of a read of all shards become those of an owner, which goes through its local shard.

    Of a list of all blocks (`shard` is nothing) the owner takes those of its shard: another count of `block`'s index.
    Of a loop over `ranks`, and over the blocks of each rank's `shard`, it takes the iteration of its rank.
    """

    block: BlockOp
    shard: SSAValue | None
    over: SSAValue
    """The loop variable that goes over the blocks of all ranks, or over the ranks."""
    ranks: SSAValue | None
    """The loop variable that goes over the ranks, if any: there is no such loop any more."""

    def loops(self, loops: Sequence[SSAValue]) -> list[SSAValue]:
        """The loops that are left."""
        return [variable for variable in loops if variable is not self.ranks]

    def enter(self, block: Block, rank: SSAValue | None, known: Known) -> None:
        """Before loops are copied: make the owner's lists those of its shard, or without a rank those of all shards."""
        if self.shard is not None and rank is not None:
            known[self.shard] = rank
            return
        count = BlockCountOp(block_type(self.block.result), shard=rank, sharded=self.block.sharded is not None)
        known[iterations_of(self.over)] = append(block, count, self.block.location).result

    def inside(self, block: Block, rank: SSAValue | None, known: Known) -> None:
        """Make the owner's block, inside its loops."""
        if self.shard is not None:
            return
        kind, sharded = block_type(self.block.result), self.block.sharded is not None
        made = append(block, BlockOp(known[self.over], kind, shard=rank, sharded=sharded), self.block.location)
        made.result.name_hint = self.block.result.name_hint
        known[self.block.result] = made.result


def push_of(read: Read, loops: Sequence[SSAValue]) -> Push:
    """How a read inside these loops becomes a push. Raises `CannotPushError` with the reason."""
    if isinstance(read, GatherOp):
        raise CannotPushError("a table says which rows a rank reads, and their owner does not know it")
    split = read.indices[shard_of(read.array)]
    block = split.owner.block.owner if isinstance(split.owner, BlockPositionOp) else split.owner
    if not isinstance(block, BlockOp):
        raise CannotPushError("what is read is not a block of the sharded dimension")
    push = _of_all(block) if block.shard is None else _of_shards(block, block.shard)
    counts = [iterations_of(variable) for variable in loops if variable is not push.over]
    others = [value for value in read.indices if value is not split]
    given = () if push.shard is None else (push.shard,)
    # The owner's block is made inside its loops: their counts cannot depend on it.
    needed = sources(others, given=(*given, block.result)) | sources(counts, given=given)
    if push.over in needed or (push.shard is None and iterations_of(push.over) in counts):
        raise CannotPushError("what is read beside it depends on whose shard it is")
    if any(map(differs_by_rank, needed)):
        raise CannotPushError("ranks read different tiles, and their owner does not know who needs which")
    return push


def ring_of(read: Read, loops: Sequence[SSAValue]) -> Push | None:
    """Of a read in a loop over all ranks and one over the blocks of each rank's shard: one loop over all blocks."""
    index = None if isinstance(read, GatherOp) else read.indices[shard_of(read.array)]
    block = index.owner if index is not None else None
    if not isinstance(block, BlockOp) or block.shard is None or block.sharded is None or block.index not in loops:
        return None
    try:
        ranks = _of_shards(block, block.shard).over
    except CannotPushError:
        return None
    listed = iterations_of(block.index).owner
    alike = (
        isinstance(listed, BlockCountOp) and listed.block == block_type(block.result) and listed.shard is block.shard
    )
    counts = [iterations_of(variable) for variable in loops if variable is not block.index]
    needed = sources([*read.indices, *counts], given=(block.result,))
    return Push(block, None, block.index, ranks) if alike and needed.isdisjoint((ranks, block.index)) else None


def _of_all(block: BlockOp) -> Push:
    over = block.index
    made = iterations_of(over).owner if isinstance(over, BlockArgument) else None
    if not isinstance(made, BlockCountOp) or made.block != block_type(block.result) or made.operands:
        raise CannotPushError("not all of the sharded dimension is read")
    return Push(block, None, over, None)


def _of_shards(block: BlockOp, shard: SSAValue) -> Push:
    over = shard.owner.step if isinstance(shard.owner, RingPeerOp) else shard
    loop = over.owner.parent_op() if isinstance(over, BlockArgument) else None
    if not isinstance(loop, scf.ForOp) or over is not loop.body.block.args[0] or not _is_all_ranks(loop):
        raise CannotPushError("not the shards of all ranks are read")
    return Push(block, shard, over, over)


def _is_all_ranks(loop: scf.ForOp) -> bool:
    first, last, step = (value.owner for value in (loop.lb, loop.ub, loop.step))
    return _is(first, 0) and _is(step, 1) and isinstance(last, DimOp) and last.dim.data == RANKS


def _is(owner: object, number: int) -> bool:
    return (
        isinstance(owner, arith.ConstantOp)
        and isinstance(owner.value, IntegerAttr)
        and owner.value.value.data == number
    )
