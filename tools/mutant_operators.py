"""Ways to break the protocol of a kernel at the roles level, each by a change of one operation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.ir import Operation

from pkc.dialect import access, coordinates, counters, program, roles
from pkc.dialect.deferred import SendDeferredOp
from pkc.dialect.fences import DrainOp, FenceOp
from pkc.dialect.program import KernelOp
from pkc.dialect.tile import MmaOp, MmaWaitOp
from tools import mutant_changes as changes
from tools import mutant_stages as stages
from tools import mutant_tables as tables

Change = Callable[[Operation], None]


@dataclass(frozen=True)
class Operator:
    """A way to break one operation."""

    name: str
    kinds: tuple[type[Operation], ...]
    change: Change
    breaks: Callable[[Operation], bool] = lambda op: True
    """Whether the change of an operation breaks a kernel at all."""


OPERATORS = (
    Operator("wait dropped", (counters.WaitOp,), changes.drop),
    Operator("wait for one less", (counters.WaitOp,), lambda op: changes.number(op, changes.COUNT, -1)),
    Operator("wait for one more", (counters.WaitOp,), lambda op: changes.number(op, changes.COUNT, 1)),
    Operator("signal dropped", (counters.SignalOp, counters.RaiseOp, counters.SignalAllOp), changes.drop),
    Operator(
        "signal to the next rank",
        (counters.SignalOp, counters.RaiseOp),
        changes.wrong_rank,
        lambda op: changes.to_one_rank(op) and not stages.is_told_by_another(op),
    ),
    Operator("signal sent twice", (counters.SignalOp, counters.SignalAllOp), changes.twice),
    Operator("reset dropped", (counters.ResetOp,), changes.drop, changes.is_awaited),
    Operator("epoch left out", (coordinates.EpochOp,), changes.without_epoch),
    Operator(
        "last of a range left out", (coordinates.BlockIndexOp, coordinates.OwnerOp), changes.first_only, changes.is_last
    ),
    Operator("acquire dropped", (roles.AcquireOp,), changes.drop),
    Operator("commit dropped", (roles.CommitOp,), changes.drop),
    Operator("release dropped", (roles.ReleaseOp,), changes.drop),
    Operator("released early", (roles.ReleaseOp,), stages.early),
    Operator("tasks rotated by another count", (coordinates.RotateOp,), changes.another_count),
    Operator("tasks run twice", (coordinates.RotateOp, coordinates.InterleaveOp), changes.every_second),
    Operator("one stage too many", (roles.ChannelOp,), changes.one_stage_more, changes.fills_shared_memory),
    Operator("no SM left to compute", (KernelOp,), changes.all_sms, changes.computes),
    Operator("ranks taken for a constant", (coordinates.DimOp,), changes.fixed_ranks, changes.counts_ranks),
    Operator("fence dropped", (FenceOp, DrainOp), changes.drop, changes.orders),
    Operator("fence moved behind", (FenceOp, DrainOp), changes.behind_what_it_orders, changes.stands_before),
    Operator("`read` for `full`", (DrainOp,), changes.as_read, changes.is_full),
    Operator("one store more in flight", (DrainOp,), changes.one_store_more, changes.leaves_some),
    Operator("sent an iteration early", (SendDeferredOp,), changes.one_signal_more, changes.keeps_signals),
    Operator("released an iteration early", (roles.ReleaseOp,), stages.one_stage_less, stages.keeps_stages),
    Operator("shared stage released by its first reader", (roles.ReleaseOp,), stages.by_first_reader, stages.is_shared),
    Operator("shared stage released before it is stored", (roles.ReleaseOp,), stages.before_guest, stages.is_shared),
    Operator("MMA in flight, released at once", (MmaOp,), stages.released_at_once, stages.is_in_flight),
    Operator("MMA in flight with one stage", (roles.ChannelOp,), stages.one_stage, stages.is_kept),
    Operator("one MMA more in flight", (MmaWaitOp,), stages.one_mma_more),
    Operator("released before the MMA is awaited", (MmaWaitOp,), stages.awaited_last, stages.releases),
    Operator("late half with one stage", (roles.ChannelOp,), stages.one_stage, stages.is_awaited_first),
    Operator("deferred for ever", (SendDeferredOp, roles.ReleaseDeferredOp), changes.drop),
    Operator(
        "relaxed for release",
        (counters.SignalOp, counters.RaiseOp, counters.SignalAllOp),
        changes.relaxed,
        lambda op: changes.orders(op) and not stages.is_told_by_another(op),
    ),
    Operator(
        "signal before the store",
        (counters.SignalOp, counters.RaiseOp),
        changes.announced_first,
        changes.is_behind_a_store,
    ),
    Operator("buffer reused a launch early", (counters.WaitOp,), changes.launch_before, changes.counts_epochs),
    Operator("exit without obligation", (KernelOp,), changes.no_exit, changes.has_exit),
    Operator("reset-style barrier", (counters.WaitOp,), changes.reset_barrier, changes.for_several),
    Operator(
        "first of several counts or tables",
        (access.ReadOp, access.LoadOp),
        tables.first_entry,
        tables.is_one_of_several,
    ),
    Operator("bound of a list left out", (coordinates.BlockCountOp,), tables.whole_list, tables.ends_at_a_number),
    Operator("tasks not shared out", (program.TasksOp,), changes.all_tasks, changes.among_others),
)
