"""From a file or a Python kernel to checked IR."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, i64
from xdsl.passes import ModulePass

from pkc.diagnostics import Diagnostic, PkcError, near
from pkc.dialect.prints import PrintOp
from pkc.dialect.program import DIVISORS, KernelOp
from pkc.driver import errors, fit
from pkc.driver.programs import load_program
from pkc.frontend import tree
from pkc.frontend.elaborate import build_module
from pkc.frontend.schedule import TILE, tiles_of
from pkc.location import NOWHERE, span_of
from pkc.passes import TILE_PIPELINE, machine_pipeline, roles_pipeline, with_limits, written_pipeline
from pkc.passes.machine.machine_errors import NotLowered
from pkc.passes.roles.order_arrivals import OrderArrivals, explain_arrivals
from pkc.passes.roles.order_tasks import OrderExplanation, OrderTasks, explain_order
from pkc.passes.roles.pipeline_mma import PipelineMma, PipelinePlan, explain_pipelines
from pkc.passes.roles.plan_fetch import FetchPlan, PlanFetch, explain_fetch
from pkc.passes.roles.plan_mma import MmaPlan, PlanMma, explain_mma
from pkc.passes.roles.plan_overlap import Explanation, PlanOverlap, explain
from pkc.passes.roles.plan_queue import PlanQueue, QueueExplanation, explain_queue
from pkc.passes.roles.plan_stages import PlanStages, StagePlan, explain_stages
from pkc.passes.roles.plan_transfers import PlanTransfers, TransferPlan, explain_transfers
from pkc.passes.roles.plan_warps import PlanWarps, WarpPlan, explain_warps
from pkc.passes.roles.stage_rows import StageRows, explain_rows
from pkc.passes.run import PassTime, run_pipeline
from pkc.passes.tile.check_program import check
from pkc.remarks import Remark, collecting
from pkc.targets import DEFAULT
from pkc.targets.target import lookup

Number = int | float | bool
Why: TypeAlias = (
    Explanation
    | FetchPlan
    | OrderExplanation
    | WarpPlan
    | QueueExplanation
    | StagePlan
    | TransferPlan
    | PipelinePlan
    | MmaPlan
)

EXPLAINED: dict[type[ModulePass], Callable[[ModuleOp], Sequence[Why]]] = {
    PlanOverlap: explain,
    StageRows: explain_rows,
    PlanFetch: explain_fetch,
    OrderArrivals: explain_arrivals,
    OrderTasks: explain_order,
    PlanWarps: explain_warps,
    PlanQueue: explain_queue,
    PlanStages: explain_stages,
    PlanTransfers: explain_transfers,
    PipelineMma: explain_pipelines,
    PlanMma: explain_mma,
}
"""How to explain the decisions of a planning pass, from the attributes that it has written."""


def is_of_ranks(why: Why) -> bool:
    """Whether a decision is of no interest on one rank: how accesses to others overlap, and which of them comes
    first."""
    if isinstance(why, OrderExplanation):
        return why.order in ("local_first", "local_last")
    return isinstance(why, Explanation | FetchPlan)


def passes_to(level: str, instruments: Iterable[str] = (), target: str = DEFAULT) -> tuple[ModulePass, ...]:
    """The passes that lead to a level of IR, at the machine level with `INSTRUMENTS` of `pkc/passes`; to the level
    `written`, which is the roles level with roles as their author wrote them."""
    if level == "tile":
        return TILE_PIPELINE
    if level == "written":
        return (*TILE_PIPELINE, *written_pipeline(target))
    roles = (*TILE_PIPELINE, *roles_pipeline(target))
    return roles if level == "roles" else (*with_limits(roles, instruments), *machine_pipeline(instruments))


@dataclass(frozen=True)
class Compiled:
    """A module, with warnings, explanations and remarks about it."""

    module: ModuleOp
    warnings: list[Diagnostic] = field(default_factory=list[Diagnostic])
    explanations: list[Why] = field(default_factory=list[Why])
    remarks: list[Remark] = field(default_factory=list[Remark])
    """Optimisations that passes left undone, and why, in the order of the passes."""
    times: list[PassTime] = field(default_factory=list[PassTime])
    schedule: Mapping[str, str] = field(default_factory=dict[str, str])
    """The keys that override those of the program: what was asked for, and what tiles that do not fit got instead."""

    @property
    def kernels(self) -> list[KernelOp]:
        return [op for op in self.module.ops if isinstance(op, KernelOp)]

    @property
    def kernel(self) -> KernelOp:
        """The first kernel, usually the only one."""
        return self.kernels[0]


def load(
    path: str | Path,
    *,
    kernel: str | None = None,
    constants: Mapping[str, Number] | None = None,
    schedule: Mapping[str, str] | None = None,
    level: str = "tile",
    dump: Path | None = None,
    instruments: Iterable[str] = (),
    target: str = DEFAULT,
) -> Compiled:
    """Compile one kernel of a file, or all of them, to a level of IR, the machine level with some of `INSTRUMENTS` of
    `pkc/passes`. The tile level has no target. Raises `PkcError`."""
    return compile_program(
        load_program(path),
        kernel=kernel,
        constants=constants,
        schedule=schedule,
        level=level,
        dump=dump,
        instruments=instruments,
        target=target,
    )


def constants_of(kernel: tree.Kernel) -> list[str]:
    """The names of the parameters that are given at compile time."""
    return [param.name for param in kernel.params if param.annotation.base == "const"]


def refuse_unknown(kernel: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Raise `PkcError` at the first name that a kernel does not take."""
    for name in given:
        if name not in known:
            raise PkcError(errors.UnknownName(NOWHERE, kernel, name, near(name, known, "it takes ")))


