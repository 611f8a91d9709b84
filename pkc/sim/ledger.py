"""The signals that each launch sends to every counter, and its waits: no signal may be left over."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import NamedTuple

from xdsl.ir import Operation

from pkc.diagnostics import Label, PkcError
from pkc.dialect.coordinates import is_cut_short
from pkc.dialect.counters import EARLIER, CounterOp, WaitOp
from pkc.dialect.program import TasksOp
from pkc.location import span_of
from pkc.sim import errors
from pkc.sim.schedule import Counter


class _Sent(NamedTuple):
    launch: int
    amount: int
    raised: bool
    """Whether the counter was raised to the amount; else the amount was added."""
    op: Operation


class _Awaited(NamedTuple):
    counter: Counter
    launch: int
    wanted: int
    op: Operation


class Ledger:
    """The signals of some launches, for a protocol whose waits each stand for all signals of their launch and before.

    A wait for fewer ends while a signal is still in flight, and that signal is left over: nobody waits for it.
    """

    def __init__(self) -> None:
        self._sent: dict[Counter, list[_Sent]] = {}
        self._awaited: dict[_Awaited, None] = {}
        self._begun: set[tuple[int, TasksOp]] = set()

    def begins(self, rank: int, tasks: TasksOp) -> None:
        """A rank has some of these tasks."""
        self._begun.add((rank, tasks))

    def sent(self, counter: Counter, amount: int, launch: int, op: Operation, *, raised: bool = False) -> None:
        """A signal of a launch."""
        self._sent.setdefault(counter, []).append(_Sent(launch, amount, raised, op))

    def awaited(self, counter: Counter, wanted: int, launch: int, op: Operation) -> None:
        """A wait for the signals of a launch and those before it."""
        self._awaited[_Awaited(counter, launch, wanted, op)] = None

    def check(self) -> None:
        """An error if a wait is not for what its counter has reached at the end of its launch, or if there is none.

        What is raised needs no wait: the next launch raises it further, whatever it is now. Nor does a rank that has
        none of the tasks that wait; nor one whose counter others await of theirs; nor what the next launch awaits.
        """
        for wait in sorted(self._awaited, key=lambda wait: (wait.launch, wait.counter)):
            sent = self._until(wait.counter, wait.launch)
            if _total(sent) != wait.wanted:
                ops = dict.fromkeys(one.op for one in sent)
                labels = tuple(Label(span_of(op.location), "signalled here") for op in ops)
                raise _left_over(wait.op, wait, _total(sent), f"but the wait is for {wait.wanted}", labels)
        waited = {(wait.counter._replace(rank=0), wait.launch) for wait in self._awaited}
        ahead = {wait.counter.signal for wait in self._awaited if EARLIER in wait.op.attributes}
        last = max((one.launch for sent in self._sent.values() for one in sent), default=0)
        for counter, sent in sorted(self._sent.items(), key=lambda item: item[0]):
            for one in sent:
                if one.launch == last and counter.signal in ahead:
                    continue
                if is_left_to_tasks(one.op, counter.rank, self._begun):
                    continue
                if not one.raised and (counter._replace(rank=0), one.launch) not in waited:
                    wait = _Awaited(counter, one.launch, 0, one.op)
                    raise _left_over(one.op, wait, _total(self._until(counter, one.launch)), "and nobody waits for it")

    def _until(self, counter: Counter, launch: int) -> list[_Sent]:
        return [one for one in self._sent.get(counter, ()) if one.launch <= launch]


def waits_for(signal: Operation) -> list[WaitOp]:
    """The waits of a kernel for the counters that an operation signals, or others of their array."""
    uses = signal.signal.uses if isinstance(signal, CounterOp) else ()
    return [use.operation for use in uses if isinstance(use.operation, WaitOp)]


def is_left_to_tasks(signal: Operation, rank: int, begun: Set[tuple[int, TasksOp]]) -> bool:
    """Whether all waits for what is signalled stand in tasks of which a rank has none, or in loops of which tasks may
    skip what is masked, or are for what tables name."""
    return bool(waits := waits_for(signal)) and all(
        wait.rows is not None or is_cut_short(wait) or _has_none(_tasks_around(wait), rank, begun) for wait in waits
    )


def _has_none(tasks: TasksOp | None, rank: int, begun: Set[tuple[int, TasksOp]]) -> bool:
    return tasks is not None and (rank, tasks) not in begun


def _tasks_around(op: Operation) -> TasksOp | None:
    around = op.parent_op()
    return around if around is None or isinstance(around, TasksOp) else _tasks_around(around)


def _left_over(op: Operation, wait: _Awaited, total: int, problem: str, also: tuple[Label, ...] = ()) -> PkcError:
    counter = wait.counter
    where = (str(counter), counter.rank, wait.launch, total, problem)
    return PkcError(errors.LeftOver(span_of(op.location), *where, also=also))


def _total(sent: Iterable[_Sent]) -> int:
    reached = 0
    for one in sent:
        reached = max(reached, one.amount) if one.raised else reached + one.amount
    return reached
