"""What the autoschedule tries, one thing after the other: tiles first, then what else a schedule may say."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from xdsl.dialects import scf
from xdsl.ir import Operation

from pkc.cost.estimate import Estimate, estimate
from pkc.cost.work import count_work
from pkc.diagnostics import PkcError
from pkc.dialect import blocks
from pkc.dialect.access import AccumulateOp, LoadOp, ReadOp
from pkc.dialect.arrays import array_type, is_pgl
from pkc.dialect.by_table import GatherOp
from pkc.dialect.coordinates import FirstVisitedOp, VisitedOp
from pkc.dialect.program import CONSUMERS, KernelOp
from pkc.dialect.tile import MmaOp, tile_type
from pkc.dialect.types import Layout, PGLType
from pkc.driver.better import best_flow, better, careful, has_stages
from pkc.driver.candidates import is_plain, why_none
from pkc.driver.chosen import Autoschedule, Found
from pkc.driver.compiler import compile_program
from pkc.driver.divisors import divisors_of
from pkc.driver.planned_candidates import (
    Candidate,
    Items,
    Options,
    by_copy_engines,
    in_one_shot,
    of_one_warpgroup,
    planned_with,
    pointwise,
    sent_in_packets,
    straddling,
    streaming,
    with_separate_sms,
    written_as,
)
from pkc.frontend import tree
from pkc.frontend.schedule import TILE
from pkc.passes.analysis.dependence import sources
from pkc.passes.roles.fetches import comes_by_lists
from pkc.passes.roles.pipeline_mma import PipelineMma
from pkc.passes.roles.plan_packets import PACKETS
from pkc.passes.roles.plan_warps import comm_sms
from pkc.passes.roles.remote_accesses import ALL_REDUCE, divided_along, planned
from pkc.passes.roles.stage_rows import whole_rows
from pkc.targets.arch import QUEUES
from pkc.targets.target import Target

OVERLAP = {"overlap", "comm_sms", "transfer"}
"""Keys of the schedule that say who fetches: then neither copy engines nor a separate loader is chosen."""

_NO_ROOM = "the program's tiles leave no room for stages"
_LISTED = "tiles that are measured to be the best where each element is computed by itself"
_EQUAL_STREAMS = "as good as equal, with SMs that are busy for less time or smaller stages"
"""Why something is taken that is estimated to be slower."""

_MOST_COMPILED = 8
"""So many choices that may not compile are tried: each takes some tenths of a second."""


@dataclass(frozen=True)
class Asked:
    """A kernel, as the program and the caller set it, and the sizes and ranks of a launch; whether copy `engines` would
    not wait behind the kernel in one hardware queue."""

    program: tree.Program
    kernel: str
    constants: Items
    schedule: Options
    target: Target
    dims: tuple[tuple[str, int], ...]
    ranks: int
    engines: bool

    @property
    def of(self) -> tuple[tree.Program, str, Items, Options]:
        """What its candidates are of, for any sizes."""
        return self.program, self.kernel, self.constants, self.schedule


def estimated(of: Candidate, asked: Asked) -> Estimate:
    """The time of a candidate. Raises `UnknownWorkError`."""
    sms = asked.target.arch.sms - comm_sms(of.kernel)
    laid = asked.target.of(of.kernel)
    work = count_work(of.kernel, dict(asked.dims), asked.ranks, laid)
    return estimate(work, asked.ranks, asked.target, sms=sms)


def compiles(asked: Asked, settings: Mapping[str, str]) -> bool:
    """Whether a kernel compiles to the machine level with more in its schedule."""
    kernel = planned_with(asked.program, asked.kernel, asked.constants, dict(asked.schedule))
    divisors = tuple(sorted(divisors_of([kernel], dict(asked.dims), asked.ranks).items()))
    return _compiles(*asked.of, asked.target, divisors, tuple(settings.items()), "machine")


class Search:
    """The search among the schedules of a kernel, of which `base` is the program's, estimated as `instead`, and
    `others` have other tiles."""

    def __init__(self, asked: Asked, base: Candidate, others: list[Candidate], instead: Estimate) -> None:
        self._asked, self._base, self._others, self._instead = asked, base, others, instead
        self._target, self._tuning, self._ranks = asked.target, asked.target.tuning, asked.ranks
        self._fixed = base.kernel.schedule
        self._plain = is_plain(base.kernel)
        self._divisors = tuple(sorted(divisors_of([base.kernel], dict(asked.dims), asked.ranks).items()))
        self._tried: list[Found] = []
        self._refused: list[Mapping[str, str]] = []
        """What does not compile, or was not tried to."""
        self._compiled = 0
        # Of one rank it was measured that estimates of tiles are alike: what is assumed, and a launch, is the same for
        # all.
        self._launch = instead.launch if asked.ranks == 1 else 0.0
        self._why, self._why_not = "", "too small a gain"
        self._untried = [] if others else [f"no other tiles were tried: {why_none(written_as(*asked.of))}"]

    def found(self) -> Autoschedule:
        """What is chosen."""
        taken, settings = self._search()
        return Autoschedule(
            settings,
            taken,
            self._instead,
            untried=tuple(self._untried),
            others=tuple(found for found in self._tried if found[1] not in self._refused),
            usual=self._target.rates.error_of_mmas,
            why=self._why,
            why_not=self._why_not,
        )

    def _because(self, why: str, now: Found, taken: Found) -> Found:
        """What is taken, and why, if it is estimated to be slower."""
        if taken[0].total > now[0].total:
            self._why = why
        return taken

    def _search(self) -> Found:
        if self._others and self._instead.streamed:
            return self._best_stream()
        if self._others and self._instead.flows:
            return self._best_flow()
        fewer = pointwise(self._others, self._target) if self._ranks == 1 else self._others
        if len(fewer) < len(self._others):
            return self._best_pointwise(fewer)
        taken = self._with_one_warpgroup(self._with_tiles())
        if self._ranks == 1:
            return taken
        # A rank that adds up everything itself awaits nobody twice: of as good as equal estimates this is the better.
        taken = self._with_packets(self._with_straddling(self._in_one_shot(taken)))
        return taken if not OVERLAP.isdisjoint(self._fixed) else self._with_fetches(taken)

    # Tiles

    def _best_stream(self) -> Found:
        several = [found for found in self._estimated(streaming(*self._asked.of, self._target)) if found[0].stages]
        taken = self._better(self._now, several, 1.0, self._launch)
        return self._because(_EQUAL_STREAMS if self._instead.stages else _NO_ROOM, self._now, taken)

    def _best_flow(self) -> Found:
        """The fastest tiles, with as many warpgroups as are planned for them, or with one, whose launch is shorter."""
        fewer = pointwise(self._others, self._target)
        listed, several = len(fewer) < len(self._others), self._estimated(fewer)
        if CONSUMERS not in self._fixed:
            planned = [*zip(fewer, several, strict=True), *([] if listed else [(self._base, self._now)])]
            several += self._estimated([of_one_warpgroup(one) for one, (found, _) in planned if found.warpgroups > 1])
        gain = self._tuning.gain_of_pointwise if listed else 0.0
        taken = best_flow(self._now, several, self._compiles, self._tuning, gain, launch=self._launch)
        equal = f"as good as equal, and with {taken[0].stages} stages in place of {self._instead.stages}"
        return self._because(_NO_ROOM if not self._instead.stages else _LISTED if listed else equal, self._now, taken)

    def _best_pointwise(self, fewer: Iterable[Candidate]) -> Found:
        tuning = replace(self._tuning, equal=1.0)
        found = self._estimated(fewer)
        taken = better(self._now, found, self._compiles, tuning, tuning.gain_of_pointwise, launch=self._launch)
        return self._because(_LISTED, self._now, taken)

    def _with_tiles(self) -> Found:
        taken = self._better(self._now, self._estimated(self._others), self._gain(), self._launch)
        return self._because(_NO_ROOM, self._now, taken)

    def _gain(self) -> float:
        """The share of the time of the program's tiles that others may need."""
        instead, tuning, ops = self._instead, self._tuning, self._base.kernel.walk()
        uneven = bool(self._others) and instead.chained and any(map(_has_uneven_blocks, ops))
        if uneven:
            self._untried.append(
                "no other tiles are taken if these have two stages: of blocks that tasks skip,"
                " or whose number they read, at most an average is known"
            )
        if not self._has_room():
            return math.inf
        if uneven:
            self._why_not = "measured to be slower"
            return 0.0
        doubt = instead.doubt if self._ranks == 1 else instead.error
        if doubt > self._target.rates.error_of_mmas:
            self._why_not = f"too small a gain for estimates that may be off by {doubt:.0%}"
        gain = tuning.gain if self._ranks == 1 else tuning.gain_over_ranks
        return careful(tuning.gain_of_chains if instead.chained else gain, doubt, self._target)

    def _has_room(self) -> bool:
        """Whether there is room for the stages of the program's tiles; else any others are better."""
        if has_stages(self._instead):
            return True
        one_is_enough = bool(self._others) and not self._instead.chained
        return one_is_enough and self._compiles(self._instead, self._base.settings)

    def _with_one_warpgroup(self, taken: Found) -> Found:
        """One warpgroup for all rows of a tile of which two would have half each, where an SM of a single rank has one
        task and its one accumulator fits: it reads each right operand once. Measured at 6 shapes: 0.93 to 0.98 of the
        time."""
        if self._ranks > 1 or CONSUMERS in self._fixed or taken[0].rounds != 1 or taken[0].chained:
            return taken
        kernel = next(one.kernel for one in (self._base, *self._others) if one.settings == taken[1])
        shapes = [tile_type(op.result).shape for op in kernel.walk() if isinstance(op, MmaOp)]
        mma = self._target.mma
        if not shapes or not all(rows == 2 * mma.rows and 2 * columns <= mma.columns for rows, columns in shapes):
            return taken
        if len(shapes) > 1:
            self._untried.append(f"`{CONSUMERS}=1` was not tried: tasks have {len(shapes)} MMAs, and one was measured")
            return taken
        return self._if_it_compiles(taken, {CONSUMERS: "1"})

    def _with_straddling(self, taken: Found) -> Found:
        if "straddle" in self._fixed or not self._has_short_shards():
            return taken
        found, refused = straddling(*self._asked.of, self._target)
        self._untried += [f"`straddle=true` was not tried: {reason}" for reason in refused]
        gain = self._tuning.gain_of_straddling if _fetches(self._base.kernel) else self._tuning.gain
        return self._better(taken, self._estimated(found), gain)

    # Several ranks

    def _in_one_shot(self, taken: Found) -> Found:
        if ALL_REDUCE in self._fixed:
            return taken
        found = self._estimated(in_one_shot(*self._asked.of, self._target))
        # Of what takes so little time on the link, an exit that all ranks await takes more than twice the additions.
        short = min((estimate.link for estimate, _ in found), default=0.0) <= self._tuning.one_shot_to
        return self._better(taken, found, 1.0 if short else self._tuning.gain)

    def _with_packets(self, taken: Found) -> Found:
        most = self._tuning.packets_twice_to if _only_reduces(self._base.kernel) else self._tuning.packets_to
        if PACKETS in self._fixed or taken[0].total > most:
            return taken
        found = sent_in_packets(*self._asked.of, self._target)
        free = (one for one in found if one.settings.keys().isdisjoint(self._fixed))
        return self._better(taken, self._estimated(free), self._tuning.gain)

    def _with_fetches(self, taken: Found) -> Found:
        """By whom operands of other ranks are fetched."""
        if taken[0].chained and _reads_ahead(self._base.kernel):
            return self._by_separate_sms(taken)
        if not _fetches(self._base.kernel):
            return taken
        if _gathers_ahead(self._base.kernel):
            return self._by_copy_engines(taken, self._tuning.gain_of_all_rows)
        if taken[0].rounds == 1 and "separate_loader" not in self._fixed:
            # With one task for each SM, a single loader would load nothing until the first tiles are fetched.
            return self._if_it_compiles(taken, {"separate_loader": "true"})
        if "straddle" in (*self._fixed, *taken[1]):
            return taken
        short = taken[0].total < self._tuning.engines_from
        return self._by_copy_engines(taken, self._tuning.gain if short else self._tuning.gain_of_copies)

    def _by_separate_sms(self, taken: Found) -> Found:
        """Stages of copies beside the tasks would take the room that keeps MMAs which need one another in flight."""
        found = with_separate_sms(*self._asked.of, taken[1], self._target)
        gain = self._tuning.gain_of_separate if has_stages(taken[0]) else math.inf
        apart = self._better(taken, self._estimated(found), gain)
        return self._because("copies beside MMAs take longer than is estimated", taken, apart)

    def _by_copy_engines(self, taken: Found, gain: float) -> Found:
        found, refused = by_copy_engines(*self._asked.of, taken[1])
        if not self._asked.engines:
            found, refused = [], [f"they would wait behind the kernel on fewer than {QUEUES} hardware queues"]
        self._untried += [f"copy engines were not tried: {reason}" for reason in refused]
        copied = self._better(taken, self._estimated(found), gain)
        return self._because("rows that tables name take less than is estimated", taken, copied)

    # Estimates, and what compiles

    @property
    def _now(self) -> Found:
        return self._instead, self._base.settings

    def _estimated(self, several: Iterable[Candidate]) -> list[Found]:
        found = [(estimated(one, self._asked), one.settings) for one in several]
        self._tried.extend(found)
        return found

    def _better(self, now: Found, others: list[Found], gain: float, launch: float = 0.0) -> Found:
        return better(now, others, self._compiles, self._tuning, gain, launch=launch)

    def _if_it_compiles(self, taken: Found, more: Mapping[str, str]) -> Found:
        settings = {**taken[1], **more}
        return (taken[0], settings) if self._compiles(taken[0], settings) else taken

    def _compiles(self, found: Estimate, settings: Mapping[str, str]) -> bool:
        if not self._plain and self._compiled >= _MOST_COMPILED:
            self._refused.append(settings)
            return False
        self._compiled += 1
        # Other than matmuls, not all tiles that fit have instructions, nor all that could go in packets.
        known = self._plain or not any(key.startswith(TILE) or key == PACKETS for key in settings)
        of = *self._asked.of, self._target, self._divisors
        level = "roles" if known or not _compiles(*of, (), "machine") else "machine"
        if _compiles(*of, tuple(settings.items()), level, pipelined=found.chained and found.stages > 1):
            return True
        self._refused.append(settings)
        return False

    def _has_short_shards(self) -> bool:
        """Whether shards are shorter than the longest blocks, which then could straddle; so are an owner's rows of a
        sum that all ranks get."""
        kinds = (argument.type for argument in self._base.kernel.body.block.args)
        sharded = (kind for kind in kinds if isinstance(kind, PGLType) and kind.shard_dim is not None)
        sizes = dict(self._asked.dims)
        dims = [kind.dimensions[kind.shard_dim or 0] for kind in sharded]
        for op in self._base.kernel.walk():
            if isinstance(op, AccumulateOp) and (at := divided_along(op)) is not None:
                dims.append(array_type(op.array).dimensions[at])
        lengths = (blocks.shard_length(sizes[dim] if isinstance(dim, str) else dim, self._ranks) for dim in dims)
        return self._ranks > 1 and any(length < max(self._target.tiles.rows) for length in lengths)


