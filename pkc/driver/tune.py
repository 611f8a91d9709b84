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


@dataclass(frozen=True)
class Ready:
    """A schedule and its machine code; nothing if it does not compile."""

    schedule: Mapping[str, str]
    estimated: float | None
    chosen: bool
    """Whether it is the one that is chosen without measuring."""
    artifact: Artifact | None


def ready(
    program: tree.Program,
    *,
    dims: Mapping[str, int],
    ranks: int,
    kernel: str | None = None,
    constants: Mapping[str, Number] | None = None,
    schedule: Mapping[str, str] | None = None,
    target: str = DEFAULT,
    most: int = 8,
    variants: Sequence[Mapping[str, str]] = (),
) -> list[Ready]:
    """The schedule that is chosen, that of the program, and those that are estimated best of the others, compiled:
    `most` in all that do. With `variants` also each of these added to the chosen and to the best of the others. Of
    schedules with the same machine code only the first is there. Raises `PkcError`."""
    name, options = kernel or program.kernels[0].name, dict(schedule or {})
    given = {"dims": dims, "ranks": ranks, "kernel": name, "constants": constants, "target": target}
    found = autoschedule(program, **given, schedule=options, measured=False)  # pyright: ignore[reportArgumentType]
    estimates = {_items(settings): estimate.total for estimate, settings in found.others if estimate.stages}
    if found.instead is not None:
        estimates[()] = found.instead.total
    chosen, order = _items(found.schedule), sorted(estimates, key=lambda settings: estimates[settings])
    if found.taken is not None:
        estimates.setdefault(chosen, found.taken.total)
    result: list[Ready] = []

    def add(settings: _Items) -> None:
        if any(_items(one.schedule) == settings for one in result):
            return
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
            if settings == chosen:
                raise
            artifact = None
        if artifact is None or all(one.artifact != artifact for one in result):
            result.append(Ready(dict(settings), estimates.get(settings), settings == chosen, artifact))

    for settings in dict.fromkeys([chosen, (), *order]):
        if sum(one.artifact is not None for one in result) == most:
            break
        add(settings)
    other = next((settings for settings in order if not set(settings) <= set(chosen)), chosen)
    for settings in dict.fromkeys([chosen, other]):
        for variant in variants:
            if options.keys().isdisjoint(variant):
                add(_items({**dict(settings), **variant}))
    return result


def measure(running: Mapping[int, Callable[[], float]], rounds: int) -> dict[int, float]:
    """The median of what each takes, round after round."""
    times: dict[int, list[float]] = {number: [] for number in running}
    for _ in range(rounds):
        for number, launch in running.items():
            times[number].append(launch())
    return {number: statistics.median(each) for number, each in times.items()}


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
) -> list[Timed]:
    """What the schedule that is chosen, that of the program, and those that are estimated best of the others take,
    `most` in all, round after round; the fastest first, which is kept for launches at these sizes. Raises `PkcError`.
    """
    name, options = kernel or program.kernels[0].name, dict(schedule or {})
    given = {"dims": dims, "ranks": ranks, "kernel": name, "constants": constants, "target": target}
    found = ready(program, **given, schedule=options, most=most)  # pyright: ignore[reportArgumentType]
    running = {number: clock(one.artifact) for number, one in enumerate(found) if one.artifact is not None}
    medians = measure(running, rounds)
    order = sorted(medians, key=lambda number: medians[number])
    best, chosen = order[0], next(number for number, one in enumerate(found) if one.chosen)
    about = f"{name} on {ranks} of {target}, {', '.join(f'{dim}={size}' for dim, size in dims.items())}"
    entry = tuned.key(program, name, target, ranks, dims, constants or {}, options)
    tuned.keep(entry, tuned.Measured(dict(found[best].schedule), medians[best], medians[chosen], about))
    refused = (number for number in range(len(found)) if number not in medians)
    return [
        Timed(found[number].schedule, found[number].estimated, medians.get(number), found[number].chosen)
        for number in (*order, *refused)
    ]


_Items: TypeAlias = tuple[tuple[str, str], ...]


def _items(settings: Mapping[str, str]) -> _Items:
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
