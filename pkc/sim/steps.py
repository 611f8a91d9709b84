"""The steps of a run that lead to a finding, in source lines: the last actions of the roles that take part in it."""

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
from pkc.sim.schedule import Coroutine, Counter
from pkc.sim.trace import Action, Address, Kind, Trace

_TOUCHES = 5
"""The most accesses that are shown to what a finding is about; the last ones."""

_SIGNALS = 3
"""The most signals that are shown of those that a wait has counted; the last ones."""

_LINES = 16
_SOURCE = 44
"""The most characters that are shown of a source line."""

_Row: TypeAlias = tuple[str, str, str, str]
"""Role, place, source text, outcome."""

_STORES = access.StoreOp | access.AddToArrayOp | access.Scatter | access.AllReduceOp


def steps_to(trace: Trace, found: Diagnostic, kernel: KernelOp, ranks: int) -> list[str]:
    """The lines of a run on some ranks that ended with a finding. `trace` must have been made in words."""
    shown = _Shown(trace.actions)
    about = _about(trace, found)
    for number in shown.last(about, _TOUCHES):
        shown.with_waits(number)
    arrays = {address[0] for address in about if not isinstance(address, Counter)}
    missing: list[_Row] = []
    for role, store in _writers(kernel, arrays):
        begun = shown.last_of_role(role)
        private = all(isinstance(kernel.arguments[name].type, PrivateType) for name in arrays)
        could = shown.ranks() if private else set(range(ranks))
        names = (f"rank {rank} {role.role.data}" for rank in sorted(could - begun))
        missing += [(name, *_where(store), "has not begun") for name in names]
    actions = [trace.actions[number] for number in sorted(shown.numbers)]
    return _lines([(_who(action), *_where(action.op), action.outcome) for action in actions][-_LINES:] + missing)


def _about(trace: Trace, found: Diagnostic) -> frozenset[Address]:
    """The counters or elements that a finding is about."""
    stuck = [action for action in trace.actions if action.kind is Kind.Stuck]
    if stuck:
        return frozenset[Address]().union(*(action.addresses for action in stuck))
    if isinstance(found, errors.LeftOver):
        counters = (address for step in trace.steps for address in step.accesses if isinstance(address, Counter))
        return frozenset(c for c in counters if c.rank == found.rank and str(c) == found.counter)
    if trace.differs is not None:
        return frozenset((trace.differs,))
    return trace.actions[-1].addresses if trace.actions else frozenset()


class _Shown:
    """The numbers of the actions that are shown."""

    def __init__(self, actions: list[Action]) -> None:
        self._actions = actions
        self.numbers: set[int] = set()

    def last(self, about: frozenset[Address], most: int) -> list[int]:
        """Show the last actions on some addresses, and all that are stuck there."""
        touching = [number for number, action in enumerate(self._actions) if action.addresses & about]
        stuck = [number for number in touching if self._actions[number].kind is Kind.Stuck]
        chosen = stuck + [number for number in touching if number not in stuck][-most:]
        self.numbers.update(chosen)
        return chosen

    def with_waits(self, number: int) -> None:
        """Show the last wait before an access, and the last one of the program's own text if that is another, and the
        signals that they have counted."""
        coroutine, kind = self._actions[number].coroutine, self._actions[number].kind
        if kind is not Kind.Access:
            return
        waits = (before for before in reversed(range(number)) if self._is_wait(before, coroutine))
        for place, before in enumerate(waits):
            written = "wait(" in _where(self._actions[before].op)[1]
            if place == 0 or written:
                self.numbers.add(before)
                self._show_signals(before, self._actions[before].addresses)
            if written:
                return

    def _is_wait(self, number: int, coroutine: Coroutine) -> bool:
        action = self._actions[number]
        return action.coroutine is coroutine and action.kind is Kind.Wait and isinstance(action.op, counters.WaitOp)

    def _show_signals(self, wait: int, counter: frozenset[Address]) -> None:
        sent = [n for n in range(wait) if self._actions[n].kind is Kind.Signal and self._actions[n].addresses & counter]
        self.numbers.update(sent[-_SIGNALS:])

    def ranks(self) -> set[int]:
        """The ranks of which an action is shown."""
        return {self._actions[number].coroutine.rank for number in self.numbers}

    def last_of_role(self, role: RoleOp) -> set[int]:
        """Show the last action of a role where none is shown, by rank; the ranks where it has begun."""
        shown = {self._actions[number].coroutine.name for number in self.numbers}
        last: dict[tuple[int, str], int] = {}
        for number, action in enumerate(self._actions):
            if action.op is not None and role.is_ancestor(action.op):
                last[action.coroutine.name] = number
        self.numbers.update(number for name, number in last.items() if name not in shown)
        return {rank for rank, _ in last}


def _writers(kernel: KernelOp, arrays: Iterable[str]) -> Iterator[tuple[RoleOp, Operation]]:
    """The roles that store to some arrays, each with the first operation that does."""
    stored = {kernel.arguments[name] for name in arrays}
    for role in kernel.body.block.ops:
        if not isinstance(role, RoleOp):
            continue
        for op in role.walk():
            target = op.array if isinstance(op, _STORES) else op.target if isinstance(op, copies.CopyOp) else None
            if target in stored:
                yield role, op
                break


def _lines(rows: Iterable[_Row]) -> list[str]:
    rows = list(dict.fromkeys(rows))
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    return [
        "  ".join((*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[3])).rstrip()
        for row in rows
    ]


def _who(action: Action) -> str:
    return f"rank {action.coroutine.rank} {action.coroutine.role}".rstrip()


def _where(op: Operation | None) -> tuple[str, str]:
    if op is None:
        return "", ""
    span = span_of(op.location)
    if span.source is NOWHERE.source:
        return "<unknown>", op.name
    text = span.source.line_text(span.line).split("#")[0].strip()
    text = text if len(text) <= _SOURCE else f"{text[: _SOURCE - 3]}..."
    return f"{span.source.name.rpartition('/')[2]}:{span.line}", text
