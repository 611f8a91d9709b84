"""Loops that go through one of several parts of their turns, which tasks share: how they are made, and known again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from pkc.passes.analysis.dependence import same_value, task_count
from pkc.passes.tile_groups import constant, is_constant


@dataclass(frozen=True)
class Part:
    """Part number `index` of a loop of `turns` turns; together the tasks of that index run each turn once."""

    turns: SSAValue
    index: BlockArgument


def part_ops(turns: SSAValue, index: SSAValue, parts: SSAValue) -> tuple[list[Operation], SSAValue, SSAValue]:
    """Operations that find a part's first turn and the one after its last, and both; parts differ by a turn at most."""
    one = constant(1)
    following = arith.AddiOp(index, one.result)
    ops: list[Operation] = [one, following]
    bounds: list[SSAValue] = []
    for number in (index, following.result):
        before = arith.MuliOp(turns, number)
        bound = arith.DivSIOp(before.result, parts)
        ops += [before, bound]
        bounds.append(bound.result)
    return ops, bounds[0], bounds[1]


def part_of(loop: scf.ForOp) -> Part | None:
    """The part of its turns that a loop goes through, if tasks of one index go through all of them."""
    if not is_constant(loop.step, 1):
        return None
    for turns, index, parts in _scaled(loop.lb):
        count = task_count(index)
        if count is None or not same_value(count, parts):
            continue
        for same_turns, following, same_parts in _scaled(loop.ub):
            alike = same_value(turns, same_turns) and same_value(parts, same_parts)
            if alike and _follows(following, index) and isinstance(index, BlockArgument):
                return Part(turns, index)
    return None


def _scaled(bound: SSAValue) -> Iterator[tuple[SSAValue, SSAValue, SSAValue]]:
    """What may be `turns`, `index` and `parts` in turns * index / parts."""
    quotient = bound.owner
    product = quotient.lhs.owner if isinstance(quotient, arith.DivSIOp) else None
    if isinstance(quotient, arith.DivSIOp) and isinstance(product, arith.MuliOp):
        yield product.lhs, product.rhs, quotient.rhs
        yield product.rhs, product.lhs, quotient.rhs


def _follows(value: SSAValue, index: SSAValue) -> bool:
    owner = value.owner
    return isinstance(owner, arith.AddiOp) and owner.lhs is index and is_constant(owner.rhs, 1)
