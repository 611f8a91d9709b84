"""Loops that run one split of their iterations, shared out among tasks: how they are made and recognised."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from pkc.passes.analysis.dependence import first_iteration, same_value, task_count
from pkc.passes.build import constant, is_constant


@dataclass(frozen=True)
class Split:
    """Split number `index` of a loop of so many iterations; the tasks of that index run each iteration once."""

    iterations: SSAValue
    index: BlockArgument


def split_ops(iterations: SSAValue, index: SSAValue, splits: SSAValue) -> tuple[list[Operation], SSAValue, SSAValue]:
    """Operations that find a split's first iteration and the one after its last, and both.

    The lengths of splits differ by one iteration at most.
    """
    one = constant(1)
    following = arith.AddiOp(index, one.result)
    ops: list[Operation] = [one, following]
    bounds: list[SSAValue] = []
    for number in (index, following.result):
        before = arith.MuliOp(iterations, number)
        bound = arith.DivSIOp(before.result, splits)
        ops += [before, bound]
        bounds.append(bound.result)
    return ops, bounds[0], bounds[1]


def split_of(loop: scf.ForOp) -> Split | None:
    """The split of its iterations that a loop runs, if the tasks of one index run all of them."""
    if not is_constant(loop.step, 1):
        return None
    for iterations, index, splits in _scaled(first_iteration(loop)):
        count = task_count(index)
        if count is None or not same_value(count, splits):
            continue
        for same_iterations, following, same_splits in _scaled(loop.ub):
            alike = same_value(iterations, same_iterations) and same_value(splits, same_splits)
            if alike and _follows(following, index) and isinstance(index, BlockArgument):
                return Split(iterations, index)
    return None


def _scaled(bound: SSAValue) -> Iterator[tuple[SSAValue, SSAValue, SSAValue]]:
    """What may be `iterations`, `index` and `splits` in iterations * index / splits."""
    quotient = bound.owner
    product = quotient.lhs.owner if isinstance(quotient, arith.DivSIOp) else None
    if isinstance(quotient, arith.DivSIOp) and isinstance(product, arith.MuliOp):
        yield product.lhs, product.rhs, quotient.rhs
        yield product.rhs, product.lhs, quotient.rhs


def _follows(value: SSAValue, index: SSAValue) -> bool:
    owner = value.owner
    return isinstance(owner, arith.AddiOp) and owner.lhs is index and is_constant(owner.rhs, 1)
