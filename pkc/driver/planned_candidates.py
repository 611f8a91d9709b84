"""The schedules that the autoschedule chooses among, and kernels planned with each as far as estimates ask for it."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from pkc.cost.operations import converted
from pkc.diagnostics import PkcError
from pkc.dialect.access import AccumulateOp, LoadOp, StoreOp
from pkc.dialect.elementwise import SelectOp
from pkc.dialect.program import CONSUMERS, KernelOp
from pkc.dialect.reductions import RowReduction
from pkc.dialect.scans import CumSumOp
from pkc.dialect.tile import MmaOp, TransposeOp, tile_type
from pkc.dialect.types import dtype_bytes
from pkc.dialect.windows import WindowOp
from pkc.driver.candidates import is_scaled, other_tiles, summed_over
from pkc.driver.compiler import Number
from pkc.frontend import tree
from pkc.frontend.elaborate import build_module
from pkc.frontend.schedule import SPLIT, TILE, from_options, schedule_attr
from pkc.passes.analysis.dependence import ancestors
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.plan_layouts import PlanLayouts
from pkc.passes.roles.plan_overlap import PlanOverlap
from pkc.passes.roles.plan_packets import PACKETS, PlanPackets
from pkc.passes.roles.remote_accesses import ALL_REDUCE, chooses_one_shot, in_packets
from pkc.passes.roles.straddle_shards import StraddleShards
from pkc.passes.roles.swap_operands import SwapOperands
from pkc.passes.run import run_pipeline
from pkc.passes.tile.coarsen_tasks import CoarsenTasks
from pkc.passes.tile.guard_tasks import GuardTasks
from pkc.passes.tile.join_tasks import JoinTasks
from pkc.passes.tile.lift_sums import LiftSums
from pkc.passes.tile.load_quotients import LoadQuotients
from pkc.passes.tile.load_windows import LoadWindows
from pkc.passes.tile.order_scatters import OrderScatters
from pkc.passes.tile.shift_blocks import ShiftBlocks
from pkc.passes.tile.simplify_arithmetic import SimplifyArithmetic
from pkc.passes.tile.skip_blocks import SkipBlocks
from pkc.passes.tile.split_blocks import SplitBlocks
from pkc.passes.tile.split_loops import SplitLoops
from pkc.passes.tile.start_at_zero import StartAtZero
from pkc.passes.tile.unroll_phases import UnrollPhases
from pkc.passes.tile.unroll_taps import UnrollTaps
from pkc.passes.tile.wrap_statements import WrapStatements
from pkc.targets.target import Target

Items = tuple[tuple[str, Number], ...]
Options = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Candidate:
    """A kernel as it is planned with `settings` in its schedule beside what the program and the caller set."""

    settings: Mapping[str, str]
    kernel: KernelOp


_Refusable = tuple[list[Candidate], list[str]]


@functools.lru_cache(maxsize=32)
def candidates(
    program: tree.Program, kernel: str, constants: Items, schedule: Options, target: Target
) -> list[Candidate]:
    """The kernel as the program has it, then with each combination of tiles that it could have; of those with splits,
    the ones whose sums have a place."""
    base = Candidate({}, planned_with(program, kernel, constants, dict(schedule)))
    fixed = any(key.startswith(TILE) for key in base.kernel.schedule)
    tiles = [] if fixed else other_tiles(written_as(program, kernel, constants, schedule), target)
    found = [base]
    for more in tiles:
        try:
            found.append(Candidate(more, planned_with(program, kernel, constants, {**dict(schedule), **more})))
        except PkcError:
            if not any(key.startswith(SPLIT) for key in base.kernel.schedule):
                raise
    return found


@functools.lru_cache(maxsize=32)
def straddling(program: tree.Program, kernel: str, constants: Items, schedule: Options, target: Target) -> _Refusable:
    """The candidates with `straddle=true`; none, and why, if it is refused."""
    more = {"straddle": "true"}
    try:
        found = candidates(program, kernel, constants, (*schedule, *more.items()), target)
    except PkcError as error:
        return [], _reasons(error)
    return [Candidate({**one.settings, **more}, one.kernel) for one in found], []


def by_copy_engines(
    program: tree.Program, kernel: str, constants: Items, schedule: Options, settings: Mapping[str, str]
) -> _Refusable:
    """The candidate with operands that copy engines fetch; none, and why, if it is refused."""
    more = {**settings, "overlap": "copy_engine"}
    try:
        return [Candidate(more, planned_with(program, kernel, constants, {**dict(schedule), **more}))], []
    except PkcError as error:
        return [], _reasons(error)


@functools.lru_cache(maxsize=32)
def in_one_shot(
    program: tree.Program, kernel: str, constants: Items, schedule: Options, target: Target
) -> list[Candidate]:
    """The candidates whose sums each rank adds up itself, if there are sums that all ranks get. Blocks of these follow
    no shards, so that all plans are made anew."""
    more = {ALL_REDUCE: "one_shot"}
    base, *_ = candidates(program, kernel, constants, schedule, target)
    one_shot = _replanned(base, more).kernel
    if not any(isinstance(op, AccumulateOp) and chooses_one_shot(one_shot, op) for op in one_shot.walk()):
        return []
    found = candidates(program, kernel, constants, (*schedule, *more.items()), target)
    return [Candidate({**one.settings, **more}, one.kernel) for one in found]


@functools.lru_cache(maxsize=32)
def streaming(
    program: tree.Program, kernel: str, constants: Items, schedule: Options, target: Target
) -> list[Candidate]:
    """What is tried for MMAs that stream operands of one rank: rows of whole lines, of 8-bit operands also of two, of
    halves where results take much room, and one warpgroup where it has room for the accumulators, which reads each
    right operand once."""
    base, *tiles = candidates(program, kernel, constants, schedule, target)
    found = [one for one in tiles if _has_whole_lines(one.kernel, target)]
    inner = summed_over(base.kernel)
    if inner is not None:
        key, known = f"{TILE}{inner}", [dict(one.settings) for one in found]
        more = [{**one.settings, key: str(size)} for one in (base, *found) for size in _other_steps(one, target)]
        wanted = [settings for settings in more if settings not in known]
        found += [
            Candidate(each, planned_with(program, kernel, constants, {**dict(schedule), **each})) for each in wanted
        ]
    if CONSUMERS in base.kernel.schedule:
        return found
    return [
        _replanned(one, {CONSUMERS: "1"}) if _fit_one_warpgroup(one.kernel, target) else one for one in (base, *found)
    ]


def _other_steps(one: Candidate, target: Target) -> Iterator[int]:
    """What else is tried to be summed over in an iteration of a candidate that streams: twice as much of 8 bits, and
    half as much where results leave few stages."""
    tiles, step = target.tiles, max(tile_type(op.a).shape[1] for op in _mmas(one.kernel))
    if min(_sizes_of_operands(one.kernel)) == 1:
        yield from (size for size in tiles.deep if one.settings and step == size // 2)
    elif step == 2 * tiles.shallow and _takes_half(one.kernel, target):
        yield tiles.shallow


def _takes_half(kernel: KernelOp, target: Target) -> bool:
    """Whether the results of a task take more than half of the memory of stages."""
    stored = (tile_type(op.tile) for op in kernel.walk() if isinstance(op, StoreOp) and not _is_in_loop(op))
    return 2 * sum(prod(tile.shape) * dtype_bytes(tile.element_type) for tile in stored) > target.stage_memory


def pointwise(several: Sequence[Candidate], target: Target) -> list[Candidate]:
    """Those whose tiles are measured to be the best ones of what only computes element by element; all if the tiles
    are not of two dimensions, something else is computed, or elements come with their neighbours, of which other tiles
    have fewer."""
    ops = [op for one in several for op in one.kernel.walk()]
    if any(isinstance(op, MmaOp | RowReduction | CumSumOp | AccumulateOp | TransposeOp | WindowOp) for op in ops):
        return list(several)
    found = [
        one
        for one in several
        if all(
            tile_type(op.tile).shape in target.tiles.pointwise for op in one.kernel.walk() if isinstance(op, StoreOp)
        )
    ]
    return found or list(several)


def of_one_warpgroup(one: Candidate) -> Candidate:
    """The same with one warpgroup."""
    return _replanned(one, {CONSUMERS: "1"})


def _mmas(kernel: KernelOp) -> list[MmaOp]:
    return [op for op in kernel.walk() if isinstance(op, MmaOp)]


def _sizes_of_operands(kernel: KernelOp) -> set[int]:
    return {dtype_bytes(tile_type(op.a).element_type) for op in _mmas(kernel)}


def _has_whole_lines(kernel: KernelOp, target: Target) -> bool:
    lefts = [tile_type(op.a) for op in _mmas(kernel)]
    return all(
        rows >= target.tiles.least_streamed and inner * dtype_bytes(left.element_type) >= target.arch.cache_line
        for left in lefts
        for rows, inner in (left.shape,)
    )


def _fit_one_warpgroup(kernel: KernelOp, target: Target) -> bool:
    """Whether a warpgroup has registers for all rows of the accumulators, and for the operands of their epilogue, and
    computes nothing beside which another one could multiply."""
    mmas = _mmas(kernel)
    results = [tile_type(op.result) for op in mmas]
    shapes = [result.shape for result in results]
    most = target.mma.rows * target.mma.columns
    fits = min(shapes)[0] > target.mma.rows and sum(map(prod, shapes)) <= most
    loads = {
        (op.array, *op.indices): tile_type(op.result)
        for op in kernel.walk()
        if isinstance(op, LoadOp) and not _is_in_loop(op)
    }
    kept = [*results, *(tile for tile in loads.values() if tile.shape in shapes)]
    size = sum(prod(tile.shape) * dtype_bytes(tile.element_type) for tile in kept)
    each = size / (target.arch.warpgroup * target.arch.warp * target.arch.register_bytes)
    room = target.arch.most_registers - target.registers.reserve
    return fits and each <= room and not any(is_scaled(op) or converted(op) for op in mmas)


def _is_in_loop(op: Operation) -> bool:
    return any(isinstance(around, scf.ForOp) for around in ancestors(op))


@functools.lru_cache(maxsize=32)
def sent_in_packets(
    program: tree.Program, kernel: str, constants: Items, schedule: Options, target: Target
) -> list[Candidate]:
    """The candidates that send in packets what they can, sums in one shot and in two."""
    base, *_ = tiles = candidates(program, kernel, constants, schedule, target)
    if not any(map(in_packets, _replanned(base, {PACKETS: "true"}).kernel.walk())):
        return []
    several = [*tiles, *in_one_shot(program, kernel, constants, schedule, target)]
    return [_replanned(one, {PACKETS: "true"}) for one in several]


def _replanned(candidate: Candidate, more: Mapping[str, str]) -> Candidate:
    """A candidate with more in its schedule, of which only packets are planned."""
    module = candidate.kernel.parent_op()
    assert isinstance(module, ModuleOp)
    (kernel,) = (op for op in module.clone().ops if isinstance(op, KernelOp))
    kernel.attributes["schedule"] = schedule_attr({**kernel.schedule, **from_options(more)})
    PlanPackets().run(kernel)
    return Candidate({**candidate.settings, **more}, kernel)


def with_separate_sms(
    program: tree.Program,
    kernel: str,
    constants: Items,
    schedule: Options,
    settings: Mapping[str, str],
    target: Target,
) -> list[Candidate]:
    """The candidates whose operands SMs fetch that do nothing else."""
    found: list[Candidate] = []
    for count in target.tuning.separate_sms:
        more = {**settings, "overlap": "inter_sm", "comm_sms": str(count)}
        found.append(Candidate(more, planned_with(program, kernel, constants, {**dict(schedule), **more})))
    return found


def _reasons(error: PkcError) -> list[str]:
    return list(dict.fromkeys(f"{found.fill(found.title)}; {found.fill(found.label)}" for found in error.diagnostics))


_PLANS = (
    ShiftBlocks(),
    UnrollPhases(),
    GuardTasks(),
    WrapStatements(),
    JoinTasks(),
    LiftSums(),
    SplitBlocks(),
    CoarsenTasks(),
    StartAtZero(),
    SplitLoops(),
    OrderScatters(),
    LoadQuotients(),
    UnrollTaps(),
    LoadWindows(),
    PlanOverlap(),
    StraddleShards(),
    PlanPackets(),
)
"""The passes of which estimates need the result."""


_OF_THREADS = (SimplifyArithmetic(), PlanLayouts())
"""The same where threads do all that is done."""


def planned_with(program: tree.Program, kernel: str, constants: Items, schedule: Mapping[str, str]) -> KernelOp:
    """The tile level of a kernel, with the plans of its remote accesses, without the blocks that tasks skip."""
    return _after(program, kernel, constants, schedule, (*_PLANS, SwapOperands(), SkipBlocks()))


@functools.lru_cache(maxsize=32)
def written_as(program: tree.Program, kernel: str, constants: Items, schedule: Options) -> KernelOp:
    """The same with the blocks that tasks skip, whose number depends on the tiles without the result doing so, and with
    operands as they are written."""
    return _after(program, kernel, constants, dict(schedule), _PLANS)


def _after(
    program: tree.Program,
    kernel: str,
    constants: Items,
    schedule: Mapping[str, str],
    passes: Sequence[KernelPass],
) -> KernelOp:
    module = build_module(program, kernel=kernel, constants=dict(constants), options=schedule)
    ops = list(module.walk())
    masked, multiplies = (any(isinstance(op, kind) for op in ops) for kind in (SelectOp, MmaOp))
    steps: list[ModulePass] = [step for step in passes if masked or not isinstance(step, SkipBlocks)]
    steps += () if multiplies else _OF_THREADS
    run_pipeline(module, steps, verify=False)
    (found,) = (op for op in module.ops if isinstance(op, KernelOp))
    return found
