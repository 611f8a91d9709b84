"""The autoschedule: the schedule that `pkc.cost` estimates to be the fastest for the sizes of a launch."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace

from xdsl.dialects import scf
from xdsl.ir import Operation

from pkc.cost.estimate import Estimate, estimate
from pkc.cost.records import UnknownWorkError
from pkc.cost.work import count_work
from pkc.diagnostics import PkcError
from pkc.dialect import blocks
from pkc.dialect.access import GatherOp, LoadOp, ReadOp
from pkc.dialect.coordinates import VisitedOp
from pkc.dialect.program import CONSUMERS, STAGES, KernelOp
from pkc.dialect.tile import MmaOp, tile_type
from pkc.dialect.types import PGLType
from pkc.driver import tuned
from pkc.driver.better import better, careful, has_stages
from pkc.driver.candidates import is_plain, why_none
from pkc.driver.chosen import Autoschedule, Found
from pkc.driver.compiler import Number, compile_program
from pkc.driver.divisors import divisors_of
from pkc.driver.planned_candidates import (
    Candidate,
    Items,
    Options,
    by_copy_engines,
    candidates,
    in_one_shot,
    pointwise,
    sent_in_packets,
    straddling,
    streaming,
    with_separate_sms,
    written_as,
)
from pkc.frontend import tree
from pkc.frontend.schedule import TILE
from pkc.location import describe
from pkc.passes.analysis.dependence import sources
from pkc.passes.roles.pipeline_mma import PipelineMma
from pkc.passes.roles.plan_packets import PACKETS
from pkc.passes.roles.plan_warps import comm_sms
from pkc.passes.roles.remote_accesses import ALL_REDUCE, planned, remote_reads
from pkc.passes.roles.stage_rows import whole_rows
from pkc.remarks import Remark
from pkc.targets import DEFAULT
from pkc.targets.arch import QUEUES, hardware_queues
from pkc.targets.target import Target, lookup


def autoschedule(
    program: tree.Program,
    *,
    dims: Mapping[str, int],
    ranks: int,
    kernel: str | None = None,
    constants: Mapping[str, Number] | None = None,
    schedule: Mapping[str, str] | None = None,
    target: str = DEFAULT,
    measured: bool = True,
) -> Autoschedule:
    """The schedule for these sizes on `ranks` ranks of a target: tiles, `straddle`, `separate_loader`, `comm_sms`,
    copy engines.

    Nothing is chosen if the schedule, of the program or `schedule`, sets tiles; other keys that it sets stay as they
    are. The result is the same on every rank, and for every call with the same arguments. What was measured for these
    sizes (`tuned.py`) is taken as it is, and rates that were measured count, unless `measured` is False. Raises
    `PkcError` if the program is wrong.
    """
    given = tuple(sorted((constants or {}).items())), tuple(sorted((schedule or {}).items()))
    name = kernel or program.kernels[0].name
    span = next(node.span for node in program.kernels if node.name == name)
    entry = tuned.key(program, name, target, ranks, dims, constants or {}, schedule or {})
    kept = tuned.look_up(entry) if measured else None
    if kept is not None:
        took = f"measured: {kept.nanoseconds / 1000:.3g} us, and {kept.estimated / 1000:.3g} us as estimates choose"
        return Autoschedule(kept.schedule, reason=took, place=describe(span.location()))
    # Copies must not wait behind the kernel in one hardware queue.
    engines = hardware_queues() >= QUEUES
    found = _autoschedule(
        program, name, *given, _calibrated(target, measured), tuple(sorted(dims.items())), ranks, engines=engines
    )
    # Programs that differ only in source locations are equal, and share a result.
    remarks = tuple(Remark(STEP, KernelOp.name, reason, span) for reason in found.untried)
    return replace(found, place=describe(span.location()), remarks=remarks)


def _calibrated(name: str, measured: bool) -> Target:
    """A target with the rates that were measured on this machine, if they count."""
    target = lookup(name)
    known = {field.name for field in fields(target.rates)}
    rates = {rate: value for rate, value in tuned.rates_of(name).items() if rate in known} if measured else {}
    return replace(target, rates=replace(target.rates, **rates)) if rates else target


@functools.lru_cache(maxsize=1024)
def _autoschedule(
    program: tree.Program,
    kernel: str,
    constants: Items,
    schedule: Options,
    target: Target,
    dims: tuple[tuple[str, int], ...],
    ranks: int,
    *,
    engines: bool,
) -> Autoschedule:
    base, *others = candidates(program, kernel, constants, schedule, target)
    sizes = dict(dims)
    if not any(isinstance(argument.type, PGLType) for argument in base.kernel.body.block.args):
        ranks = 1  # each works by itself
    try:
        instead = _estimate(base, sizes, ranks, target)
    except UnknownWorkError as error:
        return Autoschedule(reason=f"not estimated: {error}", untried=(f"no schedule was chosen: {error}",))
    if sets_tiles(base.kernel):
        return Autoschedule(reason="the schedule sets tiles")
    if ranks == 1 and _OVERLAP.isdisjoint(base.kernel.schedule) and _stages_rows(base.kernel):
        # Nothing comes from elsewhere: roles that fetch it would take a warp from those that copy rows.
        more = {"overlap": "intra_sm"}
        fetched = (*schedule, *more.items())
        found = _autoschedule(program, kernel, constants, fetched, target, dims, ranks, engines=engines)
        return replace(found, schedule={**found.schedule, **more}, instead=instead)

    plain = is_plain(base.kernel)
    divisors = tuple(sorted(divisors_of([base.kernel], sizes, ranks).items()))
    tried: list[Found] = []
    compiled: list[Mapping[str, str]] = []

    def compiles(found: Estimate, settings: Mapping[str, str]) -> bool:
        pipelined = found.chained and found.stages > 1
        more = tuple(settings.items())
        if not plain and len(compiled) >= _MOST_COMPILED:
            return False
        compiled.append(settings)
        of = program, kernel, constants, schedule, target, divisors
        # Other than matmuls, not all tiles that fit have instructions.
        known = plain or not any(key.startswith(TILE) for key in settings)
        level = "roles" if known or not _compiles(*of, (), "machine") else "machine"
        return _compiles(*of, more, level, pipelined=pipelined)

    def estimated(several: Iterable[Candidate]) -> list[Found]:
        found = [(_estimate(one, sizes, ranks, target), one.settings) for one in several]
        tried.extend(found)
        return found

    def result(taken: Found) -> Autoschedule:
        usual = target.rates.error_of_mmas
        others = tuple(tried)
        return Autoschedule(taken[1], taken[0], instead, untried=tuple(untried), others=others, usual=usual)

    fixed = base.kernel.schedule
    written = written_as(program, kernel, constants, schedule)
    untried = [] if others else [f"no other tiles were tried: {why_none(written)}"]
    tuning = target.tuning
    # Of one rank it was measured that estimates of tiles are alike: what is assumed, and a launch, is the same for all.
    doubt, launch = (instead.doubt, instead.launch) if ranks == 1 else (instead.error, 0.0)
    gain = careful(tuning.gain_of_chains if instead.chained else tuning.gain, doubt, target)
    if others and instead.chained and any(map(_has_uneven_blocks, base.kernel.walk())):
        # Those that are measured to be slower are estimated to be faster.
        untried.append(
            "no other tiles are taken if these have two stages: of blocks that tasks skip,"
            " or whose number they read, at most an average is known"
        )
        gain = 0.0
    if not has_stages(instead) and (instead.chained or not (others and compiles(instead, {}))):
        gain = math.inf
    if others and instead.streamed:
        several = estimated(streaming(program, kernel, constants, schedule, target))
        enough = [found for found in several if found[0].stages > (0 if STAGES in fixed else _FEW)]
        return result(better((instead, base.settings), enough, compiles, 1.0, 1.0, launch))
    fewer = pointwise(others, target) if ranks == 1 else others
    if len(fewer) < len(others):
        return result(better((instead, base.settings), estimated(fewer), compiles, _AS_SLOW, 1.0, launch))
    taken = better((instead, base.settings), estimated(others), compiles, gain, tuning.equal, launch)
    if ranks == 1 and CONSUMERS not in fixed:
        taken = _by_one_warpgroup(taken, _kernel_of(taken[1], (base, *others)), target, compiles)
    if _has_short_shards(base.kernel, sizes, ranks, target) and "straddle" not in fixed:
        found, refused = straddling(program, kernel, constants, schedule, target)
        taken = better(taken, estimated(found), compiles, tuning.gain, tuning.equal)
        untried += [f"`straddle=true` was not tried: {reason}" for reason in refused]
    if ranks > 1 and ALL_REDUCE not in fixed:
        found = estimated(in_one_shot(program, kernel, constants, schedule, target))
        taken = better(taken, found, compiles, tuning.gain, tuning.equal)
    if ranks > 1 and PACKETS not in fixed and taken[0].total <= tuning.packets_to:
        found = sent_in_packets(program, kernel, constants, schedule, target)
        found = estimated(one for one in found if one.settings.keys().isdisjoint(fixed))
        taken = better(taken, found, compiles, tuning.gain, tuning.equal)
    if ranks == 1 or not _OVERLAP.isdisjoint(fixed):
        return result(taken)
    if taken[0].chained and _reads_ahead(base.kernel):
        # Stages of copies beside the tasks would take the room that keeps MMAs which need one another in flight.
        found = with_separate_sms(program, kernel, constants, schedule, taken[1], target)
        gain = tuning.gain_of_separate if has_stages(taken[0]) else math.inf
        taken = better(taken, estimated(found), compiles, gain, tuning.equal)
        return result(taken)
    if not _fetches(base.kernel):
        return result(taken)
    if taken[0].rounds == 1 and "separate_loader" not in fixed:
        # With one task for each SM, a single loader would load nothing until the first tiles are fetched.
        settings = {**taken[1], "separate_loader": "true"}
        taken = (taken[0], settings) if compiles(taken[0], settings) else taken
    elif taken[0].total >= tuning.engines_from and "straddle" not in (*fixed, *taken[1]):
        found, refused = by_copy_engines(program, kernel, constants, schedule, taken[1])
        if not engines:
            found, refused = [], [f"they would wait behind the kernel on fewer than {QUEUES} hardware queues"]
        taken = better(taken, estimated(found), compiles, tuning.gain_of_copies, tuning.equal)
        untried += [f"copy engines were not tried: {reason}" for reason in refused]
    return result(taken)


def sets_tiles(kernel: KernelOp) -> bool:
    """Whether the schedule sets tiles, so that nothing is chosen."""
    return any(key.startswith(TILE) for key in kernel.schedule)


_FEW = 2
"""So many stages are too few for streams: with one in use and one that MMAs in flight keep, none is loaded."""

_AS_SLOW = 1.05
"""Tiles that are measured to be the best ones are taken if their estimate is hardly worse than the program's."""

