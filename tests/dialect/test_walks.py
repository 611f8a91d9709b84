"""Walks of pkc are those of xDSL, in its order and under changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from xdsl.dialects import scf
from xdsl.ir import Operation

from pkc.dialect.program import KernelOp, RoleOp, TasksOp
from pkc.dialect.walks import walk
from pkc.driver.compiler import load

AG_GEMM = Path(__file__).parents[2] / "examples" / "ag_gemm.pk"


def every(op: Operation) -> Iterator[Operation]:
    """As xDSL walks."""
    yield op
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                yield from every(inner)


def test_the_order_is_that_of_xdsl() -> None:
    kernel = load(AG_GEMM, level="roles").kernel
    around = [op for op in every(kernel) if op.regions]
    assert {type(op) for op in around} == {KernelOp, RoleOp, TasksOp, scf.ForOp, scf.IfOp}
    for op in around:
        assert list(op.walk()) == list(walk(op)) == list(every(op))
        assert list(op.walk(reverse=True)) == list(Operation.walk(op, reverse=True))
        assert list(op.walk(region_first=True)) == list(Operation.walk(op, region_first=True))


@pytest.mark.parametrize("steps", [walk, every])
def test_what_is_looked_at_may_be_taken_out(steps: Callable[[Operation], Iterator[Operation]]) -> None:
    """With what is inside it, which is looked at all the same."""
    kernel = load(AG_GEMM, level="roles").kernel
    before, seen = len(list(every(kernel))), 0
    for op in steps(kernel):
        seen += 1
        if isinstance(op, scf.ForOp | scf.IfOp):
            op.detach()
    assert seen == before
    assert not [op for op in every(kernel) if isinstance(op, scf.ForOp | scf.IfOp)]
