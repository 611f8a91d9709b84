"""Which threads have the rows of tiles that meet no MMA."""

from __future__ import annotations

from pathlib import Path

import pytest

from pkc.dialect.attributes import Role
from pkc.dialect.program import TasksOp
from pkc.driver.compiler import compile_program, load_program
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


def test_no_lane_has_a_whole_row_where_something_lies_along_it() -> None:
    """`begin` has an element for each column: of one lane for each row every thread would have all of them."""
    text = """
kernel k(at: i32[256, T], begin: i32[256], Y: i32[T]):
    for t in tasks(blocks(T, 16)):
        b = begin[:] * 2
        here = where(positions(256) < b, b + at[:, t].T, 0)
        Y[t] = cast(rowsum(cast(here, f32)), i32)
"""
    assert compile_program(parse_text(Source("k.pk", text.lstrip())), level="machine").kernel
    example = Path(__file__).parents[2] / "examples" / "inference" / "route.pk"
    assert compile_program(load_program(example), level="machine").kernel
