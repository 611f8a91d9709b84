"""A builder of machine-level code: one method for each operation, appended to a block; constants are folded."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import (
    FloatAttr,
    IndexType,
    IntegerAttr,
    LocationAttr,
    StringAttr,
    UnitAttr,
    f32,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from pkc.diagnostics import PkcError
from pkc.dialect.machine import (
    AWAITS,
    UNTIL,
    AddressOp,
    CommentOp,
    GetOp,
    InstructionOp,
    LaunchValueOp,
    RegistersOp,
    RegistersType,
    SetOp,
    kind_type,
)
from pkc.dialect.scalars import constant_of
from pkc.location import span_of
from pkc.passes.machine.machine_errors import NoInstruction
from pkc.targets.target import Target

UNROLL = "unroll"
"""On a loop: the compiler of the generated code unrolls it; its bounds are constants."""

_FOLD: dict[type[Operation], Callable[[int, int], int]] = {
    arith.AddiOp: lambda a, b: a + b,
    arith.SubiOp: lambda a, b: a - b,
    arith.MuliOp: lambda a, b: a * b,
    arith.DivSIOp: lambda a, b: a // b,
    arith.RemSIOp: lambda a, b: a % b,
    arith.AndIOp: lambda a, b: a & b,
    arith.XOrIOp: lambda a, b: a ^ b,
    arith.ShLIOp: lambda a, b: a << b,
    arith.ShRUIOp: lambda a, b: a >> b,
    arith.ShRSIOp: lambda a, b: a >> b,
    arith.MinSIOp: min,
    arith.MaxSIOp: max,
}

_INDEX = IndexType()


@cache
def _number(value: int) -> IntegerAttr:
    return IntegerAttr(value, _INDEX)


@cache
def _flags(kind: type[Operation]) -> dict[str, Attribute]:
    """The properties of integer operations of a class: those that can overflow say what happens then."""
    overflows = issubclass(kind, arith.SignlessIntegerBinaryOperationWithOverflow)
    return {"overflowFlags": arith.IntegerOverflowAttr("none")} if overflows else {}


class Emitter:
    """Appends operations to `block`, at `location`, in instructions of `target`. Integers are `index`, of 32 bits.

    The most frequent are made by `create`, which takes operands as they are: a module is verified as a whole.
    """

    def __init__(self, block: Block, location: LocationAttr, target: Target) -> None:
        self.block = block
        self.location = location
        self.target = target
        self._constants: dict[tuple[Block, int], SSAValue] = {}

    def add(self, op: Operation) -> None:
        op.location = self.location
        self.block.add_op(op)

    # Integers

    def const(self, value: int) -> SSAValue:
        """A constant; one that the block has already is used again."""
        known = self._constants.get((self.block, value))
        if known is None:
            op = arith.ConstantOp.create(result_types=(_INDEX,), properties={"value": _number(value)})
            self.add(op)
            known = self._constants[self.block, value] = op.result
        return known

    def wide_const(self, value: int) -> SSAValue:
        op = arith.ConstantOp(IntegerAttr(value, i64))
        self.add(op)
        return op.result

    def _integer(self, kind: type[arith.SignlessIntegerBinaryOperation], a: SSAValue, b: SSAValue | int) -> SSAValue:
        if isinstance(b, int):
            b = self.const(b) if isinstance(a.type, IndexType) else self.wide_const(b)
        x, y = constant_of(a), constant_of(b)
        if x is not None and y is not None and isinstance(a.type, IndexType):
            return self.const(_FOLD[kind](x, y))
        if _is_identity(kind, y):
            return a
        if kind is arith.AddiOp and x == 0:
            return b
        if kind is arith.MuliOp and x == 1:
            return b
        op = kind.create(operands=(a, b), result_types=(a.type,), properties=_flags(kind))
        self.add(op)
        return op.results[0]

    def plus(self, a: SSAValue, b: SSAValue | int) -> SSAValue:
        return self._integer(arith.AddiOp, a, b)

    def minus(self, a: SSAValue, b: SSAValue | int) -> SSAValue:
        return self._integer(arith.SubiOp, a, b)

    def times(self, a: SSAValue, b: SSAValue | int) -> SSAValue:
        return self._integer(arith.MuliOp, a, b)

    def over(self, a: SSAValue, b: SSAValue | int) -> SSAValue:
        return self._integer(arith.DivSIOp, a, b)

    def modulo(self, a: SSAValue, b: SSAValue | int) -> SSAValue:
        return self._integer(arith.RemSIOp, a, b)

    def part(self, a: SSAValue, b: int) -> SSAValue:
        """a / b, of an a that is not negative: a shift if it can be, of which compilers see what is constant."""
        return self.right(a, b.bit_length() - 1) if b & (b - 1) == 0 else self.over(a, b)

    def rest(self, a: SSAValue, b: int) -> SSAValue:
        """a modulo b, of an a that is not negative: a mask if it can be."""
        return self.bit_and(a, b - 1) if b & (b - 1) == 0 else self.modulo(a, b)

    def congruent(self, a: SSAValue, b: int) -> SSAValue:
        """What has the same rest modulo a power of two b as a: of a constant that is added last, only its own rest."""
        if not isinstance(a.owner, arith.AddiOp):
            return a
        added = constant_of(a.owner.rhs)
        return a if added is None else self.plus(a.owner.lhs, added % b)

    def bit_and(self, a: SSAValue, b: SSAValue | int) -> SSAValue:
        return self._integer(arith.AndIOp, a, b)

    def bit_xor(self, a: SSAValue, b: SSAValue | int) -> SSAValue:
        return self._integer(arith.XOrIOp, a, b)

    def left(self, a: SSAValue, b: SSAValue | int) -> SSAValue:
        return self._integer(arith.ShLIOp, a, b)

    def right(self, a: SSAValue, b: SSAValue | int) -> SSAValue:
        return self._integer(arith.ShRUIOp, a, b)

    def least(self, a: SSAValue, b: SSAValue | int) -> SSAValue:
        return self._integer(arith.MinSIOp, a, b)

    def most(self, a: SSAValue, b: SSAValue | int) -> SSAValue:
        return self._integer(arith.MaxSIOp, a, b)

    def round_up_over(self, a: SSAValue, b: SSAValue | int) -> SSAValue:
        """a / b, rounded up."""
        return self.over(self.plus(a, self.minus(b, 1) if isinstance(b, SSAValue) else b - 1), b)

    def compare(self, predicate: str, a: SSAValue, b: SSAValue | int) -> SSAValue:
        op = arith.CmpiOp(a, self.const(b) if isinstance(b, int) else b, predicate)
        self.add(op)
        return op.result

    def negated(self, condition: SSAValue) -> SSAValue:
        """True where a condition does not hold."""
        true = arith.ConstantOp(IntegerAttr(1, i1))
        self.add(true)
        op = arith.XOrIOp(condition, true.result)
        self.add(op)
        return op.result

    def both(self, a: SSAValue, b: SSAValue) -> SSAValue:
        op = arith.AndIOp(a, b)
        self.add(op)
        return op.result

    def between(self, value: SSAValue, first: int, end: int) -> SSAValue:
        """Whether a value that is not negative is one of first, ..., end - 1."""
        if first == 0:
            return self.compare("slt", value, end)
        return self.both(self.compare("sge", value, first), self.compare("slt", value, end))

    def select(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        op = arith.SelectOp(condition, a, b)
        self.add(op)
        return op.result

    def wide(self, a: SSAValue) -> SSAValue:
        """An `index` as `i64`."""
        value = constant_of(a)
        if value is not None:
            return self.wide_const(value)
        op = arith.IndexCastOp(a, i64)
        self.add(op)
        return op.result

    def i32(self, a: SSAValue) -> SSAValue:
        """An `index` as `i32`."""
        op = arith.IndexCastOp(a, i32)
        self.add(op)
        return op.result

    # Floats

    def real(self, value: float) -> SSAValue:
        op = arith.ConstantOp(FloatAttr(value, f32))
        self.add(op)
        return op.result

    def binary(self, kind: Callable[[SSAValue, SSAValue], Operation], a: SSAValue, b: SSAValue) -> SSAValue:
        op = kind(a, b)
        self.add(op)
        return op.results[0]

    # Registers and instructions

    def registers(self, count: int, element_type: Attribute, hint: str | None = None) -> SSAValue:
        op = RegistersOp(count, element_type)
        op.result.name_hint = hint
        self.add(op)
        return op.result

    def get(self, registers: SSAValue, index: SSAValue | int) -> SSAValue:
        kind = registers.type
        assert isinstance(kind, RegistersType)
        at = self.const(index) if isinstance(index, int) else index
        op = GetOp.create(operands=(registers, at), result_types=(kind.element_type,))
        self.add(op)
        return op.result

    def set(self, value: SSAValue, registers: SSAValue, index: SSAValue | int) -> None:
        at = self.const(index) if isinstance(index, int) else index
        self.add(SetOp.create(operands=(value, registers, at)))

    def instruction(self, name: str, *arguments: SSAValue) -> InstructionOp:
        """An instruction of the target's table. Raises `PkcError` if there is none of that name."""
        entry = self.target.instruction(name)
        if entry is None:
            raise PkcError(NoInstruction(span_of(self.location), self.target.name, name))
        results = () if entry.result is None else (kind_type(entry.result),)
        op = InstructionOp.create(
            operands=arguments, result_types=results, properties={"instruction_name": StringAttr(name)}
        )
        self.add(op)
        return op

    def do(self, name: str, *arguments: SSAValue) -> None:
        """An instruction without a result."""
        self.instruction(name, *arguments)

    def wait(self, name: str, *arguments: SSAValue, awaits: str, until: str) -> None:
        """An instruction that waits, marked with what it waits for."""
        op = self.instruction(name, *arguments)
        op.attributes |= {AWAITS: StringAttr(awaits), UNTIL: StringAttr(until)}

    def value(self, name: str, *arguments: SSAValue) -> SSAValue:
        """An instruction with a result."""
        return self.instruction(name, *arguments).results[0]

    def address(self, array: SSAValue) -> SSAValue:
        op = AddressOp(array)
        self.add(op)
        return op.result

    def launch_value(self, what: str) -> SSAValue:
        op = LaunchValueOp(what)
        self.add(op)
        return op.result

    def on_rank(self, address: SSAValue, rank: SSAValue) -> SSAValue:
        """An address of the first rank's heap, in the heap of another."""
        return self.plus(address, self.times(self.wide(rank), self.launch_value("heap_stride")))

    def comment(self, text: str) -> None:
        self.add(CommentOp(text))

    # Structure

    @contextmanager
    def when(self, condition: SSAValue) -> Generator[None]:
        """What is emitted inside runs where the condition holds."""
        body = Block()
        op = scf.IfOp(condition, [], Region(body), Region())
        self.add(op)
        outer, self.block = self.block, body
        yield
        self.add(scf.YieldOp())
        self.block = outer

    @contextmanager
    def loop(
        self,
        start: SSAValue | int,
        stop: SSAValue | int,
        step: SSAValue | int = 1,
        *,
        unroll: bool = False,
    ) -> Generator[SSAValue]:
        """What is emitted inside runs for each number from `start`, below `stop`."""
        first, last, by = (self.const(x) if isinstance(x, int) else x for x in (start, stop, step))
        body = Block(arg_types=[IndexType()])
        op = scf.ForOp(first, last, by, [], body)
        if unroll:
            op.attributes[UNROLL] = UnitAttr()
        self.add(op)
        outer, self.block = self.block, body
        yield body.args[0]
        self.add(scf.YieldOp())
        self.block = outer

    @contextmanager
    def repeat(self, condition: Callable[[], tuple[SSAValue, SSAValue]]) -> Generator[SSAValue]:
        """What is emitted inside runs as long as a condition holds, which is computed anew each time, with a value."""
        outer, before = self.block, Block()
        self.block = before
        holds, value = condition()
        self.add(scf.ConditionOp(holds, value))
        body = Block(arg_types=[value.type])
        op = scf.WhileOp([], [value.type], [before], [body])
        self.block = body
        yield body.args[0]
        self.add(scf.YieldOp())
        self.block = outer
        self.add(op)


def _is_identity(kind: type[Operation], b: int | None) -> bool:
    if kind in (arith.AddiOp, arith.SubiOp, arith.XOrIOp, arith.ShLIOp, arith.ShRUIOp):
        return b == 0
    return kind in (arith.MuliOp, arith.DivSIOp) and b == 1
