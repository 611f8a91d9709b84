"""pkc's IR is MLIR: upstream parses it, optimizes around it, and gives it back.

Needs the extra `mlir` (`pip install pkc[mlir]`), which installs the Python bindings of upstream MLIR; without it this
file is not collected. The generic form is sent, so upstream needs to know nothing of the dialect.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from iree.compiler import ir, passmanager
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from pkc.cli.opt import parse_ir
from pkc.driver.compiler import load
from pkc.passes import TILE_PIPELINE
from pkc.passes.canonicalize import Canonicalize
from pkc.passes.cse import Cse
from pkc.passes.run import print_ir, run_pipeline
from pkc.passes.verify import verify

ROOT = Path(__file__).parents[2]
SIMPLIFY = (Cse(), Canonicalize(), Cse())
UPSTREAM = "builtin.module(canonicalize,cse)"


CHECKED = "passes/check_program"
TEXTS = ("dialect/every_operation", "dialect/effects", "passes/canonicalize", "passes/cse", "passes/dce")


def in_parts(name: str) -> list[str]:
    """The modules of a test that has several."""
    return (ROOT / f"tests/{name}.mlir").read_text(encoding="utf-8").split("// -----")


EXAMPLES = {path.stem: path for path in sorted((ROOT / "examples").glob("*.pk"))}
each_module = pytest.mark.parametrize(
    "name", [*TEXTS, *(f"{CHECKED}-{number}" for number in range(len(in_parts(CHECKED)))), *EXAMPLES]
)


@cache
def module_of(name: str) -> ModuleOp:
    """A module of the tests of the dialect and its passes, or the tile IR of an example; nobody changes it."""
    if name in EXAMPLES:
        return load(EXAMPLES[name]).module
    file, _, number = name.partition("-")
    return parse_ir(in_parts(file)[int(number or 0)], f"{Path(file).name}.mlir")


@cache
def simplified(name: str) -> ModuleOp:
    """The module after pkc's simplification; nobody changes it."""
    module = module_of(name).clone()
    run_pipeline(module, SIMPLIFY)
    return module


@cache
def upstream(name: str) -> ModuleOp:
    """That module after upstream's passes; nobody changes it."""
    return through_upstream(simplified(name), UPSTREAM)


@each_module
def test_upstream_reads_and_prints_it_unchanged(name: str) -> None:
    assert through_upstream(module_of(name)).is_structurally_equivalent(module_of(name))


@each_module
def test_upstream_passes_keep_every_operation_of_pk(name: str) -> None:
    """After pkc's simplification, upstream finds nothing to change in operations of pk."""
    verify(upstream(name))
    assert pk_operations(upstream(name)) == pk_operations(simplified(name))


@each_module
def test_upstream_passes_reach_a_fixpoint(name: str) -> None:
    """Upstream moves constants and folds index arithmetic in another way; then the round trip changes nothing."""
    assert through_upstream(upstream(name), UPSTREAM).is_structurally_equivalent(upstream(name))


@each_module
def test_own_passes_agree_with_upstream(name: str) -> None:
    """What upstream gives back, our passes leave as it is, up to where constants stand."""
    again = upstream(name).clone()
    run_pipeline(again, SIMPLIFY)
    assert pk_operations(again) == pk_operations(simplified(name))


def test_the_tile_pipeline_ends_in_such_a_module() -> None:
    assert [step for step in TILE_PIPELINE if step in SIMPLIFY] == list(SIMPLIFY)


def through_upstream(module: ModuleOp, pipeline: str | None = None) -> ModuleOp:
    """The module as upstream MLIR prints it, after a pipeline of upstream's passes if one is given."""
    context = ir.Context()
    context.allow_unregistered_dialects = True
    with context, ir.Location.unknown():
        theirs = ir.Module.parse(print_ir(module, generic=True))
        if pipeline is not None:
            passmanager.PassManager.parse(pipeline).run(theirs.operation)
        text = theirs.operation.get_asm(print_generic_op_form=True)
    return parse_ir(text, "upstream.mlir")


def pk_operations(module: ModuleOp) -> list[tuple[object, ...]]:
    """The operations of the dialect in order, with all that belongs to them but their operands' names."""
    return [_parts(op) for op in module.walk() if op.name.startswith("pk.")]


def _parts(op: Operation) -> tuple[object, ...]:
    operands = tuple(operand.type for operand in op.operands)
    return op.name, op.properties, op.attributes, operands, tuple(op.result_types)
