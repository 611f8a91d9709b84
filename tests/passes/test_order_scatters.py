"""Sums into rows that a table names: bits are those of additions in the order of ranks and entries."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pkc.check.report import check_kernel
from pkc.diagnostics import PkcError
from pkc.dialect.inverse import SumRowsOp
from pkc.driver.candidates import other_tiles
from pkc.driver.compiler import compile_program
from pkc.driver.planned_candidates import written_as
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.run import simulate
from pkc.targets import DEFAULT
from pkc.targets.target import target_of
from tests.routed import SUMS

COMBINE = """
kernel k(Y: {kind}[E, P, N], rows: i32[E, P], count: i32[E], O: {kind}[T, N].{layout}):
    for e in tasks(E):
        for p, n in tasks(blocks(P, 16, stop=count[e]), blocks(N, 16)):
            O[rows[e, p], n] += Y[e, p, n]
"""
HEADS = """
kernel k(Y: {kind}[E, P, N], rows: i32[E, P], count: i32[E], O: {kind}[T, N].{layout}):
    for e, n in tasks(blocks(E, 1), blocks(N, 16)):
        for p in tasks(blocks(P, 16, stop=count[e])):
            O[where(rows[e, p] >= T, -1, rows[e, p]), n] += Y[e, p, n]
"""
E, P, N, T = 2, 20, 24, 70
DIMS = {"E": E, "P": P, "N": N, "T": T}
NUMPY = {"bf16": ml_dtypes.bfloat16, "f32": np.float32, "e4m3": ml_dtypes.float8_e4m3fn}


def tables(case: str, ranks: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    rows = rng.integers(-1, T, (ranks, E, P)).astype(np.int32)
    count = rng.integers(1, P + 1, (ranks, E)).astype(np.int32)
    if case == "one row":
        rows[:] = T - 1
        count[:] = P
    elif case == "repeated":
        rows[:, :, 1::2] = rows[:, :, ::2]
    elif case == "empty":
        count[:, 0] = 0
    elif case == "nothing":
        count[:] = 0
    return rows, count


def in_order(values: Any, rows: Any, count: Any, kind: str) -> Any:
    """Added in f32 rank by rank, entry by entry, and rounded once."""
    total = np.zeros((T, N), np.float32)
    for rank, expert in np.ndindex(count.shape):
        for place in range(count[rank, expert]):
            if rows[rank, expert, place] >= 0:
                total[rows[rank, expert, place]] += values[rank, expert, place].astype(np.float32)
    return total.astype(NUMPY[kind])


def check(text: str, case: str, ranks: int, kind: str, layout: str, added: Callable[[Any], Any] = np.array) -> None:
    """That each level gives the bits of `in_order`, where of each list so many entries are `added`."""
    program = parse_text(Source("k.pk", text.format(kind=kind, layout=layout).lstrip()))
    rows, count = tables(case, ranks)
    values = np.random.default_rng(4).standard_normal((ranks, E, P, N), dtype=np.float32).astype(NUMPY[kind])
    expected = in_order(values, rows, added(count), kind)
    for level in ("tile", "roles"):
        module = compile_program(program, level=level).module  # pyright: ignore[reportArgumentType]
        dims = {name: size for name, size in DIMS.items() if re.search(rf"\b{name}\b", text.partition("):")[0])}
        inputs = {"Y": values, "rows": rows, "count": count}
        found = simulate(module, ranks=ranks, dims=dims, inputs=inputs)["O"]
        assert found.tobytes() == expected.tobytes(), level


@pytest.mark.parametrize("case", ["drawn", "one row", "repeated", "empty", "nothing"])
def test_tables(case: str) -> None:
    check(COMBINE, case, 2, "bf16", "shard(0)")


@pytest.mark.parametrize(("ranks", "layout"), [(1, "shard(0)"), (3, "shard(0)"), (3, "shard(1)"), (2, "replicate()")])
def test_layouts(ranks: int, layout: str) -> None:
    check(COMBINE, "drawn", ranks, "f32", layout)


def test_rows_and_columns_are_constants() -> None:
    """Each rank adds up a part of the rows, the last one a shorter one."""
    text = COMBINE.replace("T,", f"{T},").replace("N]", f"{N}]").replace("blocks(N", f"blocks({N}")
    check(text, "drawn", 3, "f32", "replicate()")


HEAD = "kernel k(Y: {kind}[E, P, N], rows: i32[E, P], count: i32[E], O: {kind}[T, N].{layout}):\n"
NESTED = {
    "loops over the table and its blocks": """
    for n in tasks(blocks(N, 16)):
        for e in range(E):
            for p in blocks(P, 16, stop=count[e]):
                O[rows[e, p], n] += Y[e, p, n]
