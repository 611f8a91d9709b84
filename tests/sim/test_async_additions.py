"""Additions by TMA are complete when they are drained, not when they are issued."""

from __future__ import annotations

from pkc.check.run import Trial, Trials, baseline_of
from pkc.dialect.fences import Drain, DrainOp
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim import order_errors

ADDED = """
kernel added(A: f32[M, K], C: f32[M, M]):
    for m, k in tasks(blocks(M, 64), blocks(K, 64)):
        store_add(C[m, m], A[m, k] @ A[m, k].T)
"""


def test_without_a_drain_they_may_be_in_flight_at_the_end() -> None:
    program = parse_text(Source("added.pk", ADDED.lstrip()))
    tile, kernel = compile_program(program), compile_program(program, level="roles").kernel
    before = baseline_of(tile, ranks=1, dims={"M": 8, "K": 8})
    assert Trials(kernel, before).check(Trial(1, 0)) == []
    drains = [op for op in kernel.walk() if isinstance(op, DrainOp) and op.kind.data is Drain.Full]
    assert drains
    for drain in drains:
        drain.detach()
        drain.erase()
    (finding,) = Trials(kernel, before).check(Trial(1, 0))
    assert isinstance(finding, order_errors.NotDrained)
    assert "at [0, 0] of rank 0 while TMA may still be adding to it" in str(finding)
