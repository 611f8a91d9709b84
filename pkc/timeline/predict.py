"""The time line that a kernel should have, without a GPU.

The steps of every warp role of every CTA (`steps.py`, `processes.py`) are run in the order of their times. Each takes
what its operation takes at the rates of the target (`costs.py`), and waits for channels and counters, which are here,
and for what it shares with others (`resources.py`). What happens is recorded (`recorder.py`).
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from xdsl.ir import Operation, SSAValue

from pkc.diagnostics import PkcError
from pkc.dialect import roles
from pkc.dialect.attributes import Role
from pkc.dialect.counters import Order, order_of
from pkc.dialect.deferred import is_deferred
from pkc.dialect.program import KernelOp, RoleOp
from pkc.dialect.words import LANES
from pkc.location import span_of
from pkc.sim.inputs import Data
from pkc.sim.memory import MemoryState
from pkc.sim.program import Program
from pkc.sim.run import make_machine
from pkc.targets.target import Target, target_of
from pkc.timeline import steps
from pkc.timeline.costs import Costs
from pkc.timeline.errors import NotPredicted
from pkc.timeline.names import names_of
from pkc.timeline.processes import Process, computes, groups_of
from pkc.timeline.recorder import Prediction, Recorder
from pkc.timeline.resources import Resources

MOST_STEPS = 2_000_000
"""A time line ends there, after some ten seconds."""

_TOGETHER = 50.0
"""Nanoseconds by which a warp role may run ahead of the others."""

_RELEASES = (roles.ReleaseOp, roles.ReleaseDeferredOp)

_RELEASING = (Order.Release_Gpu, Order.Release_Sys)
"""Signals whose threads wait until what they stored is visible."""


def predict(
    kernel: KernelOp, *, ranks: int, dims: Mapping[str, int], seed: int = 0, most: int = MOST_STEPS
) -> Prediction:
    """The time line of one launch of a kernel at the roles level. Times count from when its CTAs begin. Raises
    `PkcError` if what it does is known only when it runs."""
    called = Program(kernel)
    data = Data({**dims, "ranks": ranks}, {}, {})
    machine = make_machine(called, data, MemoryState({}, None), None)
    machine.ctas, machine.comm_ctas = called.resident
    return _Run(called, machine, dims, seed).run(most)


@dataclass
class _Ring:
    """A channel of one CTA: when its stages were committed and released, by all warpgroups of a role."""

    label: str
    depth: int
    makers: int
    takers: int
    committed: list[float] = field(default_factory=list[float])
    released: list[float] = field(default_factory=list[float])
    waiting: list[Process] = field(default_factory=list["Process"])
    commits: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    releases: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))


class _Run:
    def __init__(self, called: Program, machine: Any, dims: Mapping[str, int], seed: int) -> None:
        self._called, self._machine = called, machine
        self._ranks, kernel = machine.ranks, called.kernel
        self._target: Target = target_of(kernel)
        self._rates, costs = self._target.rates, Costs(self._target)
        self._roles = steps.role_steps(
            called, machine, dims, seed, lambda role, op: costs.computing(op, self._groups_of(role), machine.size)
        )
        self._recorder = Recorder(self._target, self._ranks, names_of(list(self._roles)))
        self._resources = Resources(machine, dims, costs, self._recorder)
        self._channels = {op.result: op for op in kernel.body.block.ops if isinstance(op, roles.ChannelOp)}
        self._number: dict[SSAValue | Operation, int] = {value: place for place, value in enumerate(self._channels)}
        self._rings: dict[tuple[int, int, int], _Ring] = {}
        self._counters: dict[Any, int] = defaultdict(int)
        self._waiting: dict[Any, list[tuple[int, Process]]] = defaultdict(list)
        self._queue: list[tuple[float, int, Any]] = []
        self._order = count()
        self._processes: list[Process] = []
        self._now = 0.0
        self._do: dict[int, Callable[[Process, steps.Step], bool]] = {
            steps.TASK: self._recorder.task,
            steps.OVER: self._recorder.over,
            steps.ACQUIRE: self._acquire,
            steps.COMMIT: self._commit,
            steps.CONSUME: self._consume,
            steps.RELEASE: self._release,
            steps.RELEASE_ALL: self._release_all,
            steps.LOAD: self._resources.load,
            steps.STORE: self._resources.store,
            steps.MMA: self._resources.mma,
            steps.MMA_WAIT: self._resources.mma_wait,
            steps.WORK: self._resources.work,
            steps.DRAIN: self._resources.drain,
            steps.SIGNAL: self._signal,
            steps.RAISE: self._signal,
            steps.WAIT: self._wait,
            steps.SEND: self._send_deferred,
        }

    def run(self, most: int) -> Prediction:
        for rank in range(self._ranks):
            for number, (op, run) in enumerate(self._roles.items()):
                self._begin(rank, number, op, run)
        left = most
        while self._queue and left > 0:
            time, _, what = heapq.heappop(self._queue)
            if isinstance(what, Process):
                left -= self._advance(what, time)
            else:
                self._signalled(time, *what)
        stuck = next((one.pending[1] for one in self._processes if one.pending), None)
        if not self._queue and stuck is not None:
            why = "roles wait for each other for ever, first here (`pkc check` says more)"
            raise PkcError(NotPredicted(span_of(stuck.location), self._called.name, why))
        self._cut()
        ctas = self._machine.ctas + self._machine.comm_ctas
        return self._recorder.prediction(self._processes, ctas, ends=not self._queue)

    def _cut(self) -> None:
        """What is waited for when the time line is cut is waited for until then."""
        end = max((one.time for one in self._processes), default=0.0)
        for one in self._processes:
            if one.pending is not None:
                kind, op, *more = one.pending
                what = f"`{more[0][0]}`" if kind == steps.WAIT else self._ring(one, op)[0].label
                self._recorder.waited(one, op, what, end)

    def _begin(self, rank: int, number: int, op: RoleOp, run: steps.RoleSteps) -> None:
        engine = op.role.data is Role.CopyEngine
        ctas = self._machine.ctas_of(str(op.role.data))
        groups = self._groups_of(op)
        streams = LANES if engine else 1
        for share, cta in enumerate(ctas):
            sm = self._resources.sm(rank, -1 if engine else cta)
            for group in range(max(groups, streams)):
                first, step = (group, streams) if engine else (share, len(ctas))
                one = Process(rank, cta, number, op, 0 if engine else group, groups, sm, run(rank, cta, first, step))
                self._resources.begin(one)
                self._recorder.begin(one)
                self._processes.append(one)
                heapq.heappush(self._queue, (0.0, next(self._order), one))

    # Steps

    def _advance(self, one: Process, now: float) -> int:
        """Run a process until others come first, or it waits; how many steps it has made."""
        made, queue, do = 0, self._queue, self._do
        self._now = now
        step = one.pending
        one.pending = None
        while step is not None or (step := next(one.steps, None)) is not None:
            made += 1
            if not do[step[0]](one, step):
                one.pending = step  # it is done again when what it waits for is there
                return made
            step = None
            if queue and one.time > queue[0][0] + _TOGETHER:
                heapq.heappush(queue, (one.time, next(self._order), one))
                return made
        self._recorder.end(one)
        self._resources.end(one)
        return made

    # Channels

    def _ring(self, one: Process, op: Any) -> tuple[_Ring, int]:
        number = self._number.get(op)
        if number is None:
            number = self._number[op] = self._number[op.channel]
        key = one.rank, one.cta, number
        ring = self._rings.get(key)
        if ring is None:
            channel = self._channels[op.channel]
            makers, takers = (self._groups(channel, kinds) for kinds in ((roles.CommitOp,), _RELEASES))
            ring = self._rings[key] = _Ring(f"`{channel.label.data}`", channel.depth, makers, takers)
        return ring, number

    def _groups(self, channel: roles.ChannelOp, kinds: tuple[type[Operation], ...]) -> int:
        """Processes at one side of a channel."""
        for use in channel.result.uses:
            if isinstance(use.operation, kinds):
                role = next(op for op in self._roles if op.is_ancestor(use.operation))
                return self._groups_of(role)
        return 1

    def _groups_of(self, role: RoleOp) -> int:
        return groups_of(role, self._target.arch.warpgroup)

    def _acquire(self, one: Process, step: steps.Step) -> bool:
        ring, number = self._ring(one, step[1])
        place = one.counts[number, 0]
        if place >= ring.depth and not self._until(one, ring, ring.released, place - ring.depth, step[1]):
            return False
        one.counts[number, 0] = place + 1
        return True

    def _consume(self, one: Process, step: steps.Step) -> bool:
        ring, number = self._ring(one, step[1])
        place = one.counts[number, 1]
        if not self._until(one, ring, ring.committed, place, step[1]):
            return False
        one.counts[number, 1] = place + 1
        if computes(one.op):
            one.time += self._rates.iteration
        return True

    def _until(self, one: Process, ring: _Ring, times: list[float], place: int, op: Operation) -> bool:
        """Wait for a change of a stage, if it is known when that is."""
        if len(times) > place:
            self._recorder.waited(one, op, ring.label, times[place])
            return True
        ring.waiting.append(one)
        return False

    def _commit(self, one: Process, step: steps.Step) -> bool:
        op = step[1]
        ring, number = self._ring(one, op)
        place = one.counts[number, 2]
        one.counts[number, 2] = place + 1
        ready = max((one.arrives.get(tile.owner, 0.0) for tile in op.tiles), default=0.0)
        if not ready and computes(one.op):
            one.time += self._rates.task
        self._settle(ring, ring.commits, ring.committed, place, max(one.time, ready), ring.makers)
        return True

    def _release(self, one: Process, step: steps.Step) -> bool:
        ring, number = self._ring(one, step[1])
        one.kept[number] += 1
        if one.kept[number] > step[1].kept:
            one.kept[number] -= 1
            self._free(one, ring, number)
        return True

    def _release_all(self, one: Process, step: steps.Step) -> bool:
        ring, number = self._ring(one, step[1])
        one.complete(0)
        for _ in range(one.kept[number]):
            self._free(one, ring, number)
        one.kept[number] = 0
        return True

    def _free(self, one: Process, ring: _Ring, number: int) -> None:
        place = one.counts[number, 3]
        one.counts[number, 3] = place + 1
        self._settle(ring, ring.releases, ring.released, place, one.time, ring.takers)

    def _settle(
        self, ring: _Ring, found: dict[int, list[float]], times: list[float], place: int, time: float, wanted: int
    ) -> None:
        """One of the processes at a side of a channel is done with a stage; with the last one, the stage changes."""
        if wanted > 1:
            found[place].append(time)
            if len(found[place]) < wanted:
                return
            time = max(found.pop(place))
        times.append(max(time, times[-1]) if times else time)
        for other in ring.waiting:
            heapq.heappush(self._queue, (max(time, other.time), next(self._order), other))
        ring.waiting.clear()

    # Signals

    def _signal(self, one: Process, step: steps.Step) -> bool:
        kind, op, counter, amount = step
        if is_deferred(op):
            one.deferred.append((kind, counter, amount))
            return True
        if order_of(op) in _RELEASING:
            one.time = max(one.time, one.written)
        self._send(one, kind, counter, amount)
        return True

    def _send(self, one: Process, kind: int, counter: Any, amount: int) -> None:
        seen = one.time + (self._rates.signal if counter[1] != one.rank else 0.0)
        if one.group == 0:
            heapq.heappush(self._queue, (seen, next(self._order), (kind, counter, amount)))

    def _send_deferred(self, one: Process, step: steps.Step) -> bool:
        op = step[1]
        if len(one.deferred) >= op.most:
            one.time = max(one.time, one.written)
            while len(one.deferred) > op.left.value.data:
                self._send(one, *one.deferred.pop(0))
        return True

    def _signalled(self, time: float, kind: int, counter: Any, amount: int) -> None:
        value = self._counters[counter]
        value = self._counters[counter] = value + amount if kind == steps.SIGNAL else max(value, amount)
        waiting = self._waiting.get(counter)
        if not waiting:
            return
        still: list[tuple[int, Process]] = []
        for wanted, one in waiting:
            if wanted > value:
                still.append((wanted, one))
            else:
                heapq.heappush(self._queue, (max(time, one.time), next(self._order), one))
        self._waiting[counter] = still

    def _wait(self, one: Process, step: steps.Step) -> bool:
        _, op, counter, wanted = step
        if self._counters[counter] < wanted:
            self._waiting[counter].append((wanted, one))
            return False
        self._recorder.waited(one, op, f"`{counter[0]}`", self._now)
        return True
