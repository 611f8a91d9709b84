"""Reductions of one number for each row, which the threads that share a row all have."""

from __future__ import annotations

from xdsl.ir import SSAValue

from pkc.dialect.reductions import RowReduction
from pkc.dialect.tile import tile_type
from pkc.dialect.types import f32
from pkc.passes.machine.lowering import exchange
from pkc.passes.machine.lowering.context import WarpRole
from pkc.passes.machine.lowering.elements import apply, constant
from pkc.passes.machine.lowering.fragments import RegisterTile, Value, element
from pkc.passes.machine.lowering.spread import row


def reduce(role: WarpRole, op: RowReduction, source: Value, target: RegisterTile) -> None:
    """Over the rows that a thread has, then over threads of other rows in its warp, then over warps."""
    emit, fragment, kind = role.emit, source.fragment, tile_type(op.result).element_type
    shuffle, warp = "shuffle_xor" if kind == f32 else "shuffle_xor_i32", role.threads.arch.warp
    neutral, at = constant(emit, op.NEUTRAL[kind], kind), emit.const(0)
    emit.set(neutral, target.registers, at)
    with emit.loop(0, fragment.count, unroll=True) as number:
        found = element(role, source, number)
        if fragment.cut:
            found = emit.select(emit.compare("slt", row(role, fragment, number), fragment.shape[0]), found, neutral)
        emit.set(apply(emit, op, op.COMBINE, [emit.get(target.registers, at), found]), target.registers, at)
    distance = fragment.lanes
    while distance < warp:
        mine = emit.get(target.registers, at)
        other = emit.value(shuffle, mine, emit.const(distance))
        emit.set(apply(emit, op, op.COMBINE, [mine, other]), target.registers, at)
        distance *= 2
    if role.threads.warps > max(1, fragment.lanes // warp):
        combine_warps(role, op, target, at, warps=role.threads.warps, step=max(1, fragment.lanes // warp))
    role.tiles[op.result] = target


def combine_warps(
    role: WarpRole,
    op: RowReduction,
    target: RegisterTile,
    at: SSAValue,
    *,
    warps: int,
    step: int = 1,
) -> None:
    """One word of shared memory for each warp, of which each group of `warps` combines every `step`-th: all have read
    the ones before when the next are written."""
    emit, threads = role.emit, role.threads
    barrier, real = threads.sync, target.element_type == f32
    mine = emit.minus(threads.warp, threads.first)
    words = emit.plus(role.launch.base, role.words + exchange.behind(role))
    emit.do(barrier)
    with emit.when(emit.compare("eq", threads.lane, 0)):
        bits = emit.value("bits_f32" if real else "bits_i32", emit.get(target.registers, at))
        emit.do("store_shared_b32", emit.plus(words, emit.times(mine, 4)), bits)
    emit.do(barrier)
    first = emit.plus(words, emit.times(emit.over(mine, warps), 4 * warps))
    for warp in range(0, warps, step):
        bits = emit.value("load_shared_b32", emit.plus(first, 4 * warp))
        found = emit.value("float_bits" if real else "int_bits", bits)
        both = found if not warp else apply(emit, op, op.COMBINE, [emit.get(target.registers, at), found])
        emit.set(both, target.registers, at)
