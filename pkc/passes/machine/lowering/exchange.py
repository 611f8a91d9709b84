"""What CTAs of a cluster have of rows, handed to each other through their shared memory (PTX ISA: st.async)."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue

from pkc.dialect.reductions import RowReduction
from pkc.dialect.types import f32
from pkc.passes.analysis.row_lanes import EXCHANGES
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering.context import WarpRole
from pkc.passes.machine.lowering.elements import apply
from pkc.passes.machine.lowering.fragments import RegisterTile


def initialise(emit: Emitter, base: SSAValue, words: int | None) -> None:
    """The mbarriers of a role: one thread arrives, when it says how many bytes come."""
    for place in range(EXCHANGES if words is not None else 0):
        barrier = emit.plus(base, (words or 0) + place * emit.target.arch.mbarrier_bytes)
        emit.do("mbarrier_init", barrier, emit.const(1))


def prepare(role: WarpRole, words: int | None) -> None:
    """Count the exchanges of a role that has some, from zero."""
    if role.launch.cluster > 1 and words is not None:
        role.exchanged = role.emit.registers(1, IndexType(), "exchanged")
        role.emit.set(role.emit.const(0), role.exchanged, 0)


def combine(role: WarpRole, op: RowReduction, warps: int, target: RegisterTile, at: SSAValue) -> None:
    """A reduction that all threads of each warp have over their part of a row, of which so many warps of each CTA have
    some, over all of these.

    Each warp sends what it has to all CTAs of the cluster, and all wait for the warps of all. Two places take turns:
    who sends the second time after this has seen what all warps have sent the next time, and so read before. Every
    thread combines in the same order.
    """
    emit, threads, launch = role.emit, role.threads, role.launch
    assert role.exchanged is not None and launch.part is not None
    word, ctas = emit.target.arch.register_bytes, launch.cluster
    each, real = threads.warps * word, target.element_type == f32
    count = emit.get(role.exchanged, 0)
    emit.set(emit.plus(count, 1), role.exchanged, 0)
    place, phase = emit.rest(count, EXCHANGES), emit.rest(emit.part(count, EXCHANGES), 2)
    first = emit.plus(launch.base, role.words)
    barrier = emit.plus(first, emit.times(place, emit.target.arch.mbarrier_bytes))
    words = emit.plus(first, EXCHANGES * emit.target.arch.mbarrier_bytes)
    words = emit.plus(words, emit.times(place, ctas * each))
    mine = emit.minus(threads.warp, threads.first)
    with emit.when(emit.compare("eq", threads.thread, threads.start)):
        emit.do("mbarrier_expect", barrier, emit.const(ctas * each))
    with emit.when(emit.compare("slt", threads.lane, ctas)):
        bits = emit.value("bits_f32" if real else "bits_i32", emit.get(target.registers, at))
        own = emit.plus(emit.times(launch.part, each), emit.times(mine, word))
        emit.do("send_cluster_b32", emit.plus(words, own), bits, barrier, threads.lane)
    emit.wait("mbarrier_wait_cluster", barrier, phase, awaits="other parts of a row", until="filled")
    row = emit.plus(words, emit.times(emit.over(mine, warps), warps * word))

    def received(number: SSAValue) -> SSAValue:
        cta, warp = emit.part(number, warps), emit.rest(number, warps)
        bits = emit.value("load_shared_b32", emit.plus(row, emit.plus(emit.times(cta, each), emit.times(warp, word))))
        return emit.value("float_bits" if real else "int_bits", bits)

    # As many as the lanes of a warp at a time, each by one of them.
    lanes = min(ctas * warps, threads.arch.warp)
    lane = emit.rest(threads.lane, lanes)
    total = received(lane)
    for further in range(lanes, ctas * warps, lanes):
        total = apply(emit, op, op.COMBINE, [total, received(emit.plus(lane, further))])
    distance = 1
    while distance < lanes:
        other = emit.value("shuffle_xor" if real else "shuffle_xor_i32", total, emit.const(distance))
        total = apply(emit, op, op.COMBINE, [total, other])
        distance *= 2
    emit.set(total, target.registers, at)
