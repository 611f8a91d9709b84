"""The texts of diagnostics that only the Python interface can provoke; `tests/errors` has all others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16
from xdsl.dialects.builtin import ModuleOp

from pkc.diagnostics import PkcError
from pkc.frontend.elaborate import build_module
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.run import simulate
from tests.sim.helpers import copy, parse

ADD = """\
kernel add(A: f32[M], B: f32[M], s: f32, C: f32[M]):
    for m in tasks(blocks(M, 4)):
        C[m] = A[m] + B[m] * s
"""
A = np.zeros((2, 4), np.float32)


def shown(module: ModuleOp, inputs: dict[str, Any], *, kernel: str | None = None, **dims: int) -> str:
    """What is printed for a run on two ranks."""
    with pytest.raises(PkcError) as raised:
        simulate(module, ranks=2, dims=dims, inputs=inputs, kernel=kernel)
    return f"{raised.value}\n"


@pytest.fixture
def add() -> ModuleOp:
    return build_module(parse_text(Source("add.pk", ADD).remember()))


def test_a_dimension_that_is_not_there(add: ModuleOp) -> None:
    expected = """\
error[PK604]: kernel `add` has no dimension `N`
 --> add.pk:1:8
  |
1 | kernel add(A: f32[M], B: f32[M], s: f32, C: f32[M]):
  |        ^^^
  = help: its dimensions are `M`
"""
    assert shown(add, {"A": A, "B": A, "s": 1.0}, N=4) == expected


def test_another_element_type(add: ModuleOp) -> None:
    expected = """\
error[PK607]: what is passed has elements of type complex128; `A` is of type f32
 --> add.pk:1:12
  |
1 | kernel add(A: f32[M], B: f32[M], s: f32, C: f32[M]):
  |            ^ what is passed for this does not fit
  = help: f32 is read from floats or integers, rounded to nearest
"""
    assert shown(add, {"A": A.astype(complex), "B": A, "s": 1.0}) == expected


def test_missing_inputs(add: ModuleOp) -> None:
    expected = """\
error[PK608]: input `B` is missing
 --> add.pk:1:23
  |
1 | kernel add(A: f32[M], B: f32[M], s: f32, C: f32[M]):
  |                       ^ nothing is passed for this
  = help: kernel `add` reads `B`: pass it

error[PK608]: input `s` is missing
 --> add.pk:1:34
  |
1 | kernel add(A: f32[M], B: f32[M], s: f32, C: f32[M]):
  |                                  ^ nothing is passed for this
  = help: kernel `add` reads `s`: pass it
"""
    assert shown(add, {"A": A}) == expected


def test_which_kernel() -> None:
    both = build_module(parse_text(Source("both.pk", ADD + ADD.replace("add(", "twice(")).remember()))
    expected = """\
error[PK611]: no kernel is named, and the program has not exactly one
  = help: the program has `add`, `twice`
"""
    assert shown(both, {}) == expected
    expected = """\
error[PK611]: there is no kernel `sub`
  = help: the program has `add`, `twice`
"""
    assert shown(both, {}, kernel="sub") == expected


def test_a_tile_on_two_ranks() -> None:
    module = copy("shard 0", "private", local=False)
    for op in module.walk():
        op.properties.pop("sharded", None)
    expected = """\
error[PK708]: a tile of `X` lies on two ranks: 0 to 7 of dimension 0
  = help: a shard is 6 long; a block by which a sharded array is read may not straddle two shards
"""
    assert shown(module, {"X": np.zeros((12, 4), bfloat16)}) == expected


def test_an_operation_without_meaning() -> None:
    module = parse("""
pk.kernel @k(%Y: !pk.private<[M], f32> {pk.name = "Y"}) {
  %a = arith.constant 1.0 : f32
  %b = arith.addf %a, %a : f32
}""")
    expected = """\
error[PK710]: `arith.addf` cannot be simulated at the tile level
"""
    assert shown(module, {}, M=4) == expected
