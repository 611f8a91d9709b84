"""Walks through operations without a generator for each level of regions: passes look at all of a kernel often."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, Operation


class Walked(Operation):
    """An operation with regions that is walked often."""

    def walk(self, *, reverse: bool = False, region_first: bool = False) -> Iterator[Operation]:
        """As xDSL's: an operation may be taken out while it is looked at."""
        return super().walk(reverse=reverse, region_first=region_first) if reverse or region_first else walk(self)


def walk(root: Operation) -> Iterator[Operation]:
    """An operation and all operations inside it, in their order."""
    yield root
    left = _blocks(root)
    while left:
        at = left.pop()
        op = at.first_op if isinstance(at, Block) else at
        while op is not None:
            following = op.next_op
            yield op
            if op.regions:
                if following is not None:
                    left.append(following)
                left += _blocks(op)
                break
            op = following


def _blocks(op: Operation) -> list[Block | Operation]:
    """The blocks of an operation, the first one last."""
    return [block for region in reversed(op.regions) for block in reversed(region.blocks)]
