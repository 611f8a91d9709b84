"""The pipeline as a whole, and what every pass must have."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from pkc.cli.opt import parse_ir, parse_passes
from pkc.diagnostics import PkcError
from pkc.passes import PASSES, TILE_PIPELINE
from pkc.passes.run import pipeline_text, print_ir, run_pipeline
from pkc.passes.tile.check_program import check
from pkc.universe import UNIVERSE

HERE = Path(__file__).parent
KERNEL = """
pk.kernel @k(%X: !pk.private<[N], f32> {pk.name = "X"}, %Y: !pk.private<[N], f32> {pk.name = "Y"}) {
  %n = pk.block_count <N by 8>
  pk.tasks (%i) in (%n) {
    %b = pk.block[%i] : !pk.block<N by 8>
    %c = pk.block[%i] : !pk.block<N by 8>
    %x = pk.load %X[%b : !pk.block<N by 8>] : !pk.private<[N], f32> -> !pk.tile<8xf32>
    %z = pk.clip %x axis 0 to %c fill 0.0 : f32 : !pk.tile<8xf32>, !pk.block<N by 8> -> !pk.tile<8xf32>
    pk.store %z, %X[%c : !pk.block<N by 8>] : !pk.tile<8xf32>, !pk.private<[N], f32>
  }
}
"""


def _kernel() -> ModuleOp:
    return parse_ir(KERNEL, "kernel.mlir")


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_has_a_name_a_file_a_docstring_with_ir_and_a_test_file(name: str) -> None:
    kind = PASSES[name]()
    file = name.removeprefix("pk-").replace("-", "_")
    assert kind.name == name
    assert Path(inspect.getfile(kind)).name == f"{file}.py"
    assert "pk." in (inspect.getdoc(kind) or "")
    assert (HERE / f"{file}.mlir").exists()


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_has_a_row_in_the_documentation(name: str) -> None:
    rows = (HERE.parents[1] / "docs" / "passes.md").read_text(encoding="utf-8").splitlines()
    assert any(row.startswith("| `pk-") and f"`{name}`" in row.split(" | ")[0] for row in rows)


def test_every_pass_module_is_listed() -> None:
    found: set[str] = set()
    folder = Path(inspect.getfile(run_pipeline)).parent
    for path in folder.rglob("*.py"):
        module = importlib.import_module(".".join(("pkc", "passes", *path.relative_to(folder).with_suffix("").parts)))
        kinds = [kind for _, kind in inspect.getmembers(module, inspect.isclass) if kind.__module__ == module.__name__]
        found |= {kind.name for kind in kinds if issubclass(kind, ModulePass) and not inspect.isabstract(kind)}
    assert found == set(PASSES)
    assert set(UNIVERSE.all_passes) == set(PASSES)


def test_the_pipeline_and_its_text_are_the_same_thing() -> None:
    assert parse_passes(pipeline_text(TILE_PIPELINE)) == TILE_PIPELINE


def test_the_pipeline_reaches_a_fixpoint() -> None:
    module = _kernel()
    run_pipeline(module, TILE_PIPELINE)
    names = [op.name for op in module.walk() if op.name.startswith("pk.")]
    assert names == ["pk.kernel", "pk.block_count", "pk.tasks", "pk.block", "pk.load", "pk.store"]
    once = module.clone()
    run_pipeline(module, TILE_PIPELINE)
    assert module.is_structurally_equivalent(once)


def test_each_pass_is_timed_and_dumped(tmp_path: Path) -> None:
    module = _kernel()
    times = run_pipeline(module, TILE_PIPELINE, dump=tmp_path / "dump")
    assert [step.name for step in times] == [step.name for step in TILE_PIPELINE]
    names = ["input", *(step.name for step in TILE_PIPELINE)]
    files = sorted((tmp_path / "dump").iterdir())
    assert [path.name for path in files] == [f"{number:03}-{name}.mlir" for number, name in enumerate(names)]
    last = parse_ir(files[-1].read_text(encoding="utf-8"), files[-1].name)
    assert last.is_structurally_equivalent(module)
    assert [op.location for op in last.walk()][1:] == [op.location for op in module.walk()][1:]


def test_a_dump_replays_the_rest_of_the_pipeline(tmp_path: Path) -> None:
    module = _kernel()
    run_pipeline(module, TILE_PIPELINE, dump=tmp_path)
    half = parse_ir((tmp_path / "002-pk-cse.mlir").read_text(encoding="utf-8"), "half.mlir")
    run_pipeline(half, TILE_PIPELINE[2:])
    assert print_ir(half, locations=True) == print_ir(module, locations=True)


def test_what_a_pass_breaks_is_found_after_it() -> None:
    class Break(ModulePass):
        name = "break"

        def apply(self, ctx: object, op: ModuleOp) -> None:
            store = next(inner for inner in op.walk() if inner.name == "pk.store")
            store.operands[2] = next(inner for inner in op.walk() if inner.name == "pk.block_count").results[0]

    with pytest.raises(PkcError, match=r"invalid `pk.store`") as caught:
        run_pipeline(_kernel(), (Break(),))
    assert caught.value.diagnostics[0].span.line == 9
    run_pipeline(_kernel(), (Break(),), verify=False)


def test_warnings_are_returned_not_raised() -> None:
    module = _kernel()
    assert [(finding.code, finding.severity) for finding in check(module)] == [("PK420", "warning")]
    run_pipeline(module, TILE_PIPELINE)


def test_findings_come_in_the_order_of_the_source() -> None:
    text = (HERE / "check_program.mlir").read_text(encoding="utf-8")
    case = next(module for module in text.split("// -----") if "PK407" in module)
    lines = [finding.span.line for finding in check(parse_ir(case, "case.mlir"))]
    assert len(lines) > 1
    assert lines == sorted(lines)
