"""The pass `pk-trace`: records of what each role of each CTA does and when, written while the kernel runs."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IndexType, IntegerAttr, StringAttr, i32
from xdsl.ir import Operation, SSAValue

from pkc.dialect.coordinates import DimOp
from pkc.dialect.machine import AWAITS, ONE, TASKS, UNTIL, InstructionOp
from pkc.dialect.program import FIRST_WARP, KernelOp
from pkc.dialect.types import PrivateType
from pkc.passes.analysis.dependence import ancestors
from pkc.passes.build import add_parameter
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.instruments import (
    body_of,
    insert_after,
    insert_before,
    new_dimension,
    role_branches,
    role_names,
    task_of,
    text_of,
    work_of,
)

KIND, WHAT = "kind", "what"
"""On a `record`: what it tells of, one of `KINDS`, and its name."""

KINDS = ("cta", "begin", "task", "wait", "waits", "drain", "over", "end")
"""What a record tells of. The value beside its time is

- for `cta`, the begin of the CTA, the number of its SM;
- for the `begin` and `end` of a role, of each `task`, and for tasks that are `over`: the cycle of the SM;
- for a `wait` or a `drain`, which begins at its time: how many cycles it takes;
- for the `waits` of a loop, which ends at its time: how many cycles they take together.
"""

RECORD_BYTES = 16
WORDS = RECORD_BYTES // 4

TRACE = "trace"
"""On a kernel: that it is traced. The array of the records, its dimensions, and the name of each role."""

_DRAINS = {"bulk_wait_read": "read", "bulk_wait_full": "complete"}
"""What drains wait for, by the beginning of their names: the rest of the name is how many stores stay in flight."""


class Trace(KernelPass):
    """Let one thread of each role write records: when the role, each task, each wait and each drain begins or ends.

    A record has 16 bytes: nanoseconds, the number of the `record` instruction, the task, and a value (`KINDS`). Each
    role of each CTA has a row of a new array; record 0 of a row says how many others there would be if it were long
    enough. Waits for stages within a loop are added up and recorded once behind the loop.

    Before:

        scf.for %task = %cta to %count step %ctas {
          pk.instruction "mbarrier_wait"(%full, %phase) {awaits = "cast", until = "filled"} : (index, index) -> ()
        } {tasks}

    After:

        scf.for %task = %cta to %count step %ctas {
          ...
          pk.instruction "record"(%n, %row, %length, %now, %2, %task, %cycle) {kind = "task", what = "stores"} : ...
          %begin = pk.instruction "timer"() : () -> ui32
          %first = pk.instruction "cycle"() : () -> index
          pk.instruction "mbarrier_wait"(%full, %phase) {awaits = "cast", until = "filled"} : (index, index) -> ()
          %last = pk.instruction "cycle"() : () -> index
          %cycles = arith.subi %last, %first : index
          pk.instruction "record"(%n, %row, %length, %begin, %3, %task, %cycles) {kind = "wait", what = "cast"} : ...
        } {tasks}
    """

    name = "pk-trace"

    def run(self, kernel: KernelOp) -> None:
        branches = role_branches(kernel)
        ctas, records = new_dimension(kernel, "trace_ctas"), new_dimension(kernel, "trace_records")
        array = add_parameter(kernel, "trace", PrivateType([ctas, len(branches), records, WORDS], i32), kernel.location)
        kernel.attributes[TRACE] = DictionaryAttr(
            {
                "array": StringAttr(kernel.argument_name(array)),
                "ctas": StringAttr(ctas),
                "records": StringAttr(records),
                "roles": ArrayAttr(map(StringAttr, role_names(branches))),
            }
        )
        top = kernel.body.block.first_op
        assert top is not None
        began = insert_before(top, lambda emit: emit.value("timer"))
        numbers = _Numbers()
        for number, branch in enumerate(branches):
            _Role(branch, number, len(branches), array, records, began, numbers).trace()


@dataclass
class _Numbers:
    """The numbers of `record` instructions."""

    count: int = 0

    def next(self) -> int:
        self.count += 1
        return self.count - 1


@dataclass
class _Role:
    branch: scf.IfOp
    number: int
    roles: int
    array: SSAValue
    records: str
    began: SSAValue
    numbers: _Numbers

    def trace(self) -> None:
        body = self.branch.true_region.block
        waits = [op for op in body.walk() if isinstance(op, InstructionOp) and _stops(op)]
        tasks = [op for op in body.walk() if TASKS in op.attributes]
        first = body.first_op
        assert first is not None
        insert_before(first, self._begin)
        for op in waits:
            loop = _loop(op)
            if loop is None or op.instruction_name.data == "spin":
                self._single(op)
            else:
                self._summed(op, loop)
        for loop in tasks:
            self._tasks(loop)
        last = body.last_op
        assert last is not None
        last.location = self.branch.location
        insert_before(last, self._end)

    # What is recorded

    def _begin(self, emit: Emitter) -> None:
        """Compute the row of this role in this CTA, and record that both have begun."""
        dim = DimOp(self.records)
        emit.add(dim)
        row = emit.plus(emit.times(emit.value("cta_number"), self.roles), self.number)
        start = emit.times(emit.times(emit.wide(row), emit.wide(dim.result)), RECORD_BYTES)
        self._length, self._row = dim.result, emit.plus(emit.address(self.array), start)
        self._row.name_hint = "row"
        self._elected = None
        if ONE not in self.branch.attributes:
            first = self.branch.attributes[FIRST_WARP]
            assert isinstance(first, IntegerAttr)
            thread = emit.value("thread_number")
            self._elected = emit.compare("eq", thread, first.value.data * emit.target.arch.warp)
        self._count = emit.registers(1, IndexType(), "records")
        emit.set(emit.const(1), self._count, 0)
        self._record(emit, "cta", "", self.began, emit.value("sm_number"), None)
        self._moment(emit, "begin", "", None)

    def _end(self, emit: Emitter) -> None:
        self._moment(emit, "end", "", None)
        with self._once(emit):
            emit.do("store_u32", self._row, emit.get(self._count, 0))

    def _single(self, op: InstructionOp) -> None:
        """A wait with one record."""
        begin, first = insert_before(op, lambda emit: (emit.value("timer"), emit.value("cycle")))

        def after(emit: Emitter) -> None:
            cycles = emit.minus(emit.value("cycle"), first)
            kind, what = _name(op)
            self._record(emit, kind, what, begin, cycles, op)

        insert_after(op, after)

    def _summed(self, op: InstructionOp, loop: Operation) -> None:
        """A wait that is added to the others of its loop."""

        def before_loop(emit: Emitter) -> SSAValue:
            waited = emit.registers(1, IndexType(), "waited")
            emit.set(emit.const(0), waited, 0)
            return waited

        waited = insert_before(loop, before_loop)
        first = insert_before(op, lambda emit: emit.value("cycle"))

        def after(emit: Emitter) -> None:
            cycles = emit.minus(emit.value("cycle"), first)
            emit.set(emit.plus(emit.get(waited, 0), cycles), waited, 0)

        def after_loop(emit: Emitter) -> None:
            emit.location = op.location
            _, what = _name(op)
            self._record(emit, "waits", what, emit.value("timer"), emit.get(waited, 0), loop)

        insert_after(op, after)
        insert_after(loop, after_loop)

    def _tasks(self, loop: Operation) -> None:
        what = work_of(loop)
        first = body_of(loop).first_op
        assert first is not None
        insert_before(first, lambda emit: self._moment(emit, "task", what, first), loop)
        insert_after(loop, lambda emit: self._moment(emit, "over", what, loop))

    def _moment(self, emit: Emitter, kind: str, what: str, at: Operation | None) -> None:
        with self._once(emit):
            self._write(emit, kind, what, emit.value("timer"), emit.value("cycle"), at)

    def _record(
        self, emit: Emitter, kind: str, what: str, time: SSAValue, value: SSAValue, at: Operation | None
    ) -> None:
        with self._once(emit):
            self._write(emit, kind, what, time, value, at)

    def _write(
        self, emit: Emitter, kind: str, what: str, time: SSAValue, value: SSAValue, at: Operation | None
    ) -> None:
        number = emit.const(self.numbers.next())
        task = emit.const(-1) if at is None else task_of(at) or emit.const(-1)
        op = emit.instruction("record", self._count, self._row, self._length, time, number, task, value)
        op.attributes |= {KIND: StringAttr(kind), WHAT: StringAttr(what)}

    def _once(self, emit: Emitter) -> AbstractContextManager[None]:
        """A branch of the one thread that writes."""
        return nullcontext() if self._elected is None else emit.when(self._elected)


def _stops(op: Operation) -> bool:
    """Whether an instruction waits for other threads or for stores."""
    return isinstance(op, InstructionOp) and (AWAITS in op.attributes or bool(_drained(op)))


def _drained(op: InstructionOp) -> str:
    """What a drain waits for; nothing for any other instruction."""
    return next((done for name, done in _DRAINS.items() if op.instruction_name.data.startswith(name)), "")


def _name(op: InstructionOp) -> tuple[str, str]:
    """The kind of its record, and what it waits for: counters, a channel, or room in a channel."""
    if AWAITS not in op.attributes:
        return "drain", _drained(op)
    room = "room in " if text_of(op, UNTIL) == "free" else ""
    return "wait", f"{room}`{text_of(op, AWAITS)}`"


def _loop(op: Operation) -> Operation | None:
    """The loop within a task, or outside of tasks, that goes through an operation more than once."""
    loop = next((outer for outer in ancestors(op) if isinstance(outer, scf.ForOp | scf.WhileOp)), None)
    return None if loop is None or TASKS in loop.attributes else loop
