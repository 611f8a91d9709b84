"""Loads that moved in front of loops: the bits are those of the program as it was written."""

from __future__ import annotations

import re

import numpy as np
import pytest
from xdsl.dialects import scf

from pkc.dialect.access import LoadOp
from pkc.frontend.elaborate import build_module
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes.analysis.dependence import ancestors
from pkc.passes.cse import Cse
from pkc.passes.run import run_pipeline
from pkc.passes.tile.hoist_loads import HoistLoads
from pkc.sim.draw import draw_inputs
from pkc.sim.run import simulate

DIMS = {"M": 50, "N": 40, "H": 3, "K": 20}
PROGRAMS: dict[str, tuple[str, int]] = {
    "an array of this rank": (
        """
kernel k(X: f32[M, N], V: f32[K, N], T: i32[H], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        acc = zeros(f32, m, n)
        for i in range(T[0]):
            for k in blocks(K, 8):
                acc = acc + X[m, n] * rowsum(V[k, n].T)
        Y[m, n] = acc
""",
        1,
    ),
    "an array of all ranks, at a position that tasks number": (
        """
kernel k(X: f32[H, M, N].shard(1), T: i32[H], Y: f32[H, M, N]):
    for h, m, n in tasks(H, blocks(M, 16), blocks(N, 16)):
        acc = zeros(f32, m, n)
        for i in range(T[h]):
            acc = acc * 0.5 + X[h, m, n]
        Y[h, m, n] = acc
""",
        0,
    ),
    "a position that exists only if the loop runs": (
        """
kernel k(X: f32[M, N], T: i32[H], Y: f32[H, N]):
    for h, n in tasks(H, blocks(N, 16)):
        acc = zeros(f32, n); count = T[h]
        for i in range(count):
            acc = acc + X[count * 20 - 20, n]
        Y[h, n] = acc
""",
        1,
    ),
    "an array that the phase writes": (
        """
kernel k(T: i32[H], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        for i in range(T[2]):
            Y[m, n] = Y[m, n] * 0.5 + 1.0
""",
        1,
    ),
}
"""Programs of which some loops have no iteration; and how many loads stay in loops."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_bits_are_those_of_the_program(name: str) -> None:
    text, kept = PROGRAMS[name]
    module = build_module(parse_text(Source("k.pk", text.strip() + "\n")))
    dims = {dim: size for dim, size in DIMS.items() if dim in re.findall(r"\w+", text)}
    inputs = draw_inputs(module, ranks=2, dims=dims, seed=3)
    tables = [np.array([[0, 1, 2], [2, 0, 3]], np.int32), np.array([[2, 3, 0], [1, 1, 1]], np.int32)]
    runs = [inputs | {"T": table} for table in tables]
    before = [simulate(module, ranks=2, dims=dims, inputs=each)["Y"] for each in runs]
    run_pipeline(module, [Cse(), HoistLoads()])
    after = [simulate(module, ranks=2, dims=dims, inputs=each)["Y"] for each in runs]
    assert [y.tobytes() for y in after] == [y.tobytes() for y in before]
    assert all(y.any() for y in before)
    loads = [op for op in module.walk() if isinstance(op, LoadOp)]
    assert sum(any(isinstance(around, scf.ForOp) for around in ancestors(op)) for op in loads) == kept
