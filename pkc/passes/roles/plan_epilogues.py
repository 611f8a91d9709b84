"""The pass `pk-plan-epilogues`: how much of an epilogue may be computed beside the MMAs of the next task."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Operation
from xdsl.traits import is_side_effect_free

from pkc.dialect.attributes import Role, planned
from pkc.dialect.counters import CounterOp
from pkc.dialect.program import REGISTERS, KernelOp, RoleOp, TasksOp
from pkc.dialect.reductions import RowReduction
from pkc.dialect.roles import (
    CHANNEL_OPS,
    LATER,
    AcquireOp,
    CommitOp,
    ReleaseOp,
)
from pkc.dialect.tile import AnyMmaOp, in_flight, tile_type
from pkc.dialect.types import TileType
from pkc.passes.analysis.chains import is_elementwise
from pkc.passes.analysis.dependence import role_around
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed
from pkc.targets.target import target_of

_COLUMNS = 32
"""Columns of two matrices that a warp writes at once, one in each half."""


class PlanEpilogues(KernelPass):
    """Say of a result that takes long to compute how much of it may wait for the loop of the next task.

    All warpgroups of a CTA come to the end of a tile together. With a long epilogue (`later_chain` of the target)
    tensor cores then wait for thousands of cycles, most of them for special-function units. The accumulators of each
    thread, or the second half of them, fit into other registers beside those of the next task;
    `pk-overlap-epilogues` computes them there, in the first iterations of the next loop, while its MMAs run. All that
    comes behind them in the task, which frees stages and hands on the result, waits as well. The epilogue becomes a
    chain (`pk-fuse-chains`).

    That is done where nothing can wait for itself: no role waits for counters, the consumer begins each task with its
    loop, and so does the role that fills the stages of that loop, so that what it needs does not depend on a result
    that waits. Then the stages of a loop's first iterations are on their way before anybody waits for the last result.

    Before:

        %acc_1 = scf.for ... { ... pk.mma ... {in_flight = 1} ... }
        %s = pk.sigmoid %acc_1 : !pk.tile<128x256xf32>
        ...
        pk.commit %1, %y : ...

    After:

        pk.commit %1, %y {later = 64} : ...
    """

    name = "pk-plan-epilogues"

    def run(self, kernel: KernelOp) -> None:
        for role in kernel.roles:
            if role.role.data is not Role.Consumer:
                continue
            for op in [op for op in role.walk() if isinstance(op, CommitOp)]:
                loop = _loop_before(op)
                if loop is not None and _takes_long(loop, op):
                    _plan(kernel, role, op, loop)


def _loop_before(op: CommitOp) -> scf.ForOp | None:
    """The loop of the same task in front of the end of it, if its MMAs stay in flight."""
    before = op.prev_op
    while before is not None and not isinstance(before, scf.ForOp):
        before = before.prev_op
    if before is None or not isinstance(op.parent_op(), TasksOp):
        return None
    mmas = [inner for inner in before.walk() if isinstance(inner, AnyMmaOp)]
    return before if mmas and all(in_flight(mma) for mma in mmas) else None


def _takes_long(loop: scf.ForOp, op: CommitOp) -> bool:
    """Whether what a task computes behind its loop takes long for each element, is computed for each by itself, and
    does not hold up the MMAs beside it by too many instructions."""
    target, found = target_of(op), [other for other in _between(loop, op) if is_elementwise(other)]
    if any(isinstance(other, RowReduction) for other in _between(loop, op)):
        return False
    rates = [target.per_element(other.name) for other in found]
    lanes, special = sum(rate.lanes for rate in rates), sum(rate.special for rate in rates)
    cycles = max(lanes, special * target.rates.lanes / target.rates.special)
    return cycles >= target.tuning.later_chain and lanes <= target.tuning.later_lanes


def _between(loop: scf.ForOp, op: CommitOp) -> list[Operation]:
    block = op.parent
    assert block is not None
    ops = list(block.ops)
    return ops[ops.index(loop) + 1 : ops.index(op)]


def _plan(kernel: KernelOp, role: RoleOp, op: CommitOp, loop: scf.ForOp) -> None:
    later = _later(role, op, len(loop.results))
    obstacle = later if isinstance(later, str) else _of_tasks(op, loop) or _of_others(kernel, role, loop)
    if isinstance(obstacle, str):
        missed(PlanEpilogues.name, op, f"tensor cores are idle during the whole epilogue: {obstacle}")
    elif isinstance(later, int):
        op.attributes[LATER] = IntegerAttr(later, i64)


def _later(role: RoleOp, op: CommitOp, accumulators: int) -> int | str:
    """How many elements of each thread may wait; or why none can. Each is computed from so many accumulators."""
    target = target_of(op)
    kinds = [tile_type(tile) for tile in op.tiles]
    assert role.warps is not None
    rows_at_once = role.warps.value.data // target.arch.warpgroup * target.mma.rows
    if len(kinds) > 1 or kinds[0].rank != 2:
        return "the result is more than one matrix"
    rows, columns = kinds[0].shape
    repeats = rows // max(1, rows_at_once)
    if rows % max(1, rows_at_once) or repeats not in (1, 2) or columns % _COLUMNS:
        return f"{rows} x {columns} elements are no two equal halves of whole matrices"
    elements = repeats * target.mma.rows * columns // (target.arch.warpgroup * target.arch.warp)
    room = planned(role, REGISTERS) - target.registers.beside - accumulators * elements
    if repeats == 1 and room >= accumulators * elements:
        return elements
    half = elements // 2
    return half if room >= accumulators * half else f"a thread has no registers for {accumulators * half} more elements"


def _of_tasks(op: CommitOp, loop: scf.ForOp) -> str | None:
    """What in a task of the consumer keeps its end from waiting."""
    shape = tile_type(op.tiles[0]).shape
    if any(not isinstance(value.type, TileType) or value.type.shape != shape for value in loop.results):
        return "the loop has other results beside"
    block = op.parent
    assert block is not None
    ops = list(block.ops)
    if any(not _is_free(other) for other in ops[: ops.index(loop)]):
        return "the task does more in front of its loop"
    behind = ops[ops.index(op) + 1 :]
    if any(not _is_free(other) and not isinstance(other, ReleaseOp) for other in behind):
        return "the task goes on behind it"
    if any(isinstance(other, ReleaseOp) and other.kept for other in [*_between(loop, op), *behind]):
        return "a stage stays in use behind the task"
    return None


def _is_free(op: Operation) -> bool:
    return is_side_effect_free(op) and not any(isinstance(inner, CHANNEL_OPS) for inner in op.walk())


def _of_others(kernel: KernelOp, role: RoleOp, loop: scf.ForOp) -> str | None:
    """Why others might wait for a result that waits for them."""
    if any(isinstance(inner, CounterOp) for inner in kernel.walk()):
        return "roles wait for other CTAs or ranks"
    for channel in dict.fromkeys(inner.channel for inner in loop.walk() if isinstance(inner, CHANNEL_OPS)):
        for filled in (use.operation for use in channel.uses if isinstance(use.operation, AcquireOp)):
            if role_around(filled) is role:
                return "its loop fills stages for itself"
            if not _begins_with(filled):
                return "what its loop needs comes behind other things of a task"
    return None


def _begins_with(op: AcquireOp) -> bool:
    """Whether a task begins with the loop that fills a stage, and the loop with the stage."""
    loop = op.parent_op()
    if not isinstance(loop, scf.ForOp) or not isinstance(loop.parent_op(), TasksOp):
        return False
    return all(_is_free(other) for other in (*_before(loop), *_before(op)))


def _before(op: Operation) -> list[Operation]:
    block = op.parent
    assert block is not None
    ops = list(block.ops)
    return ops[: ops.index(op)]