def default_constants(kernel: tree.Kernel) -> dict[str, Number]:
    """The defaults of constants that are plain numbers."""
    defaults = {param.name: param.default for param in kernel.params if param.annotation.base == "const"}
    return {name: node.value for name, node in defaults.items() if isinstance(node, tree.Number)}


def compile_program(
    program: tree.Program,
    *,
    kernel: str | None = None,
    constants: Mapping[str, Number] | None = None,
    schedule: Mapping[str, str] | None = None,
    level: str = "tile",
    dump: Path | None = None,
    instruments: Iterable[str] = (),
    target: str = DEFAULT,
    smaller: bool = True,
    divisors: Mapping[str, int] | None = None,
) -> Compiled:
    """As `load`, from a tree. A kernel whose tiles do not fit into a CTA gets `smaller` ones, with a remark, unless its
    schedule sets tiles, stages, warpgroups or a separate loader. `divisors` says of run-time dimensions what the
    lengths of their rows are multiples of, if TMA needs more."""
    compiled = partial(_compiled, program, kernel, constants, level, dump, tuple(instruments), target, divisors)
    given = dict(schedule or {})
    try:
        return compiled(given)
    except PkcError as error:
        if not smaller or not fit.has_other_sizes(error):
            raise
        tile = build_module(program, kernel=kernel, constants=constants, options=schedule)
        run_pipeline(tile, TILE_PIPELINE, verify_each=False)
        kernels = [op for op in tile.ops if isinstance(op, KernelOp)]
        if len(kernels) > 1:
            raise
        tried = (_attempt(compiled, given, kernels[0], tiles) for tiles in _replaced(kernels[0], error))
        found = _with_room(one for one in tried if one is not None)
        if found is not None:
            found[0].remarks.insert(0, _instead(kernels[0], found[1], error))
            return found[0]
        for settings in fit.proposed(kernels[0], error):
            found = _attempt(compiled, given, kernels[0], settings)
            if found is not None:
                helped = (replace(one, tried=tuple(found[1].items())) for one in error.diagnostics)
                raise PkcError(*helped) from None
        raise


def _with_room(tried: Iterable[tuple[Compiled, Mapping[str, str]]]) -> tuple[Compiled, Mapping[str, str]] | None:
    """The first of several, or, of clusters and pieces of rows, the first of which one is loaded while another is in
    use."""
    first = None
    for found, tiles in tried:
        first = first or (found, tiles)
        if fit.ROW not in tiles and fit.CLUSTER not in tiles:
            break
        plans = [plan for plan in found.explanations if isinstance(plan, StagePlan)]
        if not any(plan.is_alone or (fit.CLUSTER in tiles and plan.delays_loads) for plan in plans):
            return found, tiles
    return first


