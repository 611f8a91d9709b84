"""The pass `pk-split-loads`: local operands are loaded ahead of those that come from other ranks."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import BoolAttr
from xdsl.ir import Operation, SSAValue

from pkc.dialect.access import LoadOp
from pkc.dialect.attributes import Role
from pkc.dialect.counters import WaitOp
from pkc.dialect.program import DERIVED, KernelOp, RoleOp
from pkc.dialect.roles import AcquireOp, ChannelOp, ChannelType, CommitOp, ConsumeOp, ReleaseOp, channel_of
from pkc.dialect.tile import tile_type
from pkc.dialect.types import PrivateType
from pkc.passes.analysis.dependence import maker
from pkc.passes.build import before, copy_of
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.split_roles import channel_label
from pkc.remarks import missed


class SplitLoads(KernelPass):
    """Give local operands a separate loader, if the schedule's `separate_loader` is true.

    A loader carries out its loads in order. Where it waits for an operand from other ranks, a local one, weights say,
    waits too, although memory is idle. With a second loader and a second channel the local operand is loaded ahead, as
    far as shared memory goes. With many tasks for each SM that is of no use, and costs two barriers in each iteration.

    Before:

        %0 = pk.channel "A.fetched, B" stages 1 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
        pk.role loader { pk.tasks (%i, %j) in (...) {
          pk.wait %A_ready[%m] for %count : ...
          scf.for %s = ... {
            pk.acquire %0 : ...
            %a = pk.load %A_fetched[%m, %k : ...] : ...
            %b = pk.load %B[%k, %n : ...] : ...
            pk.commit %0, %a, %b : ...
        pk.role consumer { ... %a, %b = pk.consume %0 : ... pk.release %0 : ... }

    After:

        %0 = pk.channel "A.fetched" stages 1 : !pk.channel<!pk.tile<128x64xbf16>>
        %1 = pk.channel "B" stages 1 : !pk.channel<!pk.tile<64x256xbf16>>
        pk.role loader { pk.tasks (%i, %j) in (...) {
          pk.wait %A_ready[%m] for %count : ...
          scf.for %s = ... {
            pk.acquire %0 : ...
            %a = pk.load %A_fetched[%m, %k : ...] : ...
            pk.commit %0, %a : ...
        pk.role loader { pk.tasks (%i, %j) in (...) {
          scf.for %s = ... {
            pk.acquire %1 : ...
            %b = pk.load %B[%k, %n : ...] : ...
            pk.commit %1, %b : ...
        pk.role consumer { ... %a = pk.consume %0 ... %b = pk.consume %1 ... pk.release %0 ... pk.release %1 ... }
    """

    name = "pk-split-loads"

    def run(self, kernel: KernelOp) -> None:
        if kernel.schedule.get("separate_loader") != BoolAttr.from_bool(True):
            return
        if DERIVED not in kernel.attributes:
            return
        roles = [role for role in kernel.roles if role.role.data is Role.Loader]
        if not roles:
            missed(SplitLoads.name, kernel, "`separate_loader=true` changes nothing: no role loads for others")
        for role in roles:
            _split(role)


def _split(role: RoleOp) -> None:
    commits = [op for op in role.walk() if isinstance(op, CommitOp)]
    ahead = [op for op in commits if any(map(_is_local, op.tiles))]
    obstacle = _obstacle(role, commits, ahead)
    if obstacle:
        missed(SplitLoads.name, role, f"`separate_loader=true` changes nothing: {obstacle}")
        return
    for commit in ahead:
        if not all(map(_is_local, commit.tiles)):
            _split_channel(commit)
    second = copy_of(role)
    assert role.parent is not None
    role.parent.insert_op_after(second, role)
    _drop(role, local=True)
    _drop(second, local=False)


def _obstacle(role: RoleOp, commits: Sequence[CommitOp], ahead: Sequence[CommitOp]) -> str:
    """Why a loader cannot be split; empty if it can."""
    if not any(isinstance(op, WaitOp) for op in role.walk()):
        return "no load waits for another rank"
    if not ahead:
        return "no operand is local"
    if len({op.channel for op in commits}) < len(commits):
        return "a channel is filled in several places"
    return "" if all(map(_is_only_passed_on, role.walk())) else "the loader uses what it loads"


def _is_only_passed_on(op: Operation) -> bool:
    """Whether an operation is no load, or one for a channel alone: nothing else depends on what it waits for."""
    return not isinstance(op, LoadOp) or all(isinstance(use.operation, CommitOp) for use in op.result.uses)


def _is_local(tile: SSAValue) -> bool:
    """Whether a tile is loaded from a local operand, which this rank has when the kernel begins."""
    load = tile.owner
    if not isinstance(load, LoadOp) or not isinstance(load.array.type, PrivateType):
        return False
    return all(isinstance(use.operation, LoadOp) for use in load.array.uses)


def _drop(role: RoleOp, *, local: bool) -> None:
    """Leave out the loads of local operands, or all others with the waits before them."""
    commits = [op for op in role.walk() if isinstance(op, CommitOp)]
    dropped = {op.channel for op in commits if all(map(_is_local, op.tiles)) is local}
    for op in reversed(list(role.walk())):
        match op:
            case AcquireOp() | CommitOp():
                left_out = op.channel in dropped
            case LoadOp():
                left_out = not op.result.uses.get_length()
            case _:
                left_out = isinstance(op, WaitOp) and not local
        if left_out:
            _erase(op)


def _split_channel(commit: CommitOp) -> None:
    """Two channels in place of one, the second for the tiles of local operands."""
    channel = channel_of(commit.channel)
    numbers = range(len(commit.tiles))
    local = [number for number in numbers if _is_local(commit.tiles[number])]
    both = [number for number in numbers if number not in local], local
    made = [_channel(commit, some, channel) for some in both]
    for use in list(channel.result.uses):
        op = use.operation
        match op:
            case AcquireOp():
                before(op, [AcquireOp(one.result) for one in made])
            case CommitOp():
                before(
                    op,
                    [CommitOp(one.result, [op.tiles[n] for n in some]) for one, some in zip(made, both, strict=True)],
                )
            case ConsumeOp():
                for one, some in zip(made, both, strict=True):
                    _consume(op, ConsumeOp(one.result), some)
            case _:
                assert isinstance(op, ReleaseOp)
                before(op, [ReleaseOp(one.result) for one in made])
        _erase(op)
    _erase(channel)


def _channel(commit: CommitOp, numbers: Sequence[int], old: ChannelOp) -> ChannelOp:
    tiles = [commit.tiles[number] for number in numbers]
    label = ", ".join(channel_label(maker(tile)) for tile in tiles)
    made = ChannelOp(label, old.depth, ChannelType([tile_type(tile) for tile in tiles]))
    before(old, [made])
    made.location = maker(tiles[0]).location
    return made


def _consume(old: ConsumeOp, new: ConsumeOp, numbers: Sequence[int]) -> None:
    before(old, [new])
    for number, tile in zip(numbers, new.tiles, strict=True):
        tile.name_hint = old.tiles[number].name_hint
        old.tiles[number].replace_all_uses_with(tile)


def _erase(op: Operation) -> None:
    op.detach()
    op.erase()
