"""Numbers of ranks with which `pkc check` looks at roles that an author wrote, beside the one that is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from pkc.check.instances import indices_at, unlike_dims
from pkc.check.static import LAUNCHES
from pkc.diagnostics import Diagnostic
from pkc.dialect.coordinates import DimOp, RankOp, RingPeerOp
from pkc.dialect.program import KernelOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.types import RANKS, i32
from pkc.location import span_of
from pkc.sim.draw import seeds_for
from pkc.sim.program import Program
from pkc.sim.small import SWEPT, swept_dims

_OTHER_RANKS = (3, 4, 5, 1)
_THREE, _MOST_RANKS, _MOST_NAMED = 3, 12, 4
"""The numbers of ranks on which all sizes in a row are looked at; which is the greatest; how many that are named."""


def other_ranks(kernel: KernelOp) -> list[int]:
    """Numbers of ranks that show what two do not: a next one that is not the one before, a second level, an odd rest;
    one rank; and those that the program tells from others, by the numbers that it compares ranks with, or by slots that
    rounds for each rank take in turn."""
    named = {number for op in kernel.walk() for number in _told_apart(op)} - {2, *_OTHER_RANKS}
    return [*_OTHER_RANKS, *sorted(number for number in named if 1 < number <= _MOST_RANKS)[:_MOST_NAMED]]


def _told_apart(op: Operation) -> tuple[int, ...]:
    if not isinstance(op, arith.CmpiOp | arith.FloorDivSIOp):
        return ()
    number = constant_of(op.rhs)
    if number is None:
        return ()
    if _of_ranks(op.lhs):
        return (number, number + 1) if isinstance(op, arith.CmpiOp) else (number + 1, 2 * number)
    # Slots in turn: the first one is used again where there is a round more than slots, and all but one rank may have
    # come to it while one is late.
    return (number + 2,) if isinstance(op, arith.FloorDivSIOp) and _counts_ranks(op.lhs) else ()


def _counts_ranks(value: SSAValue) -> bool:
    """Whether an integer is the number of an iteration of which there are as many as ranks, or some less or more."""
    loop = value.owner.parent_op() if isinstance(value, BlockArgument) and value.index == 0 else None
    return isinstance(loop, scf.ForOp) and _of_ranks(loop.ub)


def _of_ranks(value: SSAValue) -> bool:
    """Whether an integer is the number of a rank, or of all, or a sum or product with one."""
    made = value.owner
    if isinstance(made, RankOp | RingPeerOp):
        return True
    if isinstance(made, DimOp):
        return made.dim.data == RANKS
    return isinstance(made, arith.AddiOp | arith.SubiOp | arith.MuliOp) and any(map(_of_ranks, made.operands))


def sizes_on(
    kernel: KernelOp, ranks: int, given: Mapping[str, Any], scalars: Mapping[str, Any], asked: Mapping[str, int]
) -> Iterator[dict[str, int]]:
    """Further sizes on a number of ranks that nobody asked for: on three ranks all of the sizes in a row, on more those
    that end with a rest of one and a rest of all ranks but one. Raises `PkcError` if dimensions do not fit."""
    steps = SWEPT if ranks == _THREE else [step for step in (ranks + 1, 2 * ranks - 1) if ranks > 1 and step in SWEPT]
    return unlike_dims(kernel, ranks, given, scalars, [dict(asked)], swept_dims(kernel, ranks, steps))


def seeds_on(kernel: KernelOp, ranks: int, dims: Mapping[str, int]) -> range:
    """The first of the seeds of further inputs there, in which integers that the caller gives are others: a loop may
    have as many iterations as one says."""
    called = Program(kernel)
    counts = any(called.kernel.arguments[name].type == i32 for name in called.scalars)
    return range(LAUNCHES, LAUNCHES + 2 * seeds_for(kernel, ranks=ranks, dims=dims) if counts else 0, LAUNCHES)


def is_mistaken(kernel: KernelOp, found: Diagnostic) -> bool:
    """Whether what is not there on so many ranks is a mistake: an index lies outside of a dimension that is as long as
    there are ranks, and no rank's number is in it; or it stands under a branch that asks whether a rank's number is
    below that of all."""
    guarded = any(_is_guarded(op) for op in kernel.walk() if span_of(op.location) == found.span)
    return guarded or any(dim == RANKS and not _names_rank(index) for dim, index in indices_at(kernel, found))


def _is_guarded(op: Operation) -> bool:
    around = op.parent_op()
    return around is not None and ((isinstance(around, scf.IfOp) and _asks(around.cond)) or _is_guarded(around))


def _asks(condition: SSAValue) -> bool:
    """Whether a condition compares a rank's number with how many there are."""
    made = condition.owner
    if isinstance(made, arith.AndIOp | arith.OrIOp):
        return any(map(_asks, made.operands))
    if not isinstance(made, arith.CmpiOp):
        return False
    sides = (made.lhs, made.rhs)
    return any(map(_is_all, sides)) and any(not _is_all(side) and _names_rank(side) for side in sides)


def _is_all(value: SSAValue) -> bool:
    return isinstance(value.owner, DimOp) and value.owner.dim.data == RANKS


def _names_rank(value: SSAValue) -> bool:
    """Whether the number of a rank is in an integer, or may be as a branch makes it."""
    if isinstance(value, BlockArgument):
        loop = value.owner.parent_op()
        return isinstance(loop, scf.ForOp) and value.index > 0 and _names_rank(loop.iter_args[value.index - 1])
    made = value.owner
    assert isinstance(made, Operation)
    return isinstance(made, RankOp | RingPeerOp) or bool(made.regions) or any(map(_names_rank, made.operands))
