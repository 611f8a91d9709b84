"""The pass `pk-plan-mma`: which products stay in flight while the next one is issued."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from pkc.dialect.roles import ReleaseHeldOp, ReleaseOp, channel_of
from pkc.dialect.tile import IN_FLIGHT, OPERANDS, REGISTERS, MmaOp, reads_registers
from pkc.dialect.transfers import multiplied_from
from pkc.targets.target import Operands, target_of

_HELD = 1
"""Stages that a product in flight keeps: its own, until that of the next turn has come."""


@dataclass(frozen=True)
class PlanMma(ModulePass):
    """Let the tensor cores work on one product while the next one is issued.

    wgmma is asynchronous. Where a loop carries nothing but one accumulator, which only its product touches, the
    product of a turn need be complete only when the next one has been issued; then its stages are released, and those
    of the last turn behind the loop. With one stage the next turn could not begin before.

    Where the target multiplies from registers (mma.sync), each product is marked so, `operands = "registers"`: it is
    complete when the next instruction begins.

    Before:

        %acc_1 = scf.for ... iter_args(%acc_2 = %acc) -> (...) {
          %a, %b = pk.consume %0 : ...
          %acc_3 = pk.mma %a, %b, %acc_2 : ...
          pk.release %0 : ...
          scf.yield %acc_3 : ...
        }

    After:

        %acc_1 = scf.for ... iter_args(%acc_2 = %acc) -> (...) {
          %a, %b = pk.consume %0 : ...
          %acc_3 = pk.mma %a, %b, %acc_2 {in_flight = 1 : i64} : ...
          pk.release %0 held 1 : ...
          scf.yield %acc_3 : ...
        }
        pk.release_held %0 : ...
    """

    name = "pk-plan-mma"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for product in op.walk():
            if isinstance(product, MmaOp) and target_of(product).mma.operands is Operands.REGISTERS:
                product.attributes[OPERANDS] = StringAttr(REGISTERS)
        for loop in list(op.walk()):
            if isinstance(loop, scf.ForOp):
                _plan(loop)


def _plan(loop: scf.ForOp) -> None:
    body = loop.body.block
    products = [op for op in body.ops if isinstance(op, MmaOp)]
    if len(products) != 1 or len(loop.iter_args) != 1 or any(op.regions for op in body.ops):
        return
    product = products[0]
    if reads_registers(product):
        return
    carried = (
        isinstance(product.acc, BlockArgument) and product.acc.owner is body and _only_user(product.acc) is product
    )
    if not carried or _only_user(product.result) is not body.last_op:
        return
    stages = [multiplied_from(value) for value in (product.a, product.b)]
    channels = {stage.channel if stage is not None else None for stage in stages}
    released = [op for op in body.ops if isinstance(op, ReleaseOp)]
    if len(released) != len(channels):
        return
    if None in channels or {op.channel for op in released} != channels:
        return
    if any(channel_of(op.channel).depth <= _HELD or op.is_before_in_block(product) for op in released):
        return
    product.attributes[IN_FLIGHT] = IntegerAttr(1, i64)
    for op in released:
        op.held = IntegerAttr(_HELD, i64)
    rest = [ReleaseHeldOp(op.channel) for op in released]
    for op in rest:
        op.location = loop.location
    around = loop.parent
    assert around is not None
    around.insert_ops_after(rest, loop)


def _only_user(value: SSAValue) -> Operation | None:
    users = [use.operation for use in value.uses]
    return users[0] if len(users) == 1 else None
