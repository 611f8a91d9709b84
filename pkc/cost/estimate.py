"""The time of a kernel, from its work and the rates of a GPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from pkc.cost import fetching, flow, stream
from pkc.cost.memory import handed_on, memory_time
from pkc.cost.records import Iteration, Mma, Phase, Store, UnknownWorkError, Work
from pkc.targets.target import Target

_ELEMENT = 2
"""Bytes of an element for which `mma_flops` is given."""


@dataclass(frozen=True)
class Estimate:
    """Nanoseconds of a kernel, and their composition."""

    total: float
    tasks: int
    rounds: float
    """Tasks of the SM that has the most; the mean, where only the running kernel knows."""
    task: float
    memory: float
    link: float
    sms: int
    """SMs that run tasks."""
    stages: int
    """Stages of the loops that shared memory has room for; 0 if there is no room for one."""
    iterations: float = 0.0
    """Of the loops of a task."""
    chained: bool = False
    """Whether MMAs of a loop need one another; then a stage is loaded while others are read, even if it is the only
    one."""
    streamed: bool = False
    """Whether MMAs of one rank stream their operands: estimates of tiles count with what their rows cost."""
    stage: int = 0
    """Bytes of a stage of that stream."""
    flows: bool = False
    """Whether tiles of one rank only go through threads: estimates of tiles, and of warpgroups, count with what a task
    needs beside what it computes."""
    warpgroups: int = 0
    """Warpgroups of such tasks."""
    launch: float = 0.0
    """Of `total`: what a launch takes without any work."""
    error: float = 0.0
    """The share of `total` by which it may be off."""
    doubt: float = 0.0
    """The same beside estimates of the same kernel with other tiles: what is assumed is assumed of all."""
    assumed: tuple[str, ...] = ()
    """What only the running kernel knows, and was assumed."""

    @property
    def busy(self) -> float:
        """Nanoseconds that the SM with the most tasks computes."""
        return self.rounds * self.task


def estimate(work: Work, ranks: int, target: Target, *, sms: int | None = None) -> Estimate:
    """The time that a rank takes for a kernel launched alone, with cold caches, on `sms` SMs or all; the other SMs only
    communicate."""
    found = _Estimator(work, ranks, target, sms or target.arch.sms).total()
    measured, unsure = _errors(work, ranks, target, sms, found)
    error, doubt = measured + unsure + bool(work.assumed and not found.chained), target.rates.error_of_mmas + unsure
    return replace(found, error=error, doubt=doubt, assumed=tuple(work.assumed))


def _errors(work: Work, ranks: int, target: Target, sms: int | None, found: Estimate) -> tuple[float, float]:
    """What measurements of such kernels say, and what comes to it if rates of operations are as bad as they may be; a
    kernel of which something is assumed may take twice as long."""
    rates = target.rates
    if found.chained:
        return rates.error_of_mmas, 0.0  # measured with what is computed between MMAs
    worst = _Estimator(work, ranks, target, sms or target.arch.sms, unsure=True).total()
    measured = rates.error_of_mmas if work.multiplies else rates.error_of_others
    if not work.multiplies and found.link:
        measured = rates.error_of_exchanges
    return measured, worst.total / found.total - 1


_NORMAL = tuple(NormalDist().inv_cdf((2 * number + 1) / 16) for number in range(8))
"""Eight numbers as likely as each other, of a normal distribution: that of the sum of several such lengths."""


_TWO = 2
"""Warpgroups of which none has MMAs that run while one computes and the other one begins an iteration."""


def _stores(phase: Phase) -> list[Store]:
    return [store for iteration in phase.iterations for store in iteration.stores]


def _products(mma: Mma, rows: int) -> float:
    return 2 * rows * mma.columns * mma.inner * mma.size / _ELEMENT


class _Estimator:
    def __init__(self, work: Work, ranks: int, target: Target, sms: int, *, unsure: bool = False) -> None:
        self._unsure = unsure
        self._work, self._ranks, self._target, self._rates, self._sms = work, ranks, target, target.rates, sms
        self._separate = target.arch.sms - sms
        self._clock = target.rates.clock
        few, many = target.rates.boosted
        # Of the rows that there are, which is nearly the same for all tiles.
        multiplied = sum(self._powered(phase, lambda mma: _products(mma, mma.rows)) for phase in work.phases)
        if ranks > 1 and not work.fetched and few < multiplied < many:
            self._rates = replace(target.rates, **dict(target.rates.mmas_over_ranks))
            self._clock = self._rates.boost

    def total(self) -> Estimate:
        rates, work = self._rates, self._work
        if not work.phases:
            raise UnknownWorkError("it has no tasks")
        if self._ranks == 1 and not work.fetched and all(map(flow.flows, work.phases)):
            return self._flow()
        found = [self._phase(phase) for phase in work.phases]
        longest = max(found, key=lambda one: one.rounds * one.task)
        memory = memory_time(sum(work.read.values()), sum(map(self._written, work.phases)), self._target)
        communicates = bool(work.fetched) or any(map(self._sent, work.phases))
        # The last contributions are added up when all operands have been read.
        ends = sum(map(self._adding, work.phases))
        busy = (
            max(sum(one.total for one in found) - ends, memory)
            + ends
            + handed_on(work, [one.rounds for one in found], self._target)
        )
        # What comes in packets is awaited where it is used; entry and exit are awaited meanwhile.
        whole = rates.launch + busy + (communicates and not self._in_packets()) * 4 * rates.signal
        link = max(one.link for one in found)
        whole = max(whole, fetching.enqueued(work, self._ranks, rates))
        stages = min(one.stages for one in found)
        # Streams were measured behind one another: what is compared has what a launch then takes.
        launch = rates.launch - longest.streamed * rates.launch_behind
        return replace(longest, total=whole, memory=memory, link=link, stages=stages, launch=launch)

    def _flow(self) -> Estimate:
        """All phases are flows: each begins when the one before has ended, and memory may take longer."""
        work, rates = self._work, self._rates
        main, found = 0.0, list[Estimate]()
        for phase in work.phases:
            each = flow.flow_of(self._sure(phase), work.consumers, self._target)
            rounds, stages, groups = self._rounds(phase), each.stages, each.warpgroups
            main += max(0.0, rounds - 1) * each.task + each.alone * bool(rounds)
            one = Estimate(0.0, round(phase.tasks), rounds, each.task, 0.0, 0.0, self._sms, stages)
            found.append(replace(one, flows=True, warpgroups=groups))
        written = sum(map(self._written, work.phases))
        memory = flow.warm_memory_time(sum(work.read.values()), written, self._target)
        longest = max(found, key=lambda one: one.busy)
        stages, groups = min(one.stages for one in found), max(one.warpgroups for one in found)
        total = rates.launch + (groups - 1) * rates.flow_warpgroup + stream.most_of(main, memory)
        launch = rates.launch - rates.flow_launch
        return replace(longest, total=total, memory=memory, stages=stages, warpgroups=groups, launch=launch)

    def _sure(self, phase: Phase) -> Phase:
        """A phase with as many instructions as there may be, if these are asked for."""
        if not self._unsure:
            return phase
        iterations = [replace(one, lanes=one.lanes + one.unsure) for one in phase.iterations]
        return replace(phase, iterations=iterations)

    def _phase(self, phase: Phase) -> Estimate:
        """One phase by itself."""
        rates = self._rates
        streams = self._streams(phase)
        rounds = self._rounds(phase)
        task = self._task(phase)
        chained = any(iteration.dependent for iteration in phase.iterations)
        iterations = sum(iteration.times for iteration in phase.iterations if iteration.loop)
        whole = Estimate(
            0.0, round(phase.tasks), rounds, task, 0.0, 0.0, self._sms, self._depth(phase), iterations, chained
        )
        whole = replace(whole, streamed=streams, stage=self._stage(phase))
        if not rounds:
            return whole
        # The next contribution is sent when the last one is announced.
        each = max(task, rates.announce) if self._announced(phase) else task
        if not self._work.multiplies and any(store.packets for store in _stores(phase)):
            each += rates.load_latency / 2  # the threads that make packets load, too; of four warps some do meanwhile
        if streams:
            alone = self._alone(phase) + (self._warpgroups(phase) - 1) * rates.warpgroup
            return replace(whole, total=max(rounds * task + alone, self._powered(phase)))
        main = (rounds - 1) * each + task + rates.load_latency
        link = self._sent(phase) / rates.link_bytes
        if self._announced(phase):
            # A storer sends the next contribution after the last one has arrived and is announced.
            link += phase.tasks / self._sms * rates.announce * self._to_others(phase)
        # The results of the last tasks are sent after these, and none before the first tasks have ended.
        left = max(0.0, phase.tasks - (rounds - 1) * self._sms)
        main = max(main + left / phase.tasks * link, task + link, task + self._adding_beside(phase))
        if self._work.fetched:
            begins = 2 * rates.signal + rates.copy
            fetches = fetching.takes(self._work, self._sms, self._separate, rates)
            ready = begins + fetches
            main += fetching.costs_tasks(self._work, main, fetches, self._separate, rates)
            # Of small tiles more are awaited at once, but these arrive together.
            last = self._target.tuning.awaited_tiles * self._longest_iteration(phase)
            if any(operand.as_a_whole for operand in self._work.fetched):
                main += fetches
            main = max(main + (begins if rounds == 1 else 0.0), ready + last)
            link = max(link, ready)
        return replace(whole, total=main + self._adding(phase), link=link)

    def _task(self, phase: Phase) -> float:
        """Nanoseconds from the end of one task of an SM to the end of the next."""
        depth = self._depth(phase)
        if not self._streams(phase):
            total = self._rates.task
            return total + sum(iteration.times * self._iteration(iteration, depth) for iteration in phase.iterations)
        iteration, multiplies, active = self._streamed(phase)
        each = stream.nanoseconds(iteration, multiplies, depth, self._target, active)
        begins = self._rates.scaled_iteration if iteration.lanes else self._rates.stream_iteration
        if iteration.lanes and self._warpgroups(phase) > _TWO:
            begins = 0.0  # one of three begins while one multiplies, and one uses a product
        return iteration.times * (begins + each) + stream.last(iteration, self._target)

    def _streamed(self, phase: Phase) -> tuple[Iteration, float, float]:
        """The iteration that streams, how long its MMAs take beside what threads compute with their results, and the
        share of SMs that have tasks."""
        (iteration,) = (iteration for iteration in phase.iterations if stream.is_stream(iteration))
        computes = iteration.lanes / self._rates.lanes / self._rates.boost
        several = len(iteration.mmas) > 1
        multiplies = self._multiplies(iteration, self._rates.boost, several) + self._rates.beside * computes
        return iteration, multiplies, min(1.0, phase.tasks / self._sms)

    def _alone(self, phase: Phase) -> float:
        """Nanoseconds in which a stream loads its first stage, or multiplies its last, and nothing else."""
        iteration, multiplies, active = self._streamed(phase)
        return stream.arrives(iteration, self._target, active) + multiplies

    def _powered(self, phase: Phase, flops: Callable[[Mma], float] | None = None) -> float:
        """Nanoseconds that power for so many MMAs takes, of all SMs together: for all rows of instructions."""
        each = sum(iteration.times * sum(map(flops or self._flops, iteration.mmas)) for iteration in phase.iterations)
        return phase.tasks * each / self._rates.mma_flops / self._rates.clock / self._target.arch.sms

    def _stage(self, phase: Phase) -> int:
        """Bytes of a stage of all loops; those that load tiles of as many bytes share theirs (`pk-merge-channels`)."""
        loops = [tuple(load.stage_bytes for load in one.loads) for one in phase.iterations if one.loop]
        return sum(map(sum, loops if self._streams(phase) else set(loops)))

    def _streams(self, phase: Phase) -> bool:
        """Whether tasks of one rank do hardly more than stream operands of MMAs."""
        with_mmas = [iteration for iteration in phase.iterations if iteration.mmas]
        return self._ranks == 1 and len(with_mmas) == 1 and stream.is_stream(with_mmas[0])

    def _rounds(self, phase: Phase) -> float:
        """Tasks of the SM that has the most; the mean, where only the running kernel knows."""
        if not phase.uncertain:
            return -(-phase.tasks // self._sms)
        spread = phase.spread / math.sqrt(phase.uncertain)
        several = [max(0.0, phase.tasks * (1 + spread * number)) for number in _NORMAL]
        return sum(-(-tasks // self._sms) for tasks in several) / len(several)

    def _warpgroups(self, phase: Phase) -> int:
        rows = max((mma.rows for iteration in phase.iterations for mma in iteration.mmas), default=0)
        return self._work.consumers or max(1, min(rows // self._target.mma.rows, self._target.arch.consumers))

    def _announced(self, phase: Phase) -> bool:
        """Whether tasks contribute to sums, and announce each contribution to its owner."""
        return any(store.summed and not store.packets for store in _stores(phase))

    def _in_packets(self) -> bool:
        """Whether all that a kernel sends goes in packets, and nothing is fetched."""
        sent = [store for phase in self._work.phases for store in _stores(phase) if store.sent]
        return not self._work.fetched and all(store.packets for store in sent)

    def _longest_iteration(self, phase: Phase) -> float:
        depth = self._depth(phase)
        return max((self._iteration(iteration, depth) for iteration in phase.iterations if iteration.loop), default=0.0)

    def _iteration(self, iteration: Iteration, depth: int) -> float:
        rates = self._rates
        arrives = max(
            sum(load.bytes for load in iteration.loads) / rates.load_bytes,
            sum(
                load.rows * rates.load_row + load.outside * rates.outside_row + load.chunks * rates.copied_chunks
                for load in iteration.loads
            ),
            0.0 if iteration.mmas else rates.load_begins * len(iteration.loads),
        )
        waiting = iteration.dependent or any(mma.awaited for mma in iteration.mmas)
        multiplies = self._multiplies(iteration, rates.clock if waiting else self._clock)
        computes = self._computes(iteration)
        stores = 0.0 if self._work.multiplies else sum(map(self._storing, iteration.stores))
        if not iteration.loop:
            return arrives + multiplies + computes + stores
        busy = self._busy(iteration, multiplies, computes, depth) + stores
        awaited = not iteration.dependent and any(mma.awaited for mma in iteration.mmas)
        # MMAs in flight keep the stage of the iteration before; those that are awaited, their own as long as they run.
        kept = int(bool(iteration.mmas) and not (iteration.dependent or awaited) and depth > 1)
        ahead = max(1, depth - kept)
        # The only stage ahead is filled between two iterations; of several, one is filled while others are read.
        bare = arrives if ahead == 1 else 0.0
        waits = (rates.load_latency + bare + awaited * multiplies) / ahead if iteration.loads else 0.0
        return rates.iteration + max(busy, arrives, waits)

    def _multiplies(self, iteration: Iteration, clock: float, several: bool = False) -> float:
        """Nanoseconds of tensor cores, which read shared memory while TMA writes there; of `several` MMAs of a stream
        one goes on while another one waits for that. What is computed for them comes before."""
        cycles = sum(map(self._flops, iteration.mmas)) / self._rates.mma_flops
        shared = sum(map(self._operands, iteration.mmas))
        shared += 0 if several else sum(load.stage_bytes for load in iteration.loads)
        return max(cycles, shared / self._rates.shared_bytes) / clock + self._converts(iteration)

    def _converts(self, iteration: Iteration) -> float:
        """Nanoseconds in which threads compute operands of MMAs: several warpgroups do so at the same time."""
        if not iteration.converted:
            return 0.0
        rates, alone = self._rates, max(map(self._groups, iteration.mmas)) == 1
        begins = rates.converting_alone if alone else rates.converting
        if not all(mma.computed for mma in iteration.mmas):
            begins *= 2  # right operands go through a stage, which all warps wait for
        return begins + iteration.converted / rates.lanes / rates.boost

    def _storing(self, store: Store) -> float:
        """Nanoseconds of an SM for a tile that leaves it, for another rank more slowly."""
        if not store.sent:
            return store.written / self._rates.load_bytes
        return max(store.written, store.sent) / self._rates.fetch_bytes

    def _computes(self, iteration: Iteration) -> float:
        """Nanoseconds of threads. Of two warpgroups no special-function unit works while ordinary instructions run; the
        more there are, the more of both overlaps."""
        instructions = iteration.lanes + self._unsure * iteration.unsure
        lanes, special = instructions / self._rates.lanes, iteration.special / self._rates.special
        groups = max(map(self._groups, iteration.mmas), default=1)
        return (max(lanes, special) + min(lanes, special) * min(1.0, 2 / groups)) / self._rates.clock

    def _busy(self, iteration: Iteration, multiplies: float, computes: float, depth: int) -> float:
        """Nanoseconds of an iteration that multiplies and computes for so long."""
        if not iteration.dependent:
            # While one warpgroup computes with what it has awaited, MMAs of another one run.
            several = any(mma.awaited and self._groups(mma) > 1 for mma in iteration.mmas)
            return multiplies + (self._rates.awaited if several else 1.0) * computes
        multiplies += self._rates.dependent
        busy = max(multiplies, computes)
        alone = max(map(self._groups, iteration.mmas)) == 1
        if depth > 1:
            # Pipelined: of one warpgroup MMAs and what is computed beside them overlap less well than of several.
            return busy + alone * self._rates.alone * min(multiplies, computes)
        # Not pipelined: a warpgroup waits for its MMAs, while others use the tensor cores.
        return busy + (1.0 if alone else self._rates.exposed) * min(multiplies, computes)

    def _groups(self, mma: Mma) -> int:
        """Warpgroup instructions that the rows of an MMA take."""
        return -(-mma.rows // self._target.mma.rows)

    def _flops(self, mma: Mma) -> float:
        return _products(mma, self._groups(mma) * self._target.mma.rows)

    def _operands(self, mma: Mma) -> float:
        """Bytes of shared memory that the instructions read: each its own rows, unless these were computed, and the
        whole right operand."""
        rows = (0 if mma.computed else self._target.mma.rows) + mma.columns
        return self._groups(mma) * rows * mma.inner * mma.size

    def _depth(self, phase: Phase) -> int:
        """Stages of the loops that shared memory has room for; 0 if there is no room for one."""
        each = self._stage(phase)
        came = [load.stage_bytes for iteration in phase.iterations if not iteration.loop for load in iteration.loads]
        left = [store.tile_bytes for iteration in phase.iterations for store in iteration.stores]
        once = sum(came) + sum(left)
        if self._streams(phase):
            (iteration,) = (iteration for iteration in phase.iterations if iteration.mmas)
            return stream.stages(iteration, once, self._target.stage_memory, self._work.stages, self._target)
        if any(iteration.mmas for iteration in phase.iterations):
            once -= sum(size for size in left if size in came)  # it leaves in their stage (`pk-share-stages`)
        if not self._separate:
            once += sum(fetched.stage_bytes for fetched in self._work.fetched)
        room = self._target.stage_memory - once
        most = self._target.tuning.most_stages
        return max(0, min(most, room // each)) if each else most * (room >= 0)

    def _sent(self, phase: Phase) -> float:
        """Bytes that the tasks of a phase send."""
        each = sum(iteration.times * store.sent for iteration in phase.iterations for store in iteration.stores)
        return phase.tasks * each

    def _to_others(self, phase: Phase) -> float:
        """The share of the contributions to sums that leave this rank: in one shot all do."""
        summed = [store for store in _stores(phase) if store.summed]
        one_shot = not summed or any(store.shots == 1 for store in summed)
        return 1.0 if one_shot else (self._ranks - 1) / self._ranks

    def _written(self, phase: Phase) -> float:
        """Bytes that the tasks of a phase store."""
        each = sum(iteration.times * store.written for iteration in phase.iterations for store in iteration.stores)
        return phase.tasks * each

    def _adding(self, phase: Phase) -> float:
        """Nanoseconds until the last contributions to sums have arrived and are added up."""
        rates = self._rates
        summed = [store for store in _stores(phase) if store.summed]
        if not summed:
            return rates.packet if any(store.packets for store in _stores(phase)) else 0.0
        # All but the last of them are added up while other tasks compute.
        chunks = max(store.chunks for store in summed)
        owners = self._owners(summed)
        rounds = min(2, -(-phase.tasks * chunks // (owners * self._sms)))
        each = max(store.tile_bytes for store in summed) / chunks
        ways = 2 if any(store.shots == 2 for store in summed) else 1
        if any(store.packets for store in summed):
            return rounds * self._ranks * each / self._receiving() + ways * rates.packet
        return rounds * self._ranks * each / rates.add_bytes + ways * 2 * rates.signal

    def _owners(self, summed: Sequence[Store]) -> int:
        """How many ranks share what is added up: in one shot each adds up everything."""
        return 1 if any(store.shots == 1 for store in summed) else self._ranks

    def _adding_beside(self, phase: Phase) -> float:
        """Nanoseconds that communicators take for what they add up beside the tasks: all but a tile for each CTA."""
        summed = [store for store in _stores(phase) if store.summed and not store.packets]
        if not summed or not self._work.multiplies or self._separate:
            return 0.0
        owners = self._owners(summed)
        tiles = max(0.0, phase.tasks / (owners * self._sms) - 1)
        return tiles * self._ranks * max(store.tile_bytes for store in summed) / self._rates.add_bytes_beside

    def _receiving(self) -> float:
        """Bytes of elements in packets that an SM receives in a nanosecond: few threads do beside MMAs."""
        target = self._target
        warps = target.tuning.carriers if self._work.multiplies else target.arch.consumers * target.arch.warpgroup
        return warps * self._rates.receive_bytes
