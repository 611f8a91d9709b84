"""The pass `pk-keep-tiles`: tiles that outlive the loop or branch that loads them, or that a loop carries for a store,
are in registers there."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue, Use

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

    And tiles that a loop carries, where the storer uses them inside: a copy goes through a channel, as every tile that
    an operation makes. Else the storer would carry the tile, too, and load and compute all that it is made of.

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
                if isinstance(op, scf.ForOp) and role_of(op) is Role.Consumer:
                    for value in op.body.block.args[1:]:
                        _pass_on(value)


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


def _pass_on(value: SSAValue) -> None:
    """Let the storer use copies of a tile that a loop carries: one in each block, in front of its first use there."""
    stored: dict[Block, list[Use]] = {}
    for use in value.uses if isinstance(value.type, TileType) else ():
        block = use.operation.parent
        if role_of(use.operation) is Role.Storer and block is not None:
            stored.setdefault(block, []).append(use)
    for block, uses in stored.items():
        ops = _copy(value)
        ops[-1].results[0].name_hint = value.name_hint
        before(min((use.operation for use in uses), key=block.get_operation_index), ops)
        for use in uses:
            use.operation.operands[use.index] = ops[-1].results[0]


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
