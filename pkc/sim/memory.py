"""The memory of all ranks: arrays, signals, and the sums that a phase has open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from xdsl.ir import Operation

from pkc.diagnostics import Label, PkcError
from pkc.dialect.access import StoreAdd
from pkc.dialect.numeric import Values
from pkc.dialect.program import RoleOp
from pkc.location import span_of
from pkc.sim import errors
from pkc.sim.array import Array, Where, is_poison
from pkc.sim.conflicts import Task, WriteLog
from pkc.sim.ledger import Ledger
from pkc.sim.schedule import Counter
from pkc.sim.trace import Access, Trace
from pkc.sim.unread import Unread

_BEFORE_ROLE = "store there first; is a `wait` missing before this, or did one end by other signals?"
_SUM_IN_ROLES = "with roles a sum over ranks is complete when the kernel ends; `store_add` adds at once"
_SUM_IN_PHASE = "a sum over ranks is complete at the end of its phase: read it in a later `tasks`"
_BEFORE_PHASE = "store there first, in this task or in an earlier `tasks`"
_ADD_IN_ROLES = "an addition needs something to add to: store there first, zeros if need be, and `wait` for it"
_ADD_IN_PHASE = "an addition needs something to add to: store zeros there first, in an earlier `tasks`"


class Contribution(NamedTuple):
    """What one task of one rank adds to a sum, which may be rounded at once."""

    task: Task
    array: Array
    where: Where
    tile: Any
    rounded: bool = False


class MemoryState:
    """The arrays and counters of all ranks, with the open sums and the accesses of the current phase."""

    def __init__(self, arrays: Mapping[str, Array], stored: Iterable[str] | None) -> None:
        """`stored` are the arrays written with `=` whose writers are to be tracked; None tracks no accesses."""
        self.arrays = arrays
        self.counters: dict[Counter, int] = {}
        self.ledger: Ledger | None = None
        self.unread: Unread | None = None
        self.trace: Trace | None = None
        self._writes = None if stored is None else WriteLog(arrays[name] for name in stored)
        self._sums: list[Contribution] = []
        self._summed: dict[str, Operation] = {}
        self._read: dict[str, Operation] = {}
        self._added: dict[tuple[str, int], list[Contribution]] = {}

    # Accesses

    def check_load(self, array: Array, where: Where, task: Task, op: Operation) -> None:
        """Refuse to read elements without a value, or with one that depends on the order of tasks."""
        if self.trace is not None:
            self.trace.accessed(op, array, where, Access.Read)
        self._settle(array, where)
        if array.name in self._summed:
            raise PkcError(self._read_of_sum(array, op, self._summed[array.name]))
        self._read[array.name] = op
        self.check_addition(array, where, task, op)

    def check_addition(self, array: Array, where: Where, task: Task, op: Operation) -> None:
        """Refuse to read, or to add to, elements that hold nothing or what another task of the phase has stored."""
        if self._writes is not None:
            self._writes.loaded(array, where, task, op)
        if array.place.scratch:
            unwritten = is_poison(array.value[where])
            if unwritten.any():
                element = array.element(where, [int(i) for i in np.argwhere(unwritten)[0]])
                raise PkcError(_read_unwritten(op, array.name, element, str(task)))
        if self.unread is not None:
            self.unread.loaded(array, where)

    def check_store(self, array: Array, where: Where, copies: Where, task: Task, op: Operation) -> None:
        """Refuse a second writer, and a store over elements that were not read; `copies` are those it goes to."""
        if self.trace is not None:
            self.trace.accessed(op, array, copies, Access.Write)
        self._settle(array, copies)
        if self._writes is not None:
            self._writes.stored(array, where, task, op)
        if self.unread is not None:
            self.unread.stored(array, copies, task, op)

    def note_change(self, array: Array, where: Where, op: Operation) -> None:
        """Note that elements that were read change."""
        if self.trace is not None:
            self.trace.accessed(op, array, where, Access.Write)

    def contribute(self, array: Array, where: Where, tile: Any, task: Task, op: Operation) -> None:
        """Add to a sum; it is carried out when the rank, or the phase, ends."""
        if array.name in self._read:
            raise PkcError(self._read_of_sum(array, self._read[array.name], op))
        self._summed[array.name] = op
        self._sums.append(Contribution(task, array, where, _kept(tile)))

    def add_later(self, array: Array, where: Where, tile: Any, task: Task, op: Operation) -> None:
        """Add in any order: additions are carried out, by ranks and tasks, at the next load or store there."""
        if self.trace is not None:
            self.trace.accessed(op, array, where, Access.Add)
        for copy in _copies(array, where):
            contribution = Contribution(task, array, (copy, *where[1:]), _kept(tile), isinstance(op, StoreAdd))
            self._added.setdefault((array.name, copy), []).append(contribution)

    def _settle(self, array: Array, where: Where) -> None:
        for copy in _copies(array, where) if self._added else ():
            self.settle(array, copy, where)

    def settle(self, array: Array, copy: int, where: Where = ()) -> None:
        """Carry out the additions to one copy of an array: those that meet a place, and those that meet them. Others
        come later, in order with what is yet to be added there."""
        later = self._added.pop((array.name, copy), [])
        added, places = ([], [where]) if where else (later, [])
        while places:
            place = places.pop()
            met = [one for one in later if not _apart(one.where, place)]
            later = [one for one in later if _apart(one.where, place)]
            added += met
            places += [one.where for one in met]
        if where and later:
            self._added[array.name, copy] = later
        for _, _, where, tile, rounded in sorted(added, key=lambda c: (c.task.rank, c.task.indices)):
            (array.add_rounded if rounded else array.add)(where, tile)
        if not all(one.rounded for one in added):
            array.round_copy(copy)

    # Launches

    def begin_launch(self, rank: int, number: int, content: Mapping[str, Values]) -> None:
        """A rank launches the kernel again: its memory holds new content, or poison."""
        for name, array in self.arrays.items():
            array.begin_launch(rank, content.get(name))
            if self.unread is not None:
                self.unread.begin_launch(array, rank)
        if self.trace is not None:
            changed = [array for array in self.arrays.values() if not array.place.kept]
            self.trace.launched(changed, rank, Access.Write, f"begins launch {number}")

    def end_launch(self, rank: int, number: int, outputs: Iterable[str]) -> dict[str, Values]:
        """The copies of some arrays that a rank has at the end of a launch."""
        for name in outputs:
            self.settle(self.arrays[name], rank)
        if self.trace is not None:
            taken = [self.arrays[name] for name in outputs]
            self.trace.launched(taken, rank, Access.Read, f"has ended launch {number}")
        return {name: self.arrays[name].value[rank] for name in outputs}

    # Phases

    def add_contributions(self) -> None:
        """Carry out the sums so far, in the order of ranks and task indices, not that of the run."""
        for _, array, where, tile, _ in sorted(self._sums, key=lambda c: (c.task.rank, c.task.indices)):
            array.add(where, tile)
        self._sums.clear()

    def end_phase(self) -> None:
        """Complete the sums of a phase; what was written and read in it no longer matters."""
        self.add_contributions()
        for name, copy in list(self._added):
            self.settle(self.arrays[name], copy)
        for name in self._summed:
            self.arrays[name].finish_sums()
        self._summed.clear()
        self._read.clear()
        if self._writes is not None:
            self._writes.end_phase()

    def _read_of_sum(self, array: Array, read: Operation, summed: Operation) -> errors.ReadOfSum:
        label = Label(span_of(summed.location), "summed here")
        hint = _SUM_IN_ROLES if _in_role(summed) else _SUM_IN_PHASE
        return errors.ReadOfSum(span_of(read.location), array.name, hint, also=(label,))


def _read_unwritten(op: Operation, array: str, element: str, reader: str) -> errors.ReadUnwritten:
    if isinstance(op, StoreAdd):
        hint = _ADD_IN_ROLES if _in_role(op) else _ADD_IN_PHASE
        return errors.ReadUnwritten(span_of(op.location), array, element, "added to", reader, hint)
    hint = _BEFORE_ROLE if _in_role(op) else _BEFORE_PHASE
    return errors.ReadUnwritten(span_of(op.location), array, element, "read", reader, hint)


def _kept(tile: Any) -> Any:
    """A copy of a tile, whose memory may be a stage that is overwritten later."""
    return np.array(tile, copy=True) if hasattr(tile, "dtype") else tile


def _copies(array: Array, where: Where) -> Iterable[int]:
    """The copies of an array, or its shards, in which a place lies."""
    return range(array.place.copies) if isinstance(where[0], slice) else (where[0],)


def _apart(one: Where, other: Where) -> bool:
    """Whether two places of a copy have no element in common, as far as slices and numbers show."""
    spans = zip(map(_span, one[1:]), map(_span, other[1:]), strict=True)
    return any(a and b and (a[1] <= b[0] or b[1] <= a[0]) for a, b in spans)


def _span(index: Any) -> tuple[int, int] | None:
    if isinstance(index, int):
        return index, index + 1
    first, last = getattr(index, "start", None), getattr(index, "stop", None)
    return None if first is None or last is None else (int(first), int(last))


def _in_role(op: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, RoleOp):
        parent = parent.parent_op()
    return parent is not None
