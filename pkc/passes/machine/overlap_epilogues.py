"""The pass `pk-overlap-epilogues`: the end of an epilogue is computed beside the MMAs of the next task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, f32
from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect.attributes import number_on
from pkc.dialect.coordinates import DimOp, RankOp
from pkc.dialect.engines import is_engine
from pkc.dialect.machine import (
    AWAITS,
    TASKS,
    AddressOp,
    GetOp,
    InstructionOp,
    LaunchValueOp,
    RegistersOp,
    RegistersType,
    SetOp,
)
from pkc.dialect.program import KernelOp
from pkc.dialect.roles import LATER
from pkc.dialect.scalars import constant_of
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.instruments import insert_after, insert_before
from pkc.passes.machine.kept_integers import is_rolled
from pkc.remarks import missed
from pkc.targets.target import target_of

_Known: TypeAlias = dict[SSAValue, SSAValue]
"""Values of a task, by what they were in the task before."""


class OverlapEpilogues(KernelPass):
    """Compute the end of an epilogue in the first iterations of the next task's loop, while the MMAs of these run.

    Both warpgroups of a CTA come to the end of a tile together, and tensor cores have nothing to do while an epilogue
    is computed. `pk-plan-epilogues` says of the unrolled loop that writes a result into its stage how many elements may
    wait (`later`). Their accumulators are copied to other registers. The first iterations of the next task's loop are
    copied in front of it. Each of them computes some of these elements (`later_piece` of the target) when its MMAs have
    been issued and the stage before is free, in a branch of its own, from which compilers move nothing between MMAs.
    Behind the last of them comes all else of the end, which tells others that the result is there. If the loop has
    fewer iterations, what is left is computed in front of it; what the last task leaves, behind all of them.

    Before:

        scf.for %task = %cta to %tasks step %ctas {
          %acc = pk.registers : !pk.registers<128xf32>
          scf.for %k = %zero to %blocks step %one {
            ... MMAs
          }
          scf.for %i = %zero to %c16 step %one { ... pk.get %acc ... } {unroll}
          scf.for %i = %c16 to %c32 step %one { ... pk.get %acc ... } {unroll, later = 64}
          pk.instruction "mbarrier_arrive"(%full) : (index) -> ()
        }

    After, where `%has` is `%task != %cta`:

        %kept = pk.registers : !pk.registers<64xf32>
        scf.for %task = %cta to %tasks step %ctas {
          %acc = pk.registers : !pk.registers<128xf32>
          ... if %has and %blocks < 8, as behind all tasks
          scf.if %enough {
            scf.for %k = %zero to %c8 step %one {
              ... MMAs
              scf.if %has { ... two iterations, pk.get %kept ... }
            } {unroll}
            scf.if %has { pk.instruction "mbarrier_arrive"(%full) : (index) -> () }
          }
          %begin = arith.select %enough, %c8, %zero : index
          scf.for %k = %begin to %blocks step %one {
            ... MMAs
          }
          scf.for %i = %zero to %c16 step %one { ... pk.get %acc ... } {unroll}
          ... the last 64 of %acc to %kept
        }
        scf.if %any { ... all that is left, pk.get %kept ... }
    """

    name = "pk-overlap-epilogues"

    def run(self, kernel: KernelOp) -> None:
        ops = (inside for op in kernel.body.block.ops if not is_engine(op) for inside in op.walk())
        for loop in [op for op in ops if isinstance(op, scf.ForOp) and LATER in op.attributes]:
            found = _ends(loop)
            later = number_on(loop, LATER)
            del loop.attributes[LATER]
            assert later is not None
            if isinstance(found, str):
                missed(OverlapEpilogues.name, loop, f"no MMAs run beside the end of the epilogue: {found}")
            else:
                _Overlap(found, later).write()


@dataclass(frozen=True)
class _Ends:
    """A loop through tasks, the last loop of a task that stays one, and the end of the task: what may wait."""

    tasks: scf.ForOp
    mmas: scf.ForOp
    end: list[Operation]
    accumulators: list[SSAValue]
    """What it reads of the task's own registers, arrays of as many f32 each."""
    again: list[Operation]
    """What it needs from the task's own operations, in their order: to be computed again."""

    @property
    def places(self) -> scf.ForOp:
        loop = self.end[0]
        assert isinstance(loop, scf.ForOp)
        return loop


