"""Which CTA runs which tasks, and in which order: the same in code, in the simulator and in the static layer."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from pkc.check.skeleton import skeleton_of
from pkc.check.static import _machine, check_statically
from pkc.diagnostics import PkcError
from pkc.dialect.program import KernelOp
from pkc.sim.inputs import Data
from pkc.sim.program import Program
from pkc.sim.run import simulate
from tests.sim.helpers import parse

IN_BANDS = """
pk.kernel @k(%M: !pk.private<[M, N], f32> {pk.name = "A"}, %turn: !pk.signal<[1]> {pk.name = "turn"})
  attributes {derived} {
  pk.role loader {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %rank = pk.rank
    %epoch = pk.epoch
    %height = pk.dim "M"
    %width = pk.dim "N"
    pk.tasks (%i, %j) in (%height, %width) attributes {per_cta, raster = ROWS} {
      %launches = arith.subi %epoch, %one : index
      %all = arith.muli %height, %width : index
      %before = arith.muli %launches, %all : index
      %band = arith.divui %i, %two : index
      %first = arith.muli %band, %two : index
      %row = arith.subi %i, %first : index
      %begun = arith.muli %first, %width : index
      %column = arith.muli %j, %two : index
      %a = arith.addi %before, %begun : index
      %b = arith.addi %a, %column : index
      %number = arith.addi %b, %row : index
      pk.wait %turn[%zero] for %number : !pk.signal<[1]>
      pk.signal %turn at %rank[%zero] by %one : !pk.signal<[1]>
    }
  }
}
"""
"""Each task waits for as many others as come before it in bands of two rows: one CTA gets on in that order alone."""


def in_bands(rows: int) -> tuple[ModuleOp, KernelOp]:
    module = parse(IN_BANDS.replace("ROWS", str(rows)))
    (kernel,) = module.ops
    assert isinstance(kernel, KernelOp)
    return module, kernel


DEADLOCK = "PK480"


def codes(kernel: KernelOp) -> set[str]:
    return {finding.code for finding in check_statically(kernel, ranks=2, dims={"M": 6, "N": 3}).findings}


def test_tasks_go_by_bands() -> None:
    module, kernel = in_bands(2)
    simulate(module, ranks=2, dims={"M": 6, "N": 3}, inputs={}, ctas=1)
    assert DEADLOCK not in codes(kernel)


def test_other_bands_are_another_order() -> None:
    module, kernel = in_bands(3)
    with pytest.raises(PkcError, match="PK701"):
        simulate(module, ranks=2, dims={"M": 6, "N": 3}, inputs={}, ctas=1)
    assert DEADLOCK in codes(kernel)


SHARED_OUT = """
pk.kernel @k(%M: !pk.private<[M, N], f32> {pk.name = "A"}) attributes {derived} {
  pk.role loader {
    %height = pk.dim "M"
    %width = pk.dim "N"
    pk.tasks (%i) in (%height) attributes {per_cta} {
      pk.tasks (%j) in (%width) attributes {per_cta} {
      }
    }
    pk.tasks (%i) in (%height) attributes {per_cta} {
    }
  }
}
"""


def test_tasks_in_tasks_go_on_and_phases_begin_anew() -> None:
    (kernel,) = parse(SHARED_OUT).ops
    assert isinstance(kernel, KernelOp)
    called, data = Program(kernel), Data({"M": 2, "N": 4, "ranks": 1}, {}, {})
    skeleton = skeleton_of(kernel, _machine(called, data, (3, 0)), {}, {})
    visits = [[numbers for _, numbers, _ in warp_role.visits] for warp_role in skeleton.warp_roles(1)]
    assert visits == [
        [(0, 0), (0, 3), (1, 2), (0,)],
        [(0, 1), (1, 0), (1, 3), (1,)],
        [(0, 2), (1, 1)],
    ]
