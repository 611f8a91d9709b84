"""Long programs outside of tasks: each statement is read and computed once for each phase that needs it."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from pkc.dialect.access import LoadOp
from pkc.dialect.elementwise import AddOp
from pkc.dialect.program import KernelOp
from pkc.frontend.elaborate import build_module
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes.build import phases
from pkc.passes.run import run_pipeline
from pkc.passes.tile.wrap_statements import WrapStatements
from pkc.remarks import Remark, collecting

LOOP = """\
kernel k(A: f32[64, M], T: f32[64], X: f32[N, 64], Y: f32[N, 64]):
    total = zeros(f32, 64)
    for m in blocks(M, 64):
        total += rowsum(A[:, m])
    T[:] = total
    for n in tasks({tasks}):
        Y[{rows}, :] = X[{rows}, :] + {total}
"""

LINES = 1100
"""More than the calls that Python lets one function make of itself."""


def test_statements_that_follow_from_each_other() -> None:
    doubled = "    x = x + x\n" * LINES
    text = f"kernel k(A: f32[8], X: f32[8], Y: f32[8]):\n    x = A[:]\n{doubled}    X[:] = x\n"
    text += "    for m in tasks(8):\n        Y[m] = rowsum(x)\n"
    module, _ = _wrapped(text)
    (kernel,) = (op for op in module.ops if isinstance(op, KernelOp))
    sets = phases(kernel)
    assert len(sets) == 2
    for tasks in sets:
        inner = list(tasks.walk())
        assert sum(isinstance(op, AddOp) for op in inner) == LINES
        assert sum(isinstance(op, LoadOp) for op in inner) == 1


@pytest.mark.parametrize(
    ("tasks", "rows", "total", "lines"),
    [("blocks(N, 64)", "n", "total", [3]), ("blocks(N, 64)", "n", "T[:]", []), ("1", "n", "total", [])],
    ids=["repeated", "stored and loaded", "one task"],
)
def test_a_loop_that_each_task_repeats_is_remarked_on(tasks: str, rows: str, total: str, lines: list[int]) -> None:
    _, remarks = _wrapped(LOOP.format(tasks=tasks, rows=rows, total=total))
    assert [(remark.step, remark.span.line) for remark in remarks] == [("pk-wrap-statements", line) for line in lines]


def _wrapped(text: str) -> tuple[ModuleOp, list[Remark]]:
    module = build_module(parse_text(Source("k.pk", text).remember()))
    with collecting() as remarks:
        run_pipeline(module, [WrapStatements()])
    return module, remarks