_MOST_COMPILED = 8
"""So many choices that may not compile are tried: each takes some tenths of a second."""

STEP = "autoschedule"
"""The step that remarks name."""

_OVERLAP = {"overlap", "comm_sms", "transfer"}
"""Keys of the schedule that say who fetches: then neither copy engines nor a separate loader is chosen."""


def _has_uneven_blocks(op: Operation) -> bool:
    """Whether tasks skip blocks, or a loop goes through as many as an array says."""
    if isinstance(op, scf.ForOp):
        return any(isinstance(value.owner, ReadOp) for value in sources((op.lb, op.ub)))
    return isinstance(op, VisitedOp)


def _kernel_of(settings: Mapping[str, str], several: Iterable[Candidate]) -> KernelOp:
    """The kernel of the candidate with some settings."""
    return next(one.kernel for one in several if one.settings == settings)


def _by_one_warpgroup(
    taken: Found, kernel: KernelOp, target: Target, compiles: Callable[[Estimate, Mapping[str, str]], bool]
) -> Found:
    """One warpgroup for all rows of a tile of which two would have half each, where an SM has one task and its one
    accumulator fits: it reads each right operand once. Measured at 6 shapes: 0.93 to 0.98 of the time."""
    shapes = [tile_type(op.result).shape for op in kernel.walk() if isinstance(op, MmaOp)]
    if taken[0].rounds != 1 or taken[0].chained or len(shapes) != 1:
        return taken
    (rows, columns), mma = shapes[0], target.mma
    if rows != 2 * mma.rows or 2 * columns > mma.columns:
        return taken
    settings = {**taken[1], CONSUMERS: "1"}
    return (taken[0], settings) if compiles(taken[0], settings) else taken


