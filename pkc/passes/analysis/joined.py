"""Values that belong together: groups that grow by pairs, and what loops and branches pass on as one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

_Member = TypeVar("_Member")


class Groups(Generic[_Member]):
    """Groups of members, each known by its root."""

    def __init__(self) -> None:
        self.parents: dict[_Member, _Member] = {}

    def root(self, member: _Member) -> _Member:
        """What stands for the group of a member; itself if it is joined with no other."""
        found = member
        while found in self.parents:
            found = self.parents[found]
        while member != found:
            self.parents[member], member = found, self.parents[member]
        return found

    def join(self, first: _Member, second: _Member) -> None:
        """Make one group of two, with the root of the first."""
        first, second = self.root(first), self.root(second)
        if first != second:
            self.parents[second] = first


def passed_on(op: Operation) -> Iterator[list[SSAValue]]:
    """Values that are the same at different times: what a loop carries, and what a branch gives."""
    if isinstance(op, scf.ForOp):
        last = op.body.block.last_op
        assert last is not None
        for same in zip(op.iter_args, op.body.block.args[1:], last.operands, op.results, strict=True):
            yield list(same)
    if isinstance(op, scf.IfOp):
        for region in (op.true_region, op.false_region):
            if region.blocks and region.block.last_op is not None:
                for same in zip(region.block.last_op.operands, op.results, strict=False):
                    yield list(same)
