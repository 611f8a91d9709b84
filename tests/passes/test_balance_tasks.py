"""Tasks of uneven length: longest first, and with the same results; what bounds are multiples of."""

from __future__ import annotations

import pytest

from pkc.check.run import Trial, baseline_of, check_roles
from pkc.check.static import check_statically
from pkc.dialect.access import LoadOp
from pkc.dialect.program import LONGEST_FIRST, TasksOp
from pkc.dialect.transfers import needs_threads
from pkc.driver.compiler import Compiled, compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source

TRIANGLE = """\
kernel k(X: bf16[H, S, 16], Y: bf16[H, S, 16], O: f32[H, S, 16]):
    for h, q in tasks(H, blocks(S, 16)):
        o = zeros(f32, q, 16)
        for kv in blocks(S, 16, {bounds}):
            s = cast(X[h, q] @ Y[h, kv].T, bf16)
            o += s @ Y[h, kv]
        O[h, q] = o
"""


def compiled(bounds: str, level: str) -> Compiled:
    return compile_program(parse_text(Source("k.pk", TRIANGLE.format(bounds=bounds))), level=level)


@pytest.mark.parametrize("bounds", ["stop=start(q) + 16", "start=start(q)", "stop=start(q) + 20"])
@pytest.mark.parametrize(("heads", "length"), [(1, 5), (3, 70), (17, 33)])
def test_every_task_is_done_once_whatever_the_order(bounds: str, heads: int, length: int) -> None:
    dims = {"H": heads, "S": length}
    roles = compiled(bounds, "roles")
    sets = [op for op in roles.kernel.walk() if isinstance(op, TasksOp)]
    assert sets and all(LONGEST_FIRST in op.attributes for op in sets)
    assert (
        check_roles(roles, baseline_of(compiled(bounds, "tile"), ranks=1, dims=dims), (Trial(1, 0), Trial(2, 1))) == []
    )
    assert list(check_statically(roles.kernel, ranks=1, dims=dims).findings) == []


@pytest.mark.parametrize(
    ("bounds", "by_tma"),
    [
        ("stop=start(q) + 16", True),
        ("start=start(q) - 32, stop=start(q) + 16", True),
        ("start=max(0, start(q) - 64), stop=start(q)", True),
        ("start=start(q) + 5", True),
        ("start=5, stop=start(q) + 16", False),
        ("stop=start(q) + 20", False),
    ],
)
def test_blocks_that_are_whole_for_certain_go_by_tma_alone(bounds: str, by_tma: bool) -> None:
    """A block is whole, or ends with its dimension, if the length of its list is a multiple of its extent."""
    loads = [op for op in compiled(bounds, "roles").kernel.walk() if isinstance(op, LoadOp)]
    ways = {op.array.name_hint: not needs_threads(op) for op in loads}
    assert ways == {"X": True, "Y": by_tma}
