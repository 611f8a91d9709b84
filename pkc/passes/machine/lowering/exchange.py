"""What CTAs of a cluster have of rows, handed to each other through their shared memory (PTX ISA: st.async)."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue

from pkc.dialect.machine import b32
from pkc.dialect.program import RoleOp
from pkc.dialect.reductions import RowReduction
from pkc.dialect.types import f32
from pkc.passes.analysis.row_lanes import EXCHANGES, rows_at_once
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering.context import WarpRole
from pkc.passes.machine.lowering.elements import apply
from pkc.passes.machine.lowering.fragments import RegisterTile
from pkc.targets.layout import CHUNK


def initialise(emit: Emitter, base: SSAValue, words: int | None) -> None:
    """The mbarriers of a role: one thread arrives, when it says how many bytes come."""
    for place in range(EXCHANGES if words is not None else 0):
        barrier = emit.plus(base, (words or 0) + place * emit.target.arch.mbarrier_bytes)
        emit.do("mbarrier_init", barrier, emit.const(1))


def prepare(role: WarpRole, op: RoleOp, words: int | None) -> None:
    """Count the exchanges of a role that has some, from zero."""
    if role.launch.cluster > 1 and words is not None:
        role.rows = rows_at_once(op, role.threads.arch.warp)
        role.exchanged = role.emit.registers(1, IndexType(), "exchanged")
        role.emit.set(role.emit.const(0), role.exchanged, 0)


def behind(role: WarpRole) -> int:
    """Where, in bytes from the words of a role, one word for each warp lies that no other CTA of a cluster writes, and
    no part of a row of which this CTA has others."""
    one_sends = role.threads.warps if role.rows < role.threads.warps else 0
    return _own(role) + one_sends * role.emit.target.arch.register_bytes if role.launch.cluster > 1 else 0


def _own(role: WarpRole) -> int:
    """Where, in bytes from the words of a role, the warps of a row have one each: behind what comes from other CTAs."""
    arch, words = role.emit.target.arch, EXCHANGES * role.launch.cluster * role.rows
    return EXCHANGES * arch.mbarrier_bytes + words * arch.register_bytes


def combine(role: WarpRole, op: RowReduction, warps: int, target: RegisterTile, at: SSAValue) -> None:
    """A reduction that all threads of each warp have over their part of a row, of which so many warps of each CTA have
    some, over all of these.

    The first of the warps of a row sends what these have to all CTAs of the cluster, and all threads wait for what
    comes from all. Two places take turns: who sends the second time after this has what all have sent the next time,
    and so has read before. Every thread combines in the same order.
    """
    emit, threads, launch = role.emit, role.threads, role.launch
    word, ctas, rows = emit.target.arch.register_bytes, launch.cluster, threads.warps // warps
    assert role.exchanged is not None and launch.part is not None and rows <= role.rows
    count = emit.get(role.exchanged, 0)
    emit.set(emit.plus(count, 1), role.exchanged, 0)
    place, phase = emit.rest(count, EXCHANGES), emit.rest(emit.part(count, EXCHANGES), 2)
    first = emit.plus(launch.base, role.words)
    barrier = emit.plus(first, emit.times(place, emit.target.arch.mbarrier_bytes))
    parts = emit.plus(first, EXCHANGES * emit.target.arch.mbarrier_bytes)
    own = emit.plus(first, _own(role))
    mine = emit.minus(threads.warp, threads.first)
    row = emit.over(mine, warps)
    parts = emit.plus(parts, emit.plus(emit.times(place, rows * ctas * word), emit.times(row, ctas * word)))
    if warps > 1:
        with emit.when(emit.compare("eq", threads.lane, 0)):
            emit.do("store_shared_b32", emit.plus(own, emit.times(mine, word)), _bits(emit, target, at))
        emit.do(threads.sync)
    with emit.when(emit.compare("eq", threads.thread, threads.start)):
        emit.do("mbarrier_expect", barrier, emit.const(rows * ctas * word))
    with emit.when(emit.compare("eq", emit.rest(mine, warps), 0)):
        if warps > 1:
            emit.set(
                _reduced(emit, op, target, emit.plus(own, emit.times(row, warps * word)), warps), target.registers, at
            )
        with emit.when(emit.compare("slt", threads.lane, ctas)):
            there = emit.plus(parts, emit.times(launch.part, word))
            emit.do("send_cluster_b32", there, _bits(emit, target, at), barrier, threads.lane)
    emit.wait("mbarrier_wait_cluster", barrier, phase, awaits="other parts of a row", until="filled")
    emit.set(_reduced(emit, op, target, parts, ctas), target.registers, at)


def _bits(emit: Emitter, target: RegisterTile, at: SSAValue) -> SSAValue:
    return emit.value("bits_f32" if target.element_type == f32 else "bits_i32", emit.get(target.registers, at))


def _reduced(emit: Emitter, op: RowReduction, target: RegisterTile, first: SSAValue, count: int) -> SSAValue:
    """Words of shared memory that lie behind each other, of which there are a power of two, reduced."""
    total: SSAValue | None = None
    word = emit.target.arch.register_bytes
    for start in range(0, count, CHUNK // word):
        some = min(count, CHUNK // word)
        bits, address = emit.registers(some, b32), emit.plus(first, start * word)
        emit.do(f"load_shared_v{some}", bits, address)
        for number in range(some):
            found = emit.value("float_bits" if target.element_type == f32 else "int_bits", emit.get(bits, number))
            total = found if total is None else apply(emit, op, op.COMBINE, [total, found])
    assert total is not None
    return total
