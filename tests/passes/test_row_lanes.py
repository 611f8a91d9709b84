"""Which threads have the rows of tiles that meet no MMA."""

from __future__ import annotations

import pytest

from pkc.dialect.attributes import Role
from pkc.dialect.program import TasksOp
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes.analysis.register_axes import infer_axes
from pkc.passes.analysis.row_lanes import Lanes, lanes_for

SUMS = """
kernel sums(X: bf16[M, 256], Y: f32[{of}]):
    for m in tasks(blocks(M, 64)):
        {body}
"""


@pytest.mark.parametrize(
    ("of", "body", "lanes"),
    [
        (
            "M, 256",
            "for d in blocks(256, 256):\n            Y[start(m), d] = rowsum(cast(X[m, d], f32).T)",
            Lanes(1, 8),
        ),
        ("M", "for d in blocks(256, 256):\n            Y[m] = rowsum(cast(X[m, d], f32))", Lanes(8, 8)),
    ],
    ids=["columns", "rows"],
)
def test_neighbours_in_memory_are_those_of_lanes(of: str, body: str, lanes: Lanes) -> None:
    """Threads that read a tile along columns each have one, so that those of a warp read neighbours."""
    program = parse_text(Source("k.pk", SUMS.format(of=of, body=body).lstrip()))
    (role,) = (one for one in compile_program(program, level="roles").kernel.roles if one.role.data is Role.Consumer)
    (tasks,) = (op for op in role.walk() if isinstance(op, TasksOp))
    assert lanes_for(tasks, infer_axes(role.body), 256, 32) == lanes
