"""Which loops splits may divide, that what they carry is merged right, and how tasks that merge are shared out."""

from __future__ import annotations

import pytest

from pkc.diagnostics import PkcError
from pkc.dialect.coordinates import BlockCountOp
from pkc.dialect.program import KernelOp, TasksOp
from pkc.driver.compiler import Compiled, compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes.plan_errors import CannotSplit
from pkc.sim.draw import draw_inputs
from pkc.sim.reference import compare, reference
from pkc.sim.run import simulate
from tests.divided import ATTENDING, DECODE, PROGRAMS, online

SIZES = {"M": 71, "N": 300}


def split(text: str, count: int = 3, level: str = "tile", **schedule: str) -> Compiled:
    program = parse_text(Source("k.pk", text))
    return compile_program(program, level=level, schedule={"split_N": str(count), **schedule})


def check(text: str, count: int, sizes: dict[str, int]) -> None:
    """That splits are within the bound of what the unsplit program is, and the same bits at the roles level."""
    whole, tile, roles = (
        split(text, of, level).module for of, level in ((1, "tile"), (count, "tile"), (count, "roles"))
    )
    inputs = draw_inputs(tile, ranks=1, dims=sizes, seed=count)
    expected = reference(whole, ranks=1, dims=sizes, inputs=inputs)
    outputs = simulate(tile, ranks=1, dims=sizes, inputs=inputs, seed=count)
    assert all(item.ok for item in compare(outputs, expected)), [str(item) for item in compare(outputs, expected)]
    again = simulate(roles, ranks=1, dims=sizes, inputs=inputs, seed=count, ctas=2)
    assert {name: values.tobytes() for name, values in again.items()} == {
        name: values.tobytes() for name, values in outputs.items()
    }


@pytest.mark.parametrize("count", [2, 3, 16, 64])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_splits_carry_is_merged(name: str, count: int) -> None:
    """Of sixteen splits of ten blocks six have none; of 64 eight are merged first."""
    check(PROGRAMS[name], count, SIZES)


@pytest.mark.parametrize("count", [2, 7])
def test_lengths_may_come_from_memory(count: int) -> None:
    check(DECODE, count, {"B": 3, "H": 2, "N": 300})


REFUSED = {
    "decays": "total = total * 0.5 + rowsum(x)",
    "another scale": ATTENDING.replace("exp2(top - t)", "exp2((top - t) * 2.0)") + "; top = t",
    "another base": ATTENDING.replace("exp2(top - t)", "exp(top - t)") + "; top = t",
    "not of the maximum": ATTENDING.replace("rowsum(p)", "rowsum(x)") + "; top = t",
    "squared": ATTENDING.replace("rowsum(p)", "rowsum(p * p)") + "; top = t",
    "inverse": ATTENDING.replace("rowsum(p)", "rowsum(x / p)") + "; top = t",
    "compared": ATTENDING.replace("rowsum(p)", "rowsum(where(p > 0.5, p, 0.0))") + "; top = t",
    "added": ATTENDING.replace("rowsum(p)", "rowsum(p + 1.0)") + "; top = t",
    "what came before": "total = total + rowsum(where(x > top, x, 0.0)); top = max(top, rowmax(x))",
    "the last one": "total = rowsum(x)",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_merged_is_refused(name: str) -> None:
    with pytest.raises(PkcError) as found:
        split(online(REFUSED[name]))
    (error,) = found.value.diagnostics
    assert isinstance(error, CannotSplit) and error.reason.startswith("`total` is no sum")


TAIL = """kernel k(X: bf16[M, N], W: bf16[N, K], b: f32[K], r: f32[M], Y: f32[M, K]):
    for m, k in tasks(blocks(M, 64), blocks(K, 64)):
        acc = zeros(f32, m, k)
        for n in blocks(N, 32):
            acc += X[m, n] @ W[n, k]
        {tail}
"""


def counted(text: str) -> tuple[int, ...]:
    """The sizes of blocks of the tasks that merge."""
    (kernel,) = (op for op in split(text, 4).module.ops if isinstance(op, KernelOp))
    tasks = [op for op in kernel.body.block.ops if isinstance(op, TasksOp)]
    counts = [count.owner for count in tasks[-1].counts]
    return tuple(count.block.extent for count in counts if isinstance(count, BlockCountOp))


@pytest.mark.parametrize(
    ("tail", "rows"),
    [
        ("Y[m, k] = acc", 16),
        ("Y[m, k] = max(acc + b[k], 0.0) * r[m]", 16),
        ("Y[m, k] = acc - rowmax(acc)", 16),
        ("Y[m, k] = where(positions(m) > positions(k), acc, 0.0)", 16),
        ("Y[m, k] = acc - rowmax(acc.T)", 64),
        ("Y[m, k] = acc * cast(start(m), f32)", 64),
    ],
    ids=["stored", "epilogue", "rows", "mask", "columns", "place"],
)
def test_tasks_that_merge_have_fewer_rows(tail: str, rows: int) -> None:
    """As many times fewer as there are splits, unless something depends on how many rows there are."""
    text = TAIL.format(tail=tail)
    assert counted(text) == (rows, 64)
    if "start" not in tail:
        check(text, 4, {"M": 71, "N": 300, "K": 130})
