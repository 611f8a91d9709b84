"""The time of an iteration of a loop that streams the operands of MMAs through stages, on one GPU."""

from __future__ import annotations

import math

from pkc.cost.records import Iteration, Load
from pkc.targets.target import Target

_SHARPNESS = 8
"""The power of the norm that stands for a maximum: of two things that take as long, neither hides the other wholly."""


def is_stream(iteration: Iteration) -> bool:
    """Whether it is a loop of MMAs of loaded operands that do not need one another."""
    by_tma = bool(iteration.loads) and all(load.lines for load in iteration.loads)
    return iteration.loop and bool(iteration.mmas) and by_tma and not iteration.dependent


def nanoseconds(iteration: Iteration, multiplies: float, depth: int, target: Target, *, alone: bool) -> float:
    """One iteration whose MMAs take `multiplies` nanoseconds, with `depth` stages. `alone`: each SM has one task, so
    that the slowest tile counts, and not the mean."""
    rates, loads = target.rates, arrives(iteration, target, alone=alone)
    # MMAs in flight keep a stage until the next ones are issued.
    waits = rates.stream_latency + loads
    waits = waits / (depth - 1) if depth > 1 else waits + multiplies
    return _most(multiplies, loads, waits, len(iteration.mmas) * rates.least_iteration)


def arrives(iteration: Iteration, target: Target, *, alone: bool) -> float:
    """Nanoseconds until all loads of an iteration have arrived, beside their latency."""
    return sum(load.lines for load in iteration.loads) * target.rates.line + _at_edges(
        iteration.loads, target, alone=alone
    )


def stages(iteration: Iteration, once: int, room: int, wanted: int, target: Target) -> int:
    """Stages for which shared memory of `room` bytes has room beside `once` bytes of results, of which there is a
    second stage if the loop keeps enough (`pk-plan-stages`); those that are `wanted` if it has, else 0. MMAs read as
    many rows as they have behind the last."""
    each = sum(load.stage_bytes + 2 * target.arch.mbarrier_bytes for load in iteration.loads)
    rows = min(mma.rows for mma in iteration.mmas)
    room -= max(0, target.mma.rows - rows) * target.mma.depth * _PANEL
    found = (room - once) // each
    if wanted:
        return wanted if wanted <= found else 0
    few, many = target.tuning.loop_stages, target.tuning.most_stages
    return max(0, min(many, found if found <= few else max(few, (room - 2 * once) // each)))


_PANEL = 4
"""How many k of an MMA a row of a stage has: 128 bytes."""


def lines_of(width: int, pitch: int, line: int) -> float:
    """The lines of a cache, of `line` bytes each, that a row of `width` bytes touches on average, of rows `pitch` bytes
    apart."""
    begins = range(0, line, math.gcd(pitch, line) or line)
    return sum(-(-(begin + width) // line) for begin in begins) / len(begins)


def _at_edges(loads: list[Load], target: Target, *, alone: bool) -> float:
    """What tiles at the edges of arrays take longer: rows that lie outside are filled with zeros."""
    rates = target.rates
    longer = [
        (edge.outside * (load.box_rows * rates.outside_line - load.lines * rates.line), edge.blocks)
        for load in loads
        for edge in load.edges
    ]
    if not longer:
        return 0.0
    if alone:
        worst = max(extra for extra, _ in longer)
        return max(worst, 0.0) if any(blocks > 1 for _, blocks in longer) else worst
    return sum(extra / max(1.0, blocks) for extra, blocks in longer)


def _most(*times: float) -> float:
    most = max(times)
    return most * sum((time / most) ** _SHARPNESS for time in times) ** (1 / _SHARPNESS) if most else 0.0
