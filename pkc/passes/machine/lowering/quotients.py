"""Division of many elements by one: by its reciprocal, which is computed once."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from pkc.dialect.elementwise import DivOp
from pkc.dialect.tile import BroadcastOp
from pkc.dialect.types import f32
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering.context import WarpRole
from pkc.passes.machine.lowering.fragments import Value, allocate, as_elements, element, held
from pkc.passes.machine.lowering.spread import fragment_of
from pkc.remarks import missed


def divided(
    role: WarpRole, op: Operation, spread: Callable[[BroadcastOp, Value], Callable[[Emitter, SSAValue], SSAValue]]
) -> Callable[[Emitter, SSAValue], SSAValue] | None:
    """Makes an element of a quotient by the elements of a row or a column, of which `spread` gives the one at a place;
    nothing where that is no gain.

    The product with a reciprocal, rounded to nearest, is as accurate as the quotient. Of divisors near the ends of the
    range it would not be: these are multiplied by a power of two first, and so is the product. A tile that takes half
    of a thread's registers leaves none for that.
    """
    broadcast = op.rhs.owner if isinstance(op, DivOp) else None
    known = all(role.emit.target.instruction(name) is not None for name in ("reciprocal", "divisor_scale"))
    if not isinstance(op, DivOp) or not isinstance(broadcast, BroadcastOp) or role.chunk is not None or not known:
        return None
    emit, divisors = role.emit, held(role, broadcast.tile)
    quotients = fragment_of(role, op.result).count
    if quotients < emit.target.threads.quotients * divisors.fragment.count:
        return None
    if 2 * quotients > emit.target.arch.thread_registers:
        missed("pk-lower-tiles", op, "each element is divided: no registers are left for reciprocals beside the tile")
        return None
    inverses, scales = (allocate(role, divisors.fragment, f32, None) for _ in range(2))
    with emit.loop(0, divisors.fragment.count, unroll=True) as index:
        divisor = element(role, divisors, index)
        scale = emit.value("divisor_scale", divisor)
        emit.set(scale, scales.registers, index)
        inverse = emit.value("reciprocal", emit.binary(arith.MulfOp, divisor, scale))
        emit.set(inverse, inverses.registers, index)
    dividend, factors = as_elements(role, op.lhs), [spread(broadcast, found) for found in (inverses, scales)]

    def quotient(emit: Emitter, index: SSAValue) -> SSAValue:
        found = element(role, dividend, index)
        for factor in factors:
            found = emit.binary(arith.MulfOp, found, factor(emit, index))
        return found

    return quotient
