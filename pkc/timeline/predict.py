"""The time line that a kernel should have, without a GPU.

The steps of every warp role of every CTA (`steps.py`) are run in the order of their times. Each takes what its
operation takes at the rates of the target (`costs.py`), and waits for channels, counters and for what it shares with
others: the tensor cores, threads and TMA of an SM, the memory and the links of a GPU.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import Operation

from pkc.codegen.artifact import Probe, Trace
from pkc.diagnostics import PkcError
from pkc.dialect import access, copies, fences, roles
from pkc.dialect.attributes import Role
from pkc.dialect.deferred import is_deferred
from pkc.dialect.engines import LANES
from pkc.dialect.program import KernelOp, RoleOp
from pkc.dialect.tile import AnyMmaOp, MmaIssueOp, in_flight
from pkc.dialect.types import Layout, PGLType, dtype_bytes
from pkc.location import describe, span_of
from pkc.sim.inputs import Data
from pkc.sim.memory import MemoryState
from pkc.sim.program import Program
from pkc.sim.run import make_machine
from pkc.targets.target import Target, target_of
from pkc.timeline import steps
from pkc.timeline.costs import Costs, is_asynchronous
from pkc.timeline.errors import NotPredicted
from pkc.timeline.names import names_of, task_work
from pkc.timeline.owners import Owners
from pkc.timeline.records import Events, Used, with_tasks

MOST_STEPS = 4_000_000
"""A time line ends there: each million takes some seconds."""

_SHOWN = 300.0
"""Nanoseconds of a wait in a loop that has a place of its own; shorter ones are added up."""

_TOGETHER = 50.0
"""Nanoseconds by which a warp role may run ahead of the others."""


_ALONE = 0.5
"""Of the time until a box is there with many in flight, what is left where these are simulated one by one."""

_RELEASES = (roles.ReleaseOp, roles.ReleaseDeferredOp)


@dataclass(frozen=True)
class Prediction:
    """The events of a launch, what is in use meanwhile, and whether the kernel goes on behind them."""

    events: Events
    used: tuple[Used, ...]
    nanoseconds: float
    ends: bool


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

    depth: int
    makers: int
    takers: int
    committed: list[float] = field(default_factory=list[float])
    released: list[float] = field(default_factory=list[float])
    waiting: list[_Process] = field(default_factory=list["_Process"])
    commits: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    releases: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))


@dataclass
class _Sm:
    """When what the warp roles of an SM share is free again."""

    tensor: float = 0.0
    threads: float = 0.0
    loads: float = 0.0
    stores: float = 0.0
    remote: float = 0.0


@dataclass
class _Gpu:
    memory: float = 0.0
    sends: float = 0.0
    receives: float = 0.0
    fetching: int = 0
    """Warp roles that still store what they fetch."""
    touched: set[Any] = field(default_factory=set[Any])


@dataclass(eq=False)
class _Process:
    """A warpgroup of a warp role, or one of its warps if it has fewer; or a stream of a copy engine."""

    rank: int
    cta: int
    role: int
    op: RoleOp
    group: int
    groups: int
    sm: _Sm
    steps: Iterator[steps.Step]
    time: float = 0.0
    pending: steps.Step | None = None
    """The step that it waits at."""
    counts: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    kept: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    mmas: deque[float] = field(default_factory=deque[float])
    arrives: dict[Operation, float] = field(default_factory=dict[Operation, float])
    stores: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    deferred: list[tuple[int, Any, int]] = field(default_factory=list[tuple[int, Any, int]])
    records: list[tuple[int, int, float, float]] = field(default_factory=list[tuple[int, int, float, float]])
    """Point, task, begin, length."""
    task: int = -1
    summed: dict[int, float] = field(default_factory=lambda: defaultdict(float))


class _Run:
    def __init__(self, called: Program, machine: Any, dims: Mapping[str, int], seed: int) -> None:
        self._called, self._machine = called, machine
        self._ranks, kernel = machine.ranks, called.kernel
        self._target: Target = target_of(kernel)
        self._rates, self._costs = self._target.rates, Costs(self._target)
        self._roles = steps.role_steps(
            called, machine, dims, seed, lambda role, op: self._costs.computing(op, self._groups_of(role))
        )
        self._names = names_of(list(self._roles))
        self._owners = Owners({**dims, "ranks": machine.ranks}, machine.ranks)
        self._channels = {op.result: op for op in kernel.body.block.ops if isinstance(op, roles.ChannelOp)}
        self._number = {value: place for place, value in enumerate(self._channels)}
        self._points: dict[tuple[int, str, str, Operation], int] = {}
        self._gpus = [_Gpu() for _ in range(self._ranks)]
        self._sms: dict[tuple[int, int], _Sm] = {}
        self._rings: dict[tuple[int, int, int], _Ring] = {}
        self._counters: dict[Any, int] = defaultdict(int)
        self._waiting: dict[Any, list[tuple[int, _Process]]] = defaultdict(list)
        self._queue: list[tuple[float, int, Any]] = []
        self._order = count()
        self._takes: dict[Operation, float] = {}
        self._processes: list[_Process] = []
        self._now = 0.0
        self._do: dict[int, Callable[[_Process, steps.Step], bool]] = {
            steps.TASK: self._task,
            steps.OVER: self._over,
            steps.ACQUIRE: self._acquire,
            steps.COMMIT: self._commit,
            steps.CONSUME: self._consume,
            steps.RELEASE: self._release,
            steps.RELEASE_ALL: self._release_all,
            steps.LOAD: self._load,
            steps.STORE: self._store,
            steps.MMA: self._mma,
            steps.MMA_WAIT: self._mma_wait,
            steps.WORK: self._work,
            steps.DRAIN: self._drain,
            steps.SIGNAL: self._signal,
            steps.RAISE: self._signal,
            steps.WAIT: self._wait,
            steps.SEND: self._send_deferred,
        }
        self._busy: dict[str, list[tuple[int, float, float, float]]] = {
            name: [] for name in ("tensor cores", "link out", "memory")
        }

    def run(self, most: int) -> Prediction:
        for rank in range(self._ranks):
            for number, (op, run) in enumerate(self._roles.items()):
                self._begin(rank, number, op, run)
        left = most
        while self._queue and left > 0:
            time, _, what = heapq.heappop(self._queue)
            if isinstance(what, _Process):
                left -= self._advance(what, time)
            else:
                self._signalled(time, *what)
        stuck = next((one.pending[1] for one in self._processes if one.pending), None)
        if not self._queue and stuck is not None:
            why = "roles wait for each other for ever, first here (`pkc check` says more)"
            raise PkcError(NotPredicted(span_of(stuck.location), self._called.name, why))
        return self._prediction(ends=not self._queue)

    def _begin(self, rank: int, number: int, op: RoleOp, run: steps.RoleSteps) -> None:
        engine = op.role.data is Role.CopyEngine
        ctas = self._machine.ctas_of(str(op.role.data))
        groups = self._groups_of(op)
        streams = LANES if engine else 1
        for share, cta in enumerate(ctas):
            sm = self._sms.setdefault((rank, -1 if engine else cta), _Sm())
            for group in range(max(groups, streams)):
                first, step = (group, streams) if engine else (share, len(ctas))
                one = _Process(rank, cta, number, op, 0 if engine else group, groups, sm, run(rank, cta, first, step))
                if not engine and _fetches(op):
                    self._gpus[rank].fetching += 1
                one.records += [
                    (self._point(one, "cta", "", op), -1, 0.0, 0.0),
                    (self._point(one, "begin", "", op), -1, 0.0, 0.0),
                ]
                self._processes.append(one)
                heapq.heappush(self._queue, (0.0, next(self._order), one))

    # Steps

    def _advance(self, one: _Process, now: float) -> int:
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
        self._end(one)
        return made

    def _end(self, one: _Process) -> None:
        one.records.append((self._point(one, "end", "", one.op), -1, one.time, 0.0))
        if _fetches(one.op) and one.op.role.data is not Role.CopyEngine:
            self._gpus[one.rank].fetching -= 1

    def _task(self, one: _Process, step: steps.Step) -> bool:
        self._close(one)
        one.task += 1
        one.records.append((self._point(one, "task", task_work(step[1]), step[1]), one.task, one.time, 0.0))
        return True

    def _over(self, one: _Process, step: steps.Step) -> bool:
        self._close(one)
        one.records.append((self._point(one, "over", task_work(step[1]), step[1]), -1, one.time, 0.0))
        return True

    def _close(self, one: _Process) -> None:
        """The end of a task: what its waits in loops add up to."""
        for point, length in one.summed.items():
            one.records.append((point, one.task, one.time - length, length))
        one.summed.clear()

    def _waited(self, one: _Process, op: Operation, what: str, until: float) -> None:
        """Go on at a time. It is no waiting as long as MMAs of the process are in flight."""
        begin = max(one.time, min(until, one.mmas[-1])) if one.mmas else one.time
        length = until - begin
        one.time = max(one.time, until)
        if length <= 0:
            return
        if length < _SHOWN:
            one.summed[self._point(one, "waits", what, op)] += length
        else:
            one.records.append((self._point(one, "wait", what, op), one.task, begin, length))

    def _point(self, one: _Process, kind: str, what: str, op: Operation) -> int:
        key = (one.role, kind, what, op)
        known = self._points.get(key)
        if known is None:
            known = self._points[key] = len(self._points)
        return known

    # Channels

    def _ring(self, one: _Process, op: Any) -> tuple[_Ring, int]:
        number = self._number[op.channel]
        key = one.rank, one.cta, number
        ring = self._rings.get(key)
        if ring is None:
            channel = self._channels[op.channel]
            makers, takers = (self._groups(channel, kinds) for kinds in ((roles.CommitOp,), _RELEASES))
            ring = self._rings[key] = _Ring(channel.depth, makers, takers)
        return ring, number

    def _groups(self, channel: roles.ChannelOp, kinds: tuple[type[Operation], ...]) -> int:
        """Processes at one side of a channel."""
        for use in channel.result.uses:
            if isinstance(use.operation, kinds):
                role = next(op for op in self._roles if op.is_ancestor(use.operation))
                return self._groups_of(role)
        return 1

    def _groups_of(self, role: RoleOp) -> int:
        """Into how many processes a role is divided: its warpgroups, if it computes with tensor cores."""
        return max(1, _warps(role) // self._target.arch.warpgroup) if _computes(role) else 1

    def _acquire(self, one: _Process, step: steps.Step) -> bool:
        ring, number = self._ring(one, step[1])
        place = one.counts[number, 0]
        if place >= ring.depth and not self._until(one, ring, ring.released, place - ring.depth, step[1]):
            return False
        one.counts[number, 0] = place + 1
        return True

    def _consume(self, one: _Process, step: steps.Step) -> bool:
        ring, number = self._ring(one, step[1])
        place = one.counts[number, 1]
        if not self._until(one, ring, ring.committed, place, step[1]):
            return False
        one.counts[number, 1] = place + 1
        if _computes(one.op):
            one.time += self._rates.iteration
        return True

    def _until(self, one: _Process, ring: _Ring, times: list[float], place: int, op: Operation) -> bool:
        """Wait for a change of a stage, if it is known when that is."""
        if len(times) > place:
            self._waited(one, op, self._label(op), times[place])
            return True
        ring.waiting.append(one)
        return False

    def _label(self, op: Any) -> str:
        return f"`{self._channels[op.channel].label.data}`"

    def _commit(self, one: _Process, step: steps.Step) -> bool:
        op = step[1]
        ring, number = self._ring(one, op)
        place = one.counts[number, 2]
        one.counts[number, 2] = place + 1
        ready = max((one.arrives.get(tile.owner, 0.0) for tile in op.tiles), default=0.0)
        if not ready and _computes(one.op):
            one.time += self._rates.task
        self._settle(ring, ring.commits, ring.committed, place, max(one.time, ready), ring.makers)
        return True

    def _release(self, one: _Process, step: steps.Step) -> bool:
        ring, number = self._ring(one, step[1])
        one.kept[number] += 1
        if one.kept[number] > step[1].kept:
            one.kept[number] -= 1
            self._free(one, ring, number)
        return True

    def _release_all(self, one: _Process, step: steps.Step) -> bool:
        ring, number = self._ring(one, step[1])
        self._complete(one, 0)
        for _ in range(one.kept[number]):
            self._free(one, ring, number)
        one.kept[number] = 0
        return True

    def _free(self, one: _Process, ring: _Ring, number: int) -> None:
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

    # Memory

    def _load(self, one: _Process, step: steps.Step) -> bool:
        _, op, indices, at = step
        gpu, rates, sm = self._gpus[one.rank], self._rates, one.sm
        size, share = self._size(op.result, indices)
        owner = self._owners.of(op.array, indices, one.rank, at)
        name, time = self._machine.names[op.array], one.time
        if isinstance(op, access.GatherOp):
            time += self._costs.gathering(op)
            one.time = time
            size, owner = self._tile_bytes(op.result), one.rank
        if owner != one.rank:
            begin = max(time, sm.remote)
            sm.remote = begin + size / rates.fetch_bytes
            done = max(sm.remote, self._linked(owner, one.rank, begin, size)) + rates.load_latency
        else:
            begin = max(time, sm.loads)
            done = sm.loads = begin + max(size / rates.load_bytes, self._costs.rows(op.result.type, share))
            if (name, indices) not in gpu.touched:
                gpu.touched.add((name, indices))
                gpu.memory = max(gpu.memory, begin) + size / rates.memory_bytes
                self._busy["memory"].append((one.rank, gpu.memory - size / rates.memory_bytes, gpu.memory, size))
                done = max(done, gpu.memory)
            done += rates.load_latency * _ALONE
        if is_asynchronous(op):
            one.arrives[op] = done
            return True
        one.time += self._tile_bytes(op.result) / rates.add_bytes / one.groups
        if owner != one.rank:
            one.time = max(one.time, done)
        return True

    def _store(self, one: _Process, step: steps.Step) -> bool:
        op, indices = step[1], step[2]
        if isinstance(op, copies.CopyOp):
            self._copy(one, op, indices, step[4])
            return True
        rates, sm, time = self._rates, one.sm, one.time
        size, _ = self._size(op.tile, indices)
        size /= one.groups
        ranks = self._reached(op, indices, one.rank, step[3])
        read = done = time
        for owner in ranks:
            begin = max(time, sm.stores)
            if owner == one.rank:
                read = sm.stores = begin + size / rates.load_bytes
                done = max(done, sm.stores + rates.copy - rates.load_latency)
                continue
            read = sm.stores = begin + size / rates.fetch_bytes
            done = max(done, read, begin + rates.announce, self._linked(one.rank, owner, begin, size))
        if is_asynchronous(op):
            one.stores.append((read, done))
        else:
            one.time = read
        return True

    def _copy(self, one: _Process, op: copies.CopyOp, source: Any, target: Any) -> None:
        """A copy engine: one copy after the other on each stream."""
        size = self._owners.box(op, source)
        owner = self._owners.of_box(op.source, op.source_dims.get_values(), source, one.rank)
        reached = self._owners.of_box(op.target, op.target_dims.get_values(), target, one.rank)
        done = one.time + self._rates.engine_copy
        one.time = max(done, self._linked(owner, reached, one.time, size)) if owner != reached else done

    def _reached(self, op: Any, indices: Any, rank: int, at: int | None) -> list[int]:
        kind = op.array.type
        if isinstance(kind, PGLType) and kind.layout is Layout.Replicate and at is None:
            return [rank, *(other for other in range(self._ranks) if other != rank)]
        if isinstance(op, access.ScatterAddOp):
            return [rank]
        return [self._owners.of(op.array, indices, rank, at)]

    def _linked(self, source: int, target: int, time: float, size: float) -> float:
        """When bytes have gone from one GPU to another."""
        takes = size / self._rates.link_bytes
        sender, receiver = self._gpus[source], self._gpus[target]
        # Either may be busy with others meanwhile: what a receiver has no time for does not hold up its sender.
        sender.sends = max(time, sender.sends) + takes
        receiver.receives = max(time, receiver.receives) + takes
        self._busy["link out"].append((source, sender.sends - takes, sender.sends, size))
        return max(sender.sends, receiver.receives)

    def _size(self, tile: Any, indices: Any) -> tuple[float, float]:
        """Bytes of a tile that exist, and which share of it they are."""
        boxed = [index.length for index in indices if not isinstance(index, int)]
        whole = self._tile_bytes(tile)
        full = prod(tile.type.shape)
        share = prod(boxed) / full if len(boxed) == len(tile.type.shape) and full else 1.0
        return whole * min(1.0, share), min(1.0, share)

    def _tile_bytes(self, tile: Any) -> float:
        return prod(tile.type.shape) * dtype_bytes(tile.type.element_type)

    def _drain(self, one: _Process, step: steps.Step) -> bool:
        op: fences.DrainOp = step[1]
        kind = op.kind.data
        if kind is fences.Drain.Loads:
            until = max(one.arrives.values(), default=0.0)
        else:
            older = one.stores[: len(one.stores) - op.may_remain]
            until = max((times[kind is fences.Drain.Full] for times in older), default=0.0)
            if kind is fences.Drain.Full:
                del one.stores[: len(one.stores) - op.may_remain]
        length = until - one.time
        if length > 0:
            what = "complete" if kind is fences.Drain.Full else str(kind)
            one.records.append((self._point(one, "drain", what, op), one.task, one.time, length))
            one.time = until
        return True

    # Arithmetic

    def _mma(self, one: _Process, step: steps.Step) -> bool:
        op: AnyMmaOp = step[1]
        takes = self._takes.get(op)
        if takes is None:
            takes = self._takes[op] = self._costs.mma(op, one.groups)
        if self._gpus[one.rank].fetching:
            takes *= 1 + self._rates.while_fetching
        begin = max(one.time, one.sm.tensor)
        one.sm.tensor = begin + takes
        self._busy["tensor cores"].append((one.rank, begin, begin + takes, takes))
        one.mmas.append(begin + takes)
        if not isinstance(op, MmaIssueOp):
            self._complete(one, in_flight(op))
        return True

    def _mma_wait(self, one: _Process, step: steps.Step) -> bool:
        self._complete(one, step[1].left.value.data)
        return True

    def _complete(self, one: _Process, left: int) -> None:
        """Wait until at most so many MMAs are in flight."""
        while len(one.mmas) > left:
            one.time = max(one.time, one.mmas.popleft())

    def _work(self, one: _Process, step: steps.Step) -> bool:
        _, takes, completes = step
        if completes and one.mmas:
            self._complete(one, 0)
        begin = max(one.time, one.sm.threads)
        one.time = one.sm.threads = begin + takes
        return True

    # Signals

    def _signal(self, one: _Process, step: steps.Step) -> bool:
        kind, op, counter, amount = step
        if is_deferred(op):
            one.deferred.append((kind, counter, amount))
        else:
            self._send(one, kind, counter, amount)
        return True

    def _send(self, one: _Process, kind: int, counter: Any, amount: int) -> None:
        seen = one.time + (self._rates.signal if counter[1] != one.rank else 0.0)
        if one.group == 0:
            heapq.heappush(self._queue, (seen, next(self._order), (kind, counter, amount)))

    def _send_deferred(self, one: _Process, step: steps.Step) -> bool:
        op = step[1]
        if len(one.deferred) >= op.most:
            while len(one.deferred) > op.left.value.data:
                self._send(one, *one.deferred.pop(0))
        return True

    def _signalled(self, time: float, kind: int, counter: Any, amount: int) -> None:
        value = self._counters[counter]
        value = self._counters[counter] = value + amount if kind == steps.SIGNAL else max(value, amount)
        waiting = self._waiting.get(counter)
        if not waiting:
            return
        still: list[tuple[int, _Process]] = []
        for wanted, one in waiting:
            if wanted > value:
                still.append((wanted, one))
            else:
                heapq.heappush(self._queue, (max(time, one.time), next(self._order), one))
        self._waiting[counter] = still

    def _wait(self, one: _Process, step: steps.Step) -> bool:
        _, op, counter, wanted = step
        if self._counters[counter] < wanted:
            self._waiting[counter].append((wanted, one))
            return False
        self._waited(one, op, f"`{counter[0]}`", self._now)
        return True

    # Results

    def _prediction(self, *, ends: bool) -> Prediction:
        def column(values: Iterable[Any], kind: Any) -> Any:
            return np.array(list(values), kind)

        shown = [one for one in self._processes if one.group == 0]
        end = max((one.time for one in self._processes), default=0.0)
        for one in shown:
            if one.records[-1][0] != self._points.get((one.role, "end", "", one.op)):
                self._close(one)
                one.time = end
                self._end(one)
        shown.sort(key=lambda one: (one.rank, one.cta, one.role))
        ctas = self._machine.ctas + self._machine.comm_ctas
        rows = [(one, record) for one in shown for record in one.records]
        sms = column([list(range(ctas))] * self._ranks, np.int64)
        points = tuple(Probe(role, kind, what, describe(op.location)) for role, kind, what, op in self._points)
        trace = Trace("", "", "", tuple(self._names), points)

        events = with_tasks(
            Events(
                trace,
                rank=column((one.rank for one, _ in rows), np.int64),
                cta=column((one.cta for one, _ in rows), np.int64),
                role=column((one.role for one, _ in rows), np.int64),
                point=column((record[0] for _, record in rows), np.int64),
                task=column((record[1] for _, record in rows), np.int64),
                begin=column((record[2] for _, record in rows), np.float64),
                length=column((record[3] for _, record in rows), np.float64),
                within=np.zeros(0, np.int64),
                sms=sms,
                lost=0,
            )
        )
        return Prediction(events, tuple(self._used(end)), end, ends)

    def _used(self, end: float) -> Iterator[Used]:
        rates, width = self._rates, max(end, 1.0) / BINS
        for name, full in (
            ("tensor cores", self._target.arch.sms),
            ("link out", rates.link_bytes),
            ("memory", rates.memory_bytes),
        ):
            yield Used(name, width * full, width, _binned(self._busy[name], self._ranks, width))


BINS = 240
"""Into how many times of equal length `Used` divides a time line."""


def _binned(
    spent: list[tuple[int, float, float, float]], ranks: int, width: float
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """What is spent in each bin, each amount evenly from its begin to its end."""
    values = np.zeros((ranks, BINS))
    if not spent:
        return values
    rank, begin, end, amount = np.array(spent).T
    first, last = (np.clip(times / width, 0, BINS - 1e-9) for times in (begin, np.maximum(end, begin + 1e-3)))
    for place in range(int((last.astype(int) - first.astype(int)).max()) + 1):
        bins = first.astype(int) + place
        inside = np.clip(np.minimum(last, bins + 1) - np.maximum(first, bins), 0, None)
        share = np.where(last > first, inside / np.maximum(last - first, 1e-12), float(place == 0))
        chosen = inside > 0
        np.add.at(values, (rank[chosen].astype(int), bins[chosen]), (amount * share)[chosen])
    return values


@cache
def _computes(role: RoleOp) -> bool:
    return any(isinstance(op, AnyMmaOp) for op in role.walk())


def _warps(role: RoleOp) -> int:
    return 1 if role.warps is None else role.warps.value.data


@cache
def _fetches(role: RoleOp) -> bool:
    """Whether a role on the SMs of others stores what has been fetched from other ranks, and announces it."""
    if role.role.data is not Role.Communicator or role.sms is not None:
        return False
    return any(isinstance(op, access.StoreOp) for op in role.walk()) and any(map(is_deferred, role.walk()))
