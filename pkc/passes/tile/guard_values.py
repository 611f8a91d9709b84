"""The pass `pk-guard-values`: what a loop computes for a branch behind it is computed where the branch is taken."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import is_side_effect_free

from pkc.dialect.access import LoadOp
from pkc.dialect.by_table import GatherOp
from pkc.dialect.program import KernelOp
from pkc.dialect.tile import AnyMmaOp
from pkc.dialect.types import TileType
from pkc.passes.analysis.dependence import enclosing_tasks, sources
from pkc.passes.analysis.pointwise import is_spread
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed

_STAYS = (LoadOp, GatherOp, AnyMmaOp)
"""Operations that no branch is put around: stages are filled, and MMAs issued, in every iteration."""


class GuardValues(KernelPass):
    """Put a branch around what a loop beside MMAs computes for a branch behind it alone, if the condition is known
    before the loop: tasks in which it does not hold do without.

    Tasks over blocks of K and N that have a result for each block of N, as the gradient of a bias, store it where K
    begins, and the others need not compute it. Values for one branch may be computed of the same tiles. What stands
    between the loop and the branch, and is used in the branch alone, moves there. Loads and MMAs stay: stages would be
    filled and waited for in some tasks and not in others.

    Before:

        %sum, %total = scf.for %t = ... iter_args(%a = %acc, %b = %none) -> (...) {
          %next = pk.mma %x, %y, %a : ...
          %s = pk.fold "pk.row_sum" %y_1 : ...
          %c = pk.add %b, %s : ...
          scf.yield %next, %c : ...
        }
        %first = arith.cmpi eq, %k, %zero : index
        %each = pk.row_sum %total : ...
        scf.if %first { pk.store %each, ... }

    After:

        %first = arith.cmpi eq, %k, %zero : index
        %sum, %total = scf.for %t = ... iter_args(%a = %acc, %b = %none) -> (...) {
          %next = pk.mma %x, %y, %a : ...
          %c = scf.if %first -> (...) {
            %s = pk.fold "pk.row_sum" %y_1 : ...
            %d = pk.add %b, %s : ...
            scf.yield %d : ...
          } else {
            scf.yield %b : ...
          }
          scf.yield %next, %c : ...
        }
        scf.if %first { %each = pk.row_sum %total : ... pk.store %each, ... }
    """

    name = "pk-guard-values"

    def run(self, kernel: KernelOp) -> None:
        todo = [op for op in kernel.walk() if isinstance(op, scf.IfOp) and not all(map(is_spread, enclosing_tasks(op)))]
        while todo:
            branch = todo.pop()
            for region in (branch.true_region, branch.false_region):
                if region.blocks:
                    todo += self._of_side(branch, region.block)

    def _of_side(self, branch: scf.IfOp, side: Block) -> list[scf.IfOp]:
        """The branches put into loops for what one side of a branch uses."""
        made: list[scf.IfOp] = []
        assert branch.parent is not None
        for loop in [op for op in branch.parent.ops if isinstance(op, scf.ForOp) and op.is_before_in_block(branch)]:
            behind = _behind_all(loop, branch, side)
            inside, numbers = _inside(loop, set(behind))
            if not numbers:
                continue
            condition = _between(branch.cond, loop)
            if condition is None:
                for end in [_end(loop, number) for number in sorted(numbers)]:
                    assert isinstance(end, Operation)
                    why = "whether the branch is taken is known behind the loop"
                    missed(self.name, end, f"it is computed for a branch that may not be taken: {why}")
                continue
            for op in condition:
                op.detach()
                branch.parent.insert_op_before(op, loop)
            made.append(_guard(loop, inside, sorted(numbers), branch, in_true=side is branch.true_region.block))
            needed = {op for number in numbers for op in behind[number]}
            _sink([op for op in branch.parent.ops if op in needed], side)
        return made


def _behind_all(loop: scf.ForOp, branch: scf.IfOp, side: Block) -> dict[int, list[Operation]]:
    """Of the tiles that a loop carries and one side of a branch alone uses, by their numbers, what stands behind the
    loop and makes of them what the branch uses."""
    found: dict[int, list[Operation]] = {}
    for number, value in enumerate(loop.results):
        behind = _behind(value, branch, side) if isinstance(value.type, TileType) else None
        if behind is not None:
            found[number] = behind
    return found


def _behind(value: SSAValue, branch: scf.IfOp, side: Block) -> list[Operation] | None:
    """What makes of a value what a side of a branch alone uses; nothing if something else uses it."""
    found, todo = set[Operation](), [value]
    if not value.uses:
        return None
    while todo:
        for use in todo.pop().uses:
            op = use.operation
            if side.find_ancestor_op_in_block(op) is not None or op in found:
                continue
            if op.parent is not branch.parent or op.regions or not op.results or not is_side_effect_free(op):
                return None
            found.add(op)
            todo += op.results
    assert branch.parent is not None
    return [op for op in branch.parent.ops if op in found]


def _inside(loop: scf.ForOp, numbers: set[int]) -> tuple[list[Operation], set[int]]:
    """What in a loop's body computes some of the values that it carries, and nothing else, in the order of the program;
    and which of them, without those of which nothing can be left out, or that are used elsewhere, too."""
    body = loop.body.block
    found = set[Operation]()

    def serves(value: SSAValue) -> bool:
        for use in value.uses:
            if use.operation is body.last_op:
                if use.index not in numbers:
                    return False
            elif body.find_ancestor_op_in_block(use.operation) not in found:
                return False
        return True

    for op in reversed(list(body.ops)):
        stays = any(isinstance(inner, _STAYS) for inner in op.walk())
        if op.results and not stays and is_side_effect_free(op) and all(map(serves, op.results)):
            found.add(op)
    served = {number for number in numbers if _end(loop, number) in found and serves(body.args[1 + number])}
    return ([op for op in body.ops if op in found], served) if served == numbers else _inside(loop, served)


def _end(loop: scf.ForOp, number: int) -> Operation | Block:
    """What gives one of the values that a loop carries in each iteration."""
    last = loop.body.block.last_op
    assert last is not None
    return last.operands[number].owner


def _between(condition: SSAValue, loop: scf.ForOp) -> list[Operation] | None:
    """What computes a condition behind a loop and may move in front of it; nothing if it needs the loop."""
    needed = {value.owner for value in sources([condition])}
    assert loop.parent is not None
    behind = [op for op in loop.parent.ops if op in needed and not op.is_before_in_block(loop)]
    return behind if all(not op.regions and is_side_effect_free(op) for op in behind) else None


def _guard(
    loop: scf.ForOp, ops: Sequence[Operation], numbers: Sequence[int], branch: scf.IfOp, in_true: bool
) -> scf.IfOp:
    """Compute values of an iteration in a branch, whose other side keeps what there is."""
    body, end = loop.body.block, loop.body.block.last_op
    assert end is not None
    following = ops[-1].next_op
    assert following is not None
    computed = [end.operands[number] for number in numbers]
    for op in ops:
        op.detach()
    taken, other = Block(ops), Block()
    taken.add_op(scf.YieldOp(*computed))
    other.add_op(scf.YieldOp(*(body.args[1 + number] for number in numbers)))
    sides = (taken, other) if in_true else (other, taken)
    then, orelse = (Region(side) for side in sides)
    guard = scf.IfOp(branch.cond, [value.type for value in computed], then, orelse)
    for one in (guard, taken.last_op, other.last_op):
        assert one is not None
        one.location = ops[-1].location
    body.insert_op_before(guard, following)
    for number, value, result in zip(numbers, computed, guard.results, strict=True):
        result.name_hint = value.name_hint
        end.operands[number] = result
    return guard


def _sink(ops: Sequence[Operation], side: Block) -> None:
    """Move operations to the beginning of a branch."""
    first = side.first_op
    assert first is not None
    for op in ops:
        op.detach()
        side.insert_op_before(op, first)