def say_divisors(module: ModuleOp, divisors: Mapping[str, int]) -> None:
    """Write on the kernels of a module what the lengths of rows are multiples of."""
    found = DictionaryAttr({dim: IntegerAttr(divisor, i64) for dim, divisor in sorted(divisors.items())})
    for op in module.ops:
        op.attributes[DIVISORS] = found


def _replaced(kernel: KernelOp, error: PkcError) -> Iterator[Mapping[str, str]]:
    """What a kernel gets instead of its tiles, unless its schedule sets some, or what else takes room."""
    if not tiles_of(kernel.schedule) and fit.TAKES_ROOM.isdisjoint(kernel.schedule):
        yield from fit.smaller(kernel) if fit.is_too_large(error) else fit.suited(kernel, error)


def _attempt(
    compiled: Callable[[Mapping[str, str]], Compiled],
    given: Mapping[str, str],
    kernel: KernelOp,
    settings: Mapping[str, str],
) -> tuple[Compiled, Mapping[str, str]] | None:
    """A kernel compiled with more settings, or with these and the tiles that they then ask for; and which these are."""
    try:
        return compiled({**given, **settings}), settings
    except PkcError as error:
        more = {**settings, **(next(fit.suited(kernel, error), None) or {})}
    with contextlib.suppress(PkcError):
        return (compiled({**given, **more}), more) if more != settings else None
    return None


def _instead(kernel: KernelOp, tiles: Mapping[str, str], error: PkcError) -> Remark:
    why = error.diagnostics[0]
    chosen = ", ".join(f"{key}={size}" for key, size in tiles.items())
    instead = f"its blocks do not have the sizes that the program says, but {chosen}: with those"
    if set(tiles) == {fit.CLUSTER}:
        instead = f"each of its rows lies in several CTAs, {chosen}, which have room for it: in one"
    reason = f"{instead}, {why.fill(why.title)}"
    return Remark(fit.STEP, kernel.name, reason, span_of(kernel.location))


def _compiled(
    program: tree.Program,
    kernel: str | None,
    constants: Mapping[str, Number] | None,
    level: str,
    dump: Path | None,
    instruments: Iterable[str],
    target: str,
    divisors: Mapping[str, int] | None,
    schedule: Mapping[str, str] | None,
) -> Compiled:
    lookup(target)
    module = build_module(program, kernel=kernel, constants=constants, options=schedule)
    if level == "machine":
        _refuse_simulated(module)
    if divisors:
        say_divisors(module, divisors)
    warnings = [finding for finding in check(module) if finding.severity == "warning"]
    explanations: list[Why] = []

    def watch(done: ModulePass, current: ModuleOp) -> None:
        explain = EXPLAINED.get(type(done))
        explanations.extend(explain(current) if explain is not None else ())

    # Verifying after each pass takes longer than the passes: only with `dump`, and in tests.
    each = dump is not None
    tiles = _scheduled_tiles(module)
    try:
        with collecting() as remarks:
            times = run_pipeline(
                module, passes_to(level, instruments, target), dump=dump, after=watch, verify_each=each
            )
    except PkcError as error:
        if not tiles:
            raise
        # What no other tiles mend has another cause, and the tiles may be the autoschedule's.
        mended = (not isinstance(found, NotLowered) or found.sizes for found in error.diagnostics)
        pairs = zip(error.diagnostics, mended, strict=True)
        raise PkcError(*(replace(found, context=tiles) if other else found for found, other in pairs)) from None
    return Compiled(module, warnings, explanations, remarks, times, dict(schedule or {}))


def _refuse_simulated(module: ModuleOp) -> None:
    """Refuse what only the simulator carries out."""
    found = [errors.PrintOnGpus(span_of(op.location)) for op in module.walk() if isinstance(op, PrintOp)]
    if found:
        raise PkcError(*found)


def _scheduled_tiles(module: ModuleOp) -> str:
    """A help for errors of passes: the tiles that the schedule sets, which the program's text may not show."""
    schedules = (op.schedule for op in module.ops if isinstance(op, KernelOp))
    tiles = {dim: size for entries in schedules for dim, size in tiles_of(entries).items()}
    return (
        f"the schedule sets tiles: {', '.join(f'`{TILE}{dim}={size}`' for dim, size in tiles.items())}" if tiles else ""
    )
