"""The time of an iteration of a loop that streams the operands of MMAs through stages, on one GPU."""

from __future__ import annotations

import math

from pkc.cost.records import Iteration, Load
from pkc.targets.target import Target

_ONE_AHEAD = 2
"""Stages of which one is filled while MMAs read the other one."""

_SHARPNESS = 3
"""The power of the norm that stands for a maximum: of two things that take as long, neither hides the other wholly."""


def is_stream(iteration: Iteration) -> bool:
    """Whether it is a loop of MMAs of loaded operands that do not need one another."""
    by_tma = bool(iteration.loads) and all(load.lines for load in iteration.loads)
    return iteration.loop and bool(iteration.mmas) and by_tma and not iteration.dependent


def nanoseconds(iteration: Iteration, multiplies: float, depth: int, target: Target, active: float) -> float:
    """One iteration whose MMAs take `multiplies` nanoseconds, with `depth` stages, while a share of `active` SMs have
    tasks; without what it takes to begin one."""
    rates, loads = target.rates, arrives(iteration, target, active)
    # MMAs in flight keep a stage until the next ones are issued. With one stage ahead, those of all SMs are asked for
    # at the same time, and come more slowly, unless threads compute operands meanwhile.
    together = depth == _ONE_AHEAD and not iteration.converted
    waits = rates.stream_latency + loads * (rates.alike if together else 1.0)
    waits = waits / (depth - 1) if depth > 1 else waits + multiplies
    return most_of(multiplies, loads, waits, len(iteration.mmas) * rates.least_iteration)


def arrives(iteration: Iteration, target: Target, active: float) -> float:
    """Nanoseconds until all loads of an iteration have arrived, beside their latency: the mean of all tasks."""
    rates = target.rates
    lines = sum(load.lines for load in iteration.loads) * rates.line
    return lines * (1 - rates.line_shared * (1 - active)) + sum(_at_edges(load, target) for load in iteration.loads)


def last(iteration: Iteration, target: Target) -> float:
    """Nanoseconds that the last iteration of a task takes longer: for rows outside of arrays, of which the stages that
    are loaded hide a half."""
    return sum(load.tail * load.box_rows for load in iteration.loads) * target.rates.outside_line / 2


def stages(iteration: Iteration, once: int, room: int, wanted: int, target: Target) -> int:
    """Stages for which shared memory of `room` bytes has room beside `once` bytes of results, of which there is a
    second stage if the loop keeps enough (`pk-plan-stages`); those that are `wanted` if it has, else 0. MMAs read as
    many rows as they have behind the last."""
    each = sum(load.stage_bytes + 2 * target.arch.mbarrier_bytes for load in iteration.loads)
    room -= max(max(0, target.mma.rows - mma.rows) * mma.width for mma in iteration.mmas)
    found = (room - once) // each
    if wanted:
        return wanted if wanted <= found else 0
    few, many = target.tuning.loop_stages, target.tuning.most_stages
    return max(0, min(many, found if found <= few else max(few, (room - 2 * once) // each)))


def lines_of(width: int, pitch: int, line: int) -> float:
    """The lines of a cache, of `line` bytes each, that a row of `width` bytes touches on average, of rows `pitch` bytes
    apart."""
    begins = range(0, line, math.gcd(pitch, line) or line)
    return sum(-(-(begin + width) // line) for begin in begins) / len(begins)


def _at_edges(load: Load, target: Target) -> float:
    """What tiles at the edges of an array take longer: rows that lie outside are filled with zeros."""
    longer = load.box_rows * target.rates.outside_line - load.lines * target.rates.line
    return sum(edge.outside * longer / max(1.0, edge.blocks) for edge in load.edges)


def most_of(*times: float) -> float:
    """What takes as long as the longest of several that hide one another."""
    most = max(times)
    return most * sum((time / most) ** _SHARPNESS for time in times) ** (1 / _SHARPNESS) if most else 0.0
