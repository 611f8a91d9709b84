"""Long chains of operations on the elements of a thread, a group of elements after the other."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect.roles import LATER
from pkc.dialect.tile import chain_of
from pkc.passes.analysis.chains import is_elementwise, members
from pkc.passes.machine.lowering.context import WarpRole

_APART = 1024
"""No address of shared memory is a negative multiple of it, which compilers do not know."""


def in_groups(
    role: WarpRole, value: SSAValue, count: int, each: int, body: Callable[[SSAValue], None], later: int = 0
) -> None:
    """An unrolled loop over `count` places, with `each` so many elements of a tile that a chain computes there. The
    last ones, with `later` elements, have a loop of their own, which says so.

    Of a long chain some elements at a time are in a branch of their own, which is always taken: ptxas orders what
    stands in one branch, and moves nothing out of it. They have a loop each: of two loops, one inside of the other,
    NVVM (CUDA 13.0) has computed wrong addresses of elements that are loaded.
    """
    emit, end = role.emit, count - later // each
    places = _places(role, value, end, each)
    if 0 < places == end:
        with emit.loop(0, end, unroll=True) as place:
            body(place)
    for first in range(0, end, places) if places < end else ():
        never = -_APART * (1 + first // places)
        with (
            emit.when(emit.compare("ne", role.launch.base, never)),
            emit.loop(first, first + places, unroll=True) as place,
        ):
            body(place)
    if end < count:
        with emit.loop(end, count, unroll=True) as place:
            body(place)
        loop = place.owner.parent_op() if isinstance(place.owner, Block) else None
        assert loop is not None
        loop.attributes[LATER] = IntegerAttr(later, i64)


def _places(role: WarpRole, value: SSAValue, count: int, each: int) -> int:
    """How many places a group has: all if the chain is short, or they are no multiple of a group."""
    target, op = role.emit.target, value.owner
    if not isinstance(op, Operation) or chain_of(op) is None:
        return count
    lanes = sum(target.per_element(member.name).lanes for member in members(op) if is_elementwise(member))
    places = target.tuning.group // each
    return places if lanes >= target.tuning.long_chain and places and count % places == 0 else count
