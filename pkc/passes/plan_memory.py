"""The pass `pk-plan-memory`: where channels and their barriers lie in shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.passes import ModulePass

from pkc.dialect.layout import ALIGNMENT, shared_layout
from pkc.dialect.program import GROUP, KernelOp, RoleOp
from pkc.dialect.roles import ChannelOp, ChannelType
from pkc.dialect.types import TileType
from pkc.passes.dependence import ancestors

OFFSET, BARRIERS, STAGE_BYTES = "offset", "barriers", "stage_bytes"
"""On a channel: bytes from the start of shared memory to its first stage and barrier, and from stage to stage."""

SHARED_BYTES = "shared_bytes"
"""On a kernel: the shared memory it needs, with room to align its start."""

_BARRIER_BYTES = 8


@dataclass(frozen=True)
class PlanMemory(ModulePass):
    """Give every channel its place in shared memory.

    CTAs that compute and CTAs that communicate have shared memory of their own. Tiles begin at multiples of 1024
    bytes, after which the swizzle of 128 bytes repeats. Behind all stages come the barriers: for each stage of a
    channel one that it is full, then one for each that it is empty.

    Before:

        %0 = pk.channel "A, B" stages 3 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>

    After, with `shared_bytes` on the kernel:

        %0 = pk.channel "A, B" stages 3 {offset = 0 : i64, stage_bytes = 49152 : i64, barriers = 147456 : i64} : ...
    """

    name = "pk-plan-memory"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in op.walk():
            if isinstance(kernel, KernelOp):
                _plan(kernel)


def slot_offsets(channel: ChannelOp) -> tuple[tuple[int, ...], int]:
    """Where each tile of a stage begins, and how long the stage is, in bytes."""
    kind = channel.result.type
    assert isinstance(kind, ChannelType)
    offsets: list[int] = []
    total = 0
    for tile in kind.tiles:
        assert isinstance(tile, TileType)
        offsets.append(total)
        total += -(-shared_layout(tile).bytes // ALIGNMENT) * ALIGNMENT
    return tuple(offsets), total


def _plan(kernel: KernelOp) -> None:
    groups: dict[str, list[ChannelOp]] = {}
    for op in kernel.body.block.ops:
        if isinstance(op, ChannelOp):
            groups.setdefault(_group(op), []).append(op)
    needed = max((_place(channels) for channels in groups.values()), default=0)
    kernel.attributes[SHARED_BYTES] = IntegerAttr(needed + ALIGNMENT, i64)


def _place(channels: list[ChannelOp]) -> int:
    """The channels of one group of CTAs, one behind the other; the bytes they need."""
    offset = 0
    for channel in channels:
        _, length = slot_offsets(channel)
        channel.attributes[OFFSET] = IntegerAttr(offset, i64)
        channel.attributes[STAGE_BYTES] = IntegerAttr(length, i64)
        offset += channel.depth * length
    for channel in channels:
        channel.attributes[BARRIERS] = IntegerAttr(offset, i64)
        offset += 2 * channel.depth * _BARRIER_BYTES
    return offset


def _group(channel: ChannelOp) -> str:
    """The group of CTAs in which a channel is."""
    user = next(iter(channel.result.uses)).operation
    part = next(op for op in ancestors(user) if isinstance(op, RoleOp))
    group = part.attributes[GROUP]
    assert isinstance(group, StringAttr)
    return group.data
