"""The static layer of `pkc check`: the protocol of all CTAs of all ranks, without tiles."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from pkc.check.blocked import blocked
from pkc.check.covered import covered
from pkc.check.progress import Progress
from pkc.check.skeleton import DependsOnTilesError, deciding, skeleton_of
from pkc.check.static_errors import CyclicWait, NotResident
from pkc.check.tasks import tasks_once
from pkc.check.trace import WarpRole
from pkc.diagnostics import Diagnostic, PkcError
from pkc.dialect.access import ReadOp
from pkc.dialect.program import KernelOp
from pkc.dialect.types import PGLType
from pkc.passes.roles.check_roles import CheckRoles
from pkc.sim.array import Array, Placement
from pkc.sim.draw import draw_inputs
from pkc.sim.inputs import Data
from pkc.sim.machine import Machine
from pkc.sim.memory import MemoryState
from pkc.sim.program import Program
from pkc.sim.run import make_machine
from pkc.sim.work import TooLongError

LAUNCHES = 2
"""The second launch shows counts that do not depend on the epoch."""


@dataclass(frozen=True)
class Static:
    """What the static layer found, and how far it could look."""

    findings: list[Diagnostic]
    seconds: float
    warp_roles: int = 0
    events: int = 0
    lowered: bool = False
    """Whether a counter was taken down, so that one run does not stand for every order."""
    partial: frozenset[Operation] = frozenset()
    """Waits for fewer signals than come, of which some come only after them: what they order is for the simulation."""
    drawn: tuple[str, ...] = ()
    """The arrays whose drawn integers decide about counts."""
    spread: int = 1
    """How many CTAs of one kind have tasks on the grid of the target."""
    undecided: bool = False
    """Whether what is signalled depends on tiles, so that only a simulation can tell."""


def check_statically(
    kernel: KernelOp, *, ranks: int, dims: Mapping[str, int], seed: int = 0, briefly: bool = False
) -> Static:
    """Check the roles level of a kernel for given sizes: first for all sizes, then the events of each warp role.

    Two grids are checked: that of the target, one CTA for each SM; and one CTA for each group of SMs, where every task
    follows the previous one on the same CTA. Tasks of roles that an author wrote are checked on 2 CTAs as well, and
    `briefly` on these alone. Integers that decide about counts are drawn.
    """
    began = time.perf_counter()
    module = kernel.parent_op()
    assert isinstance(module, ModuleOp)
    found = CheckRoles().findings(module)
    called = Program(kernel)
    if found or not called.has_roles:
        return Static(found, time.perf_counter() - began)
    names = _deciding_arrays(called)
    if names is None:
        return Static([], time.perf_counter() - began, undecided=True)
    data = [_draw(module, called, names, ranks, dims, seed + launch) for launch in range(LAUNCHES)]
    warp_roles = events = spread = 0
    lowered, partial = False, set[Operation]()
    try:
        for grid in _grids(called, briefly=briefly):
            found, counts, progress = _run(called, data, grid)
            warp_roles, events, spread = warp_roles + counts[0], events + counts[1], counts[2]
            lowered, partial = lowered or progress.lowered, partial | progress.partial
            if found:
                found = _for_want_of_ctas(called, data, grid, found)
                break
    except DependsOnTilesError:
        return Static([], time.perf_counter() - began, undecided=True)
    except TooLongError:
        raise
    except PkcError as error:
        found = list(error.diagnostics)
    seconds = time.perf_counter() - began
    found = _one_for_each_place(found)
    return Static(found, seconds, warp_roles, events, lowered, frozenset(partial), tuple(names), spread)


def waits_for_later_tasks(written: KernelOp, *, ranks: int, dims: Mapping[str, int]) -> list[Diagnostic]:
    """Tasks that wait for later ones than fit, of roles as their author wrote them. Those that pkc splits a role into
    may go on all the same, if one has its signals and another its waits; the language does not promise it."""
    found = check_statically(written, ranks=ranks, dims=dims).findings
    return [finding for finding in found if isinstance(finding, NotResident)]


def _grids(called: Program, *, briefly: bool) -> Sequence[tuple[int, int]]:
    """Numbers of CTAs that compute and that only communicate."""
    computing, communicating = called.needed
    written = called.has_written_roles or not called.per_cta
    smallest = (1, 2)[: 2 if written else 1]
    few = [(max(ctas, computing), min(called.comm_sms, max(ctas, communicating))) for ctas in smallest]
    return few if briefly and written else [*few, called.resident]


def _for_want_of_ctas(
    called: Program, data: Sequence[Data], grid: tuple[int, int], found: list[Diagnostic]
) -> list[Diagnostic]:
    """The same findings, or that an author's tasks need more CTAs, if none is left when each task has its own."""
    cycle = next((finding for finding in found if isinstance(finding, CyclicWait)), None)
    written = called.has_written_roles or not called.per_cta
    if cycle is None or not written or _run(called, data, _one_for_each_task(called, data))[0]:
        return found
    ctas = "1 CTA" if grid[0] == 1 else f"{grid[0]} CTAs"
    return [NotResident(cycle.span, ctas, min(filter(None, called.resident)), cycle.lines, also=cycle.also)]


