"""Elements of sharded arrays by shifted blocks and by tables, element by element as machine code runs."""

from __future__ import annotations

import numpy as np
import pytest

from pkc.dialect import blocks
from pkc.dialect.by_table import GatherOp
from pkc.dialect.types import SignalType
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from tests.codegen.test_layouts import RAGGED, columns, numbered, padded, run, shards
from tests.shifted import moved

READ = """\
kernel read(X: {kind}[M, N].shard({dim}), t: i32[{named}], Y: f32[M, N]{layout}):
    for m, n in tasks(blocks(M, 16{rows}), blocks(N, 16{columns})):
        Y[m, n] = cast({one}, f32) + 1000.0 * cast({other}, f32)
"""
COLUMNS = [(1, 24), (2, 64), (2, 33), (3, 48), (3, 56), (5, 48)]
"""Ranks, and columns that are sharded: of whole chunks of 16 bytes, and others."""


def small(*shape: int) -> np.ndarray:
    """Elements that bf16 has, and f32 their sums; neighbours differ."""
    return numbered(*shape) % 128 + 1.0


def named(x: np.ndarray, table: np.ndarray) -> np.ndarray:
    """The rows that a table names, zeros where an entry is negative."""
    return np.where((table >= 0)[:, None], x[np.maximum(table, 0)], 0.0)


@pytest.mark.parametrize("kind", ["bf16", "f32"])
@pytest.mark.parametrize(("one", "other"), [("X[m, n - 1]", "X[m - 1, n + 2]"), ("X[m, t[n]]", "X[m, n + 8]")])
@pytest.mark.parametrize(("ranks", "m"), RAGGED)
def test_rows_of_all_shards(ranks: int, m: int, one: str, other: str, kind: str) -> None:
    n = 24
    x, t = small(m, n), np.arange(n) * 5 % n - 1
    text = READ.format(kind=kind, named="N", dim=0, layout="", rows="", columns="", one=one, other=other)
    count = blocks.numbers(m, ranks, 16) * 2
    memory = run(text, ranks, count, {"M": m, "N": n}, X=padded(x, ranks), t=[t] * ranks)
    first, second = (named(x.T, t).T, moved(x, 0, 8)) if "t" in one else (moved(x, 0, -1), moved(x, -1, 2))
    for rank in range(ranks):
        np.testing.assert_array_equal(memory.arrays["Y"][rank], first + 1000.0 * second)


@pytest.mark.parametrize("kind", ["bf16", "f32"])
@pytest.mark.parametrize("order", ["", ", zigzag=True"])
@pytest.mark.parametrize(("ranks", "m"), RAGGED)
def test_rows_of_this_shard(ranks: int, m: int, order: str, kind: str) -> None:
    """Whatever positions of the whole array its rows have: the columns are shifted alike."""
    n, text = 24, READ
    text = text.format(
        kind=kind,
        named="N",
        dim=f"0{order}",
        layout=f".shard(0{order})",
        rows=", of=rank",
        columns="",
        one="X[m, n - 1]",
        other="X[m, n + 3]",
    )
    x = small(m, n)
    count = blocks.count(0, blocks.shard_length(m, ranks), 16) * 2
    memory = run(text, ranks, count, {"M": m, "N": n}, X=padded(x, ranks))
    for rank, own in enumerate(shards(moved(x, 0, -1) + 1000.0 * moved(x, 0, 3), ranks)):
        np.testing.assert_array_equal(memory.arrays["Y"][rank][: len(own)], own)


@pytest.mark.parametrize("kind", ["bf16", "f32"])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(("ranks", "n"), COLUMNS)
def test_rows_of_columns_of_shards(ranks: int, n: int, own: bool, kind: str) -> None:
    m = 20
    x, t = small(m, n), np.arange(m) * 7 % m - 1
    held = np.full((ranks, m, blocks.shard_length(n, ranks)), np.nan)
    for rank in range(ranks):
        part = columns(x, ranks, rank)
        held[rank, :, : part.shape[1]] = part
    layout, of = (".shard(1)", ", of=rank") if own else ("", "")
    text = READ.format(
        kind=kind, named="M", dim=1, layout=layout, rows="", columns=of, one="X[m - 1, n]", other="X[t[m], n]"
    )
    memory = run(text, ranks, blocks.numbers(n, ranks, 16) * 2, {"M": m, "N": n}, X=held, t=[t] * ranks)
    made = moved(x, -1, 0) + 1000.0 * named(x, t)
    for rank in range(ranks):
        want = columns(made, ranks, rank) if own else made
        np.testing.assert_array_equal(memory.arrays["Y"][rank][:, : want.shape[1]], want)


@pytest.mark.parametrize(("one", "by_table"), [("X[m, n + 8]", False), ("X[m, n - 1]", True), ("X[m, t[n]]", True)])
def test_what_is_read_of_this_shard_waits_for_nobody(one: str, by_table: bool) -> None:
    """Nobody signals, and a block that is surely inside moves as that of a private array does."""
    text = "kernel k(X: f32[M, 64].shard(0), t: i32[64], Y: f32[M, 64].shard(0)):\n"
    text += f"    for m, n in tasks(blocks(M, 16, of=rank), blocks(64, 32)):\n        Y[m, n] = {one}\n"
    kernel = compile_program(parse_text(Source("k.pk", text)), level="roles").kernel
    assert not [name for name, value in kernel.arguments.items() if isinstance(value.type, SignalType)]
    assert any(isinstance(op, GatherOp) for op in kernel.walk()) == by_table
