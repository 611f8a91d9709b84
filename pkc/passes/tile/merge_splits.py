"""The tasks that merge what the splits of a loop carried."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect.attributes import Predicate
from pkc.dialect.elementwise import CompareOp, MulOp, SelectOp
from pkc.dialect.tile import FullOp, tile_type
from pkc.passes.analysis.dependence import maker
from pkc.passes.analysis.merging import Merge, yielded
from pkc.passes.build import append, append_copy


class MergingLoop:
    """The body of a loop that goes through the splits of another one, `loop`, and merges what these carried.

    `share` makes the operation that loads what split number `at` carried at a place.
    """

    def __init__(self, loop: scf.ForOp, how: Sequence[Merge], share: Callable[[int, SSAValue], Operation]) -> None:
        self._loop, self._how, self._share = loop, how, share
        self.body = Block(arg_types=[IndexType(), *(result.type for result in loop.results)])
        self._shares: dict[int, SSAValue] = {}
        self._merged: dict[int, SSAValue] = {}
        merged = [self._of(number) for number in range(len(how))]
        self._append(scf.YieldOp(*merged))
        for number in unbounded(loop, how):
            guard(self.body, merged[number])

    def _append(self, op: Operation) -> Operation:
        return append(self.body, op, self._loop.location)

    def _of(self, number: int) -> SSAValue:
        """What is merged at a place; maxima come before the sums that grow with them."""
        if number not in self._merged:
            merge = self._how[number]
            both = self._both(number) if merge.greatest is None else self._grown(number, merge, merge.greatest)
            self._merged[number] = self._append(merge.combine(*both)).results[0]
        return self._merged[number]

    def _both(self, number: int) -> tuple[SSAValue, SSAValue]:
        """What was merged until now, and the share of the next split."""
        if number not in self._shares:
            self._shares[number] = self._append(self._share(number, self.body.args[0])).results[0]
        return self.body.args[number + 1], self._shares[number]

    def _grown(self, number: int, merge: Merge, greatest: int) -> tuple[SSAValue, SSAValue]:
        """Both, multiplied as if the maximum that each was computed with had grown to that of both."""
        assert merge.factor is not None
        now, before = self._of(greatest), self._loop.body.block.args[greatest + 1]
        found: list[SSAValue] = []
        for value, then in zip(self._both(number), self._both(greatest), strict=True):
            factor = self._evaluated(merge.factor, {before: then, yielded(self._loop, greatest): now})
            found.append(self._append(MulOp(value, factor)).results[0])
        return found[0], found[1]

    def _evaluated(self, value: SSAValue, known: dict[SSAValue, SSAValue]) -> SSAValue:
        """A value of the other loop, computed here of what is known."""
        if value not in known and self._loop.is_ancestor(maker(value)):
            for operand in maker(value).operands:
                self._evaluated(operand, known)
            append_copy(self.body, maker(value), known)
        return known.get(value, value)


def unbounded(loop: scf.ForOp, how: Sequence[Merge]) -> list[int]:
    """The places of maxima that sums grow with, and that may be -inf."""
    found = dict.fromkeys(one.greatest for one in how if one.greatest is not None)
    starts = {number: loop.iter_args[number].owner for number in found}
    return [n for n, start in starts.items() if not isinstance(start, FullOp) or start.constant == -inf]


def guard(body: Block, greatest: SSAValue) -> None:
    """Let what computes with a maximum take zero in its place while it is -inf: -inf less -inf would be no number."""
    lowest, zero = (FullOp(value, tile_type(greatest)) for value in (-inf, 0.0))
    masked = CompareOp(Predicate.Eq, greatest, lowest)
    safe = SelectOp(masked, zero, greatest)
    for use in list(greatest.uses):
        if use.operation not in (masked, safe, body.last_op):
            use.operation.operands[use.index] = safe.result
    after = maker(greatest)
    for op in (safe, masked, zero, lowest):
        op.location = after.location
        body.insert_op_after(op, after)
