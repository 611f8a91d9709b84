"""The pass `pk-stage-axes`: what threads have along rows, and need along columns, goes through shared memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect.program import KernelOp, RoleOp
from pkc.dialect.reductions import RowReduction
from pkc.dialect.roles import AcquireOp, ChannelOp, ChannelType, CommitOp, ConsumeOp, ReleaseOp
from pkc.dialect.scans import CumSumOp
from pkc.dialect.tile import ClipOp, TransposeOp, tile_type
from pkc.passes.analysis.dependence import enclosing_tasks
from pkc.passes.analysis.pointwise import is_spread
from pkc.passes.analysis.register_axes import infer_axes, lying_both_ways
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.role_values import names_in


class StageAxes(KernelPass):
    """Write a tile into a stage, where threads have elements of its rows and need those of its columns:

    - a tile of one axis, such as the result of a row reduction, that is spread along the columns of another tile, or is
      summed, or reduced beside an MMA (`pk-part-axes` makes again what can be made again);
    - a tile that is computed, and transposed for anything but a stage, into which threads write either way.

    The stages are those of a channel from the role to itself. When all its warps have written their elements, each
    thread reads those that it needs.

    Before:

        %s = pk.row_sum %y : !pk.tile<64x32xf32> -> !pk.tile<64xf32>
        %c = pk.broadcast %s axes [1] : !pk.tile<64xf32> -> !pk.tile<64x64xf32>
        %d = pk.add %x, %c : !pk.tile<64x64xf32>

    After:

        %0 = pk.channel "s" stages 1 : !pk.channel<!pk.tile<64xf32>>
        ...
        %s = pk.row_sum %y : !pk.tile<64x32xf32> -> !pk.tile<64xf32>
        pk.acquire %0 : ...
        pk.commit %0, %s : ...
        %s_1 = pk.consume %0 : ...
        %c = pk.broadcast %s_1 axes [1] : !pk.tile<64xf32> -> !pk.tile<64x64xf32>
        %d = pk.add %x, %c : !pk.tile<64x64xf32>
        pk.release %0 : ...
    """

    name = "pk-stage-axes"

    def run(self, kernel: KernelOp) -> None:
        for role in kernel.roles:
            for op in [op for op in role.walk() if isinstance(op, TransposeOp) and _is_needed(op)]:
                _stage(kernel, role, op.tile, [op])
            for tile, ops in _spread(role).items():
                _stage(kernel, role, tile, ops)
            for op in [op for op in role.walk() if isinstance(op, CumSumOp)]:
                _sums(kernel, role, op)
            for tile, ops in _reduced(role).items():
                _stage(kernel, role, tile, ops)


def _is_needed(op: TransposeOp) -> bool:
    """Whether threads need elements of a transpose that other threads have."""
    return not _is_staged(op.tile) and not all(isinstance(use.operation, CommitOp) for use in op.result.uses)


def _is_staged(tile: SSAValue) -> bool:
    while isinstance(tile.owner, TransposeOp | ClipOp):
        tile = tile.owner.tile
    return isinstance(tile.owner, ConsumeOp)


def _sums(kernel: KernelOp, role: RoleOp, op: CumSumOp) -> None:
    """Sums along a tile of one axis have its elements, and are used, along columns."""
    if infer_axes(role.body).get(op.tile) != (0,):
        return
    _stage(kernel, role, op.tile, [op])
    if infer_axes(role.body).get(op.result) == (0,):
        _stage(kernel, role, op.result, [use.operation for use in op.result.uses])


def _spread(role: RoleOp) -> dict[SSAValue, list[Operation]]:
    """Tiles of one axis that lie along rows, and where they are spread along columns."""
    found: dict[SSAValue, list[Operation]] = {}
    for op in lying_both_ways(role.body):
        found.setdefault(op.tile, []).append(op)
    return found


def _reduced(role: RoleOp) -> dict[SSAValue, list[Operation]]:
    """Tiles of one axis that lie along rows, and where they are reduced; without MMAs, warps have them whole."""
    axes, found = infer_axes(role.body), dict[SSAValue, list[Operation]]()
    for op in [op for op in role.walk() if isinstance(op, RowReduction) and tile_type(op.tile).rank == 1]:
        if axes.get(op.tile) == (0,) and not all(map(is_spread, enclosing_tasks(op))):
            found.setdefault(op.tile, []).append(op)
    return found


def _stage(kernel: KernelOp, role: RoleOp, tile: SSAValue, users: Sequence[Operation]) -> None:
    """Let operations have a tile from a stage, which is filled before the first of them in the block that makes it."""
    owner = tile.owner
    block = owner if isinstance(owner, Block) else owner.parent
    assert block is not None
    places = [_within(block, op) for op in users]
    first = min(places, key=block.get_operation_index)
    channel = ChannelOp(tile.name_hint or "columns", 1, ChannelType([tile_type(tile)]))
    consume = ConsumeOp(channel.result)
    staged = consume.results[0]
    staged.name_hint = tile.name_hint
    for op in users:
        for index, operand in enumerate(op.operands):
            if operand is tile:
                op.operands[index] = staged
    uses = (use for name in names_in(block, staged) for use in name.uses)
    last = max((_within(block, use.operation) for use in uses), key=block.get_operation_index)
    before: list[Operation] = [AcquireOp(channel.result), CommitOp(channel.result, [tile]), consume]
    release = ReleaseOp(channel.result)
    for op in (channel, *before, release):
        op.location = users[0].location
    kernel.body.block.insert_op_before(channel, role)
    block.insert_ops_before(before, first)
    block.insert_op_after(release, last)


def _within(block: Block, op: Operation) -> Operation:
    found = block.find_ancestor_op_in_block(op)
    assert found is not None
    return found