""",
    "a loop over columns": """
    for e in tasks(E):
        for p in tasks(blocks(P, 16, stop=count[e])):
            for n in blocks(N, 16):
                O[rows[e, p], n] += Y[e, p, n]
""",
    "branches": """
    for e in tasks(E):
        for p, n in tasks(blocks(P, 16, stop=count[e]), blocks(N, 16)):
            if count[e] < 12:
                x = 0
            else:
                if start(p) < 16:
                    O[rows[e, p], n] += Y[e, p, n]
""",
}


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("form", NESTED)
def test_loops_and_branches(form: str, ranks: int) -> None:
    added = (lambda count: np.where(count < 12, 0, np.minimum(count, 16))) if form == "branches" else np.array
    check(HEAD + NESTED[form].lstrip("\n"), "drawn", ranks, "f32", "shard(0)", added)


def test_elements_of_eight_bits() -> None:
    """Added in f32, rounded once, as wider ones."""
    check(COMBINE, "repeated", 2, "e4m3", "shard(0)")


@pytest.mark.parametrize("form", SUMS)
def test_parts_and_several_statements(form: str) -> None:
    """Parts that overlap, and one that is empty, count as often as they are listed; statements are in their order."""
    ranks, length, rng = 2, 50, np.random.default_rng(6)
    height = length if "O: f32[M" in SUMS[form] else T
    rows = rng.integers(0 if "one by one" in form else -1, min(T, height), (ranks, length)).astype(np.int32)
    values = rng.standard_normal((ranks, length, N), dtype=np.float32)
    ends = np.array([[3, 30, 17, 17, 50], [0, 50, 1, 2, 7]], np.int32)
    given = {"Y": values, "rows": rows} | ({"ends": ends} if "ends" in SUMS[form] else {})
    total = np.zeros((height, N), np.float32)
    for rank in range(ranks):
        each = [(rows[rank, m], values[rank, m]) for m in range(length)]
        if "cannot" in form:
            parts = [(32 * number, 32 * number + min(end, 32)) for number, end in enumerate(ends[rank].tolist())]
            listed = [entry for start, stop in parts for entry in each[start:stop]]
        elif "ends" in given:
            listed = [entry for start, stop in pairwise(ends[rank].tolist()) for entry in each[start:stop]]
        elif "of blocks" in form:
            listed = each + [(m, value * np.float32(3)) for m, (_, value) in enumerate(each)]
        else:
            listed = each + [(row - 1, value * np.float32(3)) for row, value in each]
        for row, value in listed:
            if row >= 0:
                total[row] += value
    program = parse_text(Source("k.pk", SUMS[form].lstrip()))
    dims = {"M": length, "N": N} | ({"T": T} if height == T else {}) | ({"S": 5} if "ends" in given else {})
    for level in ("tile", "roles"):
        module = compile_program(program, level=level).module  # pyright: ignore[reportArgumentType]
        found = simulate(module, ranks=ranks, dims=dims, inputs=given)["O"]
        assert found.tobytes() == total.tobytes(), level


def test_a_rank_without_rows_reads_the_table() -> None:
    """Else the next launch would store another one over it, unread."""
    program, schedule = parse_text(Source("k.pk", COMBINE.format(kind="f32", layout="shard(0)").lstrip())), {}
    sizes = {**DIMS, "T": 2}
    checked = check_kernel(program, sizes, ranks=3, orders=1, explored=0, schedule=schedule, target=DEFAULT)
    assert checked.findings == ()


def test_a_table_that_is_computed() -> None:
    check(HEADS, "repeated", 2, "bf16", "shard(0)")


def test_candidates_are_planned_as_they_are_compiled() -> None:
    """Whatever the overlap is: no owner has to know how many rows come."""
    program = parse_text(Source("k.pk", COMBINE.format(kind="bf16", layout="shard(0)").lstrip()))
    for schedule in ((), (("overlap", "inter_sm"),)):
        found = written_as(program, "k", (), schedule)
        assert any(isinstance(op, SumRowsOp) for op in found.walk())
        assert {key for sizes in other_tiles(found, target_of(found)) for key in sizes} == {"tile_P", "tile_N"}


ROWS = "kernel k(Y: {y}, rows: i32[P], O: {o}):\n"
REFUSED = {
    "the table comes out of a loop or branch": ROWS.format(y="f32[P, N]", o="f32[T, N].shard(0)")
    + "    for p, n in tasks(blocks(P, 16), blocks(N, 16)):\n        d = 0\n"
    + "        if start(p) > 0:\n            d = 1\n        O[rows[p] + d, n] += Y[p, n]\n",
    "the blocks of the table are not known": ROWS.format(y="f32[P, N]", o="f32[T, N].shard(0)")
    + "    for p, n in tasks(blocks(P, 16), blocks(N, 16)):\n        r = rows[p]\n"
    + "        if start(p) > 0:\n            r = rows[p] + 1\n        O[r, n] += Y[p, n]\n",
    "the array is used by another statement, too": ROWS.format(y="f32[P, N], Z: f32[T, N]", o="f32[T, N].shard(0)")
    + "    for p, n in tasks(blocks(P, 16), blocks(N, 16)):\n"
    + "        O[rows[p], n] += Y[p, n]\n    for t, n in tasks(blocks(T, 16), blocks(N, 16)):\n"
    + "        O[t, n] += Z[t, n]\n    for p, n in tasks(blocks(P, 16), blocks(N, 16)):\n"
    + "        O[rows[p], n] += Y[p, n]\n",
    "other statements add to the array, by tables of other dimensions": ROWS.format(
        y="f32[P, N], other: i32[Q], Z: f32[Q, N]", o="f32[T, N].shard(0)"
    )
    + "    for p, n in tasks(blocks(P, 16), blocks(N, 16)):\n        O[rows[p], n] += Y[p, n]\n"
    + "    for q, n in tasks(blocks(Q, 16), blocks(N, 16)):\n        O[other[q], n] += Z[q, n]\n",
    "the blocks of the table are not known to be all": ROWS.format(y="f32[P, N]", o="f32[T, N].shard(0)")
    + "    for p, n in tasks(blocks(P, 16, of=0), blocks(N, 16)):\n        O[rows[p], n] += Y[p, n]\n",
    "some columns of a row may get no contribution": ROWS.format(y="f32[P, N]", o="f32[T, N].shard(0)")
    + "    for p, n in tasks(blocks(P, 16), blocks(N, 16, stop=rows[0])):\n        O[rows[p], n] += Y[p, n]\n",
    "which rows are added to differs from column to column": ROWS.format(y="f32[P, H, N]", o="f32[T, H, N].shard(0)")
    + "    for p, h, n in tasks(blocks(P, 16), H, blocks(N, 16)):\n        O[rows[p] + h, h, n] += Y[p, h, n]\n",
    "the number of tasks is not that of a dimension": ROWS.format(y="f32[P, N]", o="f32[T, N].shard(0)")
    + "    for e, p, n in tasks(rows[0], blocks(P, 16), blocks(N, 16)):\n        O[rows[p], n] += Y[p, n]\n",
    "an author says when a role adds": ROWS.format(y="f32[P, N]", o="f32[T, N].shard(0)")
    + "    with role(consumer):\n        for p, n in tasks(blocks(P, 16), blocks(N, 16)):\n"
    + "            O[rows[p], n] += Y[p, n]\n",
}


IN_A_LOOP = ROWS.format(y="f32[P, N]", o="f32[T, N].shard(0)") + (
    "    for i in range(P):\n        for p, n in tasks(blocks(P, 16), blocks(N, 16)):\n"
    "            O[rows[p], n] += Y[p, n]\n"
)


def _said(text: str) -> list[str]:
    remarks = compile_program(parse_text(Source("k.pk", text)), level="tile").remarks
    return [remark.reason for remark in remarks if remark.step == "pk-order-scatters"]


def test_tasks_in_a_loop_are_not_repeated_for_the_tables() -> None:
    reason = "its tasks stand in a loop or branch"
    assert _said(IN_A_LOOP) == [f"rows are added to `O` one by one, in no order: {reason}"]


WRITTEN = ROWS.format(y="f32[P, N], S: i32[P]", o="f32[T, N].shard(0)") + (
    "    for p in tasks(blocks(P, 16)):\n        S[p] = rows[p]\n"
    "        for n in blocks(N, 16):\n            O[S[p], n] += Y[p, n]\n"
)


def test_a_table_that_the_same_tasks_write_is_not_read_before_them() -> None:
    reason = "the same tasks write what names the rows"
    assert _said(WRITTEN) == [f"rows are added to `O` one by one, in no order: {reason}"]


@pytest.mark.parametrize("reason", REFUSED)
def test_what_has_no_order_says_why(reason: str) -> None:
    assert f"rows are added to `O` one by one, in no order: {reason}" in _said(REFUSED[reason])
    with pytest.raises(PkcError) as raised:
        compile_program(parse_text(Source("k.pk", REFUSED[reason])), level="machine")
    refused = [str(found) for found in raised.value.diagnostics]
    what = f"into rows picked by a table: {reason}"
    if "another statement" in reason:
        what = "the contributions to `O` cannot be counted"  # its reason is that of tables
    assert any(what in text for text in refused)


COUNTED = """
kernel k(ids: i32[T], w: {kind}[T], count: {kind}[E].replicate(){more}, E: const = 40):
    for t in tasks(blocks(T, 32)):
        count[ids[t]] += w[t]{also}
