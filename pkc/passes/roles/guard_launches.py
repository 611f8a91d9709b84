"""The pass `pk-guard-launches`: a kernel may be launched again at once, on every rank, without a reset."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import BoolAttr, IndexType, UnitAttr
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from pkc.dialect.access import READING, LoadOp, ReadOp, StoreOp
from pkc.dialect.arrays import is_pgl
from pkc.dialect.coordinates import BlockOp, BlockPositionOp, CtasOp, DimOp, EpochOp, RankOp, is_cut_short
from pkc.dialect.copies import CopyOp
from pkc.dialect.counters import EARLIER, BarrierOp, RaiseOp, ResetOp, SignalAllOp, SignalOp, WaitOp
from pkc.dialect.engines import is_engine
from pkc.dialect.inverse import SumRowsOp
from pkc.dialect.program import DERIVED, KEPT, LOCAL, PER_CTA, WRITTEN, KernelOp, RoleOp, TasksOp, packed
from pkc.dialect.roles import CommitOp, ConsumeOp
from pkc.dialect.tile import AnyMmaOp
from pkc.dialect.transfers import needs_threads
from pkc.dialect.types import RANKS, Layout, PGLType, SignalType
from pkc.passes.analysis.dependence import roles_around
from pkc.passes.analysis.entered import ends_behind_entry, follows_entry
from pkc.passes.build import add_parameter, append, before, constant, mark, product_ops
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.remote_accesses import reached, shard_of
from pkc.remarks import missed

WRITE_AHEAD = "write_ahead"
"""The key of the schedule: whether scratch memory of ranks is written that have not entered a launch. Without it, only
where no MMAs come before, behind which a wait for their entry takes no time."""


class GuardLaunches(KernelPass):
    """Count in epochs, and let no rank touch another's memory before that rank has entered or after it has left.

    Counters only grow: in launch number e a wait for n signals waits for n * e, since every launch sends a counter the
    same number, or raises it to n * e. Two obligations remain, and become separate signals:

    - entry: a rank's inputs are valid, and its arrays may be written, once it has entered this launch; so each role
      that reaches other ranks first waits until all have entered, unless each such access follows the wait of another
      role, through channels and counters, or signals of this launch from every rank. A role that only writes to scratch
      memory of others need not await their entry: that memory is the kernel's between launches too (`pk.kept`), and
      free once the roles that read it are done with the launch before. These signal it, `emptied`, if the exit does not
      imply it: the wait for it has mostly been met long before, and no rank waits for another to begin. That signal
      takes time at the end of each launch. So tiles that MMAs make await the entry: it is over when the first is done;
    - packets of launch e go to one of two halves of scratch memory, which packets of e - 2 were in before. Their
      readers have ended when their rank enters e - 1: so nobody awaits it to begin, but one CTA does before its rank
      ends e - 1, when it has mostly been met, unless something else that the rank awaits to end tells the same;
    - exit: a rank's arrays may be used again once it has left; so the kernel ends on a rank only when, on every
      rank, each role that reaches the caller's arrays of other ranks, or reads their scratch memory, is done. Writes to
      scratch memory need no such wait: its owner awaits them.

    A protocol that the author wrote counts from zero: a wait may be for some of the signals of a launch, and how many
    there are in all is not known. So its counters are reset: nobody signals before all ranks have entered, and a rank
    resets its counters when all roles of all ranks that signal or wait have left. Roles that are not shared out among
    CTAs run as they were written, once on each rank.

    A launch has ended on a rank when all its roles have, copy engines included. Copy engines cannot add to counters.
    They run beside the kernel, and begin when all earlier launches on their rank have ended. So they wait for each
    other, before their first copy and after their last: each raises its counter on every rank, `began` and `copied`,
    and waits for those of all ranks.

    What of the caller's arrays no other rank reaches is marked (`pk.local`): it may lie outside of the symmetric heap.

    Before:

        pk.role communicator {
          ... pk.wait %ready[%0] for %n ...
        }

    After:

        pk.role communicator {
          pk.signal_all %entered[%zero] by %one : !pk.signal<[1]>
          pk.wait %entered[%zero] for %all_entered : !pk.signal<[1]>
          ... pk.wait %ready[%0] for %n_times_epoch ...
          pk.signal_all %left[%zero] by %one : !pk.signal<[1]>
          pk.wait %left[%zero] for %all_left : !pk.signal<[1]>
        }
    """

    name = "pk-guard-launches"

    def run(self, kernel: KernelOp) -> None:
        _mark_local(kernel)
        if DERIVED in kernel.attributes and WRITTEN not in kernel.attributes:
            _guard_kernel(kernel)
        else:
            _guard_written(kernel)


def _mark_local(kernel: KernelOp) -> None:
    """Say which of the caller's arrays no other rank reaches. Copy engines know those of the symmetric heap alone."""
    far = {array for _, array in reached(kernel)}
    copied = {array for op in kernel.walk() if isinstance(op, CopyOp) for array in (op.source, op.target)}
    for array in kernel.body.block.args:
        if isinstance(array.type, PGLType) and array not in far | copied and not kernel.is_scratch(array):
            mark(kernel, array, LOCAL)


