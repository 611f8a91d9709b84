"""Loops of a constant number of iterations, written out."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect.scalars import constant_of
from pkc.passes.build import append_copy, constant


def iterations(loop: scf.ForOp) -> range | None:
    """The numbers that a loop goes through, if constants say which they are."""
    first, end, step = map(constant_of, (loop.lb, loop.ub, loop.step))
    return None if first is None or end is None or not step else range(first, end, step)


def write_out(loop: scf.ForOp, numbers: range) -> list[Operation]:
    """The operations that stand in place of a loop."""
    variable, *carried = loop.body.block.args
    values: list[SSAValue] = list(loop.iter_args)
    made = Block()
    for number in numbers:
        which = constant(number)
        which.location = loop.location
        made.add_op(which)
        known: dict[SSAValue, SSAValue] = {variable: which.result, **dict(zip(carried, values, strict=True))}
        *body, last = loop.body.block.ops
        for op in body:
            append_copy(made, op, known)
        values = [known.get(value, value) for value in last.operands]
    for result, value in zip(loop.results, values, strict=True):
        result.replace_all_uses_with(value)
    block = loop.parent
    assert block is not None
    ops = list(made.ops)
    for op in ops:
        op.detach()
        block.insert_op_before(op, loop)
    loop.detach()
    loop.erase()
    return ops
