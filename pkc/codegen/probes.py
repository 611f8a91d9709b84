"""What the records of an instrumented kernel mean: tables that go with its machine code."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation

from pkc.codegen.artifact import Probe, Trace, Wait, Waits
from pkc.dialect.machine import ARRAY, AWAITS, PLACE, UNTIL, InstructionOp
from pkc.dialect.program import KernelOp
from pkc.dialect.scalars import constant_of
from pkc.location import describe, place_of
from pkc.passes.machine.bound_waits import POINT, WAITS
from pkc.passes.machine.instruments import role_branches, role_names
from pkc.passes.machine.lower_tiles import THREADS
from pkc.passes.machine.trace import KIND, TRACE, WHAT
from pkc.targets.target import target_of


def trace_of(kernel: KernelOp) -> Trace | None:
    """The records of a kernel that `pk-trace` has changed."""
    if TRACE not in kernel.attributes:
        return None
    plan = kernel.attributes[TRACE]
    assert isinstance(plan, DictionaryAttr)
    names = cast("ArrayAttr[StringAttr]", plan.data["roles"])
    probes: dict[int, Probe] = {}
    for role, branch in enumerate(role_branches(kernel)):
        for op in branch.walk():
            if isinstance(op, InstructionOp) and KIND in op.attributes:
                number = constant_of(op.arguments[4])
                assert number is not None
                kind, what = _text(op.attributes[KIND]), _text(op.attributes[WHAT])
                probes[number] = Probe(role, kind, what, describe(op.location))
    array, ctas, records = (_text(plan.data[name]) for name in ("array", "ctas", "records"))
    ordered = tuple(probes[number] for number in range(len(probes)))
    return Trace(array, ctas, records, tuple(name.data for name in names), ordered)


def waits_of(kernel: KernelOp) -> Waits | None:
    """The waits of a kernel that `pk-bound-waits` has changed."""
    if WAITS not in kernel.attributes:
        return None
    plan, threads = kernel.attributes[WAITS], kernel.attributes[THREADS]
    assert isinstance(plan, DictionaryAttr)
    assert isinstance(threads, IntegerAttr)
    branches = role_branches(kernel)
    found: dict[int, Wait] = {}
    for branch, name in zip(branches, role_names(branches), strict=True):
        for op in branch.walk():
            number = op.attributes.get(POINT)
            if isinstance(number, IntegerAttr):
                found[number.value.data] = _wait(name, op)
    reports, ctas = (_text(plan.data[name]) for name in ("reports", "ctas"))
    points = tuple(found[number] for number in range(len(found)))
    return Waits(reports, ctas, threads.value.data // target_of(kernel).arch.warp, points)


def _wait(role: str, op: Operation) -> Wait:
    of_index = ARRAY in op.attributes
    awaits, until = (_text(op.attributes[name]) for name in ((ARRAY, PLACE) if of_index else (AWAITS, UNTIL)))
    return Wait(role, awaits, until, *place_of(op.location))


def _text(value: Attribute) -> str:
    assert isinstance(value, StringAttr)
    return value.data
