"""The pass `pk-check-roles`: the protocol between the roles of a CTA, checked without running it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import Pure

from pkc.diagnostics import Diagnostic, Label
from pkc.dialect.copies import CopyOp
from pkc.dialect.counters import RaiseOp, WaitOp
from pkc.dialect.deferred import SendDeferredOp, is_deferred
from pkc.dialect.engines import is_engine
from pkc.dialect.program import PER_CTA, QUEUE, KernelOp, TasksOp
from pkc.dialect.roles import CHANNEL_OPS, AcquireOp, ChannelOp, CommitOp, ConsumeOp, ReleaseDeferredOp, ReleaseOp
from pkc.dialect.tile import chain_with
from pkc.dialect.transfers import stages_of_pieces
from pkc.location import span_of
from pkc.passes import plan_errors as errors
from pkc.passes.analysis.dependence import roles_around
from pkc.passes.kernel_pass import CheckPass
from pkc.passes.roles.budgets import budgets
from pkc.passes.roles.plan_queue import cannot_have_queue
from pkc.passes.roles.role_values import VIEWS
from pkc.passes.roles.signal_counts import count_findings, orders

_CLOSES: dict[type[Operation], type[Operation]] = {AcquireOp: CommitOp, ConsumeOp: ReleaseOp}


class CheckRoles(CheckPass):
    """Refuse roles that do not fit together, for any number of ranks and all sizes.

    - Tasks are shared out among CTAs in all roles, or in none: otherwise roles of one CTA go through different tasks.
      They come from a queue only where nothing orders them.
    - A channel has one producing and one consuming role. In every block it is acquired and then committed, or consumed
      and then released; no tile is used once its stage is released. What a chain uses it uses where it ends, and an MMA
      in pieces reads its operands where its product is used.
    - Deferred signals are sent, and deferred releases carried out.
    - An order of tasks is a bijection; each wait counts the signals that its counter gets, where that can be said
      for all sizes (`signal_counts.py`).
    - SMs, shared memory, registers and named barriers suffice (`budgets.py`).
    - A copy engine copies, waits for counters and raises them; the host knows everything else beforehand.

    Refused, because %a may be overwritten while the MMA reads it:

        %a = pk.consume %0 : ...
        pk.release %0 : ...
        %acc = pk.mma %a, %b, %sum : ...
    """

    name = "pk-check-roles"

    def check(self, kernel: KernelOp) -> Iterator[Diagnostic]:
        yield from _shared_out(kernel)
        if QUEUE in kernel.attributes and (reason := cannot_have_queue(kernel)):
            yield errors.NoQueue(span_of(kernel.location), kernel.sym_name.data, reason)
        yield from _copied(kernel)
        channels = [op for op in kernel.body.block.ops if isinstance(op, ChannelOp)]
        numbers = {op: number for number, op in enumerate(kernel.walk())}
        for channel in channels:
            yield from _ends(channel, numbers)
            consuming = (ConsumeOp, ReleaseOp) if channel.guest is not None else ()
            users = [use.operation for use in channel.result.uses]
            for block in {op.parent: None for op in users if not isinstance(op, (ChannelOp, *consuming))}:
                assert block is not None
                yield from _in_order(channel, block, numbers)
        yield from _deferred(kernel)
        yield from budgets(kernel)
        yield from orders(kernel)
        yield from count_findings(kernel)


def _shared_out(kernel: KernelOp) -> Iterator[Diagnostic]:
    tasks = [op for op in kernel.walk() if isinstance(op, TasksOp)]
    shared = [op for op in tasks if PER_CTA in op.attributes]
    for op in tasks if shared else ():
        if op not in shared:
            also = (Label(span_of(shared[0].location), "these are"),)
            yield errors.NotSharedOut(span_of(op.location), also=also)


def _deferred(kernel: KernelOp) -> Iterator[Diagnostic]:
    """Signals and releases that are deferred and never carried out."""
    for op in kernel.walk():
        if is_deferred(op):
            sends = (later for later in op.parent.ops if isinstance(later, SendDeferredOp)) if op.parent else ()
            if not any(op.is_before_in_block(send) for send in sends):
                what = (op.name, SendDeferredOp.name, "in the same block")
                yield errors.NeverReleased(span_of(op.location), *what)
        if isinstance(op, ReleaseOp) and op.kept and not _is_carried_out(op):
            what = (op.name, ReleaseDeferredOp.name, "when the loop or the tasks around it are over")
            yield errors.NeverReleased(span_of(op.location), *what)


def _is_carried_out(release: ReleaseOp) -> bool:
    """Whether what a release keeps is freed whenever it has run: not only by another phase, which may have no tasks."""
    inner: Operation | None = release
    while inner is not None and inner.parent is not None:
        frees = (op for op in inner.parent.ops if isinstance(op, ReleaseDeferredOp) and op.channel is release.channel)
        if any(inner.is_before_in_block(op) for op in frees):
            return True
        inner = inner.parent_op()
    return False


_COPY_ENGINE = (CopyOp, WaitOp, RaiseOp, TasksOp, scf.ForOp, scf.IfOp, scf.YieldOp)
"""What a copy engine can do, beside integer arithmetic, which is the host's."""


