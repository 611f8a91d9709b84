"""Whether what `--explain` says of a fetched operand happens in the kernel that it becomes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from pkc.dialect.access import LoadOp, StoreOp
from pkc.dialect.attributes import Role
from pkc.dialect.by_table import GatherOp
from pkc.dialect.coordinates import BlockOp
from pkc.dialect.copies import CopyOp
from pkc.dialect.program import COMM_SMS, GROUP, KernelOp, RoleOp, TasksOp
from pkc.dialect.types import BlockType, Dim, SignalType
from pkc.location import describe
from pkc.passes.analysis.dependence import ancestors
from pkc.passes.roles.plan_fetch import FetchPlan

_LESS = arith.CMPI_COMPARISON_OPERATIONS.index("slt")


def is_fetched(claim: FetchPlan, kernel: KernelOp) -> bool:
    """Who fills the receive buffers, with how many loops in a task; who reads them, and what the counter is for."""
    names = tuple(f"{name}.fetched" for name in claim.arrays)

    def name_of(value: SSAValue) -> str:
        return kernel.argument_name(value) if isinstance(value, BlockArgument) else ""

    ops = list(kernel.walk())
    fills = [op for op in ops if isinstance(op, StoreOp) and name_of(op.array) in names]
    fills = [op for op in fills if describe(op.location) == claim.place]
    copies = [op for op in ops if isinstance(op, CopyOp) and name_of(op.target) in names]
    reads = [op for op in ops if isinstance(op, LoadOp | GatherOp) and name_of(op.array) in names]
    filled = [name_of(op.target) for op in copies] + [name_of(op.array) for op in fills]
    if tuple(dict.fromkeys(filled)) != names or {name_of(op.array) for op in reads} != set(names):
        return False
    local = [op.local for op in reads]
    in_place = [
        beside is not None and f"{name_of(beside)}.fetched" == name_of(op.array)
        for op, beside in zip(reads, local, strict=True)
    ]
    at = list(reads[0].indices)
    if isinstance(reads[0], GatherOp):  # its rows are one of the buffer's blocks
        at = [*(fills[0].indices if fills else (*copies[0].target_indices, *at))]
    if not all(local == claim.local for local in in_place) or not _counts(claim, kernel, at):
        return False
    if any(_is_behind_a_bound(op) != claim.visited for op in (*fills, *copies)):
        return False
    if claim.by == "copy engines":
        return not fills
    sent = [op.rank is not None for op in fills]
    return not copies and all(to == claim.pushed for to in sent) and all(_is_run(claim, kernel, op) for op in fills)


def _is_behind_a_bound(fill: Operation) -> bool:
    """Whether a tile is fetched only if its number is less than something."""
    branches = [op.cond.owner for op in ancestors(fill) if isinstance(op, scf.IfOp)]
    return any(isinstance(made, arith.CmpiOp) and made.predicate.value.data == _LESS for made in branches)


def _is_run(claim: FetchPlan, kernel: KernelOp, fill: StoreOp) -> bool:
    """Whether so many CTAs fill a receive buffer, and each runs so many loops."""
    around = list(ancestors(fill))
    (role,), (tasks, *_) = ([op for op in around if isinstance(op, kind)] for kind in (RoleOp, TasksOp))
    assert isinstance(role, RoleOp) and isinstance(tasks, TasksOp)
    loops = sum(isinstance(op, scf.ForOp) for op in around)
    separate = role.attributes[GROUP].data == "communicate"
    alone = all(isinstance(count.owner, arith.ConstantOp) for count in tasks.counts)
    sms = kernel.attributes[COMM_SMS].value.data if separate else 0
    by = "one CTA" if alone or sms == 1 else f"{sms} CTAs" if sms else "all CTAs"
    return role.role.data is Role.Communicator and by == claim.by and claim.loops in (None, loops)


def _counts(claim: FetchPlan, kernel: KernelOp, at: Sequence[SSAValue]) -> bool:
    """Whether a counter is for so many tiles of the receive buffer."""
    extents = extents_of(counters_of(claim, kernel))
    places = [index.type for index in at if not _is_constant(index)]
    if claim.group > 1:
        *_, last = extents
        tiles = [kind.extent for kind in places if isinstance(kind, BlockType) and kind.of == last.of]
        return [extent * claim.group for extent in tiles] == [last.extent]
    whole = not extents and claim.group == claim.again == 0
    return whole or (
        bool(extents) and len(places) - len(extents) == claim.again and claim.group == int(not claim.again)
    )


def counters_of(claim: FetchPlan, kernel: KernelOp) -> SignalType:
    arguments = {kernel.argument_name(argument): argument.type for argument in kernel.body.block.args}
    counters = arguments[f"{'_'.join(claim.arrays)}.ready"]
    assert isinstance(counters, SignalType)
    return counters


def extents_of(counters: SignalType) -> list[Dim | BlockType]:
    """What distinguishes counters; nothing if there is one."""
    return [extent for extent in counters.extents if extent != 1]


def _is_constant(index: SSAValue) -> bool:
    made = index.owner
    number = made.index.owner if isinstance(made, BlockOp) else made
    return isinstance(number, arith.ConstantOp)
