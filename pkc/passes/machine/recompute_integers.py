"""The pass `pk-recompute-integers`: loops compute again what they would keep in registers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Block, Operation, OpResult, SSAValue

from pkc.dialect.attributes import number_on
from pkc.dialect.coordinates import DimOp, RankOp
from pkc.dialect.engines import is_engine
from pkc.dialect.machine import AddressOp, InstructionOp, LaunchValueOp
from pkc.dialect.program import KernelOp
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.machine.instruments import body_of
from pkc.passes.machine.kept_integers import is_around, kept_integers
from pkc.passes.machine.lower_tiles import SPARE
from pkc.targets.target import target_of

UNKNOWN = "unknown"
"""The instruction whose result is its operand, which the compiler of the generated code does not find out."""

BASE = "shared_base"
"""The instruction whose result is where shared memory begins."""

_OF_GRID = ("cta_number", "cta_count")
"""Instructions whose results are in special registers."""


@dataclass(frozen=True)
class RecomputeIntegers(KernelPass):
    """Compute integers that come from run-time dimensions again in each iteration of a loop around other loops.

    Numbers of tasks and of blocks, lengths of shards and what else the compiler moves out of loops take a register each
    in all loops inside, also of threads whose registers tiles take. Dimensions are in constant memory: in iterations
    that are long, as those around other loops, it is cheaper to begin with them again. An instruction hides that the
    dimension is the same in all iterations, or the compiler would move the rest out again.

    That is done where a loop with MMAs keeps more integers than the target says there is room for beside the tiles of
    its role, as `pk-lower-tiles` writes it (`spare_registers`). With `always` it is done in any kernel: so
    `pkc.codegen.build` runs it where registers spill without it.

    Before:

        %s = pk.dim "S"
        %blocks = arith.divsi %s, %c128 : index
        scf.for %task = %zero to %tasks step %one {
          scf.for %kv = %zero to %blocks step %one { ... }
        }

    After:

        %s = pk.dim "S"
        scf.for %task = %zero to %tasks step %one {
          %again = pk.instruction "unknown"(%s) : (index) -> index
          %blocks = arith.divsi %again, %c128 : index
          scf.for %kv = %zero to %blocks step %one { ... }
        }
    """

    name = "pk-recompute-integers"
    always: bool = False

    def run(self, kernel: KernelOp) -> None:
        if target_of(kernel).instruction(UNKNOWN) is None or not (self.always or _is_short(kernel)):
            return
        for op in kernel.body.block.ops:
            if is_instruction(op, BASE):
                _hide(op.results[0])
        ops = (inside for op in kernel.body.block.ops if not is_engine(op) for inside in op.walk())
        # Those around come first: loops inside begin with what these compute again.
        for loop in [op for op in ops if is_around(op)]:
            _Again(loop).replace()


def _is_short(kernel: KernelOp) -> bool:
    """Whether a loop keeps too many integers for the registers that a role has beside its tiles."""
    share = target_of(kernel).registers.kept
    roles = ((op, number_on(op, SPARE)) for op in kernel.walk() if SPARE in op.attributes)
    return any(spare is not None and kept_integers(branch) > share * spare for branch, spare in roles)


def recomputes(kernel: KernelOp) -> bool:
    """Whether this was done in a kernel."""
    return any(map(_is_again, kernel.walk()))


def hidden(value: SSAValue) -> InstructionOp:
    """An instruction whose result is a value of which the compiler of the generated code knows nothing."""
    made = InstructionOp(UNKNOWN, [value], [value.type])
    made.results[0].name_hint = value.name_hint
    return made


def _hide(value: SSAValue) -> None:
    """Let all uses of a value have one of which the compiler knows nothing."""
    assert isinstance(value, OpResult)
    made = hidden(value)
    made.location = value.op.location
    value.replace_all_uses_with(made.results[0])
    made.operands[0] = value
    block = value.op.parent
    assert block is not None
    block.insert_op_after(made, value.op)


class _Again:
    """What an iteration of a loop computes again: the copies in its body, by what they are copies of."""

    def __init__(self, loop: Operation) -> None:
        self._block = body_of(loop)
        self._inside = list(loop.regions[-1].walk())
        self._known = set(self._inside)
        self._first = self._block.first_op
        self._copies: dict[SSAValue, SSAValue] = {}
        self._varies: dict[SSAValue, bool | None] = {}

    def replace(self) -> None:
        for op in self._inside:
            for number, operand in enumerate(op.operands):
                if self._is_computed(operand):
                    op.operands[number] = self._copy(operand)

    def _is_computed(self, value: SSAValue) -> bool:
        """Whether a value from outside is more than a dimension, and comes from dimensions."""
        owner = value.owner
        computed = isinstance(owner, Operation) and owner not in self._known and not isinstance(owner, DimOp)
        return computed and self._from_dims(value) is True

    def _from_dims(self, value: SSAValue) -> bool | None:
        """Whether dimensions are among what an integer is computed from; None if anything is
        but these, what a launch gives, and the numbers of iterations around, which are in registers anyway."""
        if value not in self._varies:
            self._varies[value] = self._found(value)
        return self._varies[value]

    def _found(self, value: SSAValue) -> bool | None:
        owner = value.owner
        if isinstance(owner, Block):
            around = owner.parent_op()
            return False if isinstance(around, scf.ForOp | scf.WhileOp) and value is owner.args[0] else None
        if owner in self._known:
            return None
        if isinstance(owner, DimOp) or _is_again(owner):
            return True
        if isinstance(owner, arith.ConstantOp | RankOp | AddressOp | LaunchValueOp) or is_instruction(owner, *_OF_GRID):
            return False
        if owner.dialect_name() != arith.Arith.name or not isinstance(value.type, IndexType | IntegerType):
            return None
        found = [self._from_dims(operand) for operand in owner.operands]
        return None if None in found else any(found)

    def _copy(self, value: SSAValue) -> SSAValue:
        if self._from_dims(value) is False:
            return value
        if value not in self._copies:
            assert isinstance(value, OpResult)
            self._copies[value] = self._add(value.op).results[value.index]
        return self._copies[value]

    def _add(self, op: Operation) -> Operation:
        if isinstance(op, DimOp):
            made: Operation = InstructionOp(UNKNOWN, op.results, (IndexType(),))
        elif _is_again(op):
            made = op.clone()
        else:
            made = op.clone({operand: self._copy(operand) for operand in op.operands})
        made.location = op.location
        assert self._first is not None
        self._block.insert_op_before(made, self._first)
        return made


def _is_again(op: Operation) -> bool:
    """Whether an operation reads a dimension, in a way that the compiler does not see."""
    return is_instruction(op, UNKNOWN) and isinstance(op.operands[0].owner, DimOp)


def is_instruction(op: Operation | Block, *names: str) -> TypeGuard[InstructionOp]:
    """Whether an operation is one of these instructions."""
    return isinstance(op, InstructionOp) and op.instruction_name.data in names
