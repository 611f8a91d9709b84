"""Tasks: loops over the numbers of those that a CTA takes, and the indices that a number stands for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from xdsl.dialects.builtin import IndexType, UnitAttr
from xdsl.ir import Block, SSAValue

from pkc.dialect.machine import TASKS
from pkc.dialect.program import WIDE, TasksOp
from pkc.passes.analysis.pointwise import is_spread
from pkc.passes.analysis.row_lanes import lanes_for
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering import flat, task_queue
from pkc.passes.machine.lowering.context import WarpRole

_Body = Callable[[SSAValue], None]
"""Emits the task of a number."""


def lower(role: WarpRole, op: TasksOp, lower_block: Callable[[WarpRole, Block], None]) -> None:
    """CTA c of n takes tasks c, c + n, ... in the order of their numbers, or goes back and forth
    (`pkc/dialect/task_order.py`), or takes them from a queue, in the order of their numbers.

    Every CTA runs all tasks that enclose others; the numbers of the tasks inside go on from one to the next.
    """
    emit, outer = role.emit, role.begun
    counts = [role.known[count] for count in op.counts]
    total = counts[0]
    for count in counts[1:]:
        total = emit.times(total, count)

    def body(number: SSAValue) -> None:
        _task(role, op, number, counts, lower_block)

    if role.launch.tasks is not None:
        task_queue.lower(role, total, body)
        return
    cta, ctas = role.launch.cta_of[role.group], role.launch.ctas[role.group]
    if op.encloses_tasks:
        if outer is None:
            role.begun = emit.registers(1, IndexType(), "begun")
            emit.set(emit.const(0), role.begun, 0)
        with emit.loop(0, total) as number:
            body(number)
        role.begun = outer
        return
    first = cta
    if outer is not None:  # (cta - begun) modulo ctas; both are less than that
        left = emit.minus(cta, emit.get(outer, 0))
        first = emit.select(emit.compare("slt", left, 0), emit.plus(left, ctas), left)
    if op.back_and_forth:
        band = total if op.raster is None else emit.times(counts[-1], op.raster)
        _back_and_forth(role.emit, (first, ctas, total), emit.most(band, 1), body)
    else:
        with emit.loop(first, total, ctas) as number:
            _of_tasks(number)
            body(number)
    if outer is not None:
        emit.set(emit.modulo(emit.plus(emit.get(outer, 0), total), ctas), outer, 0)


def _of_tasks(number: SSAValue) -> None:
    """Mark the loop of a number as one through tasks."""
    loop = number.owner.parent_op() if isinstance(number.owner, Block) else None
    assert loop is not None
    loop.attributes[TASKS] = UnitAttr()


def _back_and_forth(emit: Emitter, share: tuple[SSAValue, SSAValue, SSAValue], size: SSAValue, body: _Body) -> None:
    """The tasks that `back_and_forth` of `pkc/dialect/task_order.py` gives a share of so many, of a total, in bands of
    `size` tasks."""
    mine, shares, total = share

    with emit.loop(0, emit.round_up_over(total, size)) as band:
        moved = emit.times(emit.over(band, 2), emit.over(emit.times(shares, 5), 13))
        first = emit.modulo(emit.plus(mine, moved), shares)

        def place(turn: SSAValue) -> SSAValue:
            forth = emit.compare("eq", emit.bit_and(emit.plus(turn, band), 1), 0)
            return emit.select(forth, first, emit.minus(emit.minus(shares, 1), first))

        begin = emit.times(band, size)
        length = emit.least(emit.minus(total, begin), size)
        whole = emit.over(length, shares)
        rest = emit.minus(length, emit.times(whole, shares))
        one_more = emit.select(emit.compare("slt", place(whole), rest), emit.const(1), emit.const(0))
        with emit.loop(0, emit.plus(whole, one_more)) as turn:
            _of_tasks(turn)
            body(emit.plus(begin, emit.plus(emit.times(turn, shares), place(turn))))


def _task(
    role: WarpRole,
    op: TasksOp,
    task: SSAValue,
    counts: list[SSAValue],
    lower_block: Callable[[WarpRole, Block], None],
) -> None:
    task.name_hint = "task"
    indices = _natural(role, task, counts) if op.raster is None else banded(role, task, counts, _rows(role, op, counts))
    role.known.update(zip(op.body.block.args, indices, strict=True))
    threads = role.threads
    in_chunks = not threads.one and flat.goes_in_chunks(op)
    spread = not threads.one and not in_chunks and is_spread(op)
    lanes = lanes_for(op, role.axes, threads.count, threads.arch.warp) if spread else None
    role.threads = replace(threads, flat=in_chunks, lanes=lanes)
    lower_block(role, op.body.block)
    role.threads = threads


def _natural(role: WarpRole, task: SSAValue, counts: list[SSAValue]) -> list[SSAValue]:
    emit, rest, indices = role.emit, task, list[SSAValue]()
    for count in reversed(counts[1:]):
        indices.append(emit.modulo(rest, count))
        rest = emit.over(rest, count)
    return [rest, *reversed(indices)]


def _rows(role: WarpRole, op: TasksOp, counts: list[SSAValue]) -> SSAValue | int:
    """As `band` of tasks that have a raster."""
    emit, rows = role.emit, op.raster
    assert rows is not None
    if WIDE not in op.attributes:
        return rows
    return emit.select(emit.compare("sgt", counts[-1], 2 * rows), emit.const(rows), emit.const(1))


def banded(role: WarpRole, task: SSAValue, counts: list[SSAValue], rows: SSAValue | int) -> list[SSAValue]:
    """As `banded` of `pkc/dialect/task_order.py`."""
    emit, (height, *others, width) = role.emit, counts
    for count in others:
        height = emit.times(height, count)
    each = emit.times(width, rows)
    band, inside = emit.over(task, each), emit.modulo(task, each)
    first = emit.times(band, rows)
    here = emit.least(emit.minus(height, first), rows)
    row = emit.plus(first, emit.modulo(inside, here))
    return [*_natural(role, row, counts[:-1]), emit.over(inside, here)]