"""


@pytest.mark.parametrize("ranks", [1, 2])
def test_single_integers_are_added_where_they_live(ranks: int) -> None:
    """They have one sum, in any order: memory has no slots."""
    program = parse_text(Source("k.pk", COUNTED.format(kind="i32", more="", also="").lstrip()))
    rng, roles = np.random.default_rng(5), compile_program(program, level="roles")
    assert "count.slots" not in roles.kernel.arguments
    inputs = {"ids": rng.integers(-1, 40, (ranks, 100)).astype(np.int32)}
    inputs["w"] = rng.integers(-(2**31), 2**31, (ranks, 100)).astype(np.int32)
    expected = np.zeros(40, np.int64)
    for row, number in zip(inputs["ids"].flat, inputs["w"].flat, strict=True):
        expected[row] += number if row >= 0 else 0
    for seed in range(3):
        found = simulate(roles.module, ranks=ranks, dims={"T": 100}, inputs=inputs, seed=seed)["count"]
        np.testing.assert_array_equal(found, (expected + 2**31) % 2**32 - 2**31)


OF_ROWS = """
kernel k(X: i32[M, N], H: i32[M, 8].shard(0), N: const = 40):
    for m in tasks(blocks(M, 4)):
        H[m, X[m, :]] += full(i32, 1, m, N)
