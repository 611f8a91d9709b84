"""`kernel.check(...)`: the checks of `pkc check` for Python, with a report instead of lines in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pkc.check.counterexample import explore_small
from pkc.check.grounds import Ground, Word, explored, followed, instance_text, orders_text, proved, simulated
from pkc.check.run import Trial, Trials, baseline_of, check_roles, explained
from pkc.check.static import check_statically, waits_for_later_tasks
from pkc.check.unwritten import unwritten
from pkc.diagnostics import Diagnostic, PkcError
from pkc.driver.compiler import Compiled, compile_program, constants_of, refuse_unknown
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
        title = f"{self.kernel} on {self.ranks} ranks{sizes}: {'ok' if self.ok else 'WRONG'}"
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

    def compiled(level: str) -> Compiled:
        return compile_program(program, constants=constants, schedule=schedule, level=level, target=target)

    tile, roles = compiled("tile"), compiled("roles")
    known = [*constants_of(source), *Program(tile.kernel).dims, "ranks", "orders", "explored"]
    refuse_unknown(source.name, given, known)
    sizes: dict[str, Any] = {name: size for name, size in given.items() if name not in constants}
    dims = resolve_dims(tile.kernel, {**small_dims(tile.kernel, ranks), **sizes}, {}, ranks)
    written = compiled("written") if tile.kernel.roles else None
    run = _Checks(tile, roles, written, ranks, dims, orders, explored)
    findings = tuple(run.found())
    return Checked(source.name, ranks, dims, tuple(run.lines), findings, tuple(run.warnings), tuple(run.grounds))


class _Checks:
    """The layers of the check, one after the other."""

    def __init__(
        self,
        tile: Compiled,
        roles: Compiled,
        written: Compiled | None,
        ranks: int,
        dims: Mapping[str, int],
        orders: int,
        explored: int,
    ) -> None:
        self._tile, self._roles, self._written, self._ranks, self._dims = tile, roles, written, ranks, dims
        self._orders, self._explored = orders, explored
        self.lines: list[str] = []
        self.warnings: list[Diagnostic] = []
        self.grounds = list(proved(roles.kernel))

    def found(self) -> Iterator[Diagnostic]:
        """The findings of the first layer that has any."""
        for layer in (self._follow, self._explore, self._simulate):
            findings = layer()
            if findings:
                yield from findings
                return

    def _follow(self) -> list[Diagnostic]:
        static = check_statically(self._roles.kernel, ranks=self._ranks, dims=self._dims)
        self.lines.append(f"static: {static.warp_roles} warp roles with {static.events} events")
        if static.findings:
            return static.findings
        self.grounds.extend(followed(self._roles.kernel, static, instance_text(self._ranks, self._dims)))
        if self._written is None:
            return []
        return waits_for_later_tasks(self._written.kernel, ranks=self._ranks, dims=self._dims)

    def _explore(self) -> list[Diagnostic]:
        """On as few ranks as possible; with what is wrong there for want of ranks, on more."""
        for few in range(min(2, self._ranks), self._ranks + 1) if self._explored else ():
            exploration = explore_small(self._tile, self._roles, few, self._explored)
            if exploration.found and not exploration.is_found_on(self._ranks):
                continue
            how = "every order" if exploration.complete else "not every order"
            self.lines.append(f"{how} on {few} ranks: {exploration.runs} runs")
            if not exploration.found:
                self.grounds.append(explored(self._roles.kernel, exploration))
            return exploration.found
        return []

    def _simulate(self) -> list[Diagnostic]:
        try:
            baseline = baseline_of(self._tile, ranks=self._ranks, dims=self._dims)
        except PkcError as error:  # roles that an author wrote fail at the tile level already
            return list(error.diagnostics)
        self.warnings += unwritten(self._tile.kernel, baseline)
        trials = [Trial(1 + seed % 2, seed) for seed in range(self._orders)]
        found = check_roles(self._roles, baseline, trials)
        if found:
            _, found = explained(Trials(self._roles.kernel, baseline), trials[1:], found)
        if not found:
            self.lines.append(f"{self._orders} orders give the bits that the program means")
            where = instance_text(self._ranks, self._dims)
            self.grounds.append(simulated(self._roles.kernel, Word.Sampled, orders_text(self._orders), where))
        return found
