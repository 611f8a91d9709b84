"""The time of a kernel, from its work and the rates of a GPU."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pkc.cost.work import Phase, Product, Turn, UnknownWorkError, Work
from pkc.dialect.engines import JOINED
from pkc.passes.roles.plan_stages import MOST
from pkc.targets.target import Target

_LAST = 8
"""Turns of a loop that remain when the last tiles of a fetched operand have come; of smaller tiles than 128 x 64 more
are awaited at once, but they come together."""

_ELEMENT = 2
"""Bytes of an element that is multiplied at the rate of the record."""


@dataclass(frozen=True)
class Estimate:
    """Nanoseconds of a kernel, and what they are made of."""

    total: float
    tasks: int
    rounds: int
    """Tasks of the SM that has most of them."""
    task: float
    memory: float
    link: float
    sms: int
    """SMs that there are for the tasks."""
    stages: int
    """Stages of the loops, as far as shared memory goes; 0 if there is no room for one."""


def estimate(work: Work, ranks: int, target: Target, *, sms: int | None = None) -> Estimate:
    """How long a rank takes for a kernel, launched alone with nothing in the caches; on so many SMs, or all."""
    return _Estimator(work, ranks, target, sms or target.arch.sms).total()


class _Estimator:
    def __init__(self, work: Work, ranks: int, target: Target, sms: int) -> None:
        self._work, self._ranks, self._target, self._rates, self._sms = work, ranks, target, target.rates, sms

    def total(self) -> Estimate:
        rates, work = self._rates, self._work
        if not work.phases:
            raise UnknownWorkError("it has no tasks")
        found = [self._phase(phase) for phase in work.phases]
        longest = max(found, key=lambda one: one.rounds * one.task)
        memory = sum(work.read.values()) / rates.memory_bytes
        communicates = bool(work.fetched) or any(map(self._sent, work.phases))
        busy = max(sum(one.total for one in found), memory)
        whole = rates.launch + busy + communicates * 4 * rates.signal
        link = max(one.link for one in found)
        whole = max(whole, self._enqueueing())
        return replace(longest, total=whole, memory=memory, link=link, stages=min(one.stages for one in found))

    def _phase(self, phase: Phase) -> Estimate:
        """One phase by itself."""
        rates = self._rates
        rounds = -(-phase.tasks // self._sms)
        task = self._task(phase)
        whole = Estimate(0.0, phase.tasks, rounds, task, 0.0, 0.0, self._sms, self._depth(phase))
        if not rounds:
            return whole
        main = rounds * task + rates.load_latency
        link = self._sent(phase) / rates.link_bytes
        if self._announced(phase):
            # A storer sends the next contribution when the last one has come and is announced.
            link += phase.tasks / self._sms * rates.announce
        # What the last tasks have made leaves after them, and all of it not before the first ones have ended.
        active = min(phase.tasks, self._sms)
        main = max(main + active / phase.tasks * link, task + link)
        if self._work.fetched:
            begins = 2 * rates.signal + rates.copy
            ready = begins + self._fetching()
            main += self._landing(main)
            main = max(main + (begins if rounds == 1 else 0.0), ready + _LAST * self._longest_turn(phase))
            link = max(link, ready)
        return replace(whole, total=main + self._adding(phase), link=link)

    def _task(self, phase: Phase) -> float:
        """Nanoseconds from the end of one task of an SM to the end of the next."""
        depth = self._depth(phase)
        total = self._rates.task
        for turn in phase.turns:
            total += turn.times * self._turn(turn, depth)
        return max(total, self._rates.announce) if self._announced(phase) else total

    def _announced(self, phase: Phase) -> bool:
        """Whether tasks make contributions to sums, each of which is announced to its owner."""
        return any(store.summed for turn in phase.turns for store in turn.stores)

    def _longest_turn(self, phase: Phase) -> float:
        depth = self._depth(phase)
        return max((self._turn(turn, depth) for turn in phase.turns if turn.loop), default=0.0)

    def _turn(self, turn: Turn, depth: int) -> float:
        rates = self._rates
        cycles = sum(map(self._multiply, turn.products)) / rates.mma_flops
        shared = sum(load.stage_bytes for load in turn.loads) + sum(map(self._operands, turn.products))
        arrives = max(
            sum(load.bytes for load in turn.loads) / rates.load_bytes,
            sum(load.rows * rates.load_row + load.outside * rates.outside_row for load in turn.loads),
        )
        if not turn.loop:
            return arrives + max(cycles, shared / rates.shared_bytes) / rates.clock
        busy = max(cycles, shared / rates.shared_bytes) / rates.clock
        waits = (rates.load_latency + arrives) / max(1, depth) if turn.loads else 0.0
        return rates.turn + max(busy, arrives, waits)

    def _groups(self, product: Product) -> int:
        """Warpgroup instructions that its rows take."""
        return -(-product.rows // self._target.mma.rows)

    def _multiply(self, product: Product) -> float:
        rows = self._groups(product) * self._target.mma.rows
        return 2 * rows * product.columns * product.inner * product.size / _ELEMENT

    def _operands(self, product: Product) -> float:
        """Bytes of shared memory that the instructions read: each its rows, and all of the right operand."""
        rows = self._target.mma.rows + product.columns
        return self._groups(product) * rows * product.inner * product.size

    def _depth(self, phase: Phase) -> int:
        """Stages of the loops, as far as shared memory goes; 0 if there is no room for one."""
        each = sum(load.stage_bytes for turn in phase.turns if turn.loop for load in turn.loads)
        once = sum(load.stage_bytes for turn in phase.turns if not turn.loop for load in turn.loads)
        once += sum(store.tile_bytes for turn in phase.turns for store in turn.stores)
        once += sum(fetched.stage_bytes for fetched in self._work.fetched)
        room = self._target.stage_memory - once
        return max(0, min(MOST, room // each)) if each else MOST

    def _sent(self, phase: Phase) -> float:
        """Bytes that the tasks of a phase send."""
        each = sum(turn.times * store.sent for turn in phase.turns for store in turn.stores)
        return phase.tasks * each

    def _adding(self, phase: Phase) -> float:
        """Until the last contributions to sums have come and are added up."""
        rates = self._rates
        summed = [store for turn in phase.turns for store in turn.stores if store.summed]
        if not summed:
            return 0.0
        # All but the last of them are added up while others are computed.
        slices = max(store.slices for store in summed)
        rounds = min(2, -(-phase.tasks * slices // (self._ranks * self._sms)))
        each = max(store.tile_bytes for store in summed) / slices
        return rounds * self._ranks * each / rates.add_bytes + 2 * rates.signal

    def _fetching(self) -> float:
        """Nanoseconds in which operands of other ranks come: by the link, and by each SM one tile at a time, or by a
        copy engine one copy after the other."""
        fetched, rates = self._work.fetched, self._rates
        link = sum(operand.bytes for operand in fetched) / rates.link_bytes
        copied = sum(-(-operand.tiles // self._sms) * rates.copy for operand in fetched if not operand.copies)
        return max(link + sum(operand.copies for operand in fetched) * rates.engine_copy, copied)

    def _landing(self, main: float) -> float:
        """What tasks of so many nanoseconds lose because SMs store what they fetch."""
        if all(operand.copies for operand in self._work.fetched):
            return 0.0
        return self._rates.landing * min(main, self._fetching())

    def _enqueueing(self) -> float:
        """Nanoseconds of the host for what copy engines do on all ranks, which one process may drive."""
        copies = sum(operand.copies for operand in self._work.fetched)
        return 2 * copies / JOINED * self._ranks * self._rates.enqueue
