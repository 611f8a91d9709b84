"""The pass `pk-straddle-shards`: which blocks end where the shards of arrays do."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation

from pkc.diagnostics import PkcError
from pkc.dialect.access import AccumulateOp, LoadOp, Store, places_of
from pkc.dialect.arrays import is_pgl
from pkc.dialect.by_table import ByTable, GatherOp, ScatterStoreOp
from pkc.dialect.coordinates import BlockCountOp, BlockOp, ZigzagPositionOp
from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.tile import block_type
from pkc.dialect.types import Layout
from pkc.location import span_of
from pkc.passes import plan_errors as errors
from pkc.passes.analysis.division import BlockList, block_lists, divides_freely
from pkc.passes.build import before
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.program_slices import from_memory
from pkc.passes.roles.remote_accesses import (
    RemoteAccess,
    Sum,
    address,
    array_name,
    divided_dim,
    is_divided,
    is_pushed,
    planned,
    shard_of,
)
from pkc.passes.roles.straddling import has_several_owners, may_straddle
from pkc.remarks import missed


class StraddleShards(KernelPass):
    """Let blocks of tasks straddle the ranks' shards of a dimension, if the schedule says `straddle`.

    With few rows for each rank, the rows of each owner would be a tile, most of it empty, and each tile reads all of
    the other operand. A tile that straddles shards is stored row by row where the rows belong. What it reads of other
    ranks is fetched ahead, shard by shard. Operands that the computing SM fetches itself cannot straddle shards: one
    TMA load reads rows of one rank.

    Loops over blocks stay as they are: another division of a sum would be another order of additions.

    Without `straddle`, blocks of a dimension that divides a replicated sum among its owners follow the owners' shards:
    each tile has one owner. Lists on whose division results depend stay as they are; tiles of the sum that come from
    such a list straddle the owners.

    Before:

        %rows = pk.block_count <M by 64> sharded
        pk.tasks (%i, %j) in (%rows, %columns) {
          %m = pk.block[%i] sharded : !pk.block<M by 64>

    After:

        %rows = pk.block_count <M by 64>
        pk.tasks (%i, %j) in (%rows, %columns) {
          %m = pk.block[%i] : !pk.block<M by 64>
    """

    name = "pk-straddle-shards"

    def run(self, kernel: KernelOp) -> None:
        if kernel.roles:
            return
        if may_straddle(kernel):
            _straddle(kernel)
        elif not kernel.in_any_order:
            _follow_owners(kernel)


def _straddle(kernel: KernelOp) -> None:
    lists = [found for op in kernel.walk() if isinstance(op, TasksOp) for found in _lists(op)]
    blocks = {block for _, _, found in lists for block in found}
    refused = [*_of_one_rank(kernel), *_refused(kernel, blocks)]
    if refused:
        raise PkcError(*refused)
    if not lists and not any(
        isinstance(op, AccumulateOp) and is_pgl(op.array, Layout.Replicate) for op in kernel.walk()
    ):
        reason = "no tasks go through all blocks of a dimension that an array shards"
        missed(StraddleShards.name, kernel, f"`straddle=true` changes nothing: {reason}")
    for tasks, place, found in lists:
        # A loop over the same list, which follows the shards as before, may have the same count.
        count = BlockCountOp(block_type(found[0].result))
        before(tasks, [count])
        tasks.operands[place] = count.result
        for block in found:
            block.sharded = None


def _follow_owners(kernel: KernelOp) -> None:
    """Let the blocks of dimensions that divide replicated sums among owners follow the shards."""
    divided = [op for op in kernel.walk() if isinstance(op, AccumulateOp) and is_divided(kernel, op)]
    for dim in dict.fromkeys(divided_dim(op) for op in divided):
        for found in list(block_lists(kernel, dim)):
            if divides_freely(found):
                _follow_shards(found)
    split = [op for op in divided if has_several_owners(op)]
    refused = [op for op in split if planned(op) in _WHOLE_TILES]
    if refused:
        raise PkcError(*(_cannot_count(op) for op in refused))
    for op in split:
        reason = f"tiles of `{array_name(op.array)}` go to several owners: results depend on where blocks of"
        missed(StraddleShards.name, op, f"{reason} `{divided_dim(op)}` end")


_WHOLE_TILES = ("none", "copy_engine")
"""Plans that count, or copy, whole tiles of one owner."""


def _cannot_count(op: AccumulateOp) -> errors.CannotStageSum:
    reason = f"results depend on where blocks of `{divided_dim(op)}` end, so that a tile has several owners"
    plan = f"with `overlap={planned(op)}` each has one"
    return errors.CannotStageSum(span_of(op.location), array_name(op.array), f"{reason}; {plan}")


def _follow_shards(found: BlockList) -> None:
    """Let the blocks of a list end where shards of their dimension do."""
    old, count = found.owner.operands[found.place].owner, BlockCountOp(found.kind, sharded=True)
    assert isinstance(old, Operation)
    before(old, [count])
    found.owner.operands[found.place] = count.result
    for block in found.blocks:
        block.sharded = UnitAttr()


def _lists(tasks: TasksOp) -> Iterator[tuple[TasksOp, int, list[BlockOp]]]:
    """The task indices that go through all blocks of a dimension, shard after shard: the place of each, its blocks."""
    for index, count in zip(tasks.body.block.args, tasks.counts, strict=True):
        blocks = [use.operation for use in index.uses]
        found = [op for op in blocks if isinstance(op, BlockOp) and op.sharded is not None and op.shard is None]
        length = count.owner
        if not isinstance(length, BlockCountOp) or length.sharded is None or length.shard is not None:
            continue
        if not found:
            continue
        if any(isinstance(use.operation, ZigzagPositionOp) for op in found for use in op.result.uses):
            reason = "in zigzag order, blocks have positions within one shard"
        elif len(found) == len(blocks) and all(block_type(op.result) == length.block for op in found):
            yield tasks, index.index, found
            continue
        else:
            reason = "their index does not only number these blocks"
        missed(StraddleShards.name, tasks, f"blocks of `{length.block.of}` end where the ranks' shards do: {reason}")


def _of_one_rank(kernel: KernelOp) -> Iterator[errors.CannotStraddle]:
    for op in kernel.walk():
        if isinstance(op, BlockOp) and op.sharded is not None and op.shard is not None:
            what = f"this list of blocks of `{block_type(op.result).of}`"
            yield errors.CannotStraddle(span_of(op.location), what, "it lists the blocks of one rank's shard")


def _refused(kernel: KernelOp, blocks: Collection[BlockOp]) -> Iterator[errors.CannotStraddle]:
    for op in kernel.walk():
        if isinstance(op, LoadOp | Store | Sum | GatherOp) and _is_split(op, blocks) and (reason := _reason(op)):
            what = f"this access to `{array_name(op.array)}`"
            yield errors.CannotStraddle(span_of(op.location), what, reason)


def _is_split(op: RemoteAccess | ScatterStoreOp, blocks: Collection[BlockOp]) -> bool:
    """Whether the tile of an access gets rows of several ranks."""
    if is_pgl(op.array, Layout.Replicate):
        return isinstance(op, AccumulateOp)
    if not is_pgl(op.array, Layout.Shard):
        return False
    return places_of(op)[shard_of(op.array)].owner in blocks


def _reason(op: RemoteAccess | ScatterStoreOp) -> str:
    """Why an access cannot have rows of several ranks; empty if it can."""
    if isinstance(op, ByTable):
        return "a table says which rows it has, and they lie on several ranks"
    if planned(op) == "copy_engine":
        return "a copy engine copies boxes of one rank"
    if isinstance(op, AccumulateOp) and planned(op) == "none":
        return "with `overlap=none` owners count the tiles of their rows"
    if not isinstance(op, LoadOp):
        return ""
    if planned(op) == "intra_sm":
        return "the SM that computes fetches it, rows of one rank at a time"
    if from_memory(op, address(op)):
        return "elements of an array decide what is read, so that each launch would have another number of copies"
    return "its owner pushes it, and does not know which tiles of other ranks have its rows" if is_pushed(op) else ""
