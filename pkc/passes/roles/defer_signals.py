"""The pass `pk-defer-signals`: signals lag behind stores, so that several stores of a warp role are in flight."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i64
from xdsl.ir import Operation, SSAValue

from pkc.dialect.access import StoreOp
from pkc.dialect.counters import BarrierOp, RaiseOp, SignalAllOp, SignalOp, WaitOp
from pkc.dialect.deferred import DEFERRED, SendDeferredOp
from pkc.dialect.program import KernelOp, RoleOp
from pkc.dialect.roles import AcquireOp, CommitOp, ConsumeOp, ReleaseDeferredOp, ReleaseOp, channel_of
from pkc.dialect.transfers import moves_by_tma, pieces
from pkc.passes.analysis.dependence import ancestors
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.plan_warps import has_separate_sms
from pkc.remarks import missed
from pkc.targets.target import target_of

_SENT = (SignalOp, SignalAllOp, RaiseOp)
_BLOCKING = (WaitOp, BarrierOp, AcquireOp, ConsumeOp)


class DeferSignals(KernelPass):
    """Let a warp role that stores tiles by TMA go on before a store is complete, and announce it later.

    A communicator with separate SMs, which gets its tiles through channels of several stages, should have many stores
    in flight. Its signals are deferred, for so many iterations as the target says (three) and up to a batch (eight)
    more. In front of `pk.send_deferred`, `pk-insert-fences` waits for all stores but those of these iterations. A batch
    is sent at once, as one release orders it all. The releases of a third of the channel's stages, at most so many as
    the target says (three), are deferred: stores may still read them. Behind the tasks all stores are drained and all
    deferred signals sent.

    That causes no deadlock. The warp role blocks only where it consumes. It never defers all stages of its channel, so
    the producer can go on. And nothing that the producer needs, through channels and counters of all ranks, waits for
    the deferred signals: where something might, signals stay as they are. So the next tile comes, and behind the last
    one all signals are sent.

    Beside roles that compute every SM copies a little: there a signal that waited for the next tile would be late, and
    little would be gained.

    Before:

        pk.tasks ... {
          %a = pk.consume %1 : ...
          pk.store %a, %A_fetched[%m, %k : ...] : ...
          pk.release %1 : ...
          pk.signal %A_ready at %rank[%row] by %one : ...
        }

    After:

        pk.tasks ... {
          %a = pk.consume %1 : ...
          pk.store %a, %A_fetched[%m, %k : ...] : ...
          pk.release %1 deferred 3 : ...
          pk.signal %A_ready at %rank[%row] by %one {deferred} : ...
          pk.send_deferred left 3 batch 8
        }
        pk.release_deferred %1 : ...
        pk.send_deferred left 0 batch 1
    """

    name = "pk-defer-signals"
    ONLY_DERIVED = True

    def run(self, kernel: KernelOp) -> None:
        for role in filter(has_separate_sms, kernel.roles):
            _plan(role)


def _plan(role: RoleOp) -> None:
    """Defer the signals of each loop and task set of a role, where they may lag."""
    verb: type[Operation] | None = None
    for top in list(role.body.block.ops):
        sent = [op for op in top.walk() if isinstance(op, _SENT)]
        if not sent or not any(isinstance(op, StoreOp) for op in top.walk()):
            continue
        obstacle = _obstacle(role, top, sent)
        if not obstacle and verb not in (None, type(sent[0])):
            obstacle = "its role defers signals of another kind"
        if obstacle:
            missed(DeferSignals.name, sent[0], f"each signal waits until what it announces is stored: {obstacle}")
            continue
        verb = type(sent[0])
        _defer(top, sent)


def _obstacle(role: RoleOp, top: Operation, sent: Sequence[Operation]) -> str:
    """Why the signals that `top` sends cannot lag behind the stores that they announce; empty if they can."""
    ops = list(top.walk())
    stores = [op for op in ops if isinstance(op, StoreOp)]
    releases = [op for op in ops if isinstance(op, ReleaseOp)]
    if any(isinstance(op, SignalAllOp) for op in sent) or len({type(op) for op in sent}) > 1:
        return "only signals of one kind, each to one rank, are deferred"
    if any(isinstance(op, WaitOp | BarrierOp | AcquireOp) for op in ops):
        return "its role waits for others in the same iteration"
    if not releases:
        return "what is stored does not come through a channel"
    if shallow := [channel_of(op.channel) for op in releases if channel_of(op.channel).depth < 2]:
        return f"{shallow[0].label.data} has one stage, so that no two stores are in flight"
    # Iterations store and signal alike, all stores before the last signal: so what is left is of the last iterations.
    if len({op.parent for op in (*stores, *releases, *sent)}) > 1:
        return "not every iteration stores and signals as often"
    if any(not moves_by_tma(op) for op in stores):
        return "the stores are made by ordinary instructions"
    if any(pieces(op) is not None for op in stores):
        return "the stores go to another rank some rows at a time, and each is waited for"
    if any(sent[-1].is_before_in_block(op) for op in stores):
        return "something is stored behind the last signal of an iteration"
    if any(_is_awaited(role, op.signal) for op in sent if isinstance(op, SignalOp | RaiseOp)):
        return "what its role waits for may wait for these signals"
    return ""


def _defer(top: Operation, sent: Sequence[Operation]) -> None:
    """Defer the signals of each iteration of `top`, and the release of stages that stores may still read."""
    last = sent[-1]
    assert last.parent is not None and top.parent is not None
    for op in sent:
        op.attributes[DEFERRED] = UnitAttr()
    tuning = target_of(last).tuning
    send = SendDeferredOp(tuning.stores * len(sent), tuning.signals)
    send.location = last.location
    last.parent.insert_op_after(send, last)
    rest: list[Operation] = []
    for release in [op for op in last.parent.ops if isinstance(op, ReleaseOp)]:
        kept = min(tuning.read_stages, channel_of(release.channel).depth // 3)
        if kept:
            release.deferred = IntegerAttr(kept, i64)
            rest.append(ReleaseDeferredOp(release.channel))
            rest[-1].location = release.location
    rest.append(SendDeferredOp(0, 1))
    rest[-1].location = last.location
    top.parent.insert_ops_after(rest, top)


# Who waits for whom


def _is_awaited(role: RoleOp, signal: SSAValue) -> bool:
    """Whether a role may wait for a counter, itself or through any role that its tiles need."""
    todo: list[Operation] = [op for op in role.walk() if isinstance(op, _BLOCKING)]
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
        yield from (
            use.operation for use in op.channel.uses if isinstance(use.operation, ReleaseOp | ReleaseDeferredOp)
        )


def _earlier(op: Operation) -> Iterator[Operation]:
    """What may run before an operation in its role: of a loop around it, everything."""
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
