"""The kernels of `examples/fp8`: against formulas written independently of them, and as machine code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pkc.codegen.build import build_kernel
from pkc.driver.compiler import load
from pkc.sim.draw import draw_inputs
from pkc.sim.reference import compare, reference
from pkc.sim.run import simulate

FP8 = Path(__file__).parents[2] / "examples" / "fp8"
NAMES = sorted(path.stem for path in FP8.glob("*.pk"))
OVERLAPS = ("inter_sm", "none", "copy_engine")
"""How scales come whose row is a quotient of where a block of K begins."""
DIMS = {"M": 150, "N": 144, "K": 160, "G": 2, "H": 2}


def product(inputs: dict[str, Any], ranks: int) -> np.ndarray:
    """What each rank computes: its slice of the sum, or its columns."""
    f = {name: np.asarray(array).astype(np.float64) for name, array in inputs.items()}
    a = f["A"] if f["A"].ndim == 3 else np.stack([f["A"]] * ranks)
    if "scale" in f:
        return np.float64(np.float32(inputs["scale"])) * np.einsum("rmk,rnk->rmn", a, f["B"])
    scales = f["a_scale"] if f["a_scale"].ndim == 3 else np.stack([f["a_scale"]] * ranks)
    group, block = np.arange(DIMS["K"]) // 128, np.arange(DIMS["N"]) // 128
    left = a * scales.transpose(0, 2, 1)[:, :, group]
    return np.einsum("rmk,rnk->rmn", left, f["B"] * f["b_scale"][:, block][:, :, group])


def test_all_are_here() -> None:
    assert NAMES == ["ag_gemm_fp8", "ag_gemm_fp8_blocks", "gemm_rs_fp8", "gemm_rs_fp8_blocks"]


CASES = [*((name, {}) for name in NAMES), *(("ag_gemm_fp8_blocks", {"overlap": how}) for how in OVERLAPS)]


@pytest.mark.parametrize(("name", "schedule"), CASES, ids=str)
def test_kernel(name: str, schedule: dict[str, str]) -> None:
    compiled, ranks = load(FP8 / f"{name}.pk", level="roles", schedule=schedule), 2
    used = {dim for op in compiled.kernel.body.block.args for dim in getattr(op.type, "dimensions", ())}
    dims = {dim: size for dim, size in DIMS.items() if dim in used}
    inputs = draw_inputs(compiled.module, ranks=ranks, dims=dims, seed=1)
    tile = load(FP8 / f"{name}.pk").module
    expected = reference(tile, ranks=ranks, dims=dims, inputs=inputs)
    want = product(dict(inputs), ranks)
    np.testing.assert_allclose(expected["C"].value, want.sum(axis=0) if "rs" in name else want, rtol=1e-9, atol=1e-9)
    found = compare(simulate(compiled.module, ranks=ranks, dims=dims, inputs=inputs, seed=1), expected)
    assert all(c.ok for c in found), found


@pytest.mark.parametrize("name", ["ag_gemm_fp8_blocks", "gemm_rs_fp8_blocks"])
def test_machine_code(name: str) -> None:
    assert not build_kernel(load(FP8 / f"{name}.pk", level="machine").kernel).warnings
