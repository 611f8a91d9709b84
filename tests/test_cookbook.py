"""The kernels of docs/cookbook.md: each is simulated against the float64 reference, and compiled for sm_90a."""

from __future__ import annotations

import json
import re
from pathlib import Path

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
from tests.sweeps import sweep
from tools.cookbook import RESULTS, table

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
