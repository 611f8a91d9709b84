"""The pass `pk-rebase-stages`: innermost loops find their stages again in each iteration."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from pkc.dialect.program import KernelOp
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.machine.instruments import body_of
from pkc.passes.machine.kept_integers import is_around, is_rolled
from pkc.passes.machine.recompute_integers import BASE, UNKNOWN, hidden, is_instruction
from pkc.targets.target import target_of


class RebaseStages(KernelPass):
    """Let each iteration of an innermost loop add up the addresses of stages and barriers again.

    Each is the base of shared memory and a constant. The compiler of the generated code adds them up before the loop, a
    register each; beside tiles that leave no room, it then spills them, and reads them back in each iteration. An
    instruction hides that the base is the same in all iterations. `pkc.codegen.build` runs this where registers spill
    otherwise, and keeps it where fewer do.

    Before:

        scf.for %kv = %zero to %blocks step %one {
          %barrier = arith.addi %shared, %c1024 : index
          pk.instruction "mbarrier_wait"(%barrier, %phase) : (index, index) -> ()
        }

    After:

        scf.for %kv = %zero to %blocks step %one {
          %again = pk.instruction "unknown"(%shared) : (index) -> index
          %barrier = arith.addi %again, %c1024 : index
          pk.instruction "mbarrier_wait"(%barrier, %phase) : (index, index) -> ()
        }
    """

    name = "pk-rebase-stages"

    def run(self, kernel: KernelOp) -> None:
        if target_of(kernel).instruction(UNKNOWN) is None:
            return
        loops = (op for op in kernel.walk() if isinstance(op, scf.ForOp) and is_rolled(op))
        innermost = [loop for loop in loops if not is_around(loop)]
        for base in [value for op in kernel.body.block.ops for value in op.results if _is_base(value)]:
            for loop in innermost:
                _hide_in(loop, base)


def _is_base(value: SSAValue) -> bool:
    """Whether a value is the base of shared memory, as loops use it."""
    owner = value.owner
    if is_instruction(owner, UNKNOWN):
        return _is_base(owner.operands[0])
    return is_instruction(owner, BASE)


def _hide_in(loop: scf.ForOp, base: SSAValue) -> None:
    """Let the uses of a value in a loop have one of which the compiler knows nothing from before."""
    inside: set[Operation] = set(body_of(loop).walk())
    uses = [use for use in base.uses if use.operation in inside]
    first = body_of(loop).first_op
    if not uses or first is None:
        return
    again = hidden(base)
    again.location = loop.location
    body_of(loop).insert_op_before(again, first)
    for use in uses:
        use.operation.operands[use.index] = again.results[0]
