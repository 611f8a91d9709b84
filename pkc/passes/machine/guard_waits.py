"""The pass `pk-guard-waits`: every wait for a counter ends, and a thread that gives up says so and goes on."""

from __future__ import annotations

from pkc.dialect.machine import InstructionOp
from pkc.dialect.program import KernelOp
from pkc.passes.machine.bound_waits import BoundWaits
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.instruments import insert_before

RECEIVES = {"receive_v4_where": "receive_v4_guarded", "receive_b16": "receive_b16_guarded"}
"""Instructions that wait for packets, and those that give up."""


class GuardWaits(BoundWaits):
    """As `pk-bound-waits`, for kernels whose time matters: nothing changes but loops that wait for a counter.

    What other ranks owe arrives by counters. A thread that waits for one too long writes a report, raises the alarm
    that all ranks look at and goes on as if the wait were over; so does every other thread once it sees the alarm. All
    roles come to their end, stages are filled and released as ever, and the kernel ends, with outputs that mean
    nothing. The clock and the alarm, in the memory of the host, are looked at once in 16384 looks at the counter. Waits
    for packets end alike, without a report, which would take registers: who waits for counters beside them has one.
    Within tasks the instruction is `spin_guarded_in_task`, which keeps nothing for a report.

    Before:

        pk.instruction "spin"(%counter, %count) {awaits = "ready", until = "raised"} : (i64, index) -> ()

    After:

        pk.instruction "spin_guarded"(%counter, %count, %alarm, %reports, %warps, %number, %task)
            {awaits = "ready", until = "raised", point = 0 : i64} : (i64, index, i64, i64, index, index, index) -> ()
    """

    name = "pk-guard-waits"
    ENDS = False

    def run(self, kernel: KernelOp) -> None:
        super().run(kernel)
        for op in [op for op in kernel.walk() if isinstance(op, InstructionOp)]:
            name = op.instruction_name.data
            if name in RECEIVES:
                insert_before(op, lambda emit, op=op, name=name: _received(emit, op, RECEIVES[name]))
                op.detach()
                op.erase()


def _received(emit: Emitter, op: InstructionOp, name: str) -> None:
    found = emit.instruction(name, *op.arguments, emit.launch_value("alarm"))
    for old, new in zip(op.results, found.results, strict=True):
        old.replace_all_uses_with(new)
