"""The pass `pk-trace`: what each part of each CTA does at which time, written down while the kernel runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    i32,
)
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from pkc.arch import SM_90A
from pkc.dialect.machine import AWAITS, ONE, PART, TASKS, UNTIL, InstructionOp
from pkc.dialect.program import FIRST_WARP, DimOp, KernelOp
from pkc.dialect.types import ArrayType, PrivateType
from pkc.passes.dependence import ancestors
from pkc.passes.derive import add_parameter
from pkc.passes.emit import Emitter

KIND, WHAT = "kind", "what"
"""On a `record`: what it tells of, one of `KINDS`, and its name."""

KINDS = ("cta", "begin", "task", "wait", "waits", "drain", "over", "end")
"""What a record tells of. The value beside its time is

- for `cta`, the begin of the CTA, the number of its SM;
- for the `begin` and `end` of a part, of each `task`, and for tasks that are `over`: the cycle of the SM;
- for a `wait` or a `drain`, which begins at its time: how many cycles it takes;
- for the `waits` of a loop, which ends at its time: how many cycles they take together.
"""

RECORD_BYTES = 16
WORDS = RECORD_BYTES // 4

TRACE = "trace"
"""On a kernel: that it is traced. The array of the records, its dimensions, and the name of each part."""

_WORK = (("wgmma_n", "products"), ("tma_load", "loads"), ("tma_", "stores"))
"""What tasks are called, by the first of these instructions that they have."""

_DRAINS = {"bulk_wait_read": "read", "bulk_wait_full": "complete"}

_T = TypeVar("_T")


@dataclass(frozen=True)
class Trace(ModulePass):
    """Let one thread of each part write records: when the part, each task, each wait and each drain begins or ends.

    A record has 16 bytes: nanoseconds, the number of the `record` instruction, the task, and a value (`KINDS`). Each
    part of each CTA has a row of a new array; record 0 of a row says how many others there would be if it were long
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

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in op.walk():
            if isinstance(kernel, KernelOp):
                _trace(kernel)


def parts_of(kernel: KernelOp) -> list[scf.IfOp]:
    """The branches that the parts of a kernel at the machine level have become."""
    return [op for op in kernel.walk() if isinstance(op, scf.IfOp) and PART in op.attributes]


def _trace(kernel: KernelOp) -> None:
    parts = parts_of(kernel)
    used = {dim for arg in kernel.body.block.args if isinstance(arg.type, ArrayType) for dim in arg.type.dimensions}
    ctas, records = (_unused(name, used) for name in ("trace_ctas", "trace_records"))
    array = add_parameter(kernel, "trace", PrivateType([ctas, len(parts), records, WORDS], i32), kernel.location)
    kernel.attributes[TRACE] = DictionaryAttr(
        {
            "array": StringAttr(kernel.argument_name(array)),
            "ctas": StringAttr(ctas),
            "records": StringAttr(records),
            "parts": ArrayAttr(map(StringAttr, _names(parts))),
        }
    )
    top = kernel.body.block.first_op
    assert top is not None
    began = _insert(top, lambda emit: emit.value("timer"))
    points = _Points()
    for number, part in enumerate(parts):
        _Part(part, number, len(parts), array, records, began, points).trace()


def _unused(name: str, used: set[str | int]) -> str:
    return name if name not in used else _unused(f"{name}_", used)


def _names(parts: Sequence[scf.IfOp]) -> list[str]:
    """The roles of the parts; of several that have one, also what they do."""
    roles = [_text(part, PART) for part in parts]
    names: list[str] = []
    for role, part in zip(roles, parts, strict=True):
        name = role if roles.count(role) == 1 else f"{role}, {_work(part)}"
        names.append(name if name not in names else f"{name} {len(names)}")
    return names


@dataclass
class _Points:
    """The numbers of `record` instructions."""

    count: int = 0

    def next(self) -> int:
        self.count += 1
        return self.count - 1


