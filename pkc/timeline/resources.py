"""What warp roles share in a predicted time line: the tensor cores, threads and TMA of an SM, the memory and the links
of a GPU. Each is taken by one process after the other, at the rates of the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from xdsl.ir import Operation, SSAValue

from pkc.cost.memory import memory_time
from pkc.dialect import copies, fences
from pkc.dialect.access import GatherOp, Scatter
from pkc.dialect.attributes import Role
from pkc.dialect.tile import AnyMmaOp, MmaIssueOp, in_flight, tile_type
from pkc.dialect.types import Layout, PGLType, dtype_bytes
from pkc.timeline import steps
from pkc.timeline.costs import Costs, is_asynchronous
from pkc.timeline.owners import Owners
from pkc.timeline.processes import Process, Sm, fetches
from pkc.timeline.recorder import Recorder

_ALONE = 0.5
"""Of the time until a box is there with many in flight, what is left where these are simulated one by one."""


@dataclass
class _Gpu:
    """When the memory and the links of a GPU are free again."""

    memory: float = 0.0
    sends: float = 0.0
    receives: float = 0.0
    fetching: int = 0
    """Warp roles that still store what they fetch."""
    touched: set[Any] = field(default_factory=set[Any])


@dataclass(frozen=True)
class _Access:
    """What of an access is the same each time."""

    array: Any
    bytes: float
    elements: int
    axes: int
    is_asynchronous: bool


class Resources:
    """The steps of processes that take some of what they share; `machine` is that of the simulator."""

    def __init__(self, machine: Any, dims: Mapping[str, int], costs: Costs, recorder: Recorder) -> None:
        self._costs, self._rates, self._recorder = costs, costs.target.rates, recorder
        self._ranks, self._names = machine.ranks, machine.names
        self._owners = Owners({**dims, "ranks": machine.ranks}, machine.ranks)
        self._gpus = [_Gpu() for _ in range(self._ranks)]
        self._sms: dict[tuple[int, int], Sm] = {}
        self._takes: dict[Operation, float] = {}
        self._accesses: dict[Operation, _Access] = {}
        self._rows: dict[tuple[Operation, float], float] = {}

    def sm(self, rank: int, cta: int) -> Sm:
        """That of a CTA; each has one of its own."""
        return self._sms.setdefault((rank, cta), Sm())

    def begin(self, one: Process) -> None:
        """A process is there."""
        self._gpus[one.rank].fetching += _stores_fetched(one)

    def end(self, one: Process) -> None:
        """A process has made its last step."""
        self._gpus[one.rank].fetching -= _stores_fetched(one)

    # Memory

    def load(self, one: Process, step: steps.Step) -> bool:
        """An access that reads."""
        _, op, indices, at = step
        gpu, rates, sm, access = self._gpus[one.rank], self._rates, one.sm, self._access(op, op.result)
        size, share = _size(access, indices)
        name, time = self._names[access.array], one.time
        if isinstance(op, GatherOp):
            time += self._costs.gathering(op)
            one.time = time
            size, owner = access.bytes, one.rank
        else:
            owner = self._owners.of(access.array, indices, one.rank, at)
        if owner != one.rank:
            begin = max(time, sm.remote)
            sm.remote = begin + size / rates.fetch_bytes
            done = max(sm.remote, self._linked(owner, one.rank, begin, size)) + rates.load_latency
        else:
            begin = max(time, sm.loads)
            done = sm.loads = begin + max(size / rates.load_bytes, self._of_rows(op, share))
            if (name, indices) not in gpu.touched:
                gpu.touched.add((name, indices))
                done = max(done, self._in_memory(one.rank, begin, read=size))
            done += rates.load_latency * _ALONE
        if access.is_asynchronous:
            one.arrives[op] = done
            return True
        one.time += access.bytes / rates.add_bytes / one.groups
        if owner != one.rank:
            one.time = max(one.time, done)
        return True

    def _access(self, op: Any, tile: SSAValue) -> _Access:
        found = self._accesses.get(op)
        if found is None:
            kind = tile_type(tile)
            elements = prod(kind.shape)
            size = elements * dtype_bytes(kind.element_type)
            found = self._accesses[op] = _Access(op.array, size, elements, kind.rank, is_asynchronous(op))
        return found

    def _of_rows(self, op: Any, share: float) -> float:
        found = self._rows.get((op, share))
        if found is None:
            found = self._rows[op, share] = self._costs.rows(op.result.type, share)
        return found

    def store(self, one: Process, step: steps.Step) -> bool:
        """An access that writes, or a copy of a copy engine."""
        op, indices = step[1], step[2]
        if isinstance(op, copies.CopyOp):
            self._copy(one, op, indices, step[4])
            return True
        rates, sm, time, access = self._rates, one.sm, one.time, self._access(op, op.tile)
        size = _size(access, indices)[0] / one.groups
        ranks = self._reached(op, indices, one.rank, step[3])
        read = done = time
        for owner in ranks:
            begin = max(time, sm.stores)
            if owner == one.rank:
                # A stage is read as fast as memory takes what all SMs store.
                taken = self._in_memory(owner, time, written=size)
                read = sm.stores = max(begin + size / rates.load_bytes, taken)
                done = max(done, sm.stores + rates.copy - rates.load_latency)
                continue
            read = sm.stores = begin + size / rates.fetch_bytes
            # Memory and links are taken now, not when the SM has sent what is before: what comes earlier from another
            # one must find its turn there.
            taken = self._in_memory(owner, time, written=size)
            done = max(done, read, begin + rates.announce, self._linked(one.rank, owner, time, size), taken)
        if access.is_asynchronous:
            one.stores.append((read, done))
        else:
            one.time, one.written = read, max(one.written, done)
        return True

    def _copy(self, one: Process, op: copies.CopyOp, source: Any, target: Any) -> None:
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
        if isinstance(op, Scatter):
            return [rank]
        return [self._owners.of(op.array, indices, rank, at)]

    def _in_memory(self, rank: int, time: float, *, read: float = 0.0, written: float = 0.0) -> float:
        """When memory of a GPU has given or taken bytes."""
        gpu, takes = self._gpus[rank], memory_time(read, written, self._costs.target)
        gpu.memory = max(gpu.memory, time) + takes
        self._recorder.busy["memory"].append((rank, gpu.memory - takes, gpu.memory, read + written))
        return gpu.memory

    def _linked(self, source: int, target: int, time: float, size: float) -> float:
        """When bytes have gone from one GPU to another."""
        takes = size / self._rates.link_bytes
        sender, receiver = self._gpus[source], self._gpus[target]
        # Either may be busy with others meanwhile: what a receiver has no time for does not hold up its sender.
        sender.sends = max(time, sender.sends) + takes
        receiver.receives = max(time, receiver.receives) + takes
        self._recorder.busy["link out"].append((source, sender.sends - takes, sender.sends, size))
        return max(sender.sends, receiver.receives)

    def drain(self, one: Process, step: steps.Step) -> bool:
        """Wait for earlier loads or stores."""
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
            one.records.append((self._recorder.point(one, "drain", what, op), one.task, one.time, length))
            one.time = until
        return True

    # Arithmetic

    def mma(self, one: Process, step: steps.Step) -> bool:
        """MMAs, after those that the tensor cores of the SM have begun."""
        op: AnyMmaOp = step[1]
        takes = self._takes.get(op)
        if takes is None:
            takes = self._takes[op] = self._costs.mma(op, one.groups)
        if self._gpus[one.rank].fetching:
            takes *= 1 + self._rates.while_fetching
        begin = max(one.time, one.sm.tensor)
        one.sm.tensor = begin + takes
        self._recorder.busy["tensor cores"].append((one.rank, begin, begin + takes, takes))
        one.mmas.append(begin + takes)
        if not isinstance(op, MmaIssueOp):
            one.complete(in_flight(op))
        return True

    def mma_wait(self, one: Process, step: steps.Step) -> bool:
        """Wait for MMAs."""
        one.complete(step[1].left.value.data)
        return True

    def work(self, one: Process, step: steps.Step) -> bool:
        """Arithmetic, after that of the other roles of the SM."""
        _, takes, completes = step
        if completes and one.mmas:
            one.complete(0)
        begin = max(one.time, one.sm.threads)
        one.time = one.sm.threads = begin + takes
        return True


def _stores_fetched(one: Process) -> bool:
    return one.op.role.data is not Role.CopyEngine and fetches(one.op)


def _size(access: _Access, indices: Any) -> tuple[float, float]:
    """Bytes of a tile that exist, and which share of it they are."""
    boxed = [index.length for index in indices if not isinstance(index, int)]
    share = prod(boxed) / access.elements if len(boxed) == access.axes and access.elements else 1.0
    return access.bytes * min(1.0, share), min(1.0, share)