"""


@pytest.mark.parametrize("ranks", [1, 2])
def test_integers_of_several_dimensions_are_added_where_they_live(ranks: int) -> None:
    program, rng = parse_text(Source("k.pk", OF_ROWS.lstrip())), np.random.default_rng(5)
    compile_program(program, level="machine")
    x = rng.integers(-1, 8, (ranks, 10, 40)).astype(np.int32)
    roles = compile_program(program, level="roles")
    found = simulate(roles.module, ranks=ranks, dims={"M": 10}, inputs={"X": x})["H"]
    np.testing.assert_array_equal(found, (x[..., None] == np.arange(8)).sum((0, 2)))


@pytest.mark.parametrize(
    ("kind", "more", "also", "schedule"),
    [
        ("f32", "", "", {}),
        ("i32", "", "", {"deterministic": "true"}),
        ("i32", ", O: f32[E].replicate()", "\n        O[ids[t]] += cast(w[t], f32)", {}),
    ],
    ids=["floats", "said", "beside floats"],
)
def test_other_sums_keep_their_order(kind: str, more: str, also: str, schedule: dict[str, str]) -> None:
    program = parse_text(Source("k.pk", COUNTED.format(kind=kind, more=more, also=also).lstrip()))
    assert "count.slots" in compile_program(program, schedule=schedule, level="roles").kernel.arguments


def test_a_row_that_the_array_does_not_have() -> None:
    program = parse_text(Source("k.pk", COMBINE.format(kind="f32", layout="shard(0)").lstrip()).remember())
    rows, count = tables("drawn", 2)
    rows[1, 0, 0] = T
    inputs = {"Y": np.zeros((2, E, P, N), np.float32), "rows": rows, "count": count}
    with pytest.raises(PkcError) as raised:
        simulate(compile_program(program, level="tile").module, ranks=2, dims=DIMS, inputs=inputs)
    (found,) = raised.value.diagnostics
    assert found.code == "PK706"
    assert found.span.line == 4
