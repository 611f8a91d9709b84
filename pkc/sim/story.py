"""The steps of a run that lead to a finding, in source lines: what those parts did last that have to do with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pkc.diagnostics import Diagnostic
from pkc.dialect import access, copies
from pkc.dialect.program import KernelOp, RoleOp
from pkc.location import NOWHERE, span_of
from pkc.sim import errors
from pkc.sim.program import Program
from pkc.sim.schedule import Counter
from pkc.sim.trace import Action, Cell, Kind, Trace

_TOUCHES = 5
"""As many of the last accesses to what a finding is about are told."""

_SIGNALS = 2
"""As many of the last signals to a counter are told, of those that a wait has counted."""

_LINES = 16
_SOURCE = 44
"""As much is shown of a source line."""

_STORES = (access.StoreOp, access.StoreAddOp, access.AllReduceOp, access.AtomicAddOp, access.ScatterAddOp)


def story(trace: Trace, found: Diagnostic, kernel: KernelOp) -> list[str]:
    """The lines of a run that ended with a finding. `trace` must have been made in words."""
    told = _Told(trace.actions)
    about = _about(trace, found)
    for number in told.last(about, _TOUCHES):
        told.with_waits(number)
    arrays = {cell[0] for cell in about if not isinstance(cell, Counter)}
    for part in _writers(kernel, arrays) if arrays else ():
        told.last_of_role(part)
    return _lines([trace.actions[number] for number in sorted(told.numbers)][-_LINES:])


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
        """Tell what the part of an action waited for last, and who signalled that."""
        part = self._actions[number].part
        for before in reversed(range(number)):
            action = self._actions[before]
            if action.part is part and action.kind is Kind.Wait and isinstance(action.op, access.WaitOp):
                self.numbers.add(before)
                self._tell_signals(before, action.cells)
                return

    def _tell_signals(self, wait: int, counter: frozenset[Cell]) -> None:
        sent = [n for n in range(wait) if self._actions[n].kind is Kind.Signal and self._actions[n].cells & counter]
        self.numbers.update(sent[-_SIGNALS:])

    def last_of_role(self, part: RoleOp) -> None:
        """Tell what a role did last, on each rank that none is told of."""
        told = {self._actions[number].part.name for number in self.numbers}
        last: dict[object, int] = {}
        for number, action in enumerate(self._actions):
            if action.op is not None and part.is_ancestor(action.op):
                last[action.part.name] = number
        self.numbers.update(number for name, number in last.items() if name not in told)


def _writers(kernel: KernelOp, arrays: Iterable[str]) -> Iterator[RoleOp]:
    """The parts that store to some arrays."""
    program = Program(kernel)
    stored = {program.kernel.arguments[name] for name in arrays}
    for part in kernel.body.block.ops:
        if isinstance(part, RoleOp) and any(
            (isinstance(op, _STORES) and op.array in stored) or (isinstance(op, copies.CopyOp) and op.target in stored)
            for op in part.walk()
        ):
            yield part


def _lines(actions: list[Action]) -> list[str]:
    rows = list(dict.fromkeys((_who(action), *_where(action), action.outcome) for action in actions))
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    return [
        "  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3])).rstrip()
        for row in rows
    ]


def _who(action: Action) -> str:
    return f"rank {action.part.rank} {action.part.role}".rstrip()


def _where(action: Action) -> tuple[str, str]:
    if action.op is None:
        return "", ""
    span = span_of(action.op.location)
    if span.source is NOWHERE.source:
        return "<unknown>", f"{action.op.name}"
    text = span.source.line_text(span.line).split("#")[0].strip()
    text = text if len(text) <= _SOURCE else f"{text[: _SOURCE - 3]}..."
    return f"{span.source.name.rpartition('/')[2]}:{span.line}", text
