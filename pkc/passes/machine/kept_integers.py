"""How many integers loops of the machine level keep from one iteration to the next, each in a register."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from pkc.dialect.coordinates import DimOp, RankOp
from pkc.dialect.machine import InstructionOp
from pkc.dialect.walks import walk
from pkc.passes.analysis.dependence import ancestors, maker
from pkc.passes.machine.emit import UNROLL


def kept_integers(branch: Operation) -> int:
    """The most integers from outside that a loop of a role's branch with MMAs keeps.

    These are those that the loop uses, and those that loops around it use from outside of all of them. Constants are in
    instructions, dimensions and ranks in constant memory, conditions in predicates, and descriptors of MMAs, of 64
    bits, in registers that a warp has once.
    """
    loops = dict.fromkeys(_loop_around(op) for op in walk(branch) if _is_mma(op))
    return max((len(_kept(loop)) for loop in loops if loop is not None), default=0)


def _is_mma(op: Operation) -> bool:
    return isinstance(op, InstructionOp) and op.instruction_name.data.startswith(("wgmma_n", "mma_n"))


def _loop_around(op: Operation) -> Operation | None:
    """The next loop around an operation that stays one."""
    return next(filter(is_rolled, ancestors(op)), None)


def is_rolled(op: Operation) -> bool:
    """Whether an operation is a loop that stays one."""
    return isinstance(op, scf.ForOp | scf.WhileOp) and UNROLL not in op.attributes


def is_around(op: Operation) -> bool:
    """Whether an operation is a loop that stays one, around another."""
    return is_rolled(op) and any(map(is_rolled, op.regions[-1].walk()))


def _kept(loop: Operation) -> set[SSAValue]:
    *_, outermost = loop, *filter(is_rolled, ancestors(loop))
    return {value for value in (*_from_outside(loop), *_from_outside(outermost)) if _takes_register(value)}


def _from_outside(loop: Operation) -> Iterator[SSAValue]:
    inside = set(walk(loop))
    for op in inside:
        yield from (value for value in op.operands if maker(value) not in inside)


def _takes_register(value: SSAValue) -> bool:
    return isinstance(value.type, IndexType) and not isinstance(value.owner, arith.ConstantOp | DimOp | RankOp)
