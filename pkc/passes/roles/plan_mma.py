"""The pass `pk-plan-mma`: which MMAs stay in flight while the next one is issued."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import BlockArgument, SSAValue, Use

from pkc.dialect.program import KernelOp
from pkc.dialect.roles import ConsumeOp, ReleaseDeferredOp, ReleaseOp, channel_of
from pkc.dialect.tile import IN_FLIGHT, OPERANDS, REGISTERS, MmaOp, in_flight, reads_registers
from pkc.dialect.transfers import mma_operand_stage
from pkc.location import describe
from pkc.passes.analysis.dependence import ancestors
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed
from pkc.targets.target import Operands, target_of

_DEFERRED = 1
"""Stages that an MMA in flight keeps: the one it reads, until that of the next iteration has come."""


class PlanMma(KernelPass):
    """Let the tensor cores work on one MMA while the next one is issued.

    wgmma is asynchronous. Where a loop carries an accumulator that only its MMAs touch, the MMAs of an iteration need
    be complete only when those of the next one have been issued; then the stages that they read are released, and those
    of the last iteration behind the loop. With one stage the next iteration could not begin before.

    Such a release frees the stage of the iteration before, which nothing reads any more. So it stands right behind an
    MMA, and what an iteration computes of its own stage beside, as sums of an operand's columns, comes behind it: the
    other stage is filled again meanwhile.

    A loop may have several MMAs, with separate accumulators or one after the other into the same, and carry other
    values beside. As many MMAs stay in flight as an iteration has: when the last reader of a stage has been issued, the
    readers of the same channel's stage of the iteration before are complete. All MMAs of a loop stay in flight, or
    none: one that is waited for at once waits for all before it.

    Where the target's MMA reads registers (mma.sync), each MMA is marked so, `operands = "registers"`: it is complete
    when the next instruction begins.

    Before:

        %acc_1 = scf.for ... iter_args(%acc_2 = %acc) -> (...) {
          %a, %b = pk.consume %0 : ...
          %acc_3 = pk.mma %a, %b, %acc_2 : ...
          pk.release %0 : ...
          scf.yield %acc_3 : ...
        }

    After:

        %acc_1 = scf.for ... iter_args(%acc_2 = %acc) -> (...) {
          %a, %b = pk.consume %0 : ...
          %acc_3 = pk.mma %a, %b, %acc_2 {in_flight = 1 : i64} : ...
          pk.release %0 deferred 1 : ...
          scf.yield %acc_3 : ...
        }
        pk.release_deferred %0 : ...
    """

    name = "pk-plan-mma"

    def run(self, kernel: KernelOp) -> None:
        for mma in kernel.walk():
            if isinstance(mma, MmaOp) and target_of(mma).mma.operands is Operands.REGISTERS:
                mma.attributes[OPERANDS] = StringAttr(REGISTERS)
        for loop in list(kernel.walk()):
            if isinstance(loop, scf.ForOp):
                _plan(loop)


def _plan(loop: scf.ForOp) -> None:
    body = loop.body.block
    all_mmas = [op for op in loop.walk() if isinstance(op, MmaOp) and not reads_registers(op)]
    mmas = [op for op in all_mmas if op.parent is body]
    inner = [op for op in all_mmas if op.parent is not body]
    branched = [mma for mma in inner if next(op for op in ancestors(mma) if isinstance(op, scf.ForOp)) is loop]
    for mma in branched:
        missed(PlanMma.name, mma, "the MMA stands in a branch of its loop, and is waited for there")
    found = {mma: _of_accumulator(loop, mma) or _of_operands(loop, mma) for mma in mmas}
    if inner or any(found.values()):
        for mma, obstacle in found.items():
            other = "another MMA of the loop is waited for in each iteration, and this one with it"
            if not branched and not any(found.values()):
                other = "each MMA is waited for: a loop inside this one has MMAs too"
            missed(PlanMma.name, mma, obstacle or other)
        return
    left = min(len(mmas), target_of(loop).mma.in_flight)
    for mma in mmas:
        mma.attributes[IN_FLIGHT] = IntegerAttr(left, i64)
    channels = {stage.channel for mma in mmas for stage in _stages(mma) if stage.parent is body}
    releases = [op for op in body.ops if isinstance(op, ReleaseOp) and op.channel in channels]
    for op in reversed(releases):
        op.deferred = IntegerAttr(_DEFERRED, i64)
        issued = [mma for mma in mmas if mma.is_before_in_block(op)][-1]
        op.detach()
        body.insert_op_after(op, issued)
    rest = [ReleaseDeferredOp(op.channel) for op in releases]
    for op in rest:
        op.location = loop.location
    assert loop.parent is not None
    loop.parent.insert_ops_after(rest, loop)


@dataclass(frozen=True)
class MmaPlan:
    """The MMAs of one line that stay in flight while later ones are issued."""

    place: str
    result: str
    left: int

    def __str__(self) -> str:
        others = "the next one is" if self.left == 1 else f"the next {self.left} are"
        return f"{self.place}: MMA of {self.result}: in flight while {others} issued"


def explain_mma(module: ModuleOp) -> list[MmaPlan]:
    """The MMAs that stay in flight."""
    found = [op for op in module.walk() if isinstance(op, MmaOp) and in_flight(op)]
    return [MmaPlan(describe(op.location), quoted(op.result), in_flight(op)) for op in found]


def _of_accumulator(loop: scf.ForOp, mma: MmaOp) -> str:
    """Why the accumulator keeps an MMA from staying in flight; empty if only MMAs touch what is carried."""
    body = loop.body.block
    first, last = mma.acc, mma.result
    while isinstance(first.owner, MmaOp) and first.owner.parent is body and _only_use(first) is not None:
        first = first.owner.acc
    while (use := _only_use(last)) is not None and isinstance(use.operation, MmaOp) and use.operation.acc is last:
        last = use.operation.result
    if use is None or use.operation is not body.last_op:
        return f"each MMA is waited for: {quoted(last)} is used in the iteration that computes it"
    if not isinstance(first, BlockArgument) or first.owner is not body:
        return f"each MMA is waited for: what {quoted(last)} adds to is computed in the same iteration"
    if _only_use(first) is None or first.index != use.index + 1:
        return f"each MMA is waited for: {quoted(first)} is used beside it"
    return ""


def _of_operands(loop: scf.ForOp, mma: MmaOp) -> str:
    """Why the operands keep an MMA from staying in flight; empty if their stages can be released an iteration later,
    or behind the loop if they come from outside of it."""
    body = loop.body.block
    for value, stage in zip((mma.a, mma.b), _operand_stages(mma), strict=True):
        if stage is None:
            return f"each MMA is waited for: {quoted(value, 'an operand')} lies in registers, which the next one needs"
        on_it = [op for op in loop.walk() if isinstance(op, ConsumeOp | ReleaseOp) and op.channel is stage.channel]
        if not on_it:
            continue  # released behind the loop
        channel = channel_of(stage.channel)
        released = [op for op in on_it if isinstance(op, ReleaseOp) and op.parent is body and not op.kept]
        if len(on_it) != 2 or stage not in on_it or not released or not mma.is_before_in_block(released[0]):
            return f"each MMA is waited for: an iteration goes through several stages of {channel.label.data}"
        if channel.depth <= _DEFERRED:
            return f"each MMA is waited for: {channel.label.data} has one stage; smaller tiles leave room for two"
    return ""


def _operand_stages(mma: MmaOp) -> tuple[ConsumeOp | None, ConsumeOp | None]:
    return mma_operand_stage(mma.a), mma_operand_stage(mma.b)


def _stages(mma: MmaOp) -> Iterator[ConsumeOp]:
    """The stages that an MMA reads."""
    return (stage for stage in _operand_stages(mma) if stage is not None)


def _only_use(value: SSAValue) -> Use | None:
    uses = list(value.uses)
    return uses[0] if len(uses) == 1 else None


def quoted(value: SSAValue, otherwise: str = "its result") -> str:
    return f"`{value.name_hint}`" if value.name_hint else otherwise
