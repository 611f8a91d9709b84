"""The pass `pk-check-machine`: the last check before the printer."""

from __future__ import annotations

import re
from collections.abc import Iterator

from xdsl.dialects import arith, scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from pkc.diagnostics import Diagnostic, Label
from pkc.dialect import machine
from pkc.dialect.attributes import number_on
from pkc.dialect.coordinates import DimOp, RankOp
from pkc.dialect.engines import on_sms
from pkc.dialect.pk import MACHINE
from pkc.dialect.program import KernelOp
from pkc.dialect.scalars import constant_of
from pkc.location import span_of
from pkc.passes import plan_errors
from pkc.passes.kernel_pass import CheckPass
from pkc.passes.machine import machine_errors as errors
from pkc.passes.machine.emit import UNROLL
from pkc.passes.machine.lower_tiles import THREADS
from pkc.passes.machine.plan_memory import SHARED_BYTES
from pkc.targets.target import target_of

_BARRIER = re.compile(r"(?:sync|arrive)_(\d+)_of_(\d+)")
_REGISTERS = re.compile(r"setmaxnreg_(?:inc|dec)_(\d+)")

_MACHINE = (*MACHINE, RankOp, DimOp, scf.YieldOp, scf.ConditionOp)
_ARITHMETIC = (
    arith.ConstantOp,
    arith.AddiOp,
    arith.SubiOp,
    arith.MuliOp,
    arith.DivSIOp,
    arith.RemSIOp,
    arith.AndIOp,
    arith.OrIOp,
    arith.XOrIOp,
    arith.ShLIOp,
    arith.ShRSIOp,
    arith.ShRUIOp,
    arith.MinSIOp,
    arith.MaxSIOp,
    arith.CmpiOp,
    arith.SelectOp,
    arith.IndexCastOp,
    arith.AddfOp,
    arith.SubfOp,
    arith.MulfOp,
    arith.CmpfOp,
    arith.SIToFPOp,
    arith.FPToSIOp,
)


class CheckMachine(CheckPass):
    """Refuse what the printer cannot write as it stands, or the target cannot run.

    - Every operation is of the machine level. That each instruction exists on the target, the verifier has checked.
    - Loops and branches have no results, and branches no `else`: what they change is in registers.
    - Registers have no addresses: an index follows from constants and from loops that are unrolled.
    - A CTA has whole warpgroups, no more threads than the target allows, and asks for no more registers than it has.
    - Each named barrier is awaited by one number of threads. Shared memory fits into that of a CTA.

    Refused, because `%i` runs when the kernel does:

        scf.for %i = %zero to %n step %one {
          %x = pk.get %acc[%i] : !pk.registers<128xf32> -> f32
        }
    """

    name = "pk-check-machine"

    def check(self, kernel: KernelOp) -> Iterator[Diagnostic]:
        ops = list(on_sms(kernel))
        left = next((op for op in ops if not _is_of_the_machine(op)), None)
        if left is not None:
            yield errors.NotOfTheMachine(span_of(left.location), left.name)
            return
        for op in ops:
            if isinstance(op, machine.GetOp | machine.SetOp) and not _is_known(op.index):
                yield errors.RegisterByValue(span_of(op.location), str(op.registers.type))
        yield from _barriers(kernel)
        yield from _threads(kernel)
        shared, available = number_on(kernel, SHARED_BYTES) or 0, target_of(kernel).arch.shared_memory
        if shared > available:
            span = span_of(kernel.location)
            yield plan_errors.SharedMemory(span, kernel.sym_name.data, shared, available)


def _is_of_the_machine(op: Operation) -> bool:
    if isinstance(op, scf.IfOp):
        return not op.results and not op.false_region.blocks
    if isinstance(op, scf.ForOp):
        return not op.results
    if isinstance(op, scf.WhileOp):
        return not op.arguments and not any(result.uses for result in op.results)
    return isinstance(op, _MACHINE + _ARITHMETIC)


def _is_known(index: SSAValue) -> bool:
    """Whether an index follows from constants and unrolled loops."""
    if isinstance(index, BlockArgument):
        return _is_unrolled(index.owner)
    owner = index.owner
    if isinstance(owner, Block) or not isinstance(owner, _ARITHMETIC):
        return False
    return all(map(_is_known, owner.operands))


def _is_unrolled(body: Block) -> bool:
    loop = body.parent_op()
    if not isinstance(loop, scf.ForOp) or UNROLL not in loop.attributes:
        return False
    return all(constant_of(bound) is not None for bound in (loop.lb, loop.ub, loop.step))


def _barriers(kernel: KernelOp) -> Iterator[Diagnostic]:
    first: dict[int, tuple[int, Operation]] = {}
    for op, match in _named(kernel, _BARRIER):
        barrier, threads = int(match[1]), int(match[2])
        other, elsewhere = first.setdefault(barrier, (threads, op))
        if other != threads:
            also = (Label(span_of(elsewhere.location), "the other one"),)
            yield errors.BarrierOfOthers(span_of(op.location), barrier, threads, other, also=also)


def _threads(kernel: KernelOp) -> Iterator[Diagnostic]:
    arch, threads = target_of(kernel).arch, (number_on(kernel, THREADS) or 0)
    group = arch.warpgroup * arch.warp
    if threads <= 0 or threads % group or threads > arch.threads:
        limit = f"a CTA has whole warpgroups of {group} threads, at most {arch.threads} threads"
        yield errors.NotWhole(span_of(kernel.location), f"`{kernel.sym_name.data}` has {threads} threads", limit)
        return
    for op, match in _named(kernel, _REGISTERS):
        if int(match[1]) > arch.most_registers:
            what = f"a thread is to have {match[1]} registers"
            yield errors.NotWhole(span_of(op.location), what, f"at most {arch.most_registers} can be asked for")


def _named(kernel: KernelOp, pattern: re.Pattern[str]) -> Iterator[tuple[machine.InstructionOp, re.Match[str]]]:
    for op in on_sms(kernel):
        match = pattern.fullmatch(op.instruction_name.data) if isinstance(op, machine.InstructionOp) else None
        if isinstance(op, machine.InstructionOp) and match is not None:
            yield op, match
