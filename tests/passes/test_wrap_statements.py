"""Long programs outside of tasks: each statement is read and computed once for each phase that needs it."""

from __future__ import annotations

from pkc.dialect.access import LoadOp
from pkc.dialect.elementwise import AddOp
from pkc.dialect.program import KernelOp
from pkc.frontend.elaborate import build_module
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes.build import phases
from pkc.passes.run import run_pipeline
from pkc.passes.tile.wrap_statements import WrapStatements

LINES = 1100
"""More than the calls that Python lets one function make of itself."""


def test_statements_that_follow_from_each_other() -> None:
    doubled = "    x = x + x\n" * LINES
    text = f"kernel k(A: f32[8], X: f32[8], Y: f32[8]):\n    x = A[:]\n{doubled}    X[:] = x\n"
    text += "    for m in tasks(8):\n        Y[m] = rowsum(x)\n"
    module = build_module(parse_text(Source("k.pk", text)))
    run_pipeline(module, [WrapStatements()])
    (kernel,) = (op for op in module.ops if isinstance(op, KernelOp))
    sets = phases(kernel)
    assert len(sets) == 2
    for tasks in sets:
        inner = list(tasks.walk())
        assert sum(isinstance(op, AddOp) for op in inner) == LINES
        assert sum(isinstance(op, LoadOp) for op in inner) == 1