def _guard_kernel(kernel: KernelOp) -> None:
    for op in list(kernel.walk()):
        if isinstance(op, WaitOp):
            _count_in_epochs(op, op.count)
        if isinstance(op, RaiseOp):
            _count_in_epochs(op, op.value)
    roles = kernel.roles
    reaching = [role for role in roles if any(reached(role))]
    engines = [role for role in reaching if is_engine(role)]
    for role in engines:
        _meet(kernel, role)
    moving = [role for role in reaching if role not in engines]
    if not moving:
        return
    lasting = [role for role in moving if any(_lasts(kernel, op, array) for op, array in reached(role))]
    first = next(role for role in roles if not is_engine(role))
    sending = [role for role in moving if all(map(packed, (op for op, _ in reached(role))))]
    early, ahead = _early(kernel, [role for role in moving if role not in sending], engines)
    for array in dict.fromkeys(array for role in sending for _, array in reached(role)):
        mark(kernel, array, KEPT)
    if sending and not early and not lasting and not any(map(ends_behind_entry, roles)):
        _enter_late(kernel, first, sending[0])
    if early:
        entered = add_parameter(kernel, "entered", SignalType((1,)), kernel.location)
        for role in early:
            _at_start(role, _wait(entered, [first]))
        _at_start(first, _signal(entered))
    _write_ahead(kernel, ahead, lasting)
    if not lasting:
        return
    left = add_parameter(kernel, "left", SignalType((1,)), kernel.location)
    for role in lasting:
        _at_end(role, _signal(left))
    _at_end(lasting[0], _wait(left, lasting))


def _enter_late(kernel: KernelOp, first: RoleOp, last: RoleOp) -> None:
    """Let one CTA await, before its launch ends, that all ranks have entered it, and so have ended the one before."""
    entered = add_parameter(kernel, "entered", SignalType((1,)), kernel.location)
    _at_start(first, _by_one(_signal(entered), first))
    _at_end(last, _by_one(_wait(entered, []), last))


def _early(kernel: KernelOp, moving: Sequence[RoleOp], engines: Sequence[RoleOp]) -> tuple[list[RoleOp], list[RoleOp]]:
    """The roles that must await the entry of all ranks, as few as can be, and those that may write ahead of it."""
    needing = [role for role in moving if not _follows_entry(role, engines)]
    asked = kernel.schedule.get(WRITE_AHEAD)
    may = not engines and asked != BoolAttr.from_bool(False)
    always = asked == BoolAttr.from_bool(True)
    ahead = [role for role in needing if may and (always or not _awaits_mma(role)) and _writes_scratch(kernel, role)]
    needing = [role for role in needing if role not in ahead]
    early = needing
    for role in needing:  # those that tiles come from first: who waits later lets the others begin
        fewer = [other for other in early if other is not role]
        if all(_follows_entry(other, [*engines, *fewer]) for other in needing if other not in fewer):
            early = fewer
    return early, [role for role in ahead if not _follows_entry(role, [*engines, *early])]


def _follows_entry(role: RoleOp, waiting: Sequence[RoleOp]) -> bool:
    """Whether all ranks have entered whenever a role reaches one of them, if these roles wait for that."""
    return all(follows_entry(op, waiting, _block_of(op, array)) for op, array in reached(role))


def _block_of(op: Operation, array: BlockArgument) -> SSAValue | None:
    """The block, in one shard, whose owner an access reaches; None if it may reach others."""
    if not is_pgl(array, Layout.Shard) or not isinstance(op, LoadOp | ReadOp | StoreOp):
        return None
    index = op.indices[shard_of(array)]
    value = index.owner.block if isinstance(index.owner, BlockPositionOp) else index
    return value if isinstance(value.owner, BlockOp) and value.owner.in_shard else None


