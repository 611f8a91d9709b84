"""The pass `pk-defer-signals`: signals lag behind stores, so that several stores of a worker are on their way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, UnitAttr, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from pkc.dialect.access import StoreOp
from pkc.dialect.counters import BarrierOp, RaiseOp, SignalAllOp, SignalOp, WaitOp
from pkc.dialect.held import HELD, SendHeldOp
from pkc.dialect.program import KernelOp, RoleOp
from pkc.dialect.roles import AcquireOp, CommitOp, ConsumeOp, ReleaseHeldOp, ReleaseOp, channel_of
from pkc.dialect.transfers import moves_by_tma, pieces
from pkc.passes.analysis.dependence import ancestors
from pkc.passes.derive import DERIVED
from pkc.passes.roles.plan_warps import is_apart

_LEFT = 3
"""Turns whose stores may be under way: at 40 GB/s for each SM tiles of 16 KB come every 0.4 us, a store takes 1 us."""

_BATCH = 8
"""Signals that share a release, which waits for memory and takes longer than several tiles; readers await as many."""

_KEPT = 3
"""Stages that stores may still read: reading one takes as long as filling it."""

_SENT = (SignalOp, SignalAllOp, RaiseOp)
_BLOCKING = (WaitOp, BarrierOp, AcquireOp, ConsumeOp)


@dataclass(frozen=True)
class DeferSignals(ModulePass):
    """Let a worker that stores tiles by TMA go on before a store is complete, and announce it later.

    A worker with an SM of its own, which gets its tiles through channels of several stages, is there to have many of
    them on their way. Its signals are held back, three at least, up to eleven: `pk-insert-fences` then waits, in front
    of `pk.send_held`, for all stores but those of the last three turns. Eight signals are sent at once, as one release
    orders them all. Of the channel's stages a third, at most three, stay with stores that may still read them. What is
    held when the tasks are over is drained and sent there.

    Nobody waits in a circle for that. The worker blocks only where it consumes. What it consumes may be late because of
    other signals, or of its own stages: there are more of them than it keeps. But nothing on the way to it, through
    channels and counters of all ranks, waits for what the worker itself holds back: where something might, signals stay
    as they are. So the next tile comes, and the last one is followed by all signals.

    Beside parts that compute every SM copies a little: there a signal that waited for the next tile would be late, and
    little would be gained.

    Before:

        pk.tasks ... {
          %a = pk.consume %1 : ...
          pk.store %a, %A_landing[%m, %k : ...] : ...
          pk.release %1 : ...
          pk.signal %A_ready at %rank[%row] by %one : ...
        }

    After:

        pk.tasks ... {
          %a = pk.consume %1 : ...
          pk.store %a, %A_landing[%m, %k : ...] : ...
          pk.release %1 held 3 : ...
          pk.signal %A_ready at %rank[%row] by %one {held} : ...
          pk.send_held left 3 batch 8
        }
        pk.release_held %1 : ...
        pk.send_held left 0 batch 1
    """

    name = "pk-defer-signals"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in op.walk():
            if isinstance(kernel, KernelOp) and DERIVED in kernel.attributes:
                for part in [part for part in kernel.body.block.ops if isinstance(part, RoleOp) and is_apart(part)]:
                    for top in list(part.body.block.ops):
                        found = _passing_on(top)
                        if found is not None and not _is_awaited(part, found.sent.signal):
                            _hold(found, top)


@dataclass(frozen=True)
class _PassingOn:
    """A block that is run in turns: tiles consumed, stored, and announced by one signal."""

    block: Block
    sent: SignalOp | RaiseOp
    releases: list[ReleaseOp]


def _passing_on(top: Operation) -> _PassingOn | None:
    """The block of a loop or task set that does nothing else in its turns."""
    ops = [op for op in top.walk() if op is not top]
    sent = [op for op in ops if isinstance(op, _SENT)]
    stores = [op for op in ops if isinstance(op, StoreOp)]
    releases = [op for op in ops if isinstance(op, ReleaseOp)]
    if len(sent) != 1 or isinstance(sent[0], SignalAllOp) or not stores or not releases:
        return None
    block = sent[0].parent
    assert block is not None
    if any(isinstance(op, (WaitOp, BarrierOp, AcquireOp)) for op in ops):
        return None
    if any(channel_of(op.channel).depth < 2 for op in releases):
        return None
    # As many stores each turn, all before the signal: so the last ones are known to be of the last turns.
    if any(op.parent is not block for op in (*stores, *releases)):
        return None
    if any(not moves_by_tma(op) or pieces(op) is not None for op in stores):
        return None
    last = block.get_operation_index(sent[0])
    if any(block.get_operation_index(op) > last for op in stores):
        return None
    return _PassingOn(block, sent[0], releases)


def _hold(found: _PassingOn, top: Operation) -> None:
    found.sent.attributes[HELD] = UnitAttr()
    send = SendHeldOp(_LEFT, _BATCH)
    send.location = found.sent.location
    found.block.insert_op_after(send, found.sent)
    rest: list[Operation] = []
    for release in found.releases:
        kept = min(_KEPT, channel_of(release.channel).depth // 3)
        if kept:
            release.held = IntegerAttr(kept, i64)
            rest.append(ReleaseHeldOp(release.channel))
            rest[-1].location = release.location
    rest.append(SendHeldOp(0, 1))
    rest[-1].location = found.sent.location
    around = top.parent
    assert around is not None
    around.insert_ops_after(rest, top)


# Who waits for whom


def _is_awaited(part: RoleOp, signal: SSAValue) -> bool:
    """Whether a part may wait, by whatever it takes for its tiles to come, for a counter."""
    todo: list[Operation] = [op for op in part.walk() if isinstance(op, _BLOCKING)]
    seen: set[Operation] = set()
    while todo:
        op = todo.pop()
        if op in seen:
            continue
        seen.add(op)
        if isinstance(op, WaitOp | BarrierOp) and op.signal is signal:
            return True
        todo += (inner for cause in _causes(op) for inner in _earlier(cause) if isinstance(inner, _BLOCKING))
    return False


def _causes(op: Operation) -> Iterator[Operation]:
    """What lets a blocking operation go on."""
    if isinstance(op, WaitOp | BarrierOp):
        yield from (use.operation for use in op.signal.uses if isinstance(use.operation, (*_SENT, BarrierOp)))
    if isinstance(op, ConsumeOp):
        yield from (use.operation for use in op.channel.uses if isinstance(use.operation, CommitOp))
    if isinstance(op, AcquireOp):
        yield from (use.operation for use in op.channel.uses if isinstance(use.operation, ReleaseOp | ReleaseHeldOp))


def _earlier(op: Operation) -> Iterator[Operation]:
    """What may run before an operation in its part: of a loop around it, everything."""
    top = op
    for around in ancestors(op):
        if isinstance(around, RoleOp):
            break
        top = around
    if top is not op:
        yield from top.walk()
    before = top.prev_op
    while before is not None:
        yield from before.walk()
        before = before.prev_op
