"""The pass `pk-bound-waits`: every wait ends, and a thread that gives up reports what it waited for."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import DictionaryAttr, IndexType, IntegerAttr, StringAttr, i32, i64
from xdsl.ir import Operation, SSAValue

from pkc.dialect.machine import AWAITS, ONE, PLACE, InstructionOp
from pkc.dialect.program import KernelOp
from pkc.dialect.types import PrivateType
from pkc.dialect.walks import walk
from pkc.dialect.words import BEGINS, ENDS, RANK, ROW
from pkc.passes.analysis.dependence import ancestors
from pkc.passes.analysis.effects import only_reads
from pkc.passes.build import add_parameter
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.machine.check_indices import OUT_OF_RANGE
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.instruments import (
    insert_after,
    insert_before,
    new_dimension,
    role_branches,
    task_of,
    text_of,
)
from pkc.passes.machine.lower_tiles import THREADS
from pkc.targets.target import target_of

WAITS = "bounded"
"""On a kernel whose waits are bounded: the array of reports, and its first dimension."""

POINT = "point"
"""On a bounded wait: its number, by which reports name it."""

REPORT_WORDS = 8
"""What a warp reports: why (1: it waited too long, 2: others did; 3: an index is out of range), the point, the task,
what it sees; what it wants, the low half of the address it looks at, and twice 0. Of an index: the index, and what it
must be less than."""


class BoundWaits(KernelPass):
    """Let every wait give up after a time, and all waits of all ranks once one has given up.

    A thread that gives up writes a report of 32 bytes, one for each warp, raises the alarm that all ranks look at, and
    ends: so the kernel ends, and the runtime can read what everyone waited for. An index that is out of range has a
    report too, a second one for each warp; a thread that would use it ends; a row of a table is left out,
    and a list is clamped.

    Before:

        pk.instruction "spin"(%counter, %count) {awaits = "ready", until = "raised"} : (i64, index) -> ()

    After:

        %why = pk.instruction "spin_bounded"(%seen, %counter, %count, %alarm) {awaits = "ready", ...} : ...
        %gone = arith.cmpi ne, %why, %zero : index
        scf.if %gone {
          pk.instruction "report"(%reports, %warps, %why, %number, %task, ...)
          scf.if %first_to_stop {
            pk.instruction "raise_alarm"(%alarm) : (i64) -> ()
          }
          pk.instruction "end_thread"() : () -> ()
        }
    """

    name = "pk-bound-waits"
    ENDS = True
    """Whether a thread that gives up ends; else it goes on as if its wait were over, and waits for stages, which roles
    that go on fill and release, stay as they are."""

    def run(self, kernel: KernelOp) -> None:
        branches = role_branches(kernel)
        found = [(op, ONE in branch.attributes) for branch in branches for op in walk(branch) if self._replaces(op)]
        if not found:
            return
        threads = kernel.attributes[THREADS]
        assert isinstance(threads, IntegerAttr)
        warps = threads.value.data // target_of(kernel).arch.warp
        ctas = new_dimension(kernel, "report_ctas")
        reports = add_parameter(kernel, "reports", PrivateType([ctas, 2 * warps, REPORT_WORDS], i32), kernel.location)
        names = {"reports": kernel.argument_name(reports), "ctas": ctas}
        kernel.attributes[WAITS] = DictionaryAttr({name: StringAttr(value) for name, value in names.items()})
        for number, (op, alone) in enumerate(found):
            assert isinstance(op, InstructionOp)
            _Wait(op, number, alone, warps, reports, self.ENDS).replace()

    def _replaces(self, op: Operation) -> bool:
        if not isinstance(op, InstructionOp):
            return False
        return (AWAITS in op.attributes and (self.ENDS or _spins(op))) or (self.ENDS and _is_index(op))


def _is_index(op: InstructionOp) -> bool:
    """Whether an instruction stands where an index is found to be no position."""
    return op.instruction_name.data == OUT_OF_RANGE


def _spins(op: InstructionOp) -> bool:
    """Whether an instruction waits for a counter; others wait for stages."""
    return op.instruction_name.data == "spin"


@dataclass
class _Wait:
    op: InstructionOp
    number: int
    alone: bool
    """Whether a single thread waits; else all threads of a warp do, or the first one for them."""
    warps: int
    reports: SSAValue
    ends: bool
    """Whether a thread that gives up ends."""

    def replace(self) -> None:
        if _is_index(self.op):
            insert_before(self.op, self._for_an_index)
        elif not _spins(self.op):
            insert_before(self.op, self._for_a_stage)
        elif not self.ends:
            insert_before(self.op, self._guarded)
        elif self.alone:
            insert_before(self.op, lambda emit: self._for_counters(emit, None))
        else:
            self._for_a_warp()
        self.op.detach()
        self.op.erase()

    def _for_an_index(self, emit: Emitter) -> None:
        index, extent = self.op.arguments
        report = self._report(emit, emit.const(3), index, extent, emit.const(0), behind=self.warps)
        report.attributes |= {**self.op.attributes, POINT: IntegerAttr(self.number, i64)}
        if text_of(self.op, PLACE) not in (ROW, RANK, BEGINS, ENDS):
            emit.do("end_thread")

    def _guarded(self, emit: Emitter) -> None:
        task = task_of(self.op)
        name = "spin_guarded" if task is None else "spin_guarded_in_task"
        reports = emit.address(self.reports), emit.const(2 * self.warps), emit.const(self.number)
        self._look(emit, name, *self.op.arguments, emit.launch_value("alarm"), *reports, task or emit.const(-1))

    def _for_a_stage(self, emit: Emitter) -> None:
        name = "mbarrier_wait_bounded" if self.alone else "mbarrier_wait_bounded_warp"
        if not self.alone and (branch := self._own_branch()) is not None:
            branch.operands[0] = insert_before(branch, lambda emit: emit.value("any_of_warp", branch.cond))
        barrier, parity = self.op.arguments
        why = self._look(emit, name, barrier, parity, emit.launch_value("alarm")).results[0]
        with emit.when(emit.compare("ne", why, 0)):
            zero = emit.const(0)
            if self.alone:
                self._report(emit, why, zero, zero, zero)
            else:
                lane = emit.bit_and(emit.value("thread_number"), emit.target.arch.warp - 1)
                with emit.when(emit.compare("eq", lane, 0)):
                    self._report(emit, why, zero, zero, zero)
            emit.do("end_thread")

    def _own_branch(self) -> scf.IfOp | None:
        """The branch that threads take to wait, and for nothing else, each as it has seen the stage: it becomes one of
        all threads of a warp, as the wait is."""
        block = self.op.parent
        branch = self.op.parent_op()
        if block is None or not isinstance(branch, scf.IfOp):
            return None
        others = (op for op in block.ops if op is not self.op and not isinstance(op, scf.YieldOp))
        return branch if all(map(only_reads, others)) else None

    def _for_counters(self, emit: Emitter, given_up: SSAValue | None) -> None:
        """One thread waits; if it gives up it ends, or sets a register that tells its whole warp to end."""
        counter, count = self.op.arguments
        seen = emit.registers(1, IndexType(), "seen")
        why = self._look(emit, "spin_bounded", seen, counter, count, emit.launch_value("alarm")).results[0]
        with emit.when(emit.compare("ne", why, 0)):
            self._report(emit, why, emit.get(seen, 0), count, self._low(emit, counter))
            if given_up is None:
                emit.do("end_thread")
            else:
                emit.set(emit.const(1), given_up, 0)

    def _for_a_warp(self) -> None:
        """The first thread waits within a branch; behind it the others learn how it ended."""
        branch = next(outer for outer in ancestors(self.op) if isinstance(outer, scf.IfOp))

        def before(emit: Emitter) -> SSAValue:
            given_up = emit.registers(1, IndexType(), "given_up")
            emit.set(emit.const(0), given_up, 0)
            return given_up

        def after(emit: Emitter) -> None:
            gone = emit.value("any_of_warp", emit.compare("ne", emit.get(given_up, 0), 0))
            with emit.when(gone):
                emit.do("end_thread")

        given_up = insert_before(branch, before)
        insert_before(self.op, lambda emit: self._for_counters(emit, given_up))
        insert_after(branch, after)

    def _look(self, emit: Emitter, name: str, *operands: SSAValue) -> InstructionOp:
        op = emit.instruction(name, *operands)
        op.attributes |= {**self.op.attributes, POINT: IntegerAttr(self.number, i64)}
        return op

    def _report(
        self, emit: Emitter, why: SSAValue, seen: SSAValue, wanted: SSAValue, address: SSAValue, behind: int = 0
    ) -> InstructionOp:
        """Write the report of this warp, that of an index `behind` those of waits; then tell all ranks. The instruction
        that writes it."""
        reports = emit.plus(emit.address(self.reports), 4 * REPORT_WORDS * behind)
        where = why, emit.const(self.number), self._task(emit)
        report = emit.instruction("report", reports, emit.const(2 * self.warps), *where, seen, wanted, address)
        with emit.when(emit.compare("ne", why, 2)):
            emit.do("raise_alarm", emit.launch_value("alarm"))
        return report

    def _task(self, emit: Emitter) -> SSAValue:
        return task_of(self.op) or emit.const(-1)

    def _low(self, emit: Emitter, address: SSAValue) -> SSAValue:
        op = arith.IndexCastOp(address, IndexType())
        emit.add(op)
        return op.result