def _estimate(of: Candidate, dims: Mapping[str, int], ranks: int, target: Target) -> Estimate:
    sms = target.arch.sms - comm_sms(of.kernel)
    return estimate(count_work(of.kernel, dims, ranks, target), ranks, target, sms=sms)


@functools.lru_cache(maxsize=256)
def _compiles(
    program: tree.Program,
    kernel: str,
    constants: Items,
    schedule: Options,
    target: Target,
    divisors: tuple[tuple[str, int], ...],
    more: Options,
    level: str,
    *,
    pipelined: bool = False,
) -> bool:
    """Whether a kernel with `more` in its schedule compiles to a level of IR, within the budgets of a CTA, if need be
    with MMAs that are `pipelined`."""
    try:
        compiled = compile_program(
            program,
            kernel=kernel,
            constants=dict(constants),
            schedule={**dict(schedule), **dict(more)},
            level=level,
            target=target.name,
            smaller=False,
            divisors=dict(divisors),
        )
    except PkcError:
        return False
    return not pipelined or all(remark.step != PipelineMma.name for remark in compiled.remarks)


def _has_short_shards(kernel: KernelOp, dims: Mapping[str, int], ranks: int, target: Target) -> bool:
    """Whether shards are shorter than the longest blocks, which then could straddle."""
    kinds = (argument.type for argument in kernel.body.block.args)
    split = [
        kind.dimensions[kind.shard_dim] for kind in kinds if isinstance(kind, PGLType) and kind.shard_dim is not None
    ]
    lengths = (blocks.shard_length(dims[dim] if isinstance(dim, str) else dim, ranks) for dim in split)
    return ranks > 1 and any(length < max(target.tiles.rows) for length in lengths)


def _reads_ahead(kernel: KernelOp) -> bool:
    """Whether an operand is fetched before its use."""
    return any(isinstance(op, LoadOp) and planned(op) == "inter_sm" for op in kernel.walk())


def _stages_rows(kernel: KernelOp) -> bool:
    """Whether rows that tables name are fetched before they are used."""
    return any(isinstance(op, GatherOp) and planned(op) != "intra_sm" for op in remote_reads(kernel))


def _fetches(kernel: KernelOp) -> bool:
    """Whether all remote accesses are loads of operands that are fetched before their use."""
    remote = [op for op in kernel.walk() if planned(op)]
    staged = (isinstance(op, LoadOp) or (isinstance(op, GatherOp) and not whole_rows(op)) for op in remote)
    return bool(remote) and all(staged) and all(planned(op) == "inter_sm" for op in remote)
