"""The smallest run that fails, in source lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from pkc.check.counterexample import Counterexample, counterexample, explore_small
from pkc.check.run import baseline_of
from pkc.dialect import access, counters
from pkc.driver.compiler import Compiled, load
from tools.mutant_changes import COUNT, number
from tools.mutants import at_roles_level

EXAMPLES = Path(__file__).parents[2] / "examples"
DIMS = {"M": 300, "N": 300, "K": 100}


def roles(example: str) -> Compiled:
    return load(EXAMPLES / f"{example}.pk", level="roles")


def waits(compiled: Compiled, name: str) -> list[counters.WaitOp]:
    """All waits for a counter."""
    ops = [op for op in compiled.kernel.walk() if isinstance(op, counters.WaitOp)]
    return [op for op in ops if op.signal is compiled.kernel.arguments[name]]


def failing(example: str, broken: Compiled, most: int = 200) -> Counterexample:
    tile = load(EXAMPLES / f"{example}.pk")
    found = counterexample(tile, broken, most, baseline_of(tile, ranks=4, dims=DIMS), None)
    assert found is not None
    return found


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.pk")), ids=lambda path: path.stem)
def test_every_order_of_every_example(path: Path) -> None:
    tile = load(path)
    for overlap, compiled in at_roles_level(path):
        exploration = explore_small(tile, compiled, 2, 50)
        assert (exploration.complete, exploration.found) == (True, []), overlap


def test_a_wait_for_one_signal_less() -> None:
    """The communicator adds up the first row of blocks of a rank; the consumer, who waits alike, the last one."""
    compiled = roles("gemm_rs")
    for wait in waits(compiled, "C.arrived"):
        number(wait, COUNT, -1)
    example = failing("gemm_rs", compiled)
    assert example.size == "2 ranks, 1 CTA for each role, M = 511, K = 65, N = 257"
    assert example.found[0].code == "PK705"
    assert example.lines == [
        "rank 0 storer        gemm_rs.pk:7  C[m, n] += acc  signals `C.arrived[0, 0]` of rank 0: now 1",
        "rank 0 communicator  gemm_rs.pk:7  C[m, n] += acc  waits for `C.arrived[0, 0]` to be 1: is 1",
        "rank 0 communicator  gemm_rs.pk:7  C[m, n] += acc  reads C.slots, from [1, 0, 0] on",
        "rank 1 storer        gemm_rs.pk:7  C[m, n] += acc  has not begun",
    ]


def test_a_store_over_what_is_not_read() -> None:
    compiled = roles("gemm_rs")
    store = next(
        op
        for op in compiled.kernel.walk()
        if isinstance(op, access.StoreOp) and op.array is compiled.kernel.arguments["C.slots"]
    )
    again = store.clone()
    again.location = store.location
    block = store.parent
    assert block is not None
    block.insert_op_after(again, store)
    example = failing("gemm_rs", compiled)
    assert example.found[0].fill(example.found[0].title) == (
        "`C.slots` is stored again before it is read at [0, 256, 0]"
    )
