"""The pass `pk-plan-packets`: which tiles travel to other ranks together with the epoch."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import BoolAttr

from pkc.dialect.access import AccumulateOp, StoreOp
from pkc.dialect.arrays import array_type, is_pgl
from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.types import Layout, dtype_bytes
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.remote_accesses import (
    Sum,
    array_name,
    is_divided,
    plan_packets,
    planned,
    remote_stores,
    sums,
)
from pkc.passes.roles.stage_packets import split_of
from pkc.passes.roles.straddling import has_several_owners, may_straddle
from pkc.remarks import missed

PACKETS = "packets"
"""The key of the schedule: whether what is sent to other ranks travels in packets."""

_BYTES = 2
"""Of an element that travels in a packet: with as many of the epoch it makes one word, which memory writes at once."""


@dataclass(frozen=True)
class PlanPackets(KernelPass):
    """With `packets=true` in the schedule, let tiles travel to other ranks in packets: each element with the epoch.

    A tile is else stored, and a signal follows when the store is complete: two ways over the link, and fences at both
    ends. Packets need neither: whoever reads looks at the elements themselves until the epoch in each is that of this
    launch. They take twice the bytes, so that the autoschedule chooses them where little is sent (NCCL calls it LL;
    Jeaugey, GTC 2019).

    Before:

        pk.accumulate %a, %C[%m, %n : ...] {remote = {overlap = "intra_sm", why = "..."}} : ...

    After:

        pk.accumulate %a, %C[%m, %n : ...] {remote = {overlap = "intra_sm", why = "...", packets}} : ...
    """

    name = "pk-plan-packets"

    limited: bool = False
    """Whether all waits shall end after a time, which those for packets do not."""

    def run(self, kernel: KernelOp) -> None:
        if kernel.schedule.get(PACKETS) != _TRUE:
            return
        sent = [*sums(kernel), *remote_stores(kernel)]
        for op in sent:
            obstacle = "a wait for packets has no limit" if self.limited else _obstacle(kernel, op)
            if obstacle:
                missed(PlanPackets.name, op, f"`{array_name(op.array)}` does not travel in packets: {obstacle}")
            else:
                plan_packets(op)
        if not sent:
            missed(PlanPackets.name, kernel, f"`{PACKETS}=true` changes nothing: nothing is sent to other ranks")


_TRUE = BoolAttr.from_bool(True)


def _obstacle(kernel: KernelOp, op: Sum | StoreOp) -> str:
    """Why what an access sends cannot travel in packets; empty if it can."""
    if planned(op) in ("none", "copy_engine"):
        return "copy engines move bytes as they are"
    if kernel.in_any_order:
        return "each contribution is added where the array lives"
    if may_straddle(kernel) or (isinstance(op, AccumulateOp) and is_divided(kernel, op) and has_several_owners(op)):
        return "a block that straddles shards is announced to several owners"
    if dtype_bytes(array_type(op.array).element_type) != _BYTES:
        return f"its elements have not {_BYTES} bytes"
    if isinstance(op, StoreOp):
        return _store_obstacle(op)
    return ""


def _store_obstacle(op: StoreOp) -> str:
    """Why nobody could say which tiles come in packets; empty if all do, once."""
    if not is_pgl(op.array, Layout.Replicate):
        return "only what every rank gets is unpacked by all"
    if not isinstance(op.parent_op(), TasksOp):
        return "it stands in a loop or branch"
    if split_of(op) < 0:
        return "a rank does not store the blocks of one shard"
    return ""
