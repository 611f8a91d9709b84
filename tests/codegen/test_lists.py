"""Lists of the entries of a table and sums of what they list, at the machine level, thread by thread."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pkc.cli.opt import parse_ir
from pkc.codegen.build import machine_level
from pkc.dialect.inverse import BOUNDS
from pkc.dialect.program import KernelOp
from tests.codegen.threads import Memory
from tests.codegen.together import Together

KERNEL = """
pk.kernel @k(%N: {table} {{pk.name = "N"}}, %O: {array} {{pk.name = "O"}}, %B: {bounds} {{pk.name = "B"}},
             %L: {order} {{pk.name = "L"}}, %S: {slots} {{pk.name = "S"}}) attributes {{comm_sms = 0 : i64}} {{
  pk.role consumer warps {warps} attributes {{group = "compute", first_warp = 0 : i64, registers = 232 : i64}} {{
    %r = pk.rank
    {tasks}
  }}
}}
"""
INVERT = """
    %n = pk.block_count <T by 64> of %r
    pk.tasks (%i) in (%n) attributes {{per_cta}} {{
      %t = pk.block[%i] of %r : !pk.block<T by 64>
      pk.invert %N of %O[%t] to %B, %L : {table}, {array}, !pk.block<T by 64>, {bounds}, {order}
    }}
"""
SUM = """
    %m = pk.block_count <T by 32> of %r
    %c = pk.block_count <C by {columns}>
    pk.tasks (%i, %j) in (%m, %c) attributes {{per_cta}} {{
      %t = pk.block[%i] of %r : !pk.block<T by 32>
      %u = pk.block[%j] : !pk.block<C by {columns}>
      pk.sum_rows %S by %B, %L to %O[%t, %u : !pk.block<T by 32>, !pk.block<C by {columns}>]
        : {slots}, {bounds}, {order}, {array}
    }}
"""
RANKS = 2


def lowered(tasks: str, warps: int, kind: str, layout: str, columns: int) -> KernelOp:
    types = {
        "table": "!pk.pgl<[ranks, P], i32, replicate>",
        "array": f"!pk.pgl<[T, C], {kind}, {layout}>",
        "bounds": "!pk.pgl<[T, 10], i32, shard 0>",
        "order": "!pk.private<[ranks, P], i32>",
        "slots": f"!pk.pgl<[P, C], {kind}, symmetric>",
    }
    body = tasks.format(columns=columns, **types)
    (kernel,) = parse_ir(KERNEL.format(tasks=body, warps=warps, **types), "lists.mlir").ops
    assert isinstance(kernel, KernelOp)
    return machine_level(kernel)


def run(
    named: Any, slots: Any, rows: int, warps: int, kind: str = "bf16", layout: str = "shard 0", tile: int = 16
) -> Memory:
    """The memory behind both operations, on each of two ranks in one CTA; all have ended the first before the next."""
    kernels = [lowered(tasks, warps, kind, layout, tile) for tasks in (INVERT, SUM)]
    memory = Memory(kernels[0], RANKS, {"P": slots.shape[1], "C": slots.shape[2], "T": rows})
    for rank in range(RANKS):
        memory.arrays["N"][rank][...] = named
        memory.arrays["S"][rank][...] = slots[rank]
    for kernel in kernels:
        for rank in range(RANKS):
            Together(memory, rank, 0, 1).run(kernel.body.block, range(32 * warps))
    return memory


def check(named: Any, rows: int, columns: int, warps: int, **more: Any) -> None:
    """Small whole numbers, whose sums are exact in any order; the lists have one."""
    slots = np.random.default_rng(5).integers(-8, 8, (*named.shape, columns)).astype(np.float64)
    memory = run(named, slots, rows, warps, **more)
    flat, local = named.reshape(-1), -(-rows // RANKS)
    want = np.zeros((rows, columns))
    for entry in np.flatnonzero(flat >= 0):
        want[flat[entry]] += slots.reshape(-1, columns)[entry]
    for row in range(rows):
        rank, at = divmod(row, local)
        begin, end = memory.arrays["B"][rank].reshape(-1, BOUNDS)[at, :2].astype(int)
        assert memory.arrays["L"][rank].reshape(-1)[begin:end].tolist() == np.flatnonzero(flat == row).tolist()
        copies = range(RANKS) if more.get("layout") == "replicate" else (rank,)
        for copy in copies:
            there = row if len(copies) > 1 else at
            np.testing.assert_array_equal(memory.arrays["O"][copy][there], want[row])


def table(entries: int, rows: int, named: float = 1.0) -> Any:
    rng = np.random.default_rng(6)
    return np.where(rng.random((RANKS, entries)) < named, rng.integers(-1, rows, (RANKS, entries)), -1)


def test_by_one_warp() -> None:
    check(table(21, 9), 9, 24, 1)


@pytest.mark.long
def test_a_table_that_is_loaded_by_16_bytes() -> None:
    check(table(2300, 90, 0.02), 90, 16, 2)


@pytest.mark.long
@pytest.mark.parametrize(
    ("entries", "rows", "columns", "more"),
    [
        (70, 3, 24, {"kind": "f32"}),
        (90, 70, 13, {"tile": 8}),
        (100, 20, 64, {"layout": "replicate", "tile": 64}),
        (60, 30, 16, {"kind": "i32"}),
    ],
)
def test_by_several_warps(entries: int, rows: int, columns: int, more: dict[str, Any]) -> None:
    check(table(entries, rows), rows, columns, 4, **more)


@pytest.mark.long
def test_all_entries_name_one_row() -> None:
    check(np.full((RANKS, 66), 4), 7, 16, 8)