def _has_uneven_blocks(op: Operation) -> bool:
    """Whether tasks skip blocks, or a loop goes through as many as an array says."""
    if isinstance(op, scf.ForOp):
        return any(isinstance(value.owner, ReadOp) for value in sources((op.lb, op.ub)))
    return isinstance(op, VisitedOp | FirstVisitedOp)


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


def _reads_ahead(kernel: KernelOp) -> bool:
    """Whether an operand is fetched before its use."""
    return any(isinstance(op, LoadOp) and planned(op) == "inter_sm" for op in kernel.walk())


def _gathers_ahead(kernel: KernelOp) -> bool:
    """Whether rows that tables name are fetched before their use, list by list."""
    return any(map(comes_by_lists, kernel.walk()))


def _only_reduces(kernel: KernelOp) -> bool:
    """Whether all ranks get sums, and no MMA computes what is added up."""
    ops = list(kernel.walk())
    everywhere = any(isinstance(op, AccumulateOp) and is_pgl(op.array, Layout.Replicate) for op in ops)
    return everywhere and not any(isinstance(op, MmaOp) for op in ops)


def _fetches(kernel: KernelOp) -> bool:
    """Whether all remote accesses are loads of operands that are fetched before their use."""
    remote = [op for op in kernel.walk() if planned(op)]
    staged = (isinstance(op, LoadOp) or (isinstance(op, GatherOp) and not whole_rows(op)) for op in remote)
    return bool(remote) and all(staged) and all(planned(op) == "inter_sm" for op in remote)
