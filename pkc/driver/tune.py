"""Measures the schedules that seem best of a kernel, and keeps the fastest for later launches."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pkc.codegen.artifact import Artifact
from pkc.diagnostics import PkcError
from pkc.driver import tuned
from pkc.driver.autoschedule import autoschedule
from pkc.driver.builder import build_program
from pkc.driver.compiler import Number
from pkc.frontend import tree
from pkc.targets import DEFAULT

Clock: TypeAlias = Callable[[Artifact], Callable[[], float]]
"""From machine code to what launches it some times and gives the nanoseconds of a launch."""


@dataclass(frozen=True)
class Timed:
    """A schedule, what was estimated for it, and the median of what was measured; nothing if it does not compile."""

    schedule: Mapping[str, str]
    estimated: float | None
    measured: float | None
    chosen: bool
    """Whether it is the one that is chosen without measuring."""


def tune(
    program: tree.Program,
    clock: Clock,
    *,
    dims: Mapping[str, int],
    ranks: int,
    kernel: str | None = None,
    constants: Mapping[str, Number] | None = None,
    schedule: Mapping[str, str] | None = None,
    target: str = DEFAULT,
    most: int = 8,
    rounds: int = 5,
    keep: bool = True,
) -> list[Timed]:
    """What the schedule that is chosen, that of the program, and those that are estimated best of the others take,
    `most` in all, round after round; the fastest first. With `keep` that one is kept for launches at these sizes.
    Raises `PkcError`."""
    name, options = kernel or program.kernels[0].name, dict(schedule or {})
    given = {"dims": dims, "ranks": ranks, "kernel": name, "constants": constants, "target": target}
    found = autoschedule(program, **given, schedule=options, measured=False)  # pyright: ignore[reportArgumentType]
    estimates = {_items(settings): estimate.total for estimate, settings in found.others if estimate.stages}
    if found.instead is not None:
        estimates[()] = found.instead.total
    order = sorted(estimates, key=lambda settings: estimates[settings])
    first = dict.fromkeys([_items(found.schedule), (), *order])
    running: dict[tuple[tuple[str, str], ...], Callable[[], float]] = {}
    refused: list[tuple[tuple[str, str], ...]] = []
    for settings in first:
        if len(running) == most:
            break
        try:
            artifact = build_program(
                program,
                kernel=name,
                constants=constants,
                schedule={**options, **dict(settings)},
                target=target,
                sizes=(dims, ranks),
            )
        except PkcError:
            if settings == _items(found.schedule):
                raise
            refused.append(settings)
            continue
        running[settings] = clock(artifact)
    times: dict[tuple[tuple[str, str], ...], list[float]] = {settings: [] for settings in running}
    for _ in range(rounds):
        for settings, launch in running.items():
            times[settings].append(launch())
    medians = {settings: statistics.median(each) for settings, each in times.items()}
    chosen, fastest_first = _items(found.schedule), sorted(medians, key=lambda settings: medians[settings])
    timed = [
        Timed(dict(settings), estimates.get(settings), medians[settings], settings == chosen)
        for settings in fastest_first
    ]
    if keep:
        best = fastest_first[0]
        about = f"{name} on {ranks} of {target}, {', '.join(f'{dim}={size}' for dim, size in dims.items())}"
        entry = tuned.key(program, name, target, ranks, dims, constants or {}, options)
        tuned.keep(entry, tuned.Measured(dict(best), medians[best], medians[chosen], about))
    return [*timed, *(Timed(dict(settings), estimates.get(settings), None, chosen=False) for settings in refused)]


def _items(settings: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(settings.items()))


def table(found: Sequence[Timed]) -> str:
    """A line for each schedule, in microseconds."""
    lines = ["  measured  estimated  schedule"]
    for one in found:
        took = "refused" if one.measured is None else f"{one.measured / 1000:.4g}"
        thought = "" if one.estimated is None else f"{one.estimated / 1000:.4g}"
        settings = ", ".join(f"{key} = {value}" for key, value in one.schedule.items()) or "as the program says"
        lines.append(f"{took:>10}  {thought:>9}  {settings}{' (chosen by estimates)' if one.chosen else ''}")
    return "\n".join(lines)
