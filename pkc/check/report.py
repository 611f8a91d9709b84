"""`kernel.check(...)`: the checks of `pkc check` for Python, with a report instead of lines in a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pkc.check.counterexample import explore_small
from pkc.check.grounds import Ground, Word, explored, followed, instance_text, orders_text, proved, simulated
from pkc.check.instances import FEW, other_instances, too_small
from pkc.check.run import (
    Baseline,
    Trial,
    Trials,
    baseline_until_reuse,
    check_roles,
    explained,
    wide_trials,
)
from pkc.check.static import Static, check_statically, waits_for_later_tasks
from pkc.check.unwritten import Unwritten, unwritten
from pkc.diagnostics import Diagnostic, PkcError
from pkc.driver.compiler import Compiled, compile_program, constants_of, refuse_unknown
from pkc.driver.divisors import divisors_of
from pkc.frontend import tree
from pkc.sim.program import Program
from pkc.sim.run import resolve_dims
from pkc.sim.small import small_dims


@dataclass(frozen=True, repr=False)
class Checked:
    """What was checked of a kernel, in words, and what was found; `ok` if nothing was.

    Outputs that are not written everywhere are `warnings`.
    """

    kernel: str
    ranks: int
    dims: Mapping[str, int]
    lines: tuple[str, ...]
    findings: tuple[Diagnostic, ...]
    warnings: tuple[Diagnostic, ...]
    grounds: tuple[Ground, ...] = ()
    """What is proved, checked and sampled, as far as nothing was found."""

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def __repr__(self) -> str:
        sizes = "".join(f", {name}={size}" for name, size in self.dims.items())
        title = f"{self.kernel} on {self.ranks} rank{'s' * (self.ranks > 1)}{sizes}: {'ok' if self.ok else 'WRONG'}"
        found = (str(PkcError(one)) for one in (*self.findings, *self.warnings))
        return "\n".join([title, *(f"  {line}" for line in (*self.lines, *self.grounds)), *found])


def check_kernel(
    program: tree.Program,
    given: Mapping[str, int | float | bool],
    *,
    ranks: int,
    orders: int,
    explored: int,
    schedule: Mapping[str, str],
    target: str,
) -> Checked:
    """Check a program of one kernel with constants and dimensions by name, up to the first finding. Raises
    `PkcError`."""
    (source,) = program.kernels
    constants = {name: given[name] for name in constants_of(source) if name in given}

    def compiled(level: str, schedule: Mapping[str, str] = schedule, **more: Any) -> Compiled:
        return compile_program(program, constants=constants, schedule=schedule, level=level, target=target, **more)

    asked = {name: size for name, size in given.items() if name not in constants and isinstance(size, int)}
    # Lengths of rows say how tiles move.
    roles = compiled("roles", divisors=divisors_of([compiled("tile").kernel], asked, ranks))
    tile = compiled("tile", roles.schedule)  # sums of rows that are divided round otherwise
    known = [*constants_of(source), *Program(tile.kernel).dims, "ranks", "orders", "explored"]
    refuse_unknown(source.name, given, known)
    sizes: dict[str, Any] = {name: size for name, size in given.items() if name not in constants}
    dims = resolve_dims(tile.kernel, {**small_dims(tile.kernel, ranks), **sizes}, {}, ranks)
    written = compiled("written") if tile.kernel.roles else None
    run = _Checks(tile, roles, written, ranks, dims, orders, explored, grounds=list(proved(roles.kernel)))
    findings = run.found()
    for other in () if findings else other_instances(tile.kernel, ranks, sizes, {}, dims):
        also = replace(run, dims=other.dims, seed=other.seed, orders=1 if other.brief else min(orders, FEW), explored=0)
        also = replace(also, grounds=[], lines=[]) if other.brief or other.dims == dims else also
        if not findings and too_small(tile.kernel, also.mean, least=other.least) is None:
            findings = also.found()
    return Checked(source.name, ranks, dims, tuple(run.lines), tuple(findings), tuple(run.warnings), tuple(run.grounds))


@dataclass(frozen=True)
class _Checks:
    """The layers of the check, one after the other."""

    tile: Compiled
    roles: Compiled
    written: Compiled | None
    ranks: int
    dims: Mapping[str, int]
    orders: int
    explored: int
    seed: int = 0
    lines: list[str] = field(default_factory=list[str])
    warnings: list[Unwritten] = field(default_factory=list[Unwritten])
    grounds: list[Ground] = field(default_factory=list[Ground])

    @cached_property
    def baseline(self) -> Baseline:
        """Inputs and right outputs. Raises `PkcError`."""
        return baseline_until_reuse(self.tile, self.roles, ranks=self.ranks, dims=self.dims, seed=self.seed)

    def mean(self) -> Baseline:
        """The same, as a call."""
        return self.baseline

    def found(self) -> list[Diagnostic]:
        """The findings of the first layer that has any."""
        static = check_statically(self.roles.kernel, ranks=self.ranks, dims=self.dims, seed=self.seed)
        return self._follow(static) or self._explore() or self._simulate(static.spread)

    def _follow(self, static: Static) -> list[Diagnostic]:
        self.lines.append(f"static: {static.warp_roles} warp roles with {static.events} events")
        if static.findings:
            return static.findings
        self.grounds.extend(followed(self.roles.kernel, static, instance_text(self.ranks, self.dims)))
        if self.written is None:
            return []
        return waits_for_later_tasks(self.written.kernel, ranks=self.ranks, dims=self.dims)

    def _explore(self) -> list[Diagnostic]:
        """On as few ranks as possible; with what is wrong there for want of ranks, on more."""
        for few in range(min(2, self.ranks), self.ranks + 1) if self.explored else ():
            exploration = explore_small(self.tile, self.roles, few, self.explored)
            if exploration.found and not exploration.is_found_on(self.ranks):
                continue
            how = "every order" if exploration.complete else "not every order"
            self.lines.append(f"{how} on {few} ranks: {exploration.runs} runs")
            if not exploration.found:
                self.grounds.append(explored(self.roles.kernel, exploration))
            return exploration.found
        return []

    def _simulate(self, spread: int) -> list[Diagnostic]:
        try:
            baseline = self.baseline
        except PkcError as error:  # roles that an author wrote fail at the tile level already
            return list(error.diagnostics)
        known = {warning.array for warning in self.warnings}
        self.warnings.extend(new for new in unwritten(self.tile.kernel, baseline) if new.array not in known)
        trials = [Trial(1 + seed % 2, seed) for seed in range(self.orders)]
        trials += wide_trials(self.tile.kernel, spread, self.orders)
        found = check_roles(self.roles, baseline, trials)
        if found:
            _, found = explained(Trials(self.roles.kernel, baseline), trials[1:], found)
        if not found:
            self.lines.append(f"{len(trials)} orders give the bits that the program means")
            where = instance_text(self.ranks, self.dims)
            self.grounds.append(simulated(self.roles.kernel, Word.Sampled, orders_text(len(trials)), where))
        return found
