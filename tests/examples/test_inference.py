"""The kernels of `examples/inference`: against formulas written independently of them, and as machine code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pkc.codegen.build import build_kernel
from pkc.driver.compiler import load
from pkc.routing import top_experts
from pkc.sim.draw import draw_inputs
from pkc.sim.reference import compare, reference
from pkc.sim.run import simulate
from tests.sweeps import sweep

INFERENCE = Path(__file__).parents[2] / "examples" / "inference"

Arrays = dict[str, Any]


def f64(array: Any) -> np.ndarray:
    return np.asarray(array).astype(np.float64)


def normalised(rows: np.ndarray, w: np.ndarray) -> np.ndarray:
    return rows / np.sqrt((rows * rows).mean(axis=-1, keepdims=True) + f64(np.float32(0.00001))) * w


def summed_and_normalised(i: Arrays, ranks: int) -> Arrays:
    """The rows of a rank, with its residual and its weights."""
    total, each = f64(i["X"]).sum(axis=0), -(-np.shape(i["X"])[1] // ranks)
    owner = np.arange(len(total)) // each
    s = total + f64(i["R"])[owner, np.arange(len(total))]
    return {"S": s, "Y": normalised(s, f64(i["w"])[owner])}


def normalised_gemm(i: Arrays, ranks: int) -> Arrays:
    x = f64(i["X"])
    a = normalised(x, f64(i["w"])[np.arange(len(x)) // -(-len(x) // ranks)])
    return {"C": np.matmul(a[None], f64(i["B"]))}


def gemm_sum_normalised(i: Arrays, ranks: int) -> Arrays:
    s = np.matmul(f64(i["A"]), f64(i["B"])).sum(axis=0) + f64(i["R"])
    return {"S": s, "Y": normalised(s, f64(i["w"])[np.arange(len(s)) // -(-len(s) // ranks)])}


def cross_entropy(i: Arrays, ranks: int) -> Arrays:
    x = f64(i["X"])
    column = np.asarray(i["target"]) - np.arange(ranks)[:, None] * x.shape[-1]
    inside = (column >= 0) & (column < x.shape[-1])
    at = np.take_along_axis(x, np.where(inside, column, 0)[..., None], axis=-1)[..., 0]
    lse = np.log(np.exp(x).sum(axis=(0, 2)))
    loss = lse - np.where(inside, at, 0.0).sum(axis=0)
    return {name: np.broadcast_to(found, (ranks, len(found))) for name, found in (("lse", lse), ("loss", loss))}


def cross_entropy_backward(i: Arrays, ranks: int) -> Arrays:
    x, columns = f64(i["X"]), np.arange(np.shape(i["X"])[-1])
    hit = (np.asarray(i["target"])[..., None] - i["first"]) == columns
    return {"dX": (np.exp(x - f64(i["lse"])[..., None]) - hit) * f64(i["dloss"])[..., None]}


def embedded(i: Arrays, ranks: int) -> Arrays:
    w, ids = f64(i["W"]), np.asarray(i["ids"])
    return {"Y": np.where((ids >= 0)[..., None], w[ids], 0.0)}


def routed(i: Arrays, ranks: int) -> Arrays:
    """Tables by loops over tokens and their choices."""
    found: dict[str, list[Any]] = {name: [] for name in ("best", "weight", "first", "count", "row")}
    for logits in np.asarray(i["L"]):
        best, weight = top_experts(logits, i["K"])
        count = np.bincount(best.ravel(), minlength=logits.shape[1])
        first = np.cumsum(-(-count // 128) * 128) - -(-count // 128) * 128
        row, begun = np.zeros(best.shape), first.copy()
        for place in np.ndindex(best.shape):
            row[place] = begun[best[place]]
            begun[best[place]] += 1
        for name, table in zip(found, (best.T, weight.T, first, count, row.T), strict=True):
            found[name].append(table)
    return {name: np.stack(tables) for name, tables in found.items()}


FORMULAS: dict[str, Callable[[Arrays, int], Arrays]] = {
    "all_reduce_rmsnorm": summed_and_normalised,
    "ag_rmsnorm_gemm": normalised_gemm,
    "gemm_rs_rmsnorm": gemm_sum_normalised,
    "vocab_cross_entropy": cross_entropy,
    "vocab_cross_entropy_backward": cross_entropy_backward,
    "embedding": embedded,
    "route": routed,
}
LENGTH = {"all_reduce_rmsnorm": "H", "ag_rmsnorm_gemm": "K", "gemm_rs_rmsnorm": "N", "vocab_cross_entropy": "V"}
"""The constant that says how long a row is, of kernels that take rows in pieces, too."""
EXPERTS = {"route": {"E": 12}}


def test_every_kernel_has_a_formula_and_is_short() -> None:
    assert {path.stem for path in INFERENCE.glob("*.pk")} == FORMULAS.keys()
    for path in INFERENCE.glob("*.pk"):
        code = [line for line in path.read_text().splitlines() if line.strip() and not line.lstrip().startswith("#")]
        assert len(code) <= 36, path.name


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize(("name", "row"), [*((name, "") for name in FORMULAS), *((name, "32") for name in LENGTH)])
def test_kernel(name: str, row: str, ranks: int) -> None:
    length = {LENGTH[name]: 72} if name in LENGTH else EXPERTS.get(name, {})
    schedule = {"row": row} if row else {}
    compiled = load(INFERENCE / f"{name}.pk", constants=length, schedule=schedule)
    sizes = {"M": 13 * ranks + 1, "N": 72, "K": 3 if name == "route" else 64, "V": 19 * ranks + 2, "H": 75, "T": 20}
    used = {dim for op in compiled.kernel.body.block.args for dim in getattr(op.type, "dimensions", ())}
    dims = {dim: size for dim, size in sizes.items() if dim in used}
    inputs = draw_inputs(compiled.module, ranks=ranks, dims=dims, seed=ranks)
    expected = reference(compiled.module, ranks=ranks, dims=dims, inputs=inputs)
    for array, want in FORMULAS[name]({**inputs, **dims}, ranks).items():
        exact = 1e-7 if want.dtype == np.float32 else 1e-9
        np.testing.assert_allclose(expected[array].value, want, rtol=exact, atol=exact)
    outputs = simulate(compiled.module, ranks=ranks, dims=dims, inputs=inputs, seed=ranks)
    found = compare(outputs, expected)
    assert all(c.ok for c in found), found


@pytest.mark.parametrize("name", sweep(FORMULAS, lambda name: name in ("all_reduce_rmsnorm", "ag_rmsnorm_gemm")))
def test_machine_code(name: str) -> None:
    """At rows as long as models have them: nothing spills."""
    constants = {LENGTH[name]: 37984 if name == "vocab_cross_entropy" else 8192} if name in LENGTH else {}
    made = build_kernel(load(INFERENCE / f"{name}.pk", constants=constants, level="machine").kernel)
    assert not made.warnings
