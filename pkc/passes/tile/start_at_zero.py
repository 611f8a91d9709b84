"""The pass `pk-start-at-zero`: sums of matmuls begin at zero."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import MemoryEffectKind, is_side_effect_free, only_has_effect

from pkc.dialect.elementwise import AddOp
from pkc.dialect.program import KernelOp
from pkc.dialect.tile import AnyMmaOp, FullOp, MmaOp, tile_type
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed


class StartAtZero(KernelPass):
    """Let a loop that only adds matmuls to a tile begin at zero, and add what it began with behind it.

    So the first MMA overwrites its accumulator, no instruction writes there before it, and what is added is loaded
    while the MMAs run. A matmul is a sum in no defined order. What the loop began with is computed behind the loop,
    too, as far as nothing else uses it. What another loop carries, or has made, stays where it is: it lies in the
    accumulator already.

    Before:

        %c = pk.load %C[%m, %n : ...] : ... -> !pk.tile<128x128xf32>
        %sum = scf.for %k = ... iter_args(%acc = %c) -> (!pk.tile<128x128xf32>) {
          %next = pk.mma %a, %b, %acc : ...
          scf.yield %next : !pk.tile<128x128xf32>
        }

    After:

        %zero = pk.full 0.0 : f32 : !pk.tile<128x128xf32>
        %sum = scf.for %k = ... iter_args(%acc = %zero) -> (!pk.tile<128x128xf32>) {
          %next = pk.mma %a, %b, %acc : ...
          scf.yield %next : !pk.tile<128x128xf32>
        }
        %c = pk.load %C[%m, %n : ...] : ... -> !pk.tile<128x128xf32>
        %all = pk.add %sum, %c : !pk.tile<128x128xf32>
    """

    name = "pk-start-at-zero"

    def run(self, kernel: KernelOp) -> None:
        for loop in [op for op in kernel.walk() if isinstance(op, scf.ForOp)]:
            for number, start in enumerate(loop.iter_args):
                if not _begins_elsewhere(start) or not _only_adds(loop, number):
                    continue
                if _may_write(loop):
                    missed(self.name, loop, "its sum does not begin at zero: the loop writes, or waits")
                    continue
                _add_behind(loop, number)


def _begins_elsewhere(start: SSAValue) -> bool:
    owner = start.owner
    if isinstance(owner, Block | scf.ForOp | scf.IfOp | AnyMmaOp):
        return False
    return not isinstance(owner, FullOp)


def _only_adds(loop: scf.ForOp, number: int) -> bool:
    """Whether each iteration does nothing with what it has of a sum but add matmuls."""
    value: SSAValue = loop.body.block.args[1 + number]
    while True:
        uses = list(value.uses)
        if len(uses) != 1:
            return False
        user, index = uses[0].operation, uses[0].index
        if user is loop.body.block.last_op:
            return index == number and isinstance(value.owner, MmaOp)
        if not isinstance(user, MmaOp) or value is not user.acc or user.parent_op() is not loop:
            return False
        value = user.result


def _may_write(loop: scf.ForOp) -> bool:
    return not (is_side_effect_free(loop) or only_has_effect(loop, MemoryEffectKind.READ))


def _add_behind(loop: scf.ForOp, number: int) -> None:
    start, block = loop.iter_args[number], loop.parent
    assert block is not None
    zero = FullOp(0.0, tile_type(start))
    result = loop.results[number]
    total = AddOp(result, start)
    for op in (zero, total):
        op.location = loop.location
    block.insert_op_before(zero, loop)
    block.insert_op_after(total, loop)
    result.replace_all_uses_with(total.result)
    total.operands[0] = result
    loop.operands[3 + number] = zero.result
    total.result.name_hint = result.name_hint
    _sink(start, block, total)


def _sink(value: SSAValue, block: Block, place: Operation) -> None:
    """Move what makes a value down to a place, if it stands in front of it in a block and nothing else uses it."""
    made = value.owner
    if not isinstance(made, Operation) or made.parent is not block or made.regions:
        return
    if not (is_side_effect_free(made) or only_has_effect(made, MemoryEffectKind.READ)):
        return
    if any(use.operation.parent is not block or use.operation.is_before_in_block(place) for use in value.uses):
        return
    made.detach()
    block.insert_op_before(made, place)
    for operand in made.operands:
        _sink(operand, block, made)
