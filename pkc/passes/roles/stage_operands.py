"""The pass `pk-stage-operands`: operands of MMAs that are computed go through shared memory, where MMAs read them."""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect.program import KernelOp, RoleOp
from pkc.dialect.roles import AcquireOp, ChannelOp, ChannelType, CommitOp, ConsumeOp, ReleaseOp
from pkc.dialect.tile import CastOp, ClipOp, MmaOp, TransposeOp, tile_type
from pkc.dialect.transfers import mma_operand_stage
from pkc.dialect.types import dtype_bytes
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed
from pkc.targets.target import Operands, target_of


class StageOperands(KernelPass):
    """Write operands of MMAs that a role computes into a stage, unless the MMA can read them in registers: left ones of
    16 bits that are not transposed. So do operands in stages that are not of 16 bits and do not lie along the dimension
    that is summed over, as tensor cores read them: threads write them the other way round.

    The stages are those of a channel from the role to itself: when all its warps have written their rows, each
    warpgroup reads what it needs of them. With two stages the MMAs of one iteration read while the next tile is
    computed (`pk-plan-mma`).

    Before:

        %w = pk.cast %b : ... -> !pk.tile<64x128xbf16>
        %acc_1 = pk.mma %a, %w, %acc : ...

    After:

        %0 = pk.channel "w" stages 1 : !pk.channel<!pk.tile<64x128xbf16>>
        ...
        %w = pk.cast %b : ... -> !pk.tile<64x128xbf16>
        pk.acquire %0 : ...
        pk.commit %0, %w : ...
        %w_1 = pk.consume %0 : ...
        %acc_1 = pk.mma %a, %w_1, %acc : ...
        pk.release %0 : ...
    """

    name = "pk-stage-operands"

    def run(self, kernel: KernelOp) -> None:
        for role in kernel.roles:
            for mma in [op for op in role.walk() if isinstance(op, MmaOp)]:
                for index in (0, 1):
                    operand = mma.operands[index]
                    if _is_computed(operand) and (index or _needs_memory(operand)):
                        _stage(kernel, role, mma, index)
                    elif _lies_otherwise(mma, index):
                        _turn(mma, index)
                        _stage(kernel, role, mma, index)


def _is_computed(operand: SSAValue) -> bool:
    return not _is_staged(operand) and not isinstance(_untransposed(operand).owner, Block)


def _is_staged(operand: SSAValue) -> bool:
    """Whether an operand lies in a stage, where what lies past its end may be cleared (`pk-clip-operands`)."""
    made = operand.owner.tile if isinstance(operand.owner, TransposeOp) else operand
    if isinstance(made.owner, ClipOp) and mma_operand_stage(made.owner.tile) is not None:
        return not _along_sum(made) and made.owner.axis.value.data == 0
    return mma_operand_stage(operand) is not None


def _untransposed(operand: SSAValue) -> SSAValue:
    """The tile of which an operand is the transpose, masks aside; else the operand."""
    found = operand
    while isinstance(found.owner, ClipOp):
        found = found.owner.tile
    return found.owner.tile if isinstance(found.owner, TransposeOp) else operand


def _needs_memory(left: SSAValue) -> bool:
    """Of 8 and 32 bits, registers of an accumulator do not have the elements that the MMA expects in them."""
    return _untransposed(left) is not left or _along_sum(left)


def _along_sum(operand: SSAValue) -> bool:
    """Whether tensor cores read elements of a type only along the dimension that is summed over: all but 16 bits."""
    return dtype_bytes(tile_type(operand).element_type) != _EITHER_WAY


def _lies_otherwise(mma: MmaOp, index: int) -> bool:
    """Whether an operand lies in a stage in the way in which tensor cores cannot read it."""
    operand = mma.operands[index]
    if not _along_sum(operand) or target_of(mma).mma.operands is Operands.REGISTERS or not _is_staged(operand):
        return False
    return (_untransposed(operand) is operand) == (index == 1)


def _turn(mma: MmaOp, index: int) -> None:
    """Make an operand the transpose of one that threads compute, from the tile that lies otherwise."""
    operand = mma.operands[index]
    missed(StageOperands.name, mma, f"threads write the {_SIDES[index]} operand the other way round: {_WHY}")
    there = TransposeOp(operand) if index else None
    back = CastOp(operand if there is None else there.result, tile_type(operand).element_type)
    made: list[Operation] = [back] if there is None else [there, back, TransposeOp(back.result)]
    for op in made:
        op.location = mma.location
    assert mma.parent is not None
    mma.parent.insert_ops_before(made, mma)
    mma.operands[index] = made[-1].results[0]


_SIDES = ("left", "right")
_WHY = "tensor cores read elements that have not 16 bits only along the dimension that is summed over"
_EITHER_WAY = 2
"""Bytes of elements that tensor cores read both ways."""


def _masked(operand: SSAValue, made: SSAValue) -> SSAValue:
    """`made`, of which an operand is the transpose, with the masks of the operand."""
    clips: list[ClipOp] = []
    while isinstance(operand.owner, ClipOp):
        clips.append(operand.owner)
        operand = operand.owner.tile
    for clip in reversed(clips):
        mask = ClipOp(made, clip.block, 1 - clip.axis.value.data, clip.constant)
        mask.location = clip.location
        assert clip.parent is not None
        clip.parent.insert_op_before(mask, clip)
        made = mask.result
    return made


def _stage(kernel: KernelOp, role: RoleOp, mma: MmaOp, index: int) -> None:
    operand = mma.operands[index]
    turned = _untransposed(operand) is not operand
    made = _masked(operand, _untransposed(operand)) if turned else operand
    maker = made.owner
    assert isinstance(maker, Operation)
    block = maker.parent
    assert block is not None
    last = block.find_ancestor_op_in_block(mma)
    assert last is not None
    channel = ChannelOp(made.name_hint or "operand", 1, ChannelType([tile_type(made)]))
    channel.location = maker.location
    kernel.body.block.insert_op_before(channel, role)
    consume = ConsumeOp(channel.result)
    consume.results[0].name_hint = made.name_hint
    before: list[Operation] = [AcquireOp(channel.result), CommitOp(channel.result, [made]), consume]
    tile = consume.results[0]
    if turned:
        before.append(TransposeOp(tile))
        tile = before[-1].results[0]
    release = ReleaseOp(channel.result)
    for op in (*before, release):
        op.location = mma.location
    block.insert_ops_before(before, last)
    block.insert_op_after(release, last)
    mma.operands[index] = tile
    _drop_unused(operand)


def _drop_unused(value: SSAValue) -> None:
    """Other views of a tile that nothing uses any more."""
    while isinstance(value.owner, ClipOp | TransposeOp) and not list(value.uses):
        op, value = value.owner, value.owner.tile
        op.detach()
        op.erase()
