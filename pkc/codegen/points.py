"""What the records of an instrumented kernel mean: the tables that its machine code is handed out with."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.ir import Attribute

from pkc.codegen.artifact import Point, Trace
from pkc.dialect.machine import InstructionOp
from pkc.dialect.program import KernelOp
from pkc.location import describe
from pkc.passes.emit import constant_of
from pkc.passes.trace import KIND, TRACE, WHAT, parts_of


def trace_of(kernel: KernelOp) -> Trace | None:
    """The records of a kernel that `pk-trace` has changed."""
    if TRACE not in kernel.attributes:
        return None
    plan = kernel.attributes[TRACE]
    assert isinstance(plan, DictionaryAttr)
    names = cast("ArrayAttr[StringAttr]", plan.data["parts"])
    points: dict[int, Point] = {}
    for number, part in enumerate(parts_of(kernel)):
        for op in part.walk():
            if isinstance(op, InstructionOp) and KIND in op.attributes:
                point = constant_of(op.arguments[4])
                assert point is not None
                kind, what = _text(op.attributes[KIND]), _text(op.attributes[WHAT])
                points[point] = Point(number, kind, what, describe(op.location))
    array, ctas, records = (_text(plan.data[name]) for name in ("array", "ctas", "records"))
    ordered = tuple(points[number] for number in range(len(points)))
    return Trace(array, ctas, records, tuple(name.data for name in names), ordered)


def _text(value: Attribute) -> str:
    assert isinstance(value, StringAttr)
    return value.data
