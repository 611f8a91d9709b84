"""The kernels of docs/cookbook.md: each is simulated against the float64 reference, and compiled for sm_90a."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import pytest

from pkc.codegen.build import build_kernel
from pkc.dialect.types import PGLType
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.frontend.tree import Program
from pkc.location import Source
from pkc.sim.draw import draw_inputs
from pkc.sim.reference import compare, reference
from pkc.sim.run import simulate
from tests.sim.helpers import f64
from tests.sweeps import sweep
from tools.cookbook import RESULTS, table

Case: TypeAlias = tuple[Mapping[str, int], Mapping[str, int], Mapping[str, Any], Mapping[str, Any]]
"""Dimensions, constants, inputs, and what is right."""

ROOT = Path(__file__).parents[1]
RECIPES = {
    found[1]: text
    for text in re.findall(r"```\n(.*?)```", (ROOT / "docs" / "cookbook.md").read_text(encoding="utf-8"), re.DOTALL)
    if (found := re.search(r"^kernel (\w+)", text, re.MULTILINE))
}
SHORT = {"N": 72, "K": 72, "V": 72, "H": 72, "D": 8}
"""What constants are in simulations: rows in two pieces."""


def program(name: str) -> Program:
    return parse_text(Source(f"{name}.pk", RECIPES[name]))


def test_there_are_twelve() -> None:
    assert len(RECIPES) == 12
    for path in (ROOT / "examples" / "inference").glob("*.pk"):
        assert path.stem not in RECIPES or RECIPES[path.stem] == path.read_text(encoding="utf-8")


def test_every_recipe_has_its_measured_speed() -> None:
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))["results"]
    assert {one["kernel"] for one in kept} == {"copy", "gemm", *RECIPES}
    assert table(kept) in (ROOT / "docs" / "cookbook.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_computes_what_it_says(name: str) -> None:
    found = re.search(r"(\w): const", RECIPES[name])
    constants = {found[1]: SHORT[found[1]]} if found else {}
    schedule = {"row": "48"} if found else {}
    module = compile_program(program(name), constants=constants, schedule=schedule).module
    (kernel,) = (op for op in module.ops if hasattr(op, "body"))
    kinds = [argument.type for argument in kernel.body.block.args]  # pyright: ignore[reportAttributeAccessIssue]
    ranks = 2 if any(isinstance(kind, PGLType) for kind in kinds) else 1
    dims = {dim: 34 for kind in kinds for dim in getattr(kind, "dimensions", ()) if isinstance(dim, str)}
    inputs = draw_inputs(module, ranks=ranks, dims=dims, seed=1)
    expected = reference(module, ranks=ranks, dims=dims, inputs=inputs)
    assert all(one.ok for one in compare(simulate(module, ranks=ranks, dims=dims, inputs=inputs, seed=1), expected))


@pytest.mark.parametrize("name", sweep(RECIPES, lambda name: name in ("softmax", "rope")))
def test_a_recipe_is_compiled_without_spills(name: str) -> None:
    assert not build_kernel(compile_program(program(name), level="machine").kernel).warnings


def test_pieces_of_rows_leave_room_for_reductions_between_warps() -> None:
    """Stages of pieces take all that is left of shared memory."""
    compile_program(
        program("vocab_cross_entropy"),
        constants={"V": 38912},
        schedule={"row": "16384"},
        level="roles",
        smaller=False,
    )


# Pieces of kernels

PIECES = {
    re.findall(r"^kernel (\w+)", text, re.MULTILINE)[0]: text
    for text in re.findall(r"```pk\n(.*?)```", (ROOT / "docs" / "cookbook.md").read_text(encoding="utf-8"), re.DOTALL)
}


def bf16(generator: np.random.Generator, *shape: int) -> Any:
    return generator.standard_normal(shape, np.float32).astype(ml_dtypes.bfloat16)


def column_sums(rng: np.random.Generator) -> Case:
    x = bf16(rng, 1, 200, 150)
    return {"M": 200, "N": 150}, {}, {"X": x}, {"S": f64(x)[0].sum(axis=0)}


def argmax(rng: np.random.Generator) -> Case:
    """Of equal ones, which 8 bits of a mantissa make likely, the first; the third row has no number but infinities."""
    x = bf16(rng, 1, 5, 20000)
    x[0, 2] = -np.inf
    best = f64(x)[0].argmax(axis=1)
    assert (f64(x)[0] == f64(x)[0].max(axis=1, keepdims=True)).sum() > 5 + 19999
    return {"M": 5, "V": 20000}, {}, {"X": x}, {"best": best}


def rmsnorm_in_place(rng: np.random.Generator) -> Case:
    x = bf16(rng, 1, 6, 72)
    return {"M": 6}, {"N": 72}, {"X": x}, {"X": f64(x)[0] / np.sqrt((f64(x)[0] ** 2).mean(axis=1) + 1e-5)[:, None]}


def int4_matmul(rng: np.random.Generator) -> Case:
    """Of scales that are powers of two, so that no weight is rounded."""
    codes = rng.integers(-8, 8, (512, 70))
    scales, x = (2.0 ** rng.integers(-4, 1, (1, 4, 70))).astype(ml_dtypes.bfloat16), bf16(rng, 1, 30, 512)
    packed = (codes[:256] & 15 | codes[256:] << 4).astype(np.int8)
    right = f64(x)[0] @ (codes * np.repeat(f64(scales)[0], 128, axis=0))
    constants = {"K": 512, "H": 256, "G": 4}
    return {"M": 30, "N": 70}, constants, {"X": x, "W": packed[None], "S": scales}, {"Y": right}


def paged_decode(rng: np.random.Generator) -> Case:
    q, k, v = bf16(rng, 1, 3, 2, 4, 16), bf16(rng, 1, 40, 16, 2, 16), bf16(rng, 1, 40, 16, 2, 16)
    table, length = rng.permutation(40)[:24].reshape(1, 3, 8).astype(np.int32), np.array([[1, 70, 128]], np.int32)
    right = np.zeros((3, 2, 4, 16))
    for b, end in enumerate(length[0]):
        keys, values = (f64(cache)[0][table[0, b]].reshape(128, 2, 16)[:end] for cache in (k, v))
        scores = np.einsum("grd,tgd->grt", f64(q)[0, b], keys) * 0.25
        weights = np.exp(scores - scores.max(axis=2, keepdims=True))
        right[b] = np.einsum("grt,tgd->grd", weights / weights.sum(axis=2, keepdims=True), values)
    inputs = {"Q": q, "K": k, "V": v, "table": table, "length": length, "scale": 0.25}
    return {"B": 3, "G": 2, "P": 40, "N": 8}, {"T": 128, "R": 4, "D": 16}, inputs, {"O": right}


@pytest.mark.parametrize("case", [column_sums, argmax, rmsnorm_in_place, int4_matmul, paged_decode])
def test_a_piece_computes_what_it_says(case: Callable[[np.random.Generator], Case]) -> None:
    dims, constants, inputs, right = case(np.random.default_rng(3))
    program = parse_text(Source("piece.pk", PIECES[case.__name__]))
    module = compile_program(program, constants=constants).module
    found = simulate(module, ranks=1, dims=dims, inputs=inputs)
    for name, expected in right.items():
        np.testing.assert_allclose(f64(found[name]).reshape(expected.shape), expected, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("name", PIECES)
def test_a_piece_compiles(name: str) -> None:
    assert build_kernel(compile_program(parse_text(Source("piece.pk", PIECES[name])), level="machine").kernel).compiled


def test_every_piece_is_compared() -> None:
    assert set(PIECES) == {"column_sums", "argmax", "rmsnorm_in_place", "int4_matmul", "paged_decode"}


def test_a_mask_of_memory_beside_one_of_positions_leaves_blocks_out() -> None:
    """As docs/language.md says; without that of positions, none."""
    page = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
    (text,) = (text for text in re.findall(r"```pk\n(.*?)```", page, re.DOTALL) if "kernel attention(" in text)
    mask = "positions(q) >= positions(kv) and "
    assert mask in text
    for program, told in ((text, True), (text.replace(mask, ""), False)):
        module = compile_program(parse_text(Source("k.pk", program))).module
        assert ("pk.visited" in str(module)) == told