def _copied(kernel: KernelOp) -> Iterator[Diagnostic]:
    for role in kernel.roles:
        if is_engine(role):
            ops = (op for op in role.body.walk() if not isinstance(op, _COPY_ENGINE))
            yield from (errors.NotACopy(span_of(op.location), op.name) for op in ops if not op.has_trait(Pure))


def _ends(channel: ChannelOp, numbers: Mapping[Operation, int]) -> Iterator[Diagnostic]:
    releases, guest = (ReleaseOp, ReleaseDeferredOp), channel.guest
    consuming = (ConsumeOp,) if guest is not None else (ConsumeOp, *releases)
    for kinds, what in (((AcquireOp, CommitOp), "producing"), (consuming, "consuming")):
        users = [use.operation for use in channel.result.uses if isinstance(use.operation, kinds)]
        roles = roles_around(users)
        if len(roles) != 1:
            yield errors.ChannelEnds(span_of(channel.location), channel.label.data, len(roles), what)
    if guest is not None:
        yield from _shared(channel, guest, numbers)


def _shared(channel: ChannelOp, guest: ChannelOp, numbers: Mapping[Operation, int]) -> Iterator[Diagnostic]:
    """Who consumes a channel overwrites the stage, and who consumes that releases the stage of both."""
    label = channel.label.data
    for use in channel.result.uses:
        op, block = use.operation, use.operation.parent
        assert block is not None
        on_guest = [other for other in block.ops if isinstance(other, CHANNEL_OPS) and other.channel is guest.result]
        if isinstance(op, ConsumeOp):
            commit = next((other for other in on_guest if isinstance(other, CommitOp)), None)
            if commit is None or commit.is_before_in_block(op):
                yield errors.ChannelOutOfOrder(span_of(op.location), label, op.name.removeprefix("pk."))
                return
            yield from _kept(op, commit, block, label, numbers)
        if isinstance(op, ReleaseOp | ReleaseDeferredOp):
            before = (other for other in on_guest if isinstance(other, type(op)) and other.is_before_in_block(op))
            release = next(before, None)
            if release is None or (
                isinstance(op, ReleaseOp) and isinstance(release, ReleaseOp) and op.kept != release.kept
            ):
                yield errors.ChannelOutOfOrder(span_of(op.location), label, op.name.removeprefix("pk."))
                return


def _in_order(channel: ChannelOp, block: Block, numbers: Mapping[Operation, int]) -> Iterator[Diagnostic]:
    """The operations of one channel in one block: pairs, each complete before the next."""
    users = (use.operation for use in channel.result.uses)
    on_it = [op for op in users if op.parent is block and isinstance(op, CHANNEL_OPS)]
    ops = sorted((op for op in on_it if not isinstance(op, ReleaseDeferredOp)), key=numbers.__getitem__)
    label, once = channel.label.data, sum(isinstance(op, ConsumeOp) for op in ops) == 1
    for first, second in zip(ops[::2], [*ops[1::2], None], strict=False):
        if second is None or type(second) is not _CLOSES.get(type(first)):
            yield errors.ChannelOutOfOrder(span_of(first.location), label, first.name.removeprefix("pk."))
            return
        if isinstance(first, ConsumeOp) and not (once and _frees_another(second)):
            yield from _kept(first, second, block, label, numbers)


def _frees_another(release: Operation) -> bool:
    """Whether a release in a loop frees the stage of an iteration before: that of its own is there until the next."""
    return isinstance(release, ReleaseOp) and release.kept > 0 and isinstance(release.parent_op(), scf.ForOp)


def _kept(
    consume: ConsumeOp, release: Operation, block: Block, label: str, numbers: Mapping[Operation, int]
) -> Iterator[Diagnostic]:
    for tile in consume.tiles:
        for use in _uses(tile):
            inner = block.find_ancestor_op_in_block(chain_with(use)[-1])
            if inner is None or numbers[inner] > numbers[release]:
                also = (Label(span_of(release.location), "released here"),)
                yield errors.UsedAfterRelease(span_of(use.location), label, also=also)
                return


def _uses(tile: SSAValue) -> Iterator[Operation]:
    for use in tile.uses:
        yield use.operation
        if isinstance(use.operation, VIEWS) or stages_of_pieces(use.operation):
            yield from _uses(use.operation.results[0])
