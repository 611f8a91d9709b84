"""The pass `pk-keep-tiles`: tiles that outlive the loop or branch that loads them are in registers from there on."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect.attributes import Role, RoleAttr
from pkc.dialect.elementwise import AddOp
from pkc.dialect.program import KernelOp
from pkc.dialect.tile import CastOp, FullOp, tile_type
from pkc.dialect.types import FLOATS, TileType, f32, i32
from pkc.passes.build import before
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.assign_roles import ROLE, derived_roles, role_of
from pkc.passes.roles.role_values import names_in


class KeepTiles(KernelPass):
    """Copy tiles that leave the loop or branch that loads them: their stage is another tile's when it is over.

    A copy is a sum with -0.0, which changes no number, nor the sign of a zero; of narrow types after a cast, which
    loses nothing either way.

    Before:

        %a_1 = scf.if %inside -> (!pk.tile<128xf32>) {
          %x = pk.load %X[%m, %n : ...] {role = #pk<role_name loader>} : ...
          scf.yield %x : !pk.tile<128xf32>

    After:

        %a_1 = scf.if %inside -> (!pk.tile<128xf32>) {
          %x = pk.load %X[%m, %n : ...] {role = #pk<role_name loader>} : ...
          %0 = pk.full -0.000000e+00 : f32 {role = #pk<role_name consumer>} : !pk.tile<128xf32>
          %1 = pk.add %x, %0 {role = #pk<role_name consumer>} : !pk.tile<128xf32>
          scf.yield %1 : !pk.tile<128xf32>
    """

    name = "pk-keep-tiles"

    def run(self, kernel: KernelOp) -> None:
        for role_op in derived_roles(kernel):
            for op in list(role_op.body.walk()):
                block = op.parent
                if role_of(op) is Role.Loader and block is not None and isinstance(block.last_op, scf.YieldOp):
                    for value in op.results:
                        _keep(block, block.last_op, value)


def _keep(block: Block, end: scf.YieldOp, value: SSAValue) -> None:
    """Let what ends a block pass on copies of a tile, under whatever names it has there."""
    if not isinstance(value.type, TileType):
        return
    for name in names_in(block, value, Role.Consumer):
        for number, operand in enumerate(end.operands):
            if operand is name:
                ops = _copy(name)
                before(end, ops)
                end.operands[number] = ops[-1].results[0]


def _copy(value: SSAValue) -> list[Operation]:
    """Operations of consumers, of which the last one gives a tile in registers."""
    kind = tile_type(value)
    wide = f32 if kind.element_type in FLOATS else i32
    ops: list[Operation] = []
    if kind.element_type != wide:
        ops.append(CastOp(value, wide))
        value = ops[0].results[0]
    zero = FullOp(-0.0 if wide == f32 else 0, TileType(kind.shape, wide))
    ops += [zero, AddOp(value, zero.result)]
    if kind.element_type != wide:
        ops.append(CastOp(ops[-1].results[0], kind.element_type))
    for op in ops:
        op.attributes[ROLE] = RoleAttr(Role.Consumer)
    return ops
