"""The steps of a run that lead to a finding, in source lines: what those parts did last that have to do with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from xdsl.ir import Operation

from pkc.diagnostics import Diagnostic
from pkc.dialect import access, copies, counters
from pkc.dialect.program import KernelOp, RoleOp
from pkc.dialect.types import PrivateType
from pkc.location import NOWHERE, span_of
from pkc.sim import errors
from pkc.sim.schedule import Counter
from pkc.sim.trace import Action, Cell, Kind, Trace

_TOUCHES = 5
"""As many of the last accesses to what a finding is about are told."""

_SIGNALS = 2
"""As many of the last signals to a counter are told, of those that a wait has counted."""

_LINES = 16
_SOURCE = 44
"""As much is shown of a source line."""

_Row: TypeAlias = tuple[str, str, str, str]
"""Who, where, the source text, what came of it."""

_STORES = (access.StoreOp, access.StoreAddOp, access.AllReduceOp, access.AtomicAddOp, access.ScatterAddOp)


def story(trace: Trace, found: Diagnostic, kernel: KernelOp, ranks: int) -> list[str]:
    """The lines of a run on some ranks that ended with a finding. `trace` must have been made in words."""
    told = _Told(trace.actions)
    about = _about(trace, found)
    for number in told.last(about, _TOUCHES):
        told.with_waits(number)
    arrays = {cell[0] for cell in about if not isinstance(cell, Counter)}
    missing: list[_Row] = []
    for part, store in _writers(kernel, arrays):
        begun = told.last_of_role(part)
        private = all(isinstance(kernel.arguments[name].type, PrivateType) for name in arrays)
        could = told.ranks() if private else set(range(ranks))
        names = (f"rank {rank} {part.role.data}" for rank in sorted(could - begun))
        missing += [(name, *_where(store), "has not begun") for name in names]
    actions = [trace.actions[number] for number in sorted(told.numbers)]
    return _lines([(_who(action), *_where(action.op), action.outcome) for action in actions][-_LINES:] + missing)


def _about(trace: Trace, found: Diagnostic) -> frozenset[Cell]:
    """The counters or elements that a finding is about."""
    stuck = [action for action in trace.actions if action.kind is Kind.Stuck]
    if stuck:
        return frozenset[Cell]().union(*(action.cells for action in stuck))
    if isinstance(found, errors.LeftOver):
        counters = (cell for step in trace.steps for cell in step.accesses if isinstance(cell, Counter))
        return frozenset(c for c in counters if c.rank == found.rank and str(c) == found.counter)
    if trace.differs is not None:
        return frozenset((trace.differs,))
    return trace.actions[-1].cells if trace.actions else frozenset()


class _Told:
    """The numbers of the actions that are told."""

    def __init__(self, actions: list[Action]) -> None:
        self._actions = actions
        self.numbers: set[int] = set()

    def last(self, about: frozenset[Cell], most: int) -> list[int]:
        """Tell the last actions on some cells, and all that are stuck there."""
        touching = [number for number, action in enumerate(self._actions) if action.cells & about]
        stuck = [number for number in touching if self._actions[number].kind is Kind.Stuck]
        chosen = stuck + [number for number in touching if number not in stuck][-most:]
        self.numbers.update(chosen)
        return chosen

    def with_waits(self, number: int) -> None:
        """Tell what the part of an access waited for last, and who signalled that."""
        part, kind = self._actions[number].part, self._actions[number].kind
        if kind is not Kind.Access:
            return
        for before in reversed(range(number)):
            action = self._actions[before]
            if action.part is part and action.kind is Kind.Wait and isinstance(action.op, counters.WaitOp):
                self.numbers.add(before)
                self._tell_signals(before, action.cells)
                return

    def _tell_signals(self, wait: int, counter: frozenset[Cell]) -> None:
        sent = [n for n in range(wait) if self._actions[n].kind is Kind.Signal and self._actions[n].cells & counter]
        self.numbers.update(sent[-_SIGNALS:])

    def ranks(self) -> set[int]:
        """The ranks that something is told of."""
        return {self._actions[number].part.rank for number in self.numbers}

    def last_of_role(self, part: RoleOp) -> set[int]:
        """Tell what a role did last, on each rank of which nothing is told; the ranks on which it did anything."""
        told = {self._actions[number].part.name for number in self.numbers}
        last: dict[tuple[int, str], int] = {}
        for number, action in enumerate(self._actions):
            if action.op is not None and part.is_ancestor(action.op):
                last[action.part.name] = number
        self.numbers.update(number for name, number in last.items() if name not in told)
        return {rank for rank, _ in last}


def _writers(kernel: KernelOp, arrays: Iterable[str]) -> Iterator[tuple[RoleOp, Operation]]:
    """The parts that store to some arrays, each with the first operation that does."""
    stored = {kernel.arguments[name] for name in arrays}
    for part in kernel.body.block.ops:
        if not isinstance(part, RoleOp):
            continue
        for op in part.walk():
            target = op.array if isinstance(op, _STORES) else op.target if isinstance(op, copies.CopyOp) else None
            if target in stored:
                yield part, op
                break


def _lines(rows: Iterable[_Row]) -> list[str]:
    rows = list(dict.fromkeys(rows))
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    return [
        "  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3])).rstrip()
        for row in rows
    ]


def _who(action: Action) -> str:
    return f"rank {action.part.rank} {action.part.role}".rstrip()


def _where(op: Operation | None) -> tuple[str, str]:
    if op is None:
        return "", ""
    span = span_of(op.location)
    if span.source is NOWHERE.source:
        return "<unknown>", op.name
    text = span.source.line_text(span.line).split("#")[0].strip()
    text = text if len(text) <= _SOURCE else f"{text[: _SOURCE - 3]}..."
    return f"{span.source.name.rpartition('/')[2]}:{span.line}", text
