"""What the records of an instrumented kernel mean: the tables that its machine code is handed out with."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation

from pkc.codegen.artifact import Probe, Trace, Wait, Waits
from pkc.dialect.machine import AWAITS, UNTIL, InstructionOp
from pkc.dialect.program import KernelOp
from pkc.location import describe, span_of
from pkc.passes.machine.bound_waits import POINT, WAITS
from pkc.passes.machine.emit import constant_of
from pkc.passes.machine.instruments import parts_of, role_names
from pkc.passes.machine.lower_tiles import THREADS
from pkc.passes.machine.trace import KIND, TRACE, WHAT
from pkc.targets.target import target_of


def trace_of(kernel: KernelOp) -> Trace | None:
    """The records of a kernel that `pk-trace` has changed."""
    if TRACE not in kernel.attributes:
        return None
    plan = kernel.attributes[TRACE]
    assert isinstance(plan, DictionaryAttr)
    names = cast("ArrayAttr[StringAttr]", plan.data["parts"])
    points: dict[int, Probe] = {}
    for number, part in enumerate(parts_of(kernel)):
        for op in part.walk():
            if isinstance(op, InstructionOp) and KIND in op.attributes:
                point = constant_of(op.arguments[4])
                assert point is not None
                kind, what = _text(op.attributes[KIND]), _text(op.attributes[WHAT])
                points[point] = Probe(number, kind, what, describe(op.location))
    array, ctas, records = (_text(plan.data[name]) for name in ("array", "ctas", "records"))
    ordered = tuple(points[number] for number in range(len(points)))
    return Trace(array, ctas, records, tuple(name.data for name in names), ordered)


def waits_of(kernel: KernelOp) -> Waits | None:
    """The waits of a kernel that `pk-bound-waits` has changed."""
    if WAITS not in kernel.attributes:
        return None
    plan, threads = kernel.attributes[WAITS], kernel.attributes[THREADS]
    assert isinstance(plan, DictionaryAttr)
    assert isinstance(threads, IntegerAttr)
    parts = parts_of(kernel)
    found: dict[int, Wait] = {}
    for part, name in zip(parts, role_names(parts), strict=True):
        for op in part.walk():
            number = op.attributes.get(POINT)
            if isinstance(number, IntegerAttr):
                found[number.value.data] = _wait(name, op)
    reports, ctas = (_text(plan.data[name]) for name in ("reports", "ctas"))
    points = tuple(found[number] for number in range(len(found)))
    return Waits(reports, ctas, threads.value.data // target_of(kernel).arch.warp, points)


def _wait(part: str, op: Operation) -> Wait:
    span = span_of(op.location)
    awaits, until = _text(op.attributes[AWAITS]), _text(op.attributes[UNTIL])
    return Wait(part, awaits, until, span.source.name, span.line, span.column)


def _text(value: Attribute) -> str:
    assert isinstance(value, StringAttr)
    return value.data