def _writes_scratch(kernel: KernelOp, role: RoleOp) -> bool:
    """Whether all that a role does to other ranks is to write to scratch memory that their threads read."""
    accesses = list(reached(role))
    for op, array in accesses:
        if not isinstance(op, StoreOp) or not kernel.is_scratch(array):
            return False
        if any(isinstance(user, CopyOp) or not needs_threads(user) for user in _readers(array)):
            reason = f"TMA may still read `{kernel.argument_name(array)}` of the launch before"
            missed(GuardLaunches.name, op, f"it waits until all ranks have entered: {reason}", of_ranks=True)
            return False
    return bool(accesses)


def _awaits_mma(role: RoleOp) -> bool:
    """Whether the tiles that a role stores on other ranks are sums of products, which take time."""
    tiles = [op.tile for op, _ in reached(role) if isinstance(op, StoreOp)]
    channels = {tile.owner.channel for tile in tiles if isinstance(tile.owner, ConsumeOp)}
    users = [use.operation for channel in channels for use in channel.uses]
    makers = roles_around(user for user in users if isinstance(user, CommitOp))
    return any(isinstance(op, AnyMmaOp) for maker in [role, *makers] for op in maker.walk())


def _readers(array: BlockArgument) -> list[Operation]:
    """The operations that read an array."""
    users = (use.operation for use in array.uses)
    return [op for op in users if not isinstance(op, StoreOp | CopyOp) or array is getattr(op, "source", None)]


def _write_ahead(kernel: KernelOp, ahead: Sequence[RoleOp], lasting: Sequence[RoleOp]) -> None:
    """Let roles write to scratch memory of ranks that have not entered, once these have read it in the last launch."""
    arrays = dict.fromkeys(array for role in ahead for _, array in reached(role))
    for array in arrays:
        mark(kernel, array, KEPT)
    reading = roles_around(op for array in arrays for op in _readers(array))
    if not ahead or all(role in lasting for role in reading):
        return
    # Two counters, in turn: else the signal of a CTA without tasks could pass for one of the launch before.
    emptied = add_parameter(kernel, "emptied", SignalType((2,)), kernel.location)
    for role in ahead:
        _at_start(role, _wait(emptied, reading, earlier=True))
    for role in reading:
        _at_end(role, _signal(emptied, in_turn=True))


def _guard_written(kernel: KernelOp) -> None:
    """Make a protocol that the author wrote begin at zero in each launch: nobody signals before all have entered, and
    when all roles of all ranks that signal or wait have left, one CTA resets the counters."""
    roles = kernel.roles
    signals = [arg for arg in kernel.body.block.args if isinstance(arg.type, SignalType) and arg.uses.get_length()]
    reaching = [role for role in roles if any(reached(role)) or any(map(_signals, role.walk()))]
    if not reaching:
        return
    entered = add_parameter(kernel, "entered", SignalType((1,)), kernel.location)
    left = add_parameter(kernel, "left", SignalType((1,)), kernel.location)
    leaving = [role for role in roles if role in reaching or any(isinstance(op, WaitOp) for op in role.walk())]
    for role in reaching:
        _at_start(role, _wait(entered, roles[:1]))
    _at_start(roles[0], _signal(entered))
    for role in leaving:
        _at_end(role, _signal(left))
    resets: list[Operation] = list(map(ResetOp, signals))
    shared_out = WRITTEN in kernel.attributes
    _at_end(leaving[0], [*_wait(left, leaving), *(_by_one(resets, leaving[0]) if shared_out else resets)])


def _by_one(ops: Sequence[Operation], role: RoleOp) -> list[Operation]:
    """Operations that one CTA carries out, as a set of one task."""
    body, one = Block(arg_types=[IndexType()]), constant(1)
    for op in ops:
        append(body, op, role.location)
    tasks = TasksOp([one.result], Region(body))
    tasks.attributes[PER_CTA] = UnitAttr()
    return [one, tasks] if ops else []


def _signals(op: Operation) -> bool:
    return isinstance(op, SignalOp | SignalAllOp | RaiseOp | BarrierOp)


