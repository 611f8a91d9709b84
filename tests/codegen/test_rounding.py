"""Division of integers that rounds down, from instructions that round towards zero."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import UNKNOWN_LOC, IndexType, IntegerAttr, i32
from xdsl.ir import Attribute, Block, SSAValue

from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering.rounding import divide_down, remainder_down
from pkc.targets.sm_90a import TARGET
from tests.codegen.as_python import integers


@pytest.mark.parametrize("kind", [IndexType(), i32])
@pytest.mark.parametrize("known", [False, True], ids=["by a value", "by a constant"])
@pytest.mark.parametrize("b", [-3, -1, 0, 1, 4])
def test_as_in_python(b: int, kind: Attribute, *, known: bool) -> None:
    block = Block(arg_types=[kind, kind])
    emit = Emitter(block, UNKNOWN_LOC, TARGET)
    divisor: SSAValue = block.args[1]
    if known:
        constant = arith.ConstantOp(IntegerAttr(b, kind))
        emit.add(constant)
        divisor = constant.result
    quotient, rest = divide_down(emit, block.args[0], divisor), remainder_down(emit, block.args[0], divisor)
    for op in block.ops:
        op.verify()
    evaluate = integers(block)
    for a in range(-9, 10):
        values = evaluate(a, b)
        assert (values[quotient], values[rest]) == ((a // b, a % b) if b else (0, a))
