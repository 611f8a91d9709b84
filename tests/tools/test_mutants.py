"""Which operations the mutants leave alone, because a break of them changes nothing."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pkc.cli.opt import parse_ir
from pkc.dialect.counters import SignalOp
from pkc.driver.compiler import load
from pkc.sim.program import Program
from tools.mutant_equivalents import Known, Same
from tools.mutant_instances import CONSTANTS, MATRICES, SIZES
from tools.mutant_stages import is_told_by_another
from tools.mutants import ROOT, Tally

PHASE = """
pk.kernel @phase(%X: !pk.private<[M], f32> {{pk.name = "X"}}, %Y: !pk.private<[M], f32> {{pk.name = "Y"}},
                 %over: !pk.signal<[1]> {{pk.name = "over"}}) {{
  %count = pk.block_count <M by 4>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rank = pk.rank
  %a = pk.channel "X" stages 2 : !pk.channel<!pk.tile<4xf32>>
  %b = pk.channel "Y" stages 2 : !pk.channel<!pk.tile<4xf32>>
  pk.role consumer {{
    pk.tasks (%i) in (%count) attributes {{per_cta}} {{
      %t = pk.consume %a : !pk.channel<!pk.tile<4xf32>> -> !pk.tile<4xf32>
      {early}
      pk.acquire %b : !pk.channel<!pk.tile<4xf32>>
      {passed}
      {late}
    }}
    pk.signal %over at %rank[%zero] by %one : !pk.signal<[1]>
  }}
  pk.role storer {{
    pk.tasks (%i) in (%count) attributes {{per_cta}} {{
      %m = pk.block[%i] : !pk.block<M by 4>
      %t = pk.consume %b : !pk.channel<!pk.tile<4xf32>> -> !pk.tile<4xf32>
      pk.store %t, %Y[%m : !pk.block<M by 4>] : !pk.tile<4xf32>, !pk.private<[M], f32>
      pk.release %b : !pk.channel<!pk.tile<4xf32>>
    }}
    pk.signal %over at %rank[%zero] by %one : !pk.signal<[1]>
  }}
}}"""
RELEASE = "pk.release %a : !pk.channel<!pk.tile<4xf32>>"
DEFERRED = "pk.release %a deferred 1 : !pk.channel<!pk.tile<4xf32>>"
DONE = "pk.release_deferred %a : !pk.channel<!pk.tile<4xf32>>"
COMMIT = "pk.commit %b, %t : !pk.channel<!pk.tile<4xf32>>, !pk.tile<4xf32>"
READ = "%r = pk.load %X[%zero : index] : !pk.private<[M], f32> -> !pk.tile<f32>"


@pytest.mark.parametrize(
    ("early", "passed", "late", "told"),
    [
        (RELEASE, COMMIT, "", True),
        ("", COMMIT, RELEASE, False),
        (f"{DEFERRED}\n{DONE}", COMMIT, "", True),
        (DEFERRED, COMMIT, "", False),
        (RELEASE, f"{READ}\n{COMMIT}", "", False),
        (RELEASE, f"scf.if %in {{\n{COMMIT}\n}}", "", False),
    ],
    ids=["before", "behind", "deferred to before", "deferred to the end", "reads an array", "only sometimes"],
)
def test_what_another_role_tells_as_well(early: str, passed: str, late: str, told: bool) -> None:
    """The storer has had all of the consumer's tiles, so that its signal says that all stages were given back."""
    passed = passed.replace("scf.if", "%in = arith.cmpi slt, %i, %one : index\nscf.if")
    kernel = parse_ir(PHASE.format(early=early, passed=passed, late=late), "phase.mlir")
    consumer, storer = (op for op in kernel.walk() if isinstance(op, SignalOp))
    assert is_told_by_another(consumer) == told
    assert not is_told_by_another(storer)


def test_only_as_many_as_are_known_change_nothing() -> None:
    """And only breaks of that operation in that line of that kernel; told of all parts of a subject together."""
    table = [Same(("a", "b"), (4, 5), "it is so", ("pk.fence",), most=1)]
    found = Tally("a", {"dropped": Counter(survived=2, PK730=1)}, [("dropped", "pk.fence at a.pk:4")])
    more = [("dropped", "pk.fence at a.pk:4"), ("moved", "pk.fence at a.pk:5"), ("moved", "pk.drain at a.pk:4")]
    found.add(Tally("a", {"moved": Counter(survived=2)}, [*more, ("moved", "pk.fence at a.pk:6")]))
    found.judge(table)
    assert found.same == ["a: dropped, pk.fence at a.pk:4: it is so", "a: moved, pk.fence at a.pk:5: it is so"]
    assert len(found.survivors) == 3
    assert found.made == 3
    assert Known(table).why("b", "pk.fence at b.pk:4") == "it is so"
    assert not Known(table).why("c", "pk.fence at b.pk:4")


@pytest.mark.parametrize("path", sorted((ROOT / "examples").rglob("*.pk")), ids=lambda path: path.stem)
def test_every_example_has_sizes(path: Path) -> None:
    kernel = load(path, constants=CONSTANTS.get(path.stem)).kernel
    assert set(Program(kernel).dims) <= set(SIZES.get(path.stem, MATRICES))
