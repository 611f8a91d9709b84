"""The autoschedule: the schedule that `pkc.cost` estimates to be the fastest for the sizes of a launch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import fields, replace

from pkc.cost.records import UnknownWorkError
from pkc.dialect.by_table import GatherOp
from pkc.dialect.program import KernelOp
from pkc.dialect.types import PGLType
from pkc.driver import tuned
from pkc.driver.chosen import Autoschedule, duration
from pkc.driver.compiler import Number
from pkc.driver.planned_candidates import candidates
from pkc.driver.search import OVERLAP, Asked, Search, estimated
from pkc.driver.splits import with_splits
from pkc.frontend import tree
from pkc.frontend.schedule import TILE
from pkc.location import describe
from pkc.passes.roles.remote_accesses import planned, remote_reads
from pkc.remarks import Remark
from pkc.targets import DEFAULT
from pkc.targets.arch import QUEUES, hardware_queues
from pkc.targets.target import Target, lookup

STEP = "autoschedule"
"""The step that remarks name."""


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
        took = f"measured: {duration(kept.nanoseconds)}, and {duration(kept.estimated)} as estimates choose"
        return Autoschedule(kept.schedule, reason=took, place=describe(span.location()), asked=schedule or {})
    # Copies must not wait behind the kernel in one hardware queue.
    engines = hardware_queues() >= QUEUES
    asked = Asked(
        program, name, *given, _calibrated(target, measured), tuple(sorted(dims.items())), ranks, engines=engines
    )
    found = _autoschedule(asked)
    # Programs that differ only in source locations are equal, and share a result.
    remarks = tuple(Remark(STEP, KernelOp.name, reason, span) for reason in found.untried)
    return replace(found, place=describe(span.location()), remarks=remarks, asked=schedule or {})


def _calibrated(name: str, measured: bool) -> Target:
    """A target with the rates that were measured on this machine, if they count."""
    target = lookup(name)
    known = {field.name for field in fields(target.rates)}
    rates = {rate: value for rate, value in tuned.rates_of(name).items() if rate in known} if measured else {}
    return replace(target, rates=replace(target.rates, **rates)) if rates else target


@functools.lru_cache(maxsize=1024)
def _autoschedule(asked: Asked) -> Autoschedule:
    base, *others = candidates(*asked.of, asked.target)
    if not any(isinstance(argument.type, PGLType) for argument in base.kernel.body.block.args):
        asked = replace(asked, ranks=1)  # each works by itself
    try:
        instead = estimated(base, asked)
    except UnknownWorkError as error:
        return Autoschedule(reason=f"not estimated: {error}", untried=(f"no schedule was chosen: {error}",))
    if sets_tiles(base.kernel):
        return Autoschedule(taken=instead, usual=asked.target.rates.error_of_mmas, reason="the schedule sets tiles")
    if asked.ranks == 1 and OVERLAP.isdisjoint(base.kernel.schedule) and _stages_rows(base.kernel):
        # Nothing comes from elsewhere: roles that fetch it would take a warp from those that copy rows.
        more = {"overlap": "intra_sm"}
        found = _autoschedule(replace(asked, schedule=(*asked.schedule, *more.items())))
        why = "no role fetches, so that more warps copy rows"
        return replace(found, schedule={**found.schedule, **more}, instead=instead, why=why)
    return with_splits(asked, base, Search(asked, base, others, instead).found(), _autoschedule)


def as_compiled(
    found: Autoschedule, compiled: Mapping[str, str], again: Callable[[Mapping[str, str]], Autoschedule]
) -> Autoschedule:
    """What was chosen, with the tiles that a kernel is `compiled` with if the program's do not fit, and the estimate of
    these: `again` is the autoschedule with more in the schedule."""
    known = {*found.schedule, *found.asked}
    smaller = {key: size for key, size in compiled.items() if key not in known}
    if not any(key.startswith(TILE) for key in smaller):
        return found
    chosen = {**found.schedule, **smaller}
    estimated = again(chosen)
    return replace(
        found, schedule=chosen, taken=estimated.taken, instead=None, reason="the program's tiles do not fit into an SM"
    )


def sets_tiles(kernel: KernelOp) -> bool:
    """Whether the schedule sets tiles, so that nothing is chosen."""
    return any(key.startswith(TILE) for key in kernel.schedule)


def _stages_rows(kernel: KernelOp) -> bool:
    """Whether rows that tables name are fetched before they are used."""
    return any(isinstance(op, GatherOp) and planned(op) != "intra_sm" for op in remote_reads(kernel))