def _ends(loop: scf.ForOp) -> _Ends | str:
    """What becomes of the end of a task that begins with an unrolled loop, or why it has to stay there."""
    tasks = loop.parent_op()
    if not isinstance(tasks, scf.ForOp) or TASKS not in tasks.attributes:
        return "it does not stand in the tasks themselves"
    ops = list(tasks.body.block.ops)
    before, end = ops[: ops.index(loop)], ops[ops.index(loop) : -1]
    mmas = next((op for op in reversed(before) if isinstance(op, scf.ForOp) and is_rolled(op)), None)
    if mmas is None or constant_of(mmas.lb) != 0 or constant_of(mmas.step) != 1:
        return "no loop of the task counts from 0"
    beside = before[: before.index(mmas) + 1]
    if any(isinstance(op, InstructionOp) for op in _inside(beside[:-1])):
        return "a task does more in front of its loop"
    if any(AWAITS in op.attributes for op in _inside(end)):
        return "it waits for others"
    inside = set(_inside(end))
    again = _needed(inside, tasks)
    if again is None:
        return "it needs what the task has read or counted"
    used = _arrays([*inside, *again])
    own: list[SSAValue] = [op.result for op in before if isinstance(op, RegistersOp) and op.result in used]
    kinds = {array.type for array in own}
    accumulated = all(isinstance(kind, RegistersType) and kind.element_type == f32 for kind in kinds)
    written = any(isinstance(op, SetOp) and op.registers in own for op in inside)
    if len(kinds) != 1 or not accumulated or written or _arrays(_inside(end[1:])) & {*own}:
        return "it has more than results of matmuls in registers"
    touched = _arrays(_inside(beside))
    changed = {op.registers for op in _inside(before) if isinstance(op, SetOp)}
    read = {op.registers for op in again if isinstance(op, GetOp)}
    places = {op.registers for op in inside if isinstance(op, SetOp)}
    if (places & touched) or (read & changed):
        return "the loop changes what it needs"
    return _Ends(tasks, mmas, end, own, again)


def _inside(ops: Iterable[Operation]) -> Iterator[Operation]:
    """Operations, and those in their regions."""
    return (inner for op in ops for inner in op.walk())


def _arrays(ops: Iterable[Operation]) -> set[SSAValue]:
    """The arrays of registers that operations use."""
    return {value for op in ops for value in op.operands if isinstance(value.type, RegistersType)}


_PURE = (DimOp, RankOp, AddressOp, LaunchValueOp, GetOp)


def _needed(inside: set[Operation], tasks: scf.ForOp) -> list[Operation] | None:
    """The operations of a task, none of `inside`, from which these compute what they use, in their order; nothing if
    some cannot be repeated. The number of the task is none."""
    found, todo = set[Operation](), list(inside)
    while todo:
        for value in todo.pop().operands:
            op = value.owner
            if isinstance(op, Block) or op in inside or op in found or op.parent is not tasks.body.block:
                continue
            if isinstance(op, RegistersOp):
                continue
            if not isinstance(op, _PURE) and op.dialect_name() != arith.Arith.name:
                return None
            found.add(op)
            todo.append(op)
    return [op for op in tasks.body.block.ops if op in found]


