"""Positions divided by a number are loaded as blocks: results stay, at both levels and thread by thread."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pkc.dialect.by_table import GatherOp
from pkc.dialect.tile import EnlargeOp
from pkc.driver.compiler import compile_program
from pkc.frontend.elaborate import build_module
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes import TILE_PIPELINE
from pkc.passes.run import run_pipeline
from pkc.passes.tile.load_quotients import LoadQuotients
from pkc.sim.draw import draw_inputs
from pkc.sim.run import simulate
from tests.codegen.test_tiles import ALIGNED, UNEVEN, check, sizes_of

HEAD = "kernel f({arrays}, Y: f32[{result}]):\n    for {indices} in tasks({lists}):\n"


def _kernel(arrays: str, body: str, result: str = "M, 256", lists: str = "blocks(M, 16), blocks(256, 64)") -> str:
    indices = "m, n" if "," in result else "n"
    return HEAD.format(arrays=arrays, result=result, indices=indices, lists=lists) + f"        {body}\n"


CASES = {
    "bits": _kernel(
        "X: bf16[M, 256], mask: i32[M, 8]",
        "bit = (mask[m, n // 32] >> positions(n) % 32) & 1\n        Y[m, n] = where(bit != 0, X[m, n] * 2.0, 0.0)",
    ),
    "rows": _kernel("W: bf16[K, N]", "Y[m, n] = W[m // 8, n] * 2.0", "M, N", "blocks(M, 16), blocks(N, 64)"),
    "past the end": _kernel("W: f32[B, N]", "Y[m, n] = W[m // 4, n] + 1.0", "M, N", "blocks(M, 8), blocks(N, 64)"),
    "both axes": _kernel("X: bf16[K, N]", "Y[m, n] = X[m // 2, n // 4] * 2.0", "M, N", "blocks(M, 16), blocks(N, 64)"),
    "as many": _kernel("S: f32[M, 64]", "Y[m, n] = S[m, n // 4] * 2.0"),
    "one place": _kernel("S: f32[M, 2]", "Y[m, n] = S[m, n // 128] * 2.0"),
    "one place of both": _kernel(
        "S: f32[2, 4]", "Y[m, n] = S[m // 64, n // 64] * 2.0", "128, 256", "blocks(128, 16), blocks(256, 64)"
    ),
    "copied": _kernel("X: f32[K, N]", "Y[m, n] = X[m // 2, n // 4]", "M, N", "blocks(M, 16), blocks(N, 64)"),
    "to one axis of it": _kernel("X: f32[M, 64]", "Y[n] = X[3, n // 4]", "256", "blocks(256, 64)"),
    "of 8 bits": _kernel("X: e4m3[M, 64]", "Y[m, n] = cast(X[m, n // 4], f32)"),
    "of integers of 8 bits": _kernel("X: i8[K, 256]", "Y[m, n] = cast(X[m // 4, n], f32)"),
    "one axis": _kernel("X: f32[K]", "Y[n] = X[n // 4] * 2.0", "N", "blocks(N, 64)"),
    "one axis and another": _kernel("X: f32[M, 256], S: f32[32]", "Y[m, n] = X[m, n] * S[n // 8]"),
    "along rows": _kernel("X: f32[M, 256], S: bf16[K]", "Y[m, n] = X[m, n] * S[m // 2]"),
    "odd": _kernel("X: bf16[M, 64]", "Y[m, n] = X[m, n // 3] * 2.0", "M, 192", "blocks(M, 16), blocks(192, 96)"),
    "reduced": _kernel(
        "X: f32[M, 256], S: bf16[M, 16]", "Y[m] = rowsum(X[m, :] * S[m, positions(256) // 16])", "M", "blocks(M, 16)"
    ).replace("for n", "for m"),
    "three axes": _kernel(
        "X: bf16[2, K, 128]",
        "for b in blocks(2, 2):\n            Y[b, m, n] = X[b, m // 4, n // 2] * 2.0",
        "2, M, 256",
    ),
    "in a loop": _kernel(
        "W: bf16[K, N], Z: f32[M]",
        "t = zeros(f32, n)\n        for m in blocks(M, 16):\n            t += rowsum((W[m // 4, n] * Z[m]).T)\n"
        "        Y[n] = t",
        "N",
        "blocks(N, 64)",
    ),
    "from a position on": _kernel(
        "X: f32[M, 32]",
        "t = zeros(f32, m)\n        for n in blocks(256, 64, start=128):\n            t += rowsum(X[m, n // 8] * 2.0)\n"
        "        Y[m] = t",
        "M",
        "blocks(M, 16)",
    ).replace("for n in tasks", "for m in tasks"),
    "codes of an operand": _kernel(
        "X: bf16[M, K], W: i32[K, N], S: f32[K]",
        "t = zeros(f32, m, n)\n        for k in blocks(K, 64):\n"
        "            w = cast((W[k // 8, n] >> (positions(k) % 8 * 4)) & 15, f32) * S[k // 16]\n"
        "            t += X[m, k] @ cast(w, bf16)\n        Y[m, n] = t * S[n // 4]",
        "M, N",
        "blocks(M, 64), blocks(N, 64)",
    ),
    "up to a count": _kernel(
        "X: f32[B, 256, 32], count: i32[B]",
        "t = zeros(f32, n)\n        for b in range(B):\n            for m in blocks(256, 16, stop=count[b]):\n"
        "                t += rowsum((X[b, m // 4, n] + 1.0).T)\n        Y[n] = t",
        "32",
        "blocks(32, 32)",
    ),
}


BESIDE = {"up to a count", "codes of an operand"}
"""Lists that memory bounds, and matmuls, are not run thread by thread."""


def _tile(text: str, *, loaded: bool = True) -> Any:
    module = build_module(parse_text(Source("k.pk", text)), constants={})
    run_pipeline(module, [step for step in TILE_PIPELINE if loaded or not isinstance(step, LoadQuotients)])
    return module


@pytest.mark.parametrize("name", CASES)
def test_results_stay(name: str) -> None:
    text = CASES[name]
    by_table, loaded = (_tile(text, loaded=one) for one in (False, True))
    assert any(isinstance(op, GatherOp) for op in by_table.walk())
    assert not any(isinstance(op, GatherOp) for op in loaded.walk())
    assert any(isinstance(op, EnlargeOp) for op in loaded.walk()) != name.startswith("one place")
    for seed, every in enumerate((ALIGNED, UNEVEN, {**UNEVEN, "M": 5, "N": 40, "K": 2})):
        sizes = sizes_of(text, every)
        inputs = draw_inputs(loaded, ranks=1, dims=sizes, seed=seed)
        first, second = (simulate(one, ranks=1, dims=sizes, inputs=inputs)["Y"] for one in (by_table, loaded))
        np.testing.assert_array_equal(first, second)
        roles = compile_program(parse_text(Source("k.pk", text)), level="roles").module
        third = simulate(roles, ranks=1, dims=sizes, inputs=inputs)["Y"]
        np.testing.assert_array_equal(first, third)


def test_what_makes_a_table_stays_one() -> None:
    """Codes of 4 bits, two in a byte: threads evaluate the table where they look it up."""
    text = _kernel(
        "q: i32[M, 128], book: f32[16]", "Y[m, n] = book[(q[m, n // 2] >> (positions(n) % 2 * 4)) & 15] + 1.0"
    )
    remarks = compile_program(parse_text(Source("k.pk", text)), level="roles").remarks
    (found,) = (remark.reason for remark in remarks if remark.step == LoadQuotients.name)
    assert found.endswith(": another table is computed of it")
    check(text, ALIGNED)


@pytest.mark.parametrize("begin", [0, 16, 32, 48])
def test_the_last_block_of_a_list_ends_where_its_dimension_does(begin: int) -> None:
    """One that begins within a block is short; behind its end nothing counts, though the array goes on."""
    loop = f"        for n in blocks(64, 32, start={begin}):\n            t += rowsum(X[m, n // 16])\n"
    body = "t = zeros(f32, m)\n" + loop + "        Y[m] = t"
    text = _kernel("X: f32[M, 8]", body, "M", "blocks(M, 16)").replace("for n in t", "for m in t")
    values = np.random.default_rng(begin).standard_normal((1, 20, 8)).astype(np.float32)
    found = simulate(_tile(text), ranks=1, dims={"M": 20}, inputs={"X": values})["Y"]
    np.testing.assert_allclose(found[0], 16 * values[0, :, begin // 16 : 4].sum(-1), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("sizes", [ALIGNED, UNEVEN], ids=["aligned", "uneven"])
@pytest.mark.parametrize("name", [name for name in CASES if name not in BESIDE])
def test_thread_by_thread(name: str, sizes: dict[str, int]) -> None:
    check(CASES[name], sizes)