def _one_for_each_task(called: Program, data: Sequence[Data]) -> tuple[int, int]:
    """A grid on which each task has a CTA."""
    if not called.per_cta:
        return sys.maxsize, sys.maxsize
    one = data[0]
    machine = _machine(called, one, (1, min(called.comm_sms, 1)))
    running = skeleton_of(called.kernel, machine, _arrays(called, one), one.scalars).warp_roles(1)
    most = max((len(warp_role.visits) for warp_role in running), default=1)
    return most, most if called.comm_sms else 0


def _deciding_arrays(called: Program) -> list[str] | None:
    """The arrays whose elements decide about counts and branches; None if the kernel writes one of them."""
    values = deciding(called.kernel)
    read = {op.array for op in called.kernel.walk() if isinstance(op, ReadOp) and op.result in values}
    names = [name for name, argument in called.kernel.arguments.items() if argument in read]
    return None if any(name not in called.inputs or name in called.written for name in names) else names


def _draw(
    module: ModuleOp, called: Program, names: Sequence[str], ranks: int, dims: Mapping[str, int], seed: int
) -> Data:
    inputs = draw_inputs(module, ranks=ranks, dims=dims, seed=seed, only=(*names, *called.scalars), both_sides=True)
    arrays = {name: inputs[name] for name in names}
    scalars = {name: inputs[name] for name in called.scalars}
    return Data({**dims, "ranks": ranks}, arrays, scalars)


def _arrays(called: Program, data: Data) -> dict[str, Array]:
    made: dict[str, Array] = {}
    for name, content in data.arrays.items():
        kind = called.arrays[name]
        layout, shard = (kind.layout, kind.shard_dim) if isinstance(kind, PGLType) else (None, None)
        zigzag = isinstance(kind, PGLType) and kind.zigzag
        place = Placement(name, data.shape(kind), kind.element_type, layout, shard, data.ranks, False, False, zigzag)
        made[name] = Array(place, content, summed=False, frozen=True)
    return made


def _machine(called: Program, data: Data, grid: tuple[int, int]) -> Machine:
    machine = make_machine(called, data, MemoryState({}, None), None)
    machine.ctas, machine.comm_ctas = grid
    return machine


def _run(
    called: Program, data: Sequence[Data], grid: tuple[int, int]
) -> tuple[list[Diagnostic], tuple[int, int, int], Progress]:
    """What several launches in a row find; their warp roles, events and CTAs with tasks; how they went."""
    progress, warp_roles, events, spread = Progress(data[0].ranks), 0, 0, 1
    for launch, one in enumerate(data, start=1):
        skeleton = skeleton_of(called.kernel, _machine(called, one, grid), _arrays(called, one), one.scalars)
        running = skeleton.warp_roles(launch)
        warp_roles += len(running)
        events += sum(len(each.events) for warp_role in running for each in warp_role.everyone())
        spread = max(spread, _spread(running, grid[0]))
        found: list[Diagnostic] = list(tasks_once(running)) if called.per_cta else []
        stuck = progress.launch(running)
        found += blocked(stuck, progress, launch) if stuck else covered(progress, launch, running)
        if found:
            return found, (warp_roles, events, spread), progress
    return [], (warp_roles, events, spread), progress


def _spread(running: Iterable[WarpRole], computing: int) -> int:
    """How many CTAs have tasks, of those that compute or of those that only communicate."""
    busy = {warp_role.cta for warp_role in running if warp_role.visits and warp_role.cta is not None}
    apart = sum(cta >= computing for cta in busy)
    return max(apart, len(busy) - apart)


def _one_for_each_place(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The first finding of each kind at each place: others are the same mistake for another rank or counter."""
    first: dict[Any, Diagnostic] = {}
    for finding in found:
        first.setdefault((finding.code, finding.span), finding)
    return sorted(first.values(), key=lambda finding: finding.span.start)
