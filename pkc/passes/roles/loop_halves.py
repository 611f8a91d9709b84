"""How a loop whose MMAs need one another is cut into a half that runs ahead and one that follows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from pkc.dialect.roles import ConsumeOp, ReleaseOp, channel_of
from pkc.dialect.tile import BroadcastOp, FullOp, MmaOp, PositionsOp, SplatOp, TransposeOp
from pkc.dialect.types import NARROW, TileType
from pkc.passes.roles.role_values import VIEWS

_FREE = (FullOp, SplatOp, BroadcastOp, PositionsOp, TransposeOp)
"""Operations on tiles that have no registers of their own."""

_STAGES = 2
"""Stages that a channel needs if one of them is read an iteration later than those of other channels."""


class NotCutError(Exception):
    """Raised for a loop that cannot be cut, at an operation, with the reason."""

    def __init__(self, op: Operation, why: str) -> None:
        super().__init__(why)
        self.op = op


@dataclass(frozen=True)
class Half:
    """The operations of a half, in their order: those that lead to its MMAs, the MMAs, those behind them; and the
    releases of its stages, first of those that only MMAs read."""

    before: list[Operation]
    mmas: list[MmaOp]
    after: list[Operation]
    freed: list[ReleaseOp]
    freed_last: list[ReleaseOp]
    made: list[SSAValue]
    """Tiles that nothing in the half uses: when these are computed, all is."""


@dataclass(frozen=True)
class Halves:
    """*Late* are the MMAs that need what is computed from other MMAs of the iteration, and what depends on these MMAs;
    *early* is the rest. Operations that cost nothing (`is_free`) are in no half: each has a copy of what it needs."""

    early: Half
    late: Half
    packing: list[Operation]
    """The end of the early half: it writes to the registers of the left operands of the late MMAs."""
    crossing: list[SSAValue]
    """Tiles that go from the early half to the late one."""
    numbered: bool
    """Whether the late half needs the number of its iteration."""
    carried: frozenset[int]
    """Which values that the loop carries belong to the late half."""


def is_free(op: Operation) -> bool:
    """Whether an operation takes neither registers nor time to speak of: integers, blocks, other views of a tile."""
    if isinstance(op, _FREE):
        return True
    return not op.regions and is_side_effect_free(op) and not any(isinstance(r.type, TileType) for r in op.results)


def halves_of(loop: scf.ForOp) -> Halves | None:
    """How to cut a loop. None if no MMA of it needs another one of the same iteration; raises `NotCutError`."""
    return _Cut(loop).halves()


class _Cut:
    def __init__(self, loop: scf.ForOp) -> None:
        self._body = loop.body.block
        last = self._body.last_op
        assert last is not None
        self._yielded = [dict.fromkeys(self._roots([value])).keys() for value in last.operands]
        self._ops = [op for op in self._body.ops if op is not last and not is_free(op)]
        self._mmas = [op for op in self._ops if isinstance(op, MmaOp)]
        self._read = {op: dict.fromkeys(self._roots(used_by(op))).keys() for op in self._ops}

    def halves(self) -> Halves | None:
        last = [mma for mma in self._mmas if self._needs_another(mma)]
        if not last:
            return None
        self._refuse()
        late, carried = self._late(last)
        for mma in self._mmas:
            if mma in late and mma not in last:
                raise NotCutError(mma, "it needs what a later MMA made in the iteration before")
        for mma in last:
            if self._makers(mma) & set(last):
                raise NotCutError(mma, "it is the third of three MMAs that need one another")
        self._place_stages(late)
        early = [op for op in self._ops if op not in late]
        used = [self._read[op] for op in self._ops if op in late] + [self._yielded[number] for number in carried]
        crossing = list(dict.fromkeys(value for roots in used for value in self._crossing(roots, late, carried)))
        packing = self._packing(early, late)
        index = self._body.args[0]
        return Halves(
            self._half([op for op in early if op not in packing]),
            self._half([op for op in self._ops if op in late]),
            packing,
            crossing,
            any(index in roots for roots in used),
            frozenset(carried),
        )

    # Dependences

    def _roots(self, values: Iterable[SSAValue]) -> Iterator[SSAValue]:
        """What values are made from, free operations apart: values of the body and its arguments."""
        for value in values:
            owner = value.owner
            if owner is self._body:
                yield value
            elif isinstance(owner, Operation) and owner.parent is self._body:
                if is_free(owner):
                    yield from self._roots(owner.operands)
                else:
                    yield value

    def _makers(self, op: Operation) -> set[Operation]:
        """The operations of the iteration that an operation needs, directly or not."""
        found: set[Operation] = set()
        todo = [op]
        while todo:
            for value in self._read[todo.pop()]:
                owner = value.owner
                if isinstance(owner, Operation) and owner not in found:
                    found.add(owner)
                    todo.append(owner)
        return found

    def _needs_another(self, mma: MmaOp) -> bool:
        """Whether operands of an MMA are computed from the result of another one; adding to it is no computation."""
        computed = [mma.a, mma.b] if isinstance(mma.acc.owner, MmaOp) else [mma.a, mma.b, mma.acc]
        found = {value.owner for value in self._roots(computed) if isinstance(value.owner, Operation)}
        return any(isinstance(op, MmaOp) for owner in found for op in (owner, *self._makers(owner)))

    def _late(self, last: Iterable[MmaOp]) -> tuple[set[Operation], set[int]]:
        """The late MMAs, all that depends on them in this iteration or a later one, and what carries that."""
        late, carried = set[Operation](last), set[int]()
        while True:
            arguments = {self._body.args[number + 1] for number in carried}
            more = {op for op in self._ops if op not in late and self._depends(self._read[op], late, arguments)}
            numbers = {n for n, roots in enumerate(self._yielded) if self._depends(roots, late, arguments)}
            if not more and numbers == carried:
                return late, carried
            late |= more
            carried = numbers

    def _depends(self, roots: Set[SSAValue], late: set[Operation], arguments: set[BlockArgument]) -> bool:
        return bool(arguments & roots) or any(value.owner in late for value in roots)

    def _crossing(self, roots: Set[SSAValue], late: set[Operation], carried: set[int]) -> Iterator[SSAValue]:
        """Of what the late half uses, the values of the early half."""
        for value in roots:
            if isinstance(value, BlockArgument):
                if value.index and value.index - 1 not in carried:
                    yield value
            elif value.owner not in late:
                yield value

    # What is refused

    def _refuse(self) -> None:
        for op in self._ops:
            known = isinstance(op, ConsumeOp) or (isinstance(op, ReleaseOp) and not op.kept)
            if not known and not is_side_effect_free(op):
                raise NotCutError(op, f"`{op.name}` in the loop keeps its place among the operations around it")
        for mma in self._mmas:
            if isinstance(mma.acc.owner, MmaOp) and mma.acc.owner.parent is self._body:
                raise NotCutError(mma, "it adds to the result of another MMA of the iteration")

    def _place_stages(self, late: set[Operation]) -> None:
        """Put each stage into the half that reads it, with other views of its tiles and its release."""
        for op in self._ops:
            if not isinstance(op, ConsumeOp):
                continue
            release = self._release(op)
            users = self._readers(op)
            halves = {user in late for user in users if not isinstance(user, VIEWS)}
            label = channel_of(op.channel).label.data
            if len(halves) > 1:
                raise NotCutError(op, f"both halves of an iteration read the stage of {label}")
            if halves == {True}:
                if channel_of(op.channel).depth < _STAGES:
                    raise NotCutError(op, f"{label} has one stage, and two iterations would have one at a time")
                late |= {op, release, *users}

    def _readers(self, op: ConsumeOp) -> list[Operation]:
        """The operations that read the tiles of a stage, as they are or by another view."""
        tiles, found = set[SSAValue](op.tiles), list[Operation]()
        for user in self._ops:
            if self._read[user] & tiles:
                found.append(user)
                tiles |= set(user.results) if isinstance(user, VIEWS) else set()
        return found

    def _release(self, op: ConsumeOp) -> ReleaseOp:
        found = [other for other in self._ops if isinstance(other, ReleaseOp) and other.channel is op.channel]
        if len(found) != 1:
            label = channel_of(op.channel).label.data
            raise NotCutError(op, f"an iteration goes through several stages of {label}")
        return found[0]

    # The halves

    def _packing(self, early: list[Operation], late: set[Operation]) -> list[Operation]:
        """The last operations, on elements as narrow as operands, of what only the left operand of late MMAs uses; none
        of those that read a stage, which is released before."""
        staged = {reader for op in early if isinstance(op, ConsumeOp) for reader in (op, *self._readers(op))}
        found: list[Operation] = []
        for op in reversed(early):
            if op in staged or len(op.results) != 1 or not _is_narrow(op.results[0]):
                continue
            value = op.results[0]
            readers = [reader for reader in self._ops if value in self._read[reader]]
            multiplied = (reader in late and isinstance(reader, MmaOp) and value is reader.a for reader in readers)
            yielded = any(value in roots for roots in self._yielded)
            if not yielded and all(right or reader in found for right, reader in zip(multiplied, readers, strict=True)):
                found.insert(0, op)
        return found

    def _half(self, ops: list[Operation]) -> Half:
        mmas = [op for op in ops if isinstance(op, MmaOp)]
        leading = set[Operation]().union(*(self._makers(mma) for mma in mmas))
        releases = [op for op in ops if isinstance(op, ReleaseOp)]
        consumed = {op.channel: op for op in ops if isinstance(op, ConsumeOp)}
        read = {
            op.channel
            for op in consumed.values()
            if any(other not in mmas and not isinstance(other, VIEWS) for other in self._readers(op))
        }
        after = [op for op in ops if op not in leading and op not in mmas and op not in releases]
        used = {value for op in after for value in self._read[op]}
        return Half(
            [op for op in ops if op in leading],
            mmas,
            after,
            [op for op in releases if op.channel not in read],
            [op for op in releases if op.channel in read],
            [value for op in after for value in op.results if isinstance(value.type, TileType) and value not in used],
        )


def used_by(op: Operation) -> Iterator[SSAValue]:
    """What an operation uses, in its regions too."""
    return (value for inner in op.walk() for value in inner.operands)


def _is_narrow(value: SSAValue) -> bool:
    return isinstance(value.type, TileType) and value.type.element_type in NARROW
