"""Operations of the machine level as lines of Python, so that a block is translated once and runs for many threads."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, i1
from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect import machine


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_COMPARE = ("==", "!=", "<", "<=", ">", ">=")
_COMPARE_FLOATS = {1: "==", 2: ">", 3: ">=", 4: "<", 5: "<=", 13: "!="}
"""By the number of the predicate: ordered, and not equal if unordered."""

_FORMS: dict[type[Operation], str] = {
    arith.AddiOp: "{} + {}",
    arith.SubiOp: "{} - {}",
    arith.MuliOp: "{} * {}",
    arith.DivSIOp: "({0} // {1} if {0} >= 0 < {1} else truncated({0}, {1}))",
    arith.RemSIOp: "({0} % {1} if {0} >= 0 < {1} else {0} - truncated({0}, {1}) * {1})",
    arith.AndIOp: "{} & {}",
    arith.OrIOp: "{} | {}",
    arith.XOrIOp: "{} ^ {}",
    arith.ShLIOp: "{} << {}",
    arith.ShRUIOp: "{} >> {}",
    arith.ShRSIOp: "{} >> {}",
    arith.MinSIOp: "min({}, {})",
    arith.MaxSIOp: "max({}, {})",
    arith.AddfOp: "{} + {}",
    arith.SubfOp: "{} - {}",
    arith.MulfOp: "{} * {}",
    arith.SelectOp: "{1} if {0} else {2}",
    arith.IndexCastOp: "{}",
    arith.SIToFPOp: "float({})",
    arith.FPToSIOp: "toward_zero({})",
    # Registers are a list and the place in it where they begin.
    machine.GetOp: "{0}[0][{0}[1] + {1}]",
}
"""What operations compute, from the texts of their operands."""


def toward_zero(x: float) -> int:
    """The i32 that a float becomes."""
    return 0 if math.isnan(x) else int(min(max(x, -(2.0**31)), 2.0**31 - 1))


class Writer:
    """Writes a function. Other operations than these are what `_other` says."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._names: dict[SSAValue, str] = {}
        self._given: dict[str, Any] = {
            "truncated": truncated,
            "toward_zero": toward_zero,
            "inf": math.inf,
            "nan": math.nan,
        }

    def given(self, value: object) -> str:
        """The name of something that the function uses."""
        name = f"g{len(self._given)}"
        self._given[name] = value
        return name

    def name(self, value: SSAValue) -> str:
        return self._names.setdefault(value, f"v{len(self._names)}")

    def function(
        self, parameters: Sequence[str], body: Block, results: Sequence[SSAValue] = ()
    ) -> Callable[..., tuple[Any, ...]]:
        self._lines = [f"def function({', '.join(parameters)}):"]
        self._block(body, 1)
        self._line(f"return ({''.join(f'{self.name(value)}, ' for value in results)})", 1)
        exec("\n".join(self._lines), self._given)
        return self._given["function"]

    def _line(self, text: str, depth: int) -> None:
        self._lines.append(" " * depth + text)

    def _block(self, block: Block, depth: int) -> None:
        self._line("pass", depth)
        for op in block.ops:
            self._operation(op, depth)

    def _operation(self, op: Operation, depth: int) -> None:
        if isinstance(op, arith.ConstantOp):
            assert isinstance(op.value, IntegerAttr | FloatAttr)
            value = op.value.value.data
            self._names[op.result] = f"({bool(value) if op.result.type == i1 else value!r})"
            return
        operands = [self.name(operand) for operand in op.operands]
        if isinstance(op, scf.ForOp):
            assert not op.results
            self._line(f"for {self.name(op.body.block.args[0])} in range({', '.join(operands)}):", depth)
            self._block(op.body.block, depth + 1)
        elif isinstance(op, scf.WhileOp):
            self._while(op, depth)
        elif isinstance(op, scf.IfOp):
            assert not op.results and not op.false_region.blocks
            self._line(f"if {operands[0]}:", depth)
            self._block(op.true_region.block, depth + 1)
        elif isinstance(op, machine.SetOp):
            value, registers, index = operands
            self._line(f"{registers}[0][{registers}[1] + {index}] = {value}", depth)
        elif not isinstance(op, machine.CommentOp | scf.YieldOp | scf.ConditionOp):
            text = self._expression(op, operands)
            self._line(f"{self.name(op.results[0])} = {text}" if op.results else text, depth)

    def _while(self, op: scf.WhileOp, depth: int) -> None:
        condition = op.before_region.block.last_op
        assert isinstance(condition, scf.ConditionOp)
        self._line("while True:", depth)
        self._block(op.before_region.block, depth + 1)
        self._line(f"if not {self.name(condition.condition)}: break", depth + 1)
        for value, inside in zip(condition.args, op.after_region.block.args, strict=True):
            self._line(f"{self.name(inside)} = {self.name(value)}", depth + 1)
        self._block(op.after_region.block, depth + 1)

    def _expression(self, op: Operation, operands: Sequence[str]) -> str:
        if isinstance(op, arith.CmpiOp):
            return f"{operands[0]} {_COMPARE[op.predicate.value.data]} {operands[1]}"
        if isinstance(op, arith.CmpfOp):
            return f"({operands[0]} {_COMPARE_FLOATS[op.predicate.value.data]} {operands[1]})"
        if isinstance(op, machine.RegistersOp):
            return f"([None] * {op.result.type.count}, 0)"
        if isinstance(op, machine.SubviewOp):
            return f"({operands[0]}[0], {operands[0]}[1] + {op.start.value.data})"
        if type(op) in _FORMS:
            return _FORMS[type(op)].format(*operands)
        return self._other(op, operands)

    def _other(self, op: Operation, operands: Sequence[str]) -> str:
        """The text of an expression, from those of the operands."""
        raise NotImplementedError(op.name, operands)


def integers(block: Block) -> Callable[..., dict[SSAValue, int]]:
    """The values of a block of arithmetic, as a function of its arguments."""
    writer = Writer()
    values = [*block.args, *(value for op in block.ops for value in op.results)]
    function = writer.function([writer.name(argument) for argument in block.args], block, values)
    return lambda *arguments: dict(zip(values, function(*arguments), strict=True))
