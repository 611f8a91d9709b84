"""pkc's IR is MLIR: upstream parses it, optimizes around it, and gives it back.

Needs the extra `mlir` (`pip install pkc[mlir]`), which installs the Python bindings of upstream MLIR; without it this
file is not collected. The generic form is sent, so upstream needs to know nothing of the dialect.
"""

from __future__ import annotations

from collections.abc import Iterator
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


def textual_modules() -> Iterator[tuple[str, ModuleOp]]:
    """The modules of the tests of the dialect and its passes."""
    for name in ("dialect/every_operation", "dialect/effects", "passes/canonicalize", "passes/cse", "passes/dce"):
        yield name, parse_ir((ROOT / f"tests/{name}.mlir").read_text(encoding="utf-8"), f"{name}.mlir")
    modules = (ROOT / "tests/passes/check_program.mlir").read_text(encoding="utf-8").split("// -----")
    for number, module in enumerate(modules):
        yield f"passes/check_program-{number}", parse_ir(module, "check_program.mlir")


def example_modules() -> Iterator[tuple[str, ModuleOp]]:
    """The tile IR of each example."""
    for path in sorted((ROOT / "examples").glob("*.pk")):
        yield path.stem, load(path).module


MODULES = [*textual_modules(), *example_modules()]
each_module = pytest.mark.parametrize("module", [module for _, module in MODULES], ids=[name for name, _ in MODULES])


@each_module
def test_upstream_reads_and_prints_it_unchanged(module: ModuleOp) -> None:
    assert through_upstream(module).is_structurally_equivalent(module)


@each_module
def test_upstream_passes_keep_every_operation_of_pk(module: ModuleOp) -> None:
    """After pkc's simplification, upstream finds nothing to change in operations of pk."""
    module = module.clone()
    run_pipeline(module, SIMPLIFY)
    after = through_upstream(module, UPSTREAM)
    verify(after)
    assert pk_operations(after) == pk_operations(module)


@each_module
def test_upstream_passes_reach_a_fixpoint(module: ModuleOp) -> None:
    """Upstream moves constants and folds index arithmetic in another way; then the round trip changes nothing."""
    module = module.clone()
    run_pipeline(module, SIMPLIFY)
    once = through_upstream(module, UPSTREAM)
    assert through_upstream(once, UPSTREAM).is_structurally_equivalent(once)


@each_module
def test_own_passes_agree_with_upstream(module: ModuleOp) -> None:
    """What upstream gives back, our passes leave as it is, up to where constants stand."""
    module = module.clone()
    run_pipeline(module, SIMPLIFY)
    once = through_upstream(module, UPSTREAM)
    run_pipeline(once, SIMPLIFY)
    assert pk_operations(once) == pk_operations(module)


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
