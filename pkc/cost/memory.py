"""The time of device memory, for estimates and predicted time lines alike."""

from __future__ import annotations

from collections.abc import Sequence

from pkc.cost.records import Work
from pkc.targets.target import Target


def memory_time(read: float, written: float, target: Target) -> float:
    """Nanoseconds that memory of a GPU takes for bytes of which the L2 cache has none: what is read for the first time,
    and what is stored, share its bandwidth."""
    return (read + written) / target.rates.memory_bytes


def handed_on(work: Work, rounds: Sequence[float], target: Target) -> float:
    """Nanoseconds for what phases store and later ones load, of so many rounds each: what the last tasks of the one and
    the first ones of the other move goes beside nothing."""
    stored, moved = dict[str, float](), 0.0
    for phase, count in zip(work.phases, (max(1.0, count) for count in rounds), strict=True):
        loaded = {load.array for iteration in phase.iterations for load in iteration.loads} & stored.keys()
        moved += sum(stored[name] + work.read.get(name, 0.0) / count for name in loaded)
        for iteration in phase.iterations:
            for store in iteration.stores:
                last = phase.tasks * iteration.times * store.written / count
                stored[store.array] = stored.get(store.array, 0.0) + last
    return memory_time(moved, 0.0, target)
