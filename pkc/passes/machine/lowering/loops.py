"""Loops of a role: what they carry stays in registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect.tile import MmaOp, in_flight, tile_type
from pkc.dialect.types import TileType
from pkc.passes.machine.lowering import flat, fragments, mma, spread
from pkc.passes.machine.lowering.context import WarpRole
from pkc.passes.machine.lowering.fragments import RegisterTile

LowerBlock = Callable[[WarpRole, Block], None]
LowerOps = Callable[[WarpRole, Sequence[Operation]], None]


def lower(role: WarpRole, op: scf.ForOp, lower_block: LowerBlock, lower_ops: LowerOps) -> None:
    """A loop; where a role goes over tiles in chunks, and it can, several iterations at once load first."""
    emit, body = role.emit, op.body.block
    carried = [_carry(role, op, start, inside) for start, inside in zip(op.iter_args, body.args[1:], strict=True)]
    first, last, step = (role.known[x] for x in (op.lb, op.ub, op.step))
    ahead = flat.loads_ahead(body) if role.together else []
    for together in role.together if ahead else ():
        first = _together(role, op, carried, (first, last, step), ahead, together, lower_ops)
    with emit.loop(first, last, step) as index:
        index.name_hint = body.args[0].name_hint
        role.known[body.args[0]] = index
        for argument, target in zip(body.args[1:], carried, strict=True):
            bind(role, argument, target)
        lower_block(role, body)
        _yield(role, body, carried)
    for result, target in zip(op.results, carried, strict=True):
        bind(role, result, target)
    if issued := [inner for inner in body.ops if isinstance(inner, MmaOp) and in_flight(inner)]:
        mma.finish(role, issued)


def _together(
    role: WarpRole,
    op: scf.ForOp,
    carried: list[RegisterTile | SSAValue],
    bounds: tuple[SSAValue, SSAValue, SSAValue],
    ahead: Sequence[Operation],
    together: int,
    lower_ops: LowerOps,
) -> SSAValue:
    """Emit iterations in groups of `together`, each with its loads first; gives where the remaining ones begin."""
    emit, body = role.emit, op.body.block
    first, last, step = bounds
    stride = emit.times(step, together)
    groups = emit.over(emit.most(emit.minus(last, first), 0), stride)
    end = emit.plus(first, emit.times(groups, stride))
    results = [result for op in ahead for result in op.results]
    tables: tuple[dict[SSAValue, Any], ...] = (role.known, role.blocks, role.tiles)
    with emit.loop(first, end, stride) as index:
        made: list[list[tuple[dict[SSAValue, Any], SSAValue, Any]]] = []
        for iteration in range(together):
            role.known[body.args[0]] = emit.plus(index, emit.times(step, iteration))
            lower_ops(role, ahead)
            made.append([(table, result, table[result]) for result in results for table in tables if result in table])
        for found in made:
            for table, result, value in found:
                table[result] = value
            for argument, target in zip(body.args[1:], carried, strict=True):
                bind(role, argument, target)
            lower_ops(role, [op for op in body.ops if op not in ahead])
            _yield(role, body, carried)
    return end


def _carry(role: WarpRole, loop: scf.ForOp, start: SSAValue, inside: SSAValue) -> RegisterTile | SSAValue:
    """Registers for a value that a loop carries, known by one name `inside` of it, holding its first value."""
    if isinstance(start.type, TileType):
        known = fragments.as_elements(role, start)
        if isinstance(known, RegisterTile) and fragments.only_use(start, loop):
            return known
        fragment = spread.fragment_of(role, inside)
        target = fragments.allocate(role, fragment, tile_type(start).element_type, start.name_hint)
        fragments.copy(role, known, target)
        return target
    value = role.known[start]
    register = role.emit.registers(1, value.type, start.name_hint)
    role.emit.set(value, register, 0)
    return register


def bind(role: WarpRole, value: SSAValue, target: RegisterTile | SSAValue) -> None:
    if isinstance(target, RegisterTile):
        role.tiles[value] = target
    else:
        role.known[value] = role.emit.get(target, 0)


def _yield(role: WarpRole, body: Block, carried: list[RegisterTile | SSAValue]) -> None:
    """Write the values of the next iteration to the registers of this one; all are read before any is written."""
    last = body.last_op
    assert isinstance(last, scf.YieldOp)
    targets = [target.registers for target in carried if isinstance(target, RegisterTile)]
    pending: list[tuple[fragments.Value, RegisterTile]] = []
    for value, target in zip(last.operands, carried, strict=True):
        if not isinstance(target, RegisterTile):
            role.emit.set(role.known[value], target, 0)
            continue
        found = fragments.as_elements(role, value)
        if isinstance(found, RegisterTile) and found.registers is target.registers:
            continue
        if not isinstance(found, RegisterTile) or found.registers in targets:
            fresh = fragments.allocate(role, target.fragment, target.element_type, None)
            fragments.copy(role, found, fresh)
            found = fresh
        pending.append((found, target))
    for found, target in pending:
        fragments.copy(role, found, target)