@dataclass
class _Part:
    branch: scf.IfOp
    number: int
    parts: int
    array: SSAValue
    records: str
    began: SSAValue
    points: _Points

    def trace(self) -> None:
        body = self.branch.true_region.block
        waits = [op for op in body.walk() if isinstance(op, InstructionOp) and _stops(op)]
        tasks = [op for op in body.walk() if isinstance(op, scf.ForOp) and TASKS in op.attributes]
        first = body.first_op
        assert first is not None
        _insert(first, self._begin)
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
        _insert(last, self._end)

    # What is recorded

    def _begin(self, emit: Emitter) -> None:
        """The row of this part in this CTA, and that they have begun."""
        dim = DimOp(self.records)
        emit.add(dim)
        row = emit.plus(emit.times(emit.value("cta_number"), self.parts), self.number)
        start = emit.times(emit.times(emit.wide(row), emit.wide(dim.result)), RECORD_BYTES)
        self._length, self._row = dim.result, emit.plus(emit.address(self.array), start)
        self._row.name_hint = "row"
        self._elected = None
        if ONE not in self.branch.attributes:
            first = self.branch.attributes[FIRST_WARP]
            assert isinstance(first, IntegerAttr)
            self._elected = emit.compare("eq", emit.value("thread_number"), first.value.data * SM_90A.warp)
        self._count = emit.registers(1, IndexType(), "records")
        emit.set(emit.const(1), self._count, 0)
        self._record(emit, "cta", "", self.began, emit.value("sm_number"), None)
        self._moment(emit, "begin", "", None)

    def _end(self, emit: Emitter) -> None:
        self._moment(emit, "end", "", None)
        with self._once(emit):
            emit.do("store_u32", self._row, emit.get(self._count, 0))

    def _single(self, op: InstructionOp) -> None:
        """A wait with a record of its own."""
        begin, first = _insert(op, lambda emit: (emit.value("timer"), emit.value("cycle")))

        def after(emit: Emitter) -> None:
            cycles = emit.minus(emit.value("cycle"), first)
            kind, what = _name(op)
            self._record(emit, kind, what, begin, cycles, op)

        _insert_after(op, after)

    def _summed(self, op: InstructionOp, loop: scf.ForOp) -> None:
        """A wait that is added to the others of its loop."""

        def before_loop(emit: Emitter) -> SSAValue:
            waited = emit.registers(1, IndexType(), "waited")
            emit.set(emit.const(0), waited, 0)
            return waited

        waited = _insert(loop, before_loop)
        first = _insert(op, lambda emit: emit.value("cycle"))

        def after(emit: Emitter) -> None:
            cycles = emit.minus(emit.value("cycle"), first)
            emit.set(emit.plus(emit.get(waited, 0), cycles), waited, 0)

        def after_loop(emit: Emitter) -> None:
            emit.location = op.location
            _, what = _name(op)
            self._record(emit, "waits", what, emit.value("timer"), emit.get(waited, 0), loop)

        _insert_after(op, after)
        _insert_after(loop, after_loop)

    def _tasks(self, loop: scf.ForOp) -> None:
        what = _work(loop)
        first = loop.body.block.first_op
        assert first is not None
        _insert(first, lambda emit: self._moment(emit, "task", what, first), loop)
        _insert_after(loop, lambda emit: self._moment(emit, "over", what, loop))

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
        number = emit.const(self.points.next())
        task = emit.const(-1) if at is None else _task(at) or emit.const(-1)
        op = InstructionOp("record", (self._count, self._row, self._length, time, number, task, value))
        op.attributes |= {KIND: StringAttr(kind), WHAT: StringAttr(what)}
        emit.add(op)

    def _once(self, emit: Emitter) -> AbstractContextManager[None]:
        """What is written is written by one thread."""
        return nullcontext() if self._elected is None else emit.when(self._elected)


def _stops(op: Operation) -> bool:
    """Whether an instruction may take long because of what others do."""
    return isinstance(op, InstructionOp) and (AWAITS in op.attributes or op.instruction_name.data in _DRAINS)


def _name(op: InstructionOp) -> tuple[str, str]:
    """The kind of its record, and what it waits for: counters, a channel, or room in a channel."""
    if AWAITS not in op.attributes:
        return "drain", _DRAINS[op.instruction_name.data]
    room = "room in " if _text(op, UNTIL) == "free" else ""
    return "wait", f"{room}`{_text(op, AWAITS)}`"


def _loop(op: Operation) -> scf.ForOp | None:
    """The loop within a task, or outside of tasks, that goes through an operation more than once."""
    loop = next((outer for outer in ancestors(op) if isinstance(outer, scf.ForOp)), None)
    return None if loop is None or TASKS in loop.attributes else loop


def _task(op: Operation) -> SSAValue | None:
    """The number of the task that an operation belongs to."""
    loops = (outer for outer in ancestors(op) if isinstance(outer, scf.ForOp) and TASKS in outer.attributes)
    loop = next(loops, None)
    return None if loop is None else loop.body.block.args[0]


def _work(op: Operation) -> str:
    """What the instructions inside an operation amount to, in a word."""
    names = [inner.instruction_name.data for inner in op.walk() if isinstance(inner, InstructionOp)]
    for start, work in _WORK:
        if any(name.startswith(start) for name in names):
            return work
    return "sums" if any(isinstance(inner, arith.AddfOp) for inner in op.walk()) else "copies"


def _text(op: Operation, name: str) -> str:
    value = op.attributes[name]
    assert isinstance(value, StringAttr)
    return value.data


def _insert(anchor: Operation, build: Callable[[Emitter], _T], line: Operation | None = None) -> _T:
    """Put what `build` emits in front of an operation, at its line or that of `line`."""
    block, into = Block(), anchor.parent
    assert into is not None
    result = build(Emitter(block, (line or anchor).location))
    for op in list(block.ops):
        op.detach()
        into.insert_op_before(op, anchor)
    return result


def _insert_after(anchor: Operation, build: Callable[[Emitter], None]) -> None:
    following = anchor.next_op
    assert following is not None
    _insert(following, build, anchor)