def _lasts(kernel: KernelOp, op: Operation, array: BlockArgument) -> bool:
    """Whether the owner of an array must not leave before an operation of another rank is done.

    It need not await that if its tasks do, which use all that others write to scratch memory.
    """
    reads = isinstance(op, READING)
    reads |= isinstance(op, CopyOp) and array is op.source
    reads |= isinstance(op, SumRowsOp) and array is op.slots
    return reads or not kernel.is_scratch(array) or any(is_cut_short(use.operation) for use in array.uses)


def _meet(kernel: KernelOp, role: RoleOp) -> None:
    """Let the copy engines of all ranks wait for each other before the first copy of a role and after its last."""
    _at_start(role, _meeting(add_parameter(kernel, "began", SignalType((RANKS,)), role.location), role))
    _at_end(role, _meeting(add_parameter(kernel, "copied", SignalType((RANKS,)), role.location), role))


def _meeting(signal: BlockArgument, role: RoleOp) -> list[Operation]:
    """Each raises its separate counter on every rank, because a stream writes values and does not add."""
    rank, zero, one, ranks, epoch = RankOp(), constant(0), constant(1), DimOp(RANKS), EpochOp()
    tell, wait = Block(arg_types=[IndexType()]), Block(arg_types=[IndexType()])
    bounds = (zero.result, ranks.result, one.result)
    for op in (RaiseOp(signal, (rank.result,), tell.args[0], epoch.result), scf.YieldOp()):
        append(tell, op, role.location)
    for op in (WaitOp(signal, (wait.args[0],), epoch.result), scf.YieldOp()):
        append(wait, op, role.location)
    return [rank, zero, one, ranks, epoch, scf.ForOp(*bounds, [], tell), scf.ForOp(*bounds, [], wait)]


def _count_in_epochs(op: WaitOp | RaiseOp, number: SSAValue) -> None:
    epoch = EpochOp()
    launches: list[Operation] = [epoch]
    if packed(op):  # of two counters that launches take in turn
        one, two = constant(1), constant(2)
        following = arith.AddiOp(epoch.result, one.result)
        launches += [one, two, following, arith.DivSIOp(following.result, two.result)]
    total = arith.MuliOp(number, launches[-1].results[0])
    before(op, [*launches, total])
    op.operands = [total.result if operand is number else operand for operand in op.operands]


def _signal(signal: BlockArgument, *, in_turn: bool = False) -> list[Operation]:
    """Each CTA that comes here signals every rank once; of two counters those of launches in turn."""
    zero, one = constant(0), constant(1)
    if not in_turn:
        return [zero, one, SignalAllOp(signal, (zero.result,), one)]
    epoch, two = EpochOp(), constant(2)
    turn = arith.RemSIOp(epoch, two)
    return [epoch, one, two, turn, SignalAllOp(signal, (turn.result,), one)]


def _wait(signal: BlockArgument, signalling: list[RoleOp], *, earlier: bool = False) -> list[Operation]:
    """Wait until every CTA of these roles, or one CTA, has signalled, on every rank, in this launch, or, the other of
    two counters, in the one before."""
    ctas: list[Operation] = [CtasOp(role.role) for role in signalling] or [constant(1)]
    ops: list[Operation] = list(ctas)
    total: SSAValue = ctas[0].results[0]
    for more in ctas[1:]:
        ops.append(arith.AddiOp(total, more.results[0]))
        total = ops[-1].results[0]
    ranks, epoch, zero = DimOp(RANKS), EpochOp(), constant(0)
    ops += [ranks, epoch]
    if not earlier:
        multiply, wanted = product_ops([total, ranks.result, epoch.result])
        return [*ops, *multiply, zero, WaitOp(signal, (zero.result,), wanted)]
    one, two = constant(1), constant(2)
    before_this, launches = arith.SubiOp(epoch, one), arith.DivSIOp(epoch, two)
    turn = arith.RemSIOp(before_this, two)
    multiply, wanted = product_ops([total, ranks.result, launches.result])
    wait = WaitOp(signal, (turn.result,), wanted)
    wait.attributes[EARLIER] = UnitAttr()
    return [*ops, one, two, before_this, turn, launches, *multiply, wait]


def _at_start(role: RoleOp, ops: Sequence[Operation]) -> None:
    block, first = role.body.block, role.body.block.first_op
    for op in ops:
        op.location = role.location
        if first is None:
            block.add_op(op)
        else:
            block.insert_op_before(op, first)


def _at_end(role: RoleOp, ops: Sequence[Operation]) -> None:
    for op in ops:
        op.location = role.location
        role.body.block.add_op(op)
