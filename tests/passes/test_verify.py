"""Of operations that are alike one is verified: those that differ in what matters are still found."""

from __future__ import annotations

import pytest
from xdsl.dialects import scf
from xdsl.parser import Parser

from pkc.dialect.pk import context
from pkc.passes.verify import findings

_MODULE = """
pk.kernel @k(%X: !pk.private<[8], f32> {{pk.name = "X"}}) {{
  %i = arith.constant 1 : index
  %w = arith.constant 1 : i64
  %r = pk.registers : !pk.registers<4xf32>
  %a = arith.addi %i, %i : index
  %b = "arith.addi"({operands}) <{{overflowFlags = #arith.overflow<none>}}> : ({types}) -> {result}
  %c = arith.index_cast %i : index to i64
  scf.for %n = %i to %a step %i {{
    %d = arith.addi %n, %i : index
    scf.yield
  }}
}}
"""


@pytest.mark.parametrize(
    ("operands", "types", "result", "number"),
    [
        ("%i, %i", "index, index", "index", 0),
        ("%i, %w", "index, i64", "index", 1),
        ("%i, %i", "index, index", "i64", 1),
    ],
)
def test_other_types_are_not_alike(operands: str, types: str, result: str, number: int) -> None:
    module = Parser(context(), _MODULE.format(operands=operands, types=types, result=result)).parse_module()
    assert [finding.code for finding in findings(module)] == ["PK440"] * number


def test_the_last_of_a_block_is_not_like_others() -> None:
    module = Parser(context(), _MODULE.format(operands="%i, %i", types="index, index", result="index")).parse_module()
    (loop,) = (op for op in module.walk() if isinstance(op, scf.ForOp))
    assert loop.body.block.last_op is not None
    loop.body.block.erase_op(loop.body.block.last_op)
    assert any("arith.addi terminates block" in str(finding) for finding in findings(module))
