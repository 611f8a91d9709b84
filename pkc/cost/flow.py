"""The time of tasks without MMAs on one GPU, whose tiles flow from memory through threads and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pkc.cost.memory import memory_time
from pkc.cost.records import Iteration, Load, Phase, Store
from pkc.cost.stream import most_of
from pkc.passes.analysis.row_lanes import shared_by
from pkc.targets.layout import NEIGHBOURS
from pkc.targets.target import Target

_WARM = 0.6
"""The share of the L2 cache that still has what the launch before has used; from twice that on nothing is left."""


@dataclass(frozen=True)
class Flow:
    """What a task takes while others are in flight, and alone, in nanoseconds; stages of its tiles, at most those that
    tiles of tasks get, 0 if there is no room for one; warpgroups."""

    task: float
    alone: float
    stages: int
    warpgroups: int


def flows(phase: Phase) -> bool:
    """Whether its tasks are one iteration of loads and stores by TMA, and of what threads compute with each element, or
    with rows."""
    if len(phase.iterations) != 1:
        return False
    (iteration,) = phase.iterations
    loads = [load for load in iteration.loads if not load.once]
    stored = bool(iteration.stores) and not any(store.summed or store.sent for store in iteration.stores)
    by_tma = bool(loads) and all(load.lines for load in iteration.loads)
    return stored and by_tma and not (iteration.loop or iteration.mmas or iteration.across) and iteration.columns > 0


def flow_of(phase: Phase, consumers: int, target: Target) -> Flow:
    """The flow of a phase's tasks, with so many warpgroups if the schedule says how many."""
    (iteration,), rates = phase.iterations, target.rates
    groups = consumers or _warpgroups(iteration, target)
    loads = [load for load in iteration.loads if not load.once]
    computes = rates.flow_task + _computes(iteration, groups, target)
    arrives = _moves(loads, target)
    leaves = _moves(iteration.stores, target)
    many_in, many_out = _stages(iteration, target)
    waits = [_waits(arrives, computes, many_in, target), _waits(leaves, computes, many_out, target)]
    task = most_of(computes, arrives + leaves, *waits)
    alone = arrives + rates.flow_latency + computes + leaves
    return Flow(task, alone, min(many_in, many_out), groups)


def warm_memory_time(read: float, written: float, target: Target) -> float:
    """Nanoseconds of so many bytes behind another launch: what fits into the L2 cache is still there."""
    warm, size = _WARM * target.arch.cache, read + written
    cold = min(1.0, max(0.0, size / warm - 1)) if warm else 1.0
    return cold * memory_time(read, written, target) + (1 - cold) * size / target.rates.cache_bytes


def _moves(tiles: Sequence[Load | Store], target: Target) -> float:
    """Nanoseconds of TMA for tiles that it loads or stores."""
    rates = target.rates
    return sum(rates.flow_line * tile.lines + rates.flow_panel * tile.panels for tile in tiles)


def _waits(moves: float, computes: float, stages: int, target: Target) -> float:
    """Nanoseconds of a task in which a tile is on its way, of all of its stages; of a single one threads compute with
    the tile beside that."""
    return (target.rates.flow_latency + moves + (computes if stages <= 1 else 0.0)) / max(1, stages)


def _warpgroups(iteration: Iteration, target: Target) -> int:
    """As `pk-plan-warps` plans them."""
    arch, elements = target.arch, iteration.rows * iteration.columns
    rows = iteration.rows // target.mma.rows
    return max(1, min(arch.consumers, max(rows, -(-elements // _of_warpgroup(target)))))


def _of_warpgroup(target: Target) -> int:
    return target.threads.elements * target.arch.warpgroup * target.arch.warp


def _computes(iteration: Iteration, groups: int, target: Target) -> float:
    """Nanoseconds of threads, of which some have nothing to do where rows or columns are not as many as they have."""
    rates, threads = target.rates, groups * target.arch.warpgroup * target.arch.warp
    elements = iteration.rows * iteration.columns
    moved = sum(load.elements for load in iteration.loads if not load.once)
    moved += sum(store.elements for store in iteration.stores)
    lanes = iteration.lanes + rates.flow_moved * moved + rates.flow_row * elements * iteration.reduces
    idle = _of_a_thread(iteration, threads, target) * threads / elements
    issued = min(1.0, rates.flow_issue * groups)
    cycles = most_of(lanes / rates.lanes / issued, iteration.special / rates.special)
    return idle * cycles / rates.boost


def _of_a_thread(iteration: Iteration, threads: int, target: Target) -> float:
    """Elements that the thread has which has the most."""
    rows, columns = iteration.rows, iteration.columns
    many = rows * columns >= NEIGHBOURS * threads
    if not iteration.reduces:
        return math.ceil(rows * columns / NEIGHBOURS / threads) * NEIGHBOURS if many else rows * columns / threads
    together = NEIGHBOURS if many and columns % NEIGHBOURS == 0 else 2
    lanes = shared_by(rows, columns, together, threads, target.arch.warp).count
    return math.ceil(rows / max(1, threads // lanes)) * math.ceil(columns / (lanes * together)) * together


def _stages(iteration: Iteration, target: Target) -> tuple[int, int]:
    """Stages of what is loaded and of what is stored, as `pk-plan-stages` divides them."""
    barriers = 2 * target.arch.mbarrier_bytes
    loads = sum(load.stage_bytes + barriers for load in iteration.loads if not load.once)
    stores = sum(store.tile_bytes + barriers for store in iteration.stores)
    room = target.stage_memory - sum(load.stage_bytes + barriers for load in iteration.loads if load.once)
    found = [1, 1]
    room -= loads + stores
    if room < 0:
        return 0, 0
    for _ in range(1, target.tuning.loop_stages):
        for number, size in enumerate((loads, stores)):
            if size <= room:
                found[number] += 1
                room -= size
    return found[0], found[1]
