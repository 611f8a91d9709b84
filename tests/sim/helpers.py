"""Programs as textual IR, and runs of them against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from pkc.diagnostics import Diagnostic, PkcError
from pkc.dialect.pk import context
from pkc.sim.draw import draw_inputs
from pkc.sim.reference import Comparison, compare, reference
from pkc.sim.run import simulate


def parse(text: str) -> ModuleOp:
    module = Parser(context(), text).parse_module()
    module.verify()
    return module


def checked(module: ModuleOp, ranks: int, seed: int = 0, **dims: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs and outputs of a run that has been compared with the reference."""
    inputs = draw_inputs(module, ranks=ranks, dims=dims, seed=seed)
    outputs = simulate(module, ranks=ranks, dims=dims, inputs=inputs, seed=seed)
    compared = compare(outputs, reference(module, ranks=ranks, dims=dims, inputs=inputs))
    assert all(item.ok for item in compared), compared
    return inputs, outputs


def comparison(module: ModuleOp, ranks: int, **dims: int) -> Comparison:
    """How the only output of a program compares with the reference."""
    inputs = draw_inputs(module, ranks=ranks, dims=dims, seed=1)
    outputs = simulate(module, ranks=ranks, dims=dims, inputs=inputs)
    (item,) = compare(outputs, reference(module, ranks=ranks, dims=dims, inputs=inputs))
    return item


def finding(module: ModuleOp, ranks: int, seed: int = 0, **dims: int) -> Diagnostic:
    """The diagnostic that a run ends with."""
    inputs = draw_inputs(module, ranks=ranks, dims=dims, seed=seed)
    with pytest.raises(PkcError) as raised:
        simulate(module, ranks=ranks, dims=dims, inputs=inputs, seed=seed)
    (diagnostic,) = raised.value.diagnostics
    return diagnostic


def f64(values: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.asarray(values).astype(np.float64)


GEMM_RS = """
pk.kernel @gemm_rs(
    %A: !pk.private<[M, K], bf16> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"},
    %C: !pk.pgl<[M, N], bf16, shard 0> {pk.name = "C"}) {
  %rows = pk.block_count <M by 32> sharded
  %columns = pk.block_count <N by 64>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  pk.tasks (%i, %j) in (%rows, %columns) {
    %m = pk.block[%i] sharded : !pk.block<M by 32>
    %n = pk.block[%j] : !pk.block<N by 64>
    %start = pk.full 0.0 : f32 : !pk.tile<32x64xf32>
    %steps = pk.block_count <K by 16>
    %sum = scf.for %q = %zero to %steps step %one iter_args(%acc = %start) -> (!pk.tile<32x64xf32>) {
      %k = pk.block[%q] : !pk.block<K by 16>
      %a = pk.load %A[%m, %k : !pk.block<M by 32>, !pk.block<K by 16>] : !pk.private<[M, K], bf16> ->
        !pk.tile<32x16xbf16>
      %b = pk.load %B[%k, %n : !pk.block<K by 16>, !pk.block<N by 64>] : !pk.private<[K, N], bf16> ->
        !pk.tile<16x64xbf16>
      %next = pk.mma %a, %b, %acc : !pk.tile<32x16xbf16>, !pk.tile<16x64xbf16> -> !pk.tile<32x64xf32>
      scf.yield %next : !pk.tile<32x64xf32>
    }
    %c = pk.cast %sum : !pk.tile<32x64xf32> -> !pk.tile<32x64xbf16>
    pk.accumulate %c, %C[%m, %n : !pk.block<M by 32>, !pk.block<N by 64>] : !pk.tile<32x64xbf16>, !pk.pgl<[M, N],
      bf16, shard 0>
  }
}
"""

COPY = """
pk.kernel @copy(%X: !pk.SOURCE {{pk.name = "X"}}, %Y: !pk.TARGET {{pk.name = "Y"}}) {{
  %rank = pk.rank
  %rows = pk.block_count <M by 8> {rows}
  %columns = pk.block_count <N by 16> {columns}
  pk.tasks (%i, %j) in (%rows, %columns) {{
    %m = pk.block[%i] {rows} : !pk.block<M by 8>
    %n = pk.block[%j] {columns} : !pk.block<N by 16>
    %t = pk.load %X[%m, %n : !pk.block<M by 8>, !pk.block<N by 16>] : !pk.SOURCE -> !pk.tile<8x16xTYPE>
    {write} %t, %Y[%m, %n : !pk.block<M by 8>, !pk.block<N by 16>] : !pk.tile<8x16xTYPE>, !pk.TARGET
  }}
}}
"""


def copy(source: str, target: str, *, local: bool, write: str = "pk.store", element: str = "bf16") -> ModuleOp:
    """X[m, n] to Y[m, n]: all blocks on every rank, or each rank the blocks of its shard."""
    by_columns = "shard 1" in (source, target)
    rows = "of %rank" if local else "" if by_columns else "sharded"
    text = COPY.format(rows=rows, columns="sharded" if by_columns else "", write=write)
    for name, layout in (("SOURCE", source), ("TARGET", target)):
        array = f"private<[M, N], {element}>" if layout == "private" else f"pgl<[M, N], {element}, {layout}>"
        text = text.replace(name, array)
    return parse(text.replace("TYPE", element))
