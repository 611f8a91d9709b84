"""MMAs whose products are used up by a chain: computed piece by piece, so that a product needs few registers."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Operation

from pkc.dialect.program import RoleOp
from pkc.dialect.roles import ConsumeOp, ReleaseOp
from pkc.dialect.tile import (
    PIECES,
    FullOp,
    MmaOp,
    TransposeOp,
    chain_of,
    chain_with,
    in_flight,
    pieces_of,
    reads_registers,
    tile_type,
)
from pkc.dialect.transfers import mma_operand_stage
from pkc.passes.analysis.chains import is_elementwise, takes
from pkc.passes.roles.budgets import tiles
from pkc.remarks import missed
from pkc.targets.target import target_of


def split_mmas(role: RoleOp, name: str) -> None:
    """Let MMAs that begin with zeros, and whose products a chain alone uses, be computed in pieces: as many as each
    warpgroup has times the rows of an MMA, and of their columns as few as fit into the registers. The first runs from
    where its operands are there, while what else the chain needs is awaited, each other one in the chain, behind the
    elements of the one before. Tensor cores have work meanwhile if there are other warpgroups; the pass `name` says
    where there are none.
    """
    for mma in [op for op in role.walk() if isinstance(op, MmaOp) and not pieces_of(op)]:
        chain = _chain_of_users(mma)
        if chain and _begins_with_zeros(mma) and not in_flight(mma) and _choose_pieces(role, mma):
            _split(mma, chain)
            if _warpgroups(role) == 1:
                missed(name, mma, "tensor cores are idle while its product is used: there is one warpgroup")


def _warpgroups(role: RoleOp) -> int:
    warps = role.warps.value.data if role.warps is not None else 0
    return max(1, warps // target_of(role).arch.warpgroup)


def _choose_pieces(role: RoleOp, mma: MmaOp) -> bool:
    """Plan the pieces of an MMA; false if it has only one."""
    (rows, columns), target = tile_type(mma.result).shape, target_of(mma)
    down, across = rows // (target.mma.rows * _warpgroups(role)), 1
    mma.attributes[PIECES] = IntegerAttr(down, i64)
    while any(tiles(role, target)) and columns % (2 * across * target.tuning.piece_columns) == 0:
        across *= 2
        mma.attributes[PIECES] = IntegerAttr(down * across, i64)
    if down * across < 2:
        del mma.attributes[PIECES]
    return down * across > 1


def _begins_with_zeros(mma: MmaOp) -> bool:
    """Also: whether its operands stay in their stages."""
    staged = mma_operand_stage(mma.a) is not None and mma_operand_stage(mma.b) is not None
    return staged and not reads_registers(mma) and isinstance(mma.acc.owner, FullOp) and mma.acc.owner.constant == 0


def _chain_of_users(mma: MmaOp) -> list[Operation]:
    """The chain that has all users of a product; nothing if there is none that ends in registers, with tiles of the
    shape of the product alone."""
    users = [use.operation for use in mma.result.uses]
    numbers = {chain_of(user) for user in users}
    if len(numbers) != 1 or None in numbers or any(user.parent is not mma.parent for user in users):
        return []
    chain = chain_with(users[0])
    kinds = {tile_type(op.results[0]).shape for op in chain if is_elementwise(op)}
    return chain if kinds == {tile_type(mma.result).shape} and not any(map(takes, chain)) else []


def _split(mma: MmaOp, chain: list[Operation]) -> None:
    block, last = mma.parent, chain[-1]
    assert block is not None
    stages = [mma_operand_stage(operand) for operand in (mma.a, mma.b)]
    first = max((stage for stage in stages if stage is not None), key=list(block.ops).index)
    _move_behind(mma, first)
    for stage in dict.fromkeys(stages):
        assert isinstance(stage, ConsumeOp)
        for release in [op for op in block.ops if isinstance(op, ReleaseOp) and op.channel is stage.channel]:
            if release.is_before_in_block(last):
                release.detach()
                block.insert_op_after(release, last)


def _move_behind(mma: MmaOp, stage: Operation) -> None:
    """Move an MMA, with what shows its operands otherwise, to where the last of these is in its stage."""
    block = stage.parent
    assert block is not None
    views = [operand.owner for operand in (mma.b, mma.a) if isinstance(operand.owner, TransposeOp)]
    for op in (mma, *views):
        op.detach()
        block.insert_op_after(op, stage)