class _Overlap:
    """Moves the end of a task into the next one."""

    def __init__(self, ends: _Ends, later: int) -> None:
        self._ends = ends
        kind, first, last = ends.accumulators[0].type, constant_of(ends.places.lb), constant_of(ends.places.ub)
        assert isinstance(kind, RegistersType)
        assert first is not None
        assert last is not None
        self._later, self._from = later, kind.count - later
        self._first, self._each = first, max(1, target_of(ends.tasks).tuning.later_piece * (last - first) // later)
        while (last - first) % self._each:
            self._each -= 1
        self._pieces = (last - first) // self._each
        self._task = ends.tasks.body.block.args[0]
        self._numbered = self._task in {value for op in (*ends.again, *_inside(ends.end)) for value in op.operands}
        self._kept, self._number = insert_before(ends.tasks, self._registers)

    def _registers(self, emit: Emitter) -> tuple[dict[SSAValue, SSAValue], SSAValue | None]:
        """Registers for what waits, by accumulators, and, where it is needed, for the number of the task."""
        kept = {one: emit.registers(self._later, f32, "kept") for one in self._ends.accumulators}
        with emit.loop(0, self._later, unroll=True) as place:
            for registers in kept.values():
                emit.set(emit.real(0.0), registers, place)
        if not self._numbered:
            return kept, None
        number = emit.registers(1, IndexType(), "before")
        emit.set(emit.const(0), number, 0)
        return kept, number

    def write(self) -> None:
        tasks, mmas = self._ends.tasks, self._ends.mmas
        begin = insert_before(mmas, self._before_loop)
        mmas.operands = [begin, mmas.ub, mmas.step]
        insert_after(tasks, lambda emit: self._all(emit, emit.compare("slt", tasks.lb, tasks.ub)))
        insert_before(self._ends.places, self._keep)
        for op in reversed(self._ends.end):
            op.detach()
            op.erase()

    def _keep(self, emit: Emitter) -> None:
        with emit.loop(0, self._later, unroll=True) as place:
            for accumulators, kept in self._kept.items():
                emit.set(emit.get(accumulators, emit.plus(place, self._from)), kept, place)
        if self._number is not None:
            emit.set(self._task, self._number, 0)

    def _before_loop(self, emit: Emitter) -> SSAValue:
        """The first iterations of the loop, each with a piece of what the task before has left, if there are as many;
        else all of that. Where the loop begins then."""
        mmas = self._ends.mmas
        has = emit.compare("ne", self._task, self._ends.tasks.lb)
        enough = emit.compare("sge", mmas.ub, self._pieces)
        self._all(emit, emit.both(has, emit.negated(enough)))
        with emit.when(enough):
            with emit.loop(0, self._pieces, unroll=True) as piece:
                inside = dict[SSAValue, SSAValue]({mmas.body.block.args[0]: piece})
                for op in list(mmas.body.block.ops)[:-1]:
                    self._clone(emit, op, inside)
                with emit.when(has):  # for each piece: what stands in a branch of its own stays behind its MMAs
                    first = emit.plus(emit.times(piece, self._each), self._first)
                    self._places(emit, self._again(emit), self._each, first)
            with emit.when(has):
                self._behind(emit, self._again(emit))
        return emit.select(enough, emit.const(self._pieces), mmas.lb)

    def _all(self, emit: Emitter, condition: SSAValue) -> None:
        """All that a task has left, on a condition."""
        with emit.when(condition):
            known = self._again(emit)
            self._places(emit, known, self._each * self._pieces, emit.const(self._first))
            self._behind(emit, known)

    def _again(self, emit: Emitter) -> _Known:
        """What the end needs of its own task, by what it was there."""
        known = _Known()
        if self._number is not None:
            known[self._task] = emit.get(self._number, 0)
        for op in self._ends.again:
            self._clone(emit, op, known)
        return known

    def _places(self, emit: Emitter, known: _Known, count: int, first: SSAValue) -> None:
        """So many iterations of the loop at the beginning of the end."""
        loop = self._ends.places
        with emit.loop(0, count, unroll=True) as number:
            inside = dict[SSAValue, SSAValue](known | {loop.body.block.args[0]: emit.plus(number, first)})
            for op in list(loop.body.block.ops)[:-1]:
                self._clone(emit, op, inside)

    def _behind(self, emit: Emitter, known: _Known) -> None:
        inside = dict(known)
        for op in self._ends.end[1:]:
            self._clone(emit, op, inside)

    def _clone(self, emit: Emitter, op: Operation, known: _Known) -> None:
        """A copy of an operation, which reads the accumulators that were kept."""
        copy = op.clone(known)
        emit.block.add_op(copy)
        for inner in [inner for inner in copy.walk() if isinstance(inner, GetOp)]:
            if inner.registers in self._kept:
                index = inner.index
                shifted = insert_before(inner, lambda at, index=index: at.minus(index, self._from))
                inner.operands = [self._kept[inner.registers], shifted]
        for old, new in zip(op.results, copy.results, strict=True):
            new.name_hint = old.name_hint
            known[old] = new
