"""Where the elements of tiles are: in registers, in stages, in arrays. Each is moved once, to its place."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from numpy.typing import ArrayLike
from xdsl.dialects import scf
from xdsl.dialects.builtin import UNKNOWN_LOC, IndexType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from pkc.codegen.build import machine_level
from pkc.dialect import blocks, task_order
from pkc.dialect.machine import InstructionOp, TensorMapOp
from pkc.dialect.program import KernelOp
from pkc.dialect.types import RANKS, BlockType, Dim, TileType, bf16, dtype_bytes, e4m3, f32
from pkc.driver.compiler import compile_program
from pkc.driver.divisors import divisors_of
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering import spread, stages, tasks
from pkc.passes.machine.lowering.blocks import Dimensions
from pkc.passes.machine.lowering.context import Threads, WarpRole
from pkc.passes.roles import order_arrivals, stage_rows
from pkc.remarks import collecting
from pkc.targets.sm_90a import TARGET
from pkc.targets.sm_90a.layout import shared_layout
from tests.codegen.as_python import integers
from tests.codegen.threads import _DOES, FETCHING, ORDER, SHARES, Cta, Memory, swizzled, warps
from tests.codegen.together import Together
from tests.exchanges import DIMS, PAIRS, exchange
from tests.sweeps import sweep


def run(
    text: str,
    ranks: int,
    count: int,
    sizes: dict[str, int],
    /,
    schedule: dict[str, str] | None = None,
    order: Sequence[str] = ORDER,
    fitting: bool = False,
    kind: type[Cta] = Cta,
    **inputs: ArrayLike,
) -> Memory:
    """All CTAs of all ranks, `count` each, of a kind; inputs have a leading axis of ranks. What is `fitting` is
    compiled for sizes like these."""
    program = parse_text(Source("test.pk", text))
    divisors = divisors_of(compile_program(program).module.ops, sizes, ranks) if fitting else None
    settings = {**SHARES, **(schedule or {})}
    roles: KernelOp = compile_program(program, schedule=settings, level="roles", divisors=divisors).kernel
    lowered = machine_level(roles)
    memory = Memory(lowered, ranks, sizes)
    for name, values in inputs.items():
        for array, value in zip(memory.arrays[name], np.asarray(values), strict=True):
            array[...] = value
    ctas = [[kind(memory, rank, number, count) for number in range(count)] for rank in range(ranks)]
    memory.ctas = [cta for of_rank in ctas for cta in of_rank]
    for numbers, threads in warps(roles, count, order):
        for of_rank in ctas:
            for number in numbers:
                of_rank[number].run(lowered.body.block, threads)
    for cta in memory.ctas:
        cta.barriers.check()
    return memory


def numbered(*shape: int) -> np.ndarray:
    """Elements that are all different."""
    return np.arange(np.prod(shape), dtype=np.float64).reshape(shape) + 1


def owners(rows: int, columns: int, count: int) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """By element, the thread and register that have it, in a tile spread over `count` warps."""
    block = Block(arg_types=[IndexType()] * 3)
    emit = Emitter(block, UNKNOWN_LOC, TARGET)
    thread, lane, warp = block.args
    threads = Threads(0, count, False, thread, lane, warp, 1, TARGET.arch)
    role = cast(WarpRole, SimpleNamespace(emit=emit, threads=threads, chunk=None))
    fragment = TARGET.fragment((rows, columns), (0, 1), count // 4)
    assert fragment.count * 32 * count == rows * columns
    places = [
        (
            index,
            spread.row(role, fragment, emit.const(index)),
            spread.column(role, fragment, emit.const(index)),
        )
        for index in range(fragment.count)
    ]
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    evaluate = integers(block)
    for number in range(32 * count):
        known = evaluate(number, number % 32, number // 32)
        for index, row, column in places:
            found.setdefault((known[row], known[column]), []).append((number, index))
    return found


@pytest.mark.parametrize(
    ("rows", "columns", "count"), [(64, 8, 4), (64, 24, 4), (128, 16, 4), (128, 16, 8), (192, 8, 12)]
)
def test_registers_are_those_of_wgmma(rows: int, columns: int, count: int) -> None:
    """PTX ISA, wgmma, matrix D: thread l of warp w has rows 16 w + l / 4 and 8 more, columns 2 (l mod 4) and 1 more."""
    found = owners(rows, columns, count)
    assert set(found) == set(np.ndindex(rows, columns))
    for (row, column), places in found.items():
        block, inside = divmod(row, 64)
        repeat, group = divmod(block, count // 4)
        warp, upper = inside // 16, inside // 8 % 2
        thread = 128 * group + 32 * warp + 4 * (inside % 8) + column % 8 // 2
        register = repeat * columns // 2 + column // 8 * 4 + 2 * upper + column % 2
        assert places == [(thread, register)]


@pytest.mark.parametrize("rows", [2, 3, 8, 16, 56])
def test_registers_of_fewer_rows_than_a_warpgroup_has(rows: int) -> None:
    """The layout is that of 64 rows; the registers of the other rows are not part of the tile."""
    block = Block(arg_types=[IndexType()] * 3)
    fragment = TARGET.fragment((rows, 24), (0, 1), 1)
    assert (fragment.repeats, fragment.cut, fragment.count) == (1, True, TARGET.fragment((64, 24), (0, 1), 1).count)
    emit = Emitter(block, UNKNOWN_LOC, TARGET)
    threads = Threads(0, 4, False, *block.args, 1, TARGET.arch)
    role = cast(WarpRole, SimpleNamespace(emit=emit, threads=threads, chunk=None))
    at = [spread.row(role, fragment, emit.const(index)) for index in range(fragment.count)]
    whole = owners(64, 24, 4)
    evaluate = integers(block)
    for number in range(128):
        known = evaluate(number, number % 32, number // 32)
        for index, row in enumerate(at):
            assert any((number, index) in whole[known[row], column] for column in range(24))


@pytest.mark.parametrize(
    ("rows", "columns"), [(64, 16), (64, 32), (64, 64), (64, 128), (16, 8), (8, 3), (64, 72), (8, 328)]
)
@pytest.mark.parametrize("kind", [bf16, f32])
def test_elements_of_a_stage_do_not_overlap(rows: int, columns: int, kind: Attribute) -> None:
    layout, size = shared_layout(TileType([rows, columns], kind)), dtype_bytes(kind)
    block = Block(arg_types=[IndexType()] * 2)
    emit = Emitter(block, UNKNOWN_LOC, TARGET)
    address = stages.shared_address(emit, emit.const(0), layout, size, (block.args[0], block.args[1]))
    taken: set[int] = set()
    evaluate = integers(block)
    for row, column in np.ndindex(rows, columns):
        known = evaluate(row, column)
        panel = layout.rows * layout.width * (column // layout.columns)
        inside = row * layout.width + column % layout.columns * size
        assert known[address] == panel + swizzled(inside, layout.swizzle)
        taken |= set(range(known[address], known[address] + size))
    assert len(taken) == rows * columns * size
    assert max(taken) < layout.bytes


@pytest.mark.parametrize("kind", [e4m3, bf16, f32])
@pytest.mark.parametrize("shape", [(3,), (8, 3), (64, 36), (8, 520), (16, 4), (1, 1), (8, 300)])
def test_rows_of_a_stage_begin_at_multiples_of_16_bytes(shape: tuple[int, ...], kind: Attribute) -> None:
    """PTX ISA, cp.async.bulk.tensor: so do boxes, and ld.shared.v4 reads 16 bytes."""
    layout = shared_layout(TileType(shape, kind))
    assert layout.width % 16 == layout.panel_bytes % 16 == 0
    assert layout.columns * layout.panels == shape[-1]
    assert layout.width - 16 < layout.columns * dtype_bytes(kind) <= layout.width


def test_tiles_of_a_stage_lie_apart() -> None:
    tiles = [TileType([128, 64], bf16), TileType([8, 3], f32), TileType([], f32), TileType([64], f32)]
    assert TARGET.stage_layout(tiles) == ((0, 16384, 17408, 18432), 19456)


ADD = """\
kernel add(X: {kind}[M, N], Y: {kind}[M, N]):
    for m, n in tasks(blocks(M, {rows}), blocks(N, {columns})):
        at = cast(positions(m) * 1000 + positions(n), f32)
        Y[m, n] = {value}
"""


@pytest.mark.parametrize(
    ("kind", "rows", "columns"),
    [
        *[("bf16", 64, columns) for columns in (16, 32, 128, 72)],
        *[("f32", 64, columns) for columns in (8, 16, 32)],
        ("bf16", 128, 16),
        ("f32", 256, 8),
        *[("bf16", rows, columns) for rows in (8, 16, 24, 48) for columns in (16, 72)],
        ("bf16", 2, 128),
        ("bf16", 3, 72),
        ("f32", 16, 32),
    ],
)
def test_through_stages_and_registers(kind: str, rows: int, columns: int) -> None:
    """TMA, a stage, registers, a stage, TMA: with the swizzle of each width, and without one; a tile at the edge.

    What is added says where a thread believes an element to be; the boxes say where it is.
    """
    value = "cast(cast(X[m, n], f32) + at, bf16)" if kind == "bf16" else "X[m, n] + at"
    m, n = max(1, rows - 5), columns - 4
    x = numbered(1, m, n) / 1024
    memory = run(ADD.format(kind=kind, rows=rows, columns=columns, value=value), 1, 1, {"M": m, "N": n}, X=x)
    at = np.arange(m)[:, None] * 1000.0 + np.arange(n)
    np.testing.assert_array_equal(memory.arrays["Y"][0], x[0] + at)
    # Nothing else in shared memory is written: rows that a warpgroup holds beyond the tile go nowhere.
    assert len(memory.ctas[0].shared) == 2 * rows * columns


PLACES = """\
kernel places(X: bf16[S, N].shard(0, zigzag=True), Y: f32[S, N]{layout}, Z: f32[N]):
    for s, n in tasks(blocks(S, {size}{of}), blocks(N, 16)):
        Y[s, n] = cast(X[s, n], f32) * 0 + cast(positions(s) * 8 + (positions(s) - start(s)) % 8, f32)
    for n in tasks(blocks(N, 16)):
        Z[n] = zeros(f32, n)
"""


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize(("ranks", "s", "size"), [(1, 70, 64), (2, 128, 32), (2, 150, 64), (3, 50, 16), (4, 9, 16)])
def test_positions_in_zigzag_order(own: bool, ranks: int, s: int, size: int) -> None:
    """Blocks in one half, and with both; shards that are short, and empty. Of the own shard, or of all on all ranks."""
    layout, of = (".shard(0, zigzag=True)", ", of=rank") if own else (".symmetric().scratch()", "")
    text, length = PLACES.format(layout=layout, of=of, size=size), -(-s // ranks)
    memory = run(text, ranks, 2, {"S": s, "N": 16}, X=np.zeros((ranks, length, 16)))
    halves = [blocks.zigzag_halves(s, ranks, rank) for rank in range(ranks)]
    shards = [np.array([start + i for start, count in both for i in range(count)], int) for both in halves]
    rows = [shard * 8 + (shard - shard[np.arange(len(shard)) // size * size]) % 8 for shard in shards]
    for rank, found in enumerate(memory.arrays["Y"]):
        expected = rows[rank] if own else np.concatenate(rows)
        np.testing.assert_array_equal(found[: len(expected)], np.repeat(expected[:, None], 16, axis=1))


BRANCH = """\
kernel branch(X: f32[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 16)):
        s = X[m, n] * 2
        t = s {first}
        if start(n) > 0:
            s = s + cast(positions(n), f32)
        Y[m, n] = {value}
"""


@pytest.mark.parametrize(
    ("first", "value", "of_first"),
    [("+ 1", "s", 0), ("", "s + t", 1), ("* 3 + 1", "s + t", 3)],
    ids=["in place", "used behind it", "used in front of it"],
)
def test_a_tile_that_a_branch_changes(first: str, value: str, of_first: int) -> None:
    """In the registers of the tile, if it is not used any more; else beside them."""
    x = numbered(1, 60, 28)
    memory = run(BRANCH.format(first=first, value=value), 1, 2, {"M": 60, "N": 28}, X=x)
    columns = np.arange(28)
    expected = x[0] * 2 + np.where(columns >= 16, columns, 0) + of_first * x[0] * 2 + (of_first == 3)
    np.testing.assert_array_equal(memory.arrays["Y"][0], expected)


COPIES = {
    "a long row": ("X: {t}[N], Y: {t}[N]", "n", "blocks(N, 512)", {"N": 700}),
    "rows that no swizzle fits": (
        "X: {t}[M, N], Y: {t}[M, N]",
        "m, n",
        "blocks(M, 8), blocks(N, 520)",
        {"M": 13, "N": 560},
    ),
    "many rows": ("X: {t}[M, N], Y: {t}[M, N]", "m, n", "blocks(M, 320), blocks(N, 16)", {"M": 330, "N": 24}),
    "rows of which no boxes of as many begin at 128 bytes": (
        "X: {t}[M, N], Y: {t}[M, N]",
        "m, n",
        "blocks(M, 264), blocks(N, 8)",
        {"M": 261, "N": 8},
    ),
    "three dimensions": (
        "X: {t}[A, M, N], Y: {t}[A, M, N]",
        "a, m, n",
        "blocks(A, 3), blocks(M, 8), blocks(N, 80)",
        {"A": 4, "M": 11, "N": 100},
    ),
}


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("kind", ["bf16", "f32"])
def test_boxes_of_copies(name: str, kind: str) -> None:
    arrays, indices, lists, sizes = COPIES[name]
    head = f"kernel copy({arrays.format(t=kind)}):"
    text = f"{head}\n    for {indices} in tasks({lists}):\n        Y[{indices}] = X[{indices}]\n"
    x = numbered(1, *sizes.values())
    memory = run(text, 1, 8, sizes, X=x)
    np.testing.assert_array_equal(memory.arrays["Y"], x)


PADDED = {
    "in the middle of rows": ("X: {t}[M, N], Y: {t}[M, N]", "m, n", "blocks(M, 8), blocks(N, 296)", (13, 640)),
    "along three dimensions": (
        "X: {t}[A, M, N], Y: {t}[A, M, N]",
        "a, m, n",
        "blocks(A, 2), blocks(M, 3), blocks(N, 296)",
        (3, 4, 312),
    ),
    "up to the end of rows": ("X: {t}[M, 296], Y: {t}[M, 296]", "m, :", "blocks(M, 8)", (13, 296)),
}


@pytest.mark.parametrize("name", PADDED)
def test_panels_that_end_behind_their_tile(name: str) -> None:
    """Of rows of 8 times a prime number: what a box has behind the tile is stored by the next one, and only by it."""
    arrays, indices, lists, shape = PADDED[name]
    head, tasks_of = f"kernel copy({arrays.format(t='bf16')}):", indices.partition(", :")[0]
    text = f"{head}\n    for {tasks_of} in tasks({lists}):\n        Y[{indices}] = X[{indices}]\n"
    x = numbered(1, *shape)
    with collecting() as remarks:
        memory = run(text, 1, 8, dict(zip("AMN"[-len(shape) :], shape, strict=True)), X=x)
    np.testing.assert_array_equal(memory.arrays["Y"], x)
    found = [remark.reason for remark in remarks if remark.step == "pk-lower-tiles"]
    reason = "40 of 296 columns of `Y` are stored row by row: the next columns are another tile's"
    assert found == [reason] * (name != "up to the end of rows")


@pytest.mark.parametrize("columns", [592, 600])
@pytest.mark.parametrize("split", [0, 1])
def test_padded_panels_between_ranks(split: int, columns: int) -> None:
    """To every rank a few rows at a time; and in shards that end where a block does, or not."""
    kinds = ("shard(0)", "replicate()") if split == 0 else ("shard(1)", "shard(1)")
    text = (
        f"kernel copy(X: bf16[M, N].{kinds[0]}, Y: bf16[M, N].{kinds[1]}):\n"
        f"    for m, n in tasks(blocks(M, 32{', of=rank' * (split == 0)}), blocks(N, 296{', of=rank' * split})):\n"
        "        Y[m, n] = X[m, n]\n"
    )
    x = numbered(34, columns)
    shards = np.stack(np.split(x, 2, axis=split))
    memory = run(text, 2, 4, {"M": 34, "N": columns}, X=shards)
    np.testing.assert_array_equal(memory.arrays["Y"], shards if split else np.stack([x, x]))


NESTED = """\
kernel copy(X: bf16[E, M, N], Y: bf16[E, M, N]):
    for e in tasks(E):
        for m, n in tasks(blocks(M, 16), blocks(N, 16)):
            Y[e, m, n] = X[e, m, n]
"""


@pytest.mark.parametrize("count", [18, 20])
def test_tasks_in_tasks_are_shared_out_as_one_set(count: int) -> None:
    """Three times six tasks, each on another CTA: the numbers go on from one set to the next."""
    x = numbered(1, 3, 40, 24)
    memory = run(NESTED, 1, count, {"E": 3, "M": 40, "N": 24}, X=x)
    np.testing.assert_array_equal(memory.arrays["Y"], x)


PICKED = """\
kernel pick(count: i32[E], row: i32[E, M], wanted: i32[E], X: f32[M, N], Y: f32[E, M, N]):
    for e in tasks(E):
        for i, n in tasks(count[e], blocks(N, 16)):
            if wanted[e] > 0:
                Y[e, i, n] = X[row[e, i], n]
"""


@pytest.mark.parametrize("counts", [(0, 0, 0), (2, 0, 3), (5, 0, 0), (0, 0, 1), (4, 4, 4)])
def test_counts_indices_and_conditions_from_memory(counts: tuple[int, ...]) -> None:
    """Every role goes through as many tasks as the array says, and through no others."""
    rng = np.random.default_rng(1)
    x, row = numbered(1, 5, 24), rng.integers(0, 5, (1, 3, 5))
    memory = run(
        PICKED, 1, 25, {"E": 3, "M": 5, "N": 24}, count=np.array([counts]), row=row, wanted=np.array([[1, 1, 0]]), X=x
    )
    expected = np.full((3, 5, 24), np.nan)
    for e, count in enumerate(counts[:2]):
        expected[e, :count] = x[0][row[0, e, :count]]
    np.testing.assert_array_equal(memory.arrays["Y"][0], expected)


RAGGED_LISTS = """\
kernel copy(counts: i32[E], X: {kind}[E, M, N], Y: {kind}[E, M, N]):
    for e in tasks(E):
        for m, n in tasks(blocks(M, 16, stop=counts[e]), blocks(N, 32)):
            Y[e, m, n] = X[e, m, n]
"""


@pytest.mark.parametrize("kind", ["f32", "bf16"])
@pytest.mark.parametrize(("counts", "n"), [((0, 40, 17), 64), ((1, 16, 33), 40), ((5, 0, 50), 36)])
def test_blocks_that_end_inside_of_an_array(counts: tuple[int, ...], n: int, kind: str) -> None:
    """The rows past the end are read by TMA, which does not stop there; none of them is stored."""
    x = numbered(1, 3, 40, n)
    memory = run(RAGGED_LISTS.format(kind=kind), 1, 18, {"E": 3, "M": 40, "N": n}, counts=[counts], X=x)
    expected = np.full((3, 40, n), np.nan)
    for e, count in enumerate(counts):
        expected[e, :count] = x[0, e, :count]
    np.testing.assert_array_equal(memory.arrays["Y"][0], expected)


BY_TABLE = """\
kernel pick(counts: i32[E], rows: i32[E, P{pairs}], X: {kind}[T, H]{layout}, Y: {kind}[E, P, L, H]):
    for e in tasks(E):
        for p, l, k in tasks(blocks(P, 16, stop=counts[e]), L, blocks(H, {columns})):
            Y[e, p, l, k] = gather(X, {table}, k)
"""
TABLES = {
    "some": [[2, -1, 8, 2], [0, 0, 0, 0], [-1, -1, -1, 7]],
    "one or none": [[8] * 4, [-5] * 4, [8] * 4],
}
"""Rows of 9, by expert; each list is repeated."""


GATHERED = [
    (40, 16, (20, 0, 3), "bf16"),
    (36, 32, (0, 0, 20), "bf16"),
    (20, 16, (1, 16, 17), "f32"),
    (136, 128, (20, 0, 9), "bf16"),  # of which communicators fetch pieces of 8 rows
    (68, 64, (9, 1, 20), "f32"),
]
WAYS = ("private", "of each rank", "of all ranks", "fetched")


@pytest.mark.parametrize(
    ("way", "table", "case"),
    sweep(
        itertools.product(WAYS, TABLES, range(len(GATHERED))),
        lambda way, table, case: (WAYS.index(way) + list(TABLES).index(table) + case) % 2 == 0,
    ),
)
def test_rows_of_a_table(way: str, table: str, case: int) -> None:
    """From wherever the rows are, into a stage, or by communicators into memory, and from there. Rows that are no rows
    are zero, whatever arithmetic the table has; nothing beyond an expert's count is stored."""
    h, columns, counts, kind = GATHERED[case]
    ranks = 1 if way == "private" else 3
    layout = {"private": "", "of each rank": ".symmetric()"}.get(way, ".shard(0)")
    picked = np.tile(TABLES[table], 5)
    x = numbered(ranks, 9, h) if way == "of each rank" else numbered(9, h)
    given, wanted = np.stack([picked] * ranks), x
    if way == "of each rank":
        # Each rank takes its rows from the next one.
        nexts = [np.full(picked.shape, (rank + 1) % ranks) for rank in range(ranks)]
        given = np.stack([np.stack([of, picked], -1) for of in nexts])
    shards_of = x if way == "of each rank" else padded(x, ranks)
    text = BY_TABLE.format(
        pairs=", 2" if way == "of each rank" else "",
        kind=kind,
        layout=layout,
        columns=columns,
        table="rows[e, p]" if way != "private" else "rows[e, p] - 1 + 1",
    )
    lists = 2 if way == "fetched" else 1
    overlap = {"overlap": "inter_sm" if way == "fetched" else "intra_sm"}
    sizes = {"E": 3, "P": 20, "T": 9, "H": h, "L": lists}
    schedule, count = {} if way == "private" else overlap, 12 * lists
    inputs = {"counts": [counts] * ranks, "rows": given, "X": shards_of}
    memory = run(text, ranks, count, sizes, schedule=schedule, order=FETCHING, **inputs)
    assert ("X.fetched" in memory.arrays) == (way == "fetched")
    for rank, found in enumerate(memory.arrays["Y"]):
        of = wanted[(rank + 1) % ranks] if way == "of each rank" else wanted
        for e, length in enumerate(counts):
            rows = np.where(picked[e, :length, None] >= 0, of[picked[e, :length]], 0)
            for each in range(lists):
                np.testing.assert_array_equal(found[e, :length, each], rows)
            assert np.isnan(found[e, length:]).all()


@pytest.mark.parametrize("ranks", [2, 3])
def test_who_leads_waits_where_a_table_names_a_row_of_another_rank(ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that nobody looked at before its list was let lead: the one task that has it waits."""
    awaited: list[tuple[int, int]] = []
    for name in ("spin", "spin_guarded", "spin_guarded_in_task"):
        monkeypatch.setitem(_DOES, name, lambda thread, address, *_: awaited.append((thread.cta.rank, address)))
    monkeypatch.setattr(order_arrivals, "_obstacle", lambda *_: "")  # there is no matmul
    monkeypatch.setattr(stage_rows, "comes_by_lists", lambda *_: False)  # threads copy all rows, as copy engines do
    text = BY_TABLE.format(pairs="", kind="f32", layout=".shard(0)", columns=16, table="rows[e, p]")
    sizes = {"E": 1, "P": 32 * ranks, "T": 3 * ranks, "H": 16, "L": 1}
    rows = np.repeat(np.arange(ranks), 32) * 3

    def waits(*places: int) -> list[int]:
        """By rank, if it has rows of others at places of its share."""
        awaited.clear()
        given = np.stack([rows] * ranks)[:, None]
        for place in places:
            given[1, 0, 32 + place] = 0
        x = padded(numbered(3 * ranks, 16), ranks)
        inputs = {"counts": [(32 * ranks,)] * ranks, "rows": given, "X": x}
        settings = {"overlap": "inter_sm"}
        memory = run(text, ranks, 3 * ranks, sizes, schedule=settings, order=FETCHING, kind=Together, **inputs)
        for rank, found in enumerate(memory.arrays["Y"]):
            np.testing.assert_array_equal(found[0, :, 0], numbered(3 * ranks, 16)[given[rank, 0]])
        return [sum(of == rank for of, _ in awaited) for rank in range(ranks)]

    own = waits()
    assert waits(5) == [number + (rank == 1) for rank, number in enumerate(own)]


TO_ROWS = """\
kernel combine(counts: i32[E], rows: i32[E, P], weight: f32[E, P], X: {kind}[E, P, N], Y: {kind}[T, N].{layout}):
    schedule(deterministic=False)
    for e in tasks(E):
        for p, n in tasks(blocks(P, 64, stop=counts[e]), blocks(N, 16)):
            Y[rows[e, p], n] += cast(X[e, p, n], f32) * weight[e, p]
"""


SUMMED = [
    (40, (70, 0, 3), [2, -1, 8, 2], "bf16"),
    (20, (0, 0, 72), [8], "bf16"),
    (24, (1, 64, 65), [0, 1, -7, 3, 4, 5, 6, 7, 8], "f32"),
    (19, (5, 9, 0), [-1, 3], "f32"),
]
LAYOUTS = ("shard(0)", "shard(1)", "replicate()")


@pytest.mark.parametrize(
    ("layout", "case"),
    sweep(itertools.product(LAYOUTS, range(len(SUMMED))), lambda layout, case: (LAYOUTS.index(layout) + case) % 2 == 0),
)
def test_sums_into_rows_of_a_table(layout: str, case: int) -> None:
    """Rows that repeat, that are none, all the same; experts without rows, with the last of several blocks."""
    n, counts, table, kind = SUMMED[case]
    ranks, t, p = 3, 9, 72
    x, weight = numbered(ranks, 3, p, n), numbered(ranks, 3, p) % 7 - 3
    rows = np.resize(table, (ranks, 3, p))
    expected = np.zeros((t, n))
    for rank, e, position in np.ndindex(ranks, 3, p):
        if position < counts[e] and rows[rank, e, position] >= 0:
            expected[rows[rank, e, position]] += x[rank, e, position] * weight[rank, e, position]
    inputs = {"counts": [counts] * ranks, "rows": rows, "weight": weight, "X": x}
    text = TO_ROWS.format(kind=kind, layout=layout)
    memory = run(text, ranks, 18, {"E": 3, "P": p, "T": t, "N": n}, order=FETCHING, **inputs)
    axis = {"shard(0)": 0, "shard(1)": 1}.get(layout)
    for rank, found in enumerate(memory.arrays["Y"]):
        first, last = (0, t) if axis is None else blocks.shard_bounds((t, n)[axis], ranks, rank)
        place = (slice(first, last), slice(None)) if axis != 1 else (slice(None), slice(first, last))
        mine = expected[place]
        np.testing.assert_array_equal(found[tuple(map(slice, mine.shape))], mine)


@pytest.mark.parametrize(("before", "after"), PAIRS)
@pytest.mark.parametrize(("sizes", "even"), [((4, 64, 64), True), ((3, 70, 36), False)])
def test_exchanges_of_shards(before: int, after: int, sizes: tuple[int, ...], even: bool) -> None:
    """By TMA where all shards end with whole blocks; else by threads if both dimensions have blocks of several."""
    ranks, x = 2, numbered(*sizes)
    shards = np.zeros((ranks, *(-(-n // ranks) if axis == before else n for axis, n in enumerate(sizes))))
    for rank in range(ranks):
        first, last = blocks.shard_bounds(sizes[before], ranks, rank)
        mine = x.take(range(first, last), before)
        shards[rank][tuple(map(slice, mine.shape))] = mine
    text = exchange(before, after, "f32")
    memory = run(text, ranks, 60, dict(zip(DIMS, sizes, strict=True)), order=FETCHING, fitting=True, X=shards)
    for rank, found in enumerate(memory.arrays["Y"]):
        first, last = blocks.shard_bounds(sizes[after], ranks, rank)
        mine = x.take(range(first, last), after)
        np.testing.assert_array_equal(found[tuple(map(slice, mine.shape))], mine)
    arrays = {memory.kernel.argument_name(op.array) for op in memory.kernel.walk() if isinstance(op, TensorMapOp)}
    if even or 0 not in (before, after):
        assert arrays == ({"X", "Y"} if even else set())


ALL_REDUCE = """\
kernel total(X: f32[M, N], Y: f32[M, N].replicate()):
    for m, n in tasks(blocks(M, 64), blocks(N, 16)):
        Y[m, n] += X[m, n]
"""


@pytest.mark.parametrize("way", ["one_shot", "two_shot"])
def test_all_reduce(way: str) -> None:
    """With slots for one shard, or for all of the array; copies on all ranks."""
    ranks, m, n = 3, 70, 36
    x = numbered(ranks, m, n) % 32
    order = ("loader", "storer", "communicator")
    memory = run(ALL_REDUCE, ranks, 18, {"M": m, "N": n}, {"all_reduce": way}, order, X=x)
    assert memory.arrays["Y.slots"][0].shape == (3, 70 if way == "one_shot" else 24, 36)
    for found in memory.arrays["Y"]:
        np.testing.assert_array_equal(found, x.sum(axis=0))


@pytest.mark.parametrize("way", ["one_shot", "two_shot"])
@pytest.mark.parametrize("n", [40, 36])
def test_all_reduce_in_packets(way: str, n: int) -> None:
    """Eight elements of a thread at once, and single ones; both halves of the scratch memory have room for all."""
    ranks, m = 3, 70
    x = numbered(ranks, m, n) % 32
    settings = {"all_reduce": way, "packets": "true"}
    text = ALL_REDUCE.replace("f32", "bf16")
    memory = run(text, ranks, 18, {"M": m, "N": n}, settings, ("storer", "communicator"), X=x)
    assert memory.arrays["Y.slots"][0].shape == (2, 3, 70 if way == "one_shot" else 24, n)
    for found in memory.arrays["Y"]:
        np.testing.assert_array_equal(found, x.sum(axis=0))


def test_all_gather_in_packets() -> None:
    ranks, m, n = 3, 70, 40
    x = numbered(m, n) % 128
    shards = np.zeros((ranks, 24, n))
    for rank in range(ranks):
        mine = x[24 * rank : 24 * rank + 24]
        shards[rank][: len(mine)] = mine
    text = (
        "kernel gather(X: bf16[M, N].shard(0), Y: bf16[M, N].replicate()):\n"
        "    for m, n in tasks(blocks(M, 128, of=rank), blocks(N, 256)):\n"
        "        Y[m, n] = X[m, n]\n"
    )
    settings = {"packets": "true", "tile_M": "16", "tile_N": "32"}
    memory = run(text, ranks, 18, {"M": m, "N": n}, settings, ("storer", "communicator"), X=shards)
    for found in memory.arrays["Y"]:
        np.testing.assert_array_equal(found, x)


IN_NO_ORDER = """\
kernel total(X: {kind}[M, N], Y: {kind}[M, N].{layout}):
    schedule(deterministic=False)
    for m, n in tasks(blocks(M, 64), blocks(N, 16)):
        Y[m, n] += {value}
"""


@pytest.mark.parametrize("layout", ["shard(0)", "shard(1)", "replicate()"])
@pytest.mark.parametrize(("n", "value", "kind"), [(40, "X[m, n]", "bf16"), (19, "cast(X[m, n], f32) * 2.0", "f32")])
def test_sums_in_no_order(layout: str, n: int, value: str, kind: str) -> None:
    """Of what was loaded, and of what is computed; rows that suit vectors, and others."""
    ranks, m = 3, 70
    x = numbered(ranks, m, n) % 32
    expected = x.sum(axis=0) * (1 + value.count("2.0"))
    text = IN_NO_ORDER.format(kind=kind, layout=layout, value=value)
    memory = run(text, ranks, 18, {"M": m, "N": n}, order=FETCHING, X=x)
    axis = {"shard(0)": 0, "shard(1)": 1}.get(layout)
    for rank, found in enumerate(memory.arrays["Y"]):
        first, last = (0, None) if axis is None else blocks.shard_bounds((m, n)[axis], ranks, rank)
        mine = expected[first:last] if axis != 1 else expected[:, first:last]
        np.testing.assert_array_equal(found[tuple(map(slice, mine.shape))], mine)


BOUNDED = """\
kernel copy(first: i32[E], end: i32[E], X: f32[M, N], Y: f32[E, M, N]):
    for e in tasks(E):
        for i, n in tasks(blocks(M, 1, start=first[e], stop=end[e]), blocks(N, 16)):
            Y[e, i, n] = X[i, n]
"""


@pytest.mark.parametrize(("first", "end"), [(0, 5), (2, 4), (-3, 2), (3, 9), (4, 1), (7, 9), (-4, -1)])
def test_bounds_from_memory_are_clamped(first: int, end: int) -> None:
    """To the dimension, of 5 positions; a list whose end comes before its beginning is empty."""
    x = numbered(1, 5, 24)
    memory = run(BOUNDED, 1, 20, {"E": 2, "M": 5, "N": 24}, first=[[first, 1]], end=[[end, 3]], X=x)
    expected = np.full((2, 5, 24), np.nan)
    for e, (a, b) in enumerate(((first, end), (1, 3))):
        start, stop = blocks.clamp(5, a, b)
        expected[e, start:stop] = x[0][start:stop]
    np.testing.assert_array_equal(memory.arrays["Y"][0], expected)


@pytest.mark.parametrize(
    ("counts", "rows"),
    [((1, 1), 8), ((16, 3), 8), ((19, 5), 8), ((7, 4), 8), ((9, 2), 1), ((3, 5, 4), 4), ((2, 2, 3, 5), 8)],
)
def test_bands(counts: tuple[int, ...], rows: int) -> None:
    """Code and simulator number tasks alike: each once, the row fastest within a band."""
    block = Block(arg_types=[IndexType()])
    emit = Emitter(block, UNKNOWN_LOC, TARGET)
    role = cast(WarpRole, SimpleNamespace(emit=emit))
    indices = tasks.banded(role, block.args[0], [emit.const(count) for count in counts], rows)
    found: list[tuple[int, ...]] = []
    evaluate = integers(block)
    for number in range(math.prod(counts)):
        known = evaluate(number)
        found.append(tuple(known[index] for index in indices))
    assert found == [task_order.banded(number, counts, rows) for number in range(math.prod(counts))]
    assert found == list(task_order.in_order(counts, rows))
    row = {at: number for number, at in enumerate(np.ndindex(*counts[:-1]))}
    assert found == sorted(np.ndindex(*counts), key=lambda at: (row[at[:-1]] // rows, at[-1], row[at[:-1]]))


UNEVEN = """\
kernel sums(X: bf16[H, S, 16], O: f32[H, S, 16]):
    for h, q in tasks(H, blocks(S, 64)):
        o = zeros(f32, q, 16)
        for i in range(start(q) + 1):
            o += cast(X[h, q], f32)
        O[h, q] = o
"""


@pytest.mark.parametrize(
    ("heads", "rows", "ctas"), sweep([(9, 192, 9), (3, 300, 5), (1, 64, 3), (17, 128, 16)], lambda *case: case[0] > 3)
)
def test_tasks_of_uneven_length_are_each_done_once(heads: int, rows: int, ctas: int) -> None:
    """Bands of eight heads and rounds of CTAs that do not end together."""
    x = numbered(1, heads, rows, 16) % 3
    memory = run(UNEVEN, 1, ctas, {"H": heads, "S": rows}, X=x)
    added = np.arange(rows) // 64 * 64 + 1
    np.testing.assert_array_equal(memory.arrays["O"][0], x[0] * added[:, None])


def test_tasks_of_uneven_length_in_tasks() -> None:
    """They go on from one set to the next, beginning where the last one ended."""
    head, *body = UNEVEN.replace("[H,", "[E, H,").replace("[h,", "[e, h,").splitlines()
    text = "\n".join([head, "    for e in tasks(E):", *(f"    {line}" for line in body), ""])
    x = numbered(1, 2, 17, 100, 16) % 3
    memory = run(text, 1, 31, {"E": 2, "H": 17, "S": 100}, X=x)  # CTAs have other places in a third band
    added = np.arange(100) // 64 * 64 + 1
    np.testing.assert_array_equal(memory.arrays["O"][0], x[0] * added[:, None])


class _OneDimension(Dimensions):
    """A dimension and a number of ranks that are known when code runs."""

    def __init__(self, emit: Emitter, extent: SSAValue, ranks: SSAValue) -> None:
        super().__init__(emit)
        self._sizes = {"S": extent, RANKS: ranks}

    def extent(self, dim: Dim) -> SSAValue:
        assert isinstance(dim, str)
        return self._sizes[dim]


@pytest.mark.parametrize("inside", [0, 3])
def test_blocks_before_a_position_in_zigzag_order(inside: int) -> None:
    block = Block(arg_types=[IndexType()] * 4)
    extent, ranks, shard, limit = block.args
    dims = _OneDimension(Emitter(block, UNKNOWN_LOC, TARGET), extent, ranks)
    count = dims.zigzag_count(BlockType("S", 4), shard, inside, limit)
    evaluate = integers(block)
    for n, count_of_ranks in ((1, 3), (8, 1), (29, 2), (48, 3), (30, 4)):
        for rank in range(count_of_ranks):
            for before in range(-2, n + 3):
                expected = blocks.zigzag_count(n, count_of_ranks, 4, rank, inside, before)
                assert evaluate(n, count_of_ranks, rank, before)[count] == expected


def test_blocks_before_a_position_shard_after_shard() -> None:
    block = Block(arg_types=[IndexType()] * 3)
    extent, ranks, limit = block.args
    count = _OneDimension(Emitter(block, UNKNOWN_LOC, TARGET), extent, ranks).sharded_before(BlockType("S", 4), limit)
    evaluate = integers(block)
    for n, count_of_ranks in ((1, 3), (8, 1), (29, 2), (48, 3), (30, 4)):
        for before in range(-6, n + 3):
            expected = blocks.sharded_before(n, count_of_ranks, 4, before)
            assert evaluate(n, count_of_ranks, before)[count] == expected


GATHER = """\
kernel gather(X: f32[M, N].shard(0), Y: f32[M, N].replicate()):
    for m, n in tasks(blocks(M, 16, of=rank), blocks(N, 16)):
        Y[m, n] = X[m, n]
"""
SUM = """\
kernel total(X: {kind}[M, N], Y: {kind}[M, N].{layout}):
    for m, n in tasks(blocks(M, {size}), blocks(N, {size})):
        Y[m, n] += X[m, n]
"""
EPILOGUE = """\
kernel total(X: {kind}[M, N], b: f32[N], s: f32[M].shard(0), R: {kind}[M, N].shard(0),
             S: {kind}[M, N].shard(0).scratch(), Y: {kind}[M, N].shard(0)):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        S[m, n] += X[m, n]
    for m, n in tasks(blocks(M, 32, of=rank), blocks(N, 32)):
        Y[m, n] = (S[m, n] + b[n]) * s[m] + R[m, n]
"""
STRADDLING = """\
kernel total(X: {kind}[M, N], Y: {kind}[M, N].shard(0)):
    schedule(straddle=True)
    for m, n in tasks(blocks(M, 64), blocks(N, {columns})):
        at = cast(positions(m) * 1000 + positions(n), f32)
        Y[m, n] += {value}
"""
RAGGED = [(1, 20), (2, 33), (3, 50), (3, 4), (8, 5), (4, 64)]
"""Ranks, and a dimension that is sharded: shards of one length, a shorter last one, empty ones."""


def shards(x: np.ndarray, ranks: int) -> list[np.ndarray]:
    """What each rank has of an array that is sharded along its rows."""
    return [x[slice(*blocks.shard_bounds(len(x), ranks, rank))] for rank in range(ranks)]


def padded(x: np.ndarray, ranks: int) -> np.ndarray:
    """The shards, padded to equal lengths with NaN, which must never be read."""
    made = np.full((ranks, blocks.shard_length(len(x), ranks), *x.shape[1:]), np.nan)
    for rank, shard in enumerate(shards(x, ranks)):
        made[rank, : len(shard)] = shard
    return made


@pytest.mark.parametrize(("ranks", "m"), RAGGED)
def test_boxes_of_shards(ranks: int, m: int) -> None:
    """TMA from the local shard to its place in every rank's copy; the shards beside it stay as they are."""
    n = 20
    x = numbered(m, n)
    count = blocks.count(0, blocks.shard_length(m, ranks), 16) * blocks.count(0, n, 16)
    memory = run(GATHER, ranks, count, {"M": m, "N": n}, X=padded(x, ranks))
    for rank in range(ranks):
        np.testing.assert_array_equal(memory.arrays["Y"][rank], x)


@pytest.mark.parametrize("kind", ["bf16", "f32"])
@pytest.mark.parametrize(
    ("layout", "ranks", "m", "n", "size"),
    [
        ("shard(0)", 2, 33, 16, 16),
        ("shard(0)", 3, 50, 20, 16),
        ("shard(0)", 3, 4, 16, 16),
        ("shard(0)", 1, 64, 64, 64),
        ("replicate()", 1, 20, 24, 16),
        ("replicate()", 2, 33, 20, 16),
        ("replicate()", 3, 32, 16, 16),
        ("replicate()", 2, 20, 19, 16),
    ],
)
def test_chunks_of_sums(layout: str, ranks: int, m: int, n: int, size: int, kind: str) -> None:
    """Contributions to slots at their owners by TMA; sums by chunks, to the owner or to all.

    With an odd number of columns, a register of two elements begins at an odd place, or has only one that exists.
    """
    x = np.stack([numbered(m, n) * 10.0**rank for rank in range(ranks)])
    count = blocks.numbers(m, ranks, size) * blocks.count(0, n, size)
    memory = run(SUM.format(layout=layout, size=size, kind=kind), ranks, count, {"M": m, "N": n}, X=x)
    total = x.sum(axis=0)
    for rank, shard in enumerate(shards(total, ranks) if layout == "shard(0)" else [total] * ranks):
        np.testing.assert_array_equal(memory.arrays["Y"][rank][: len(shard)], shard)


WRITTEN = """\
kernel total(X: {kind}[M, N].symmetric(), Y: {kind}[M, N].symmetric(), Z: {kind}[M, N].symmetric(),
             ready: signal[1], done: signal[ranks]):
    with role(communicator, sms=3):
        barrier(ready[0])
        for m, n in tasks(blocks(M, 32, of=rank), blocks(N, 64)):
            t = reduce(X[m, n])
            for r in ring():
                store(Y.at(r)[m, n], t)
                signal(done.at(r)[rank], 1)
        for m, n in tasks(blocks(M, 32, of=rank), blocks(N, 64)):
            x = X[m, n]
            for r in ring():
                store(Z.at(r)[m, n], x)
"""


@pytest.mark.parametrize("kind", ["bf16", "f16", "f32"])
@pytest.mark.parametrize(("ranks", "m", "n"), [(1, 20, 24), (2, 33, 72), (3, 100, 40), (2, 20, 19)])
def test_sums_that_an_author_wrote(ranks: int, m: int, n: int, kind: str) -> None:
    """Each rank's blocks, summed over all and stored to all; and copied, by the same threads."""
    x = np.stack([numbered(m, n) * 10.0**rank for rank in range(ranks)])
    memory = run(WRITTEN.format(kind=kind), ranks, 5, {"M": m, "N": n}, X=x)
    length = blocks.shard_length(m, ranks)
    for rank in range(ranks):
        np.testing.assert_array_equal(memory.arrays["Y"][rank], x.sum(axis=0))
        owned = np.concatenate([x[owner][owner * length :][:length] for owner in range(ranks)])
        np.testing.assert_array_equal(memory.arrays["Z"][rank], owned)


BY_COLUMNS = """\
kernel turn(X: {kind}[M, N].shard(0), Y: {kind}[M, N].shard(1)):
    for m, n in tasks(blocks(M, 16, of=rank), blocks(N, 16)):
        Y[m, n] = X[m, n]
"""
SPREAD = """\
kernel spread(X: {kind}[M, N], Y: {kind}[ranks, M, N].shard(2)):
    schedule(straddle=True)
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        Y[rank, m, n] = X[m, n]
"""


def columns(x: np.ndarray, ranks: int, rank: int) -> np.ndarray:
    """What a rank has of an array that is sharded along its columns."""
    return x[..., slice(*blocks.shard_bounds(x.shape[-1], ranks, rank))]


@pytest.mark.parametrize("kind", ["bf16", "f32", "i32"])
@pytest.mark.parametrize(("ranks", "m", "n"), [(1, 20, 24), (2, 33, 72), (3, 100, 40), (3, 50, 56), (5, 9, 48)])
def test_from_rows_to_columns(ranks: int, m: int, n: int, kind: str) -> None:
    """A load goes on past the end of a block that ends with a shard of columns; a store does not. Rows of Y are as long
    as a shard: of 48 by five ranks 10 elements, so that they do not begin at multiples of 16 bytes, though the last
    shard, of 8, does."""
    x = numbered(m, n)
    count = blocks.count(0, blocks.shard_length(m, ranks), 16) * blocks.count(0, n, 16) * 2
    memory = run(BY_COLUMNS.format(kind=kind), ranks, count, {"M": m, "N": n}, X=padded(x, ranks))
    for rank in range(ranks):
        owned = columns(x, ranks, rank)
        np.testing.assert_array_equal(memory.arrays["Y"][rank][:, : owned.shape[1]], owned)


@pytest.mark.parametrize("kind", ["bf16", "f32"])
@pytest.mark.parametrize(("ranks", "m", "n"), [(2, 20, 64), (2, 33, 72), (3, 20, 40), (2, 20, 264)])
def test_columns_of_several_ranks(ranks: int, m: int, n: int, kind: str) -> None:
    """Blocks of columns that straddle shards; rows of a shard need not be multiples of 16 bytes."""
    x = np.stack([numbered(m, n) * 10.0**rank for rank in range(ranks)])
    count = blocks.count(0, m, 16) * blocks.count(0, n, 16)
    memory = run(SPREAD.format(kind=kind), ranks, count, {"M": m, "N": n}, X=x)
    for rank in range(ranks):
        owned = columns(x, ranks, rank)
        np.testing.assert_array_equal(memory.arrays["Y"][rank][..., : owned.shape[-1]], owned)


ADDED = """\
kernel total(X: {kind}[M, N], Y: {kind}[M, N].symmetric()):
    schedule(deterministic=False)
    with role({role}):
        for m, n in tasks(blocks(M, 64), blocks(N, 64)):
            t = {tile}
            for r in ring():
                store_add(Y.at(r)[m, n], t)
"""


@pytest.mark.parametrize("kind", ["bf16", "f16", "f32", "i32"])
@pytest.mark.parametrize(("ranks", "m", "n"), [(1, 20, 24), (2, 33, 72), (2, 20, 19)])
@pytest.mark.parametrize(("role", "tile"), [("communicator", "X[m, n] + X[m, n]"), ("consumer", "X[m, n]")])
def test_tiles_that_are_added(ranks: int, m: int, n: int, kind: str, role: str, tile: str) -> None:
    """From registers, chunk by chunk, and from a stage."""
    x = np.stack([numbered(m, n) * 10.0**rank for rank in range(ranks)])
    times = 2 if "+" in tile else 1
    y = np.stack([numbered(m, n) + 7.0] * ranks)
    text = ADDED.format(kind=kind, role=role, tile=tile)
    memory = run(text, ranks, blocks.count(0, m, 64) * blocks.count(0, n, 64), {"M": m, "N": n}, X=x, Y=y)
    for rank in range(ranks):
        np.testing.assert_array_equal(memory.arrays["Y"][rank], y[rank] + times * x.sum(axis=0))


@pytest.mark.parametrize(("size", "chunks", "twos"), [(64, 1, False), (128, 2, False), (192, 1, True)])
def test_slots_of_several_ranks_come_together(size: int, chunks: int, twos: bool) -> None:
    """Those of four ranks, of two where no four are left, and of the last one: on two ranks no load waits for another
    where threads go over chunks again and again: 256 of them over 32 rows, of 8, 16 and 24 chunks each."""
    text = SUM.format(kind="bf16", layout="shard(0)", size=size)
    roles = compile_program(parse_text(Source("test.pk", text)), schedule=SHARES, level="roles").kernel
    loops = (op for op in machine_level(roles).walk() if isinstance(op, scf.ForOp))
    loads = [sum(_loads_chunks(op) for op in loop.body.block.ops) for loop in loops]
    assert [count for count in loads if count] == [chunks * together for together in ((4, 2, 1) if twos else (4, 1))]


def _loads_chunks(op: Operation) -> bool:
    return isinstance(op, InstructionOp) and op.instruction_name.data == "load_global_v4_where"


@pytest.mark.parametrize(("ranks", "m", "n"), [(1, 64, 64), (3, 192, 64), (5, 320, 64), (7, 448, 64), (2, 100, 40)])
def test_sums_on_separate_sms(ranks: int, m: int, n: int) -> None:
    """Several chunks of several iterations at once, and the iterations and chunks that remain."""
    x = np.stack([numbered(m, n) + 10.0**6 * rank for rank in range(ranks)])
    count = blocks.numbers(m, ranks, 64) * blocks.count(0, n, 64) + 2
    text, schedule = SUM.format(kind="f32", layout="shard(0)", size=64), {"overlap": "inter_sm", "comm_sms": "2"}
    memory = run(text, ranks, count, {"M": m, "N": n}, schedule, X=x)
    for rank, shard in enumerate(shards(x.sum(axis=0), ranks)):
        np.testing.assert_array_equal(memory.arrays["Y"][rank][: len(shard)], shard)


@pytest.mark.parametrize(("kind", "ranks", "m", "n"), [("bf16", 3, 100, 72), ("f32", 2, 50, 19)])
def test_what_follows_a_sum(kind: str, ranks: int, m: int, n: int) -> None:
    """Chunk by chunk, with rows and columns: by 16 bytes, and by elements."""
    x = np.stack([numbered(m, n) % 17 - rank for rank in range(ranks)])
    b, s, r = numbered(n) % 5, numbered(m) % 3, numbered(m, n) % 7
    inputs = {"X": x, "b": np.stack([b] * ranks), "s": padded(s, ranks), "R": padded(r, ranks)}
    count = blocks.numbers(m, ranks, 64) * blocks.count(0, n, 64)
    memory = run(EPILOGUE.format(kind=kind), ranks, count, {"M": m, "N": n}, None, **inputs)
    wanted = (x.sum(axis=0) + b) * s[:, None] + r
    for rank, shard in enumerate(shards(wanted, ranks)):
        np.testing.assert_array_equal(memory.arrays["Y"][rank][: len(shard)], shard)


@pytest.mark.parametrize(
    ("kind", "columns", "ranks", "m", "n"),
    [
        ("bf16", 64, 2, 50, 64),
        ("bf16", 16, 3, 70, 16),
        ("bf16", 24, 4, 16, 24),
        ("bf16", 16, 2, 6, 10),
        ("f32", 8, 5, 3, 8),
        ("f32", 8, 3, 10, 6),
    ],
)
def test_rows_of_several_ranks(kind: str, columns: int, ranks: int, m: int, n: int) -> None:
    """Staged tiles go to the owners of their rows, by 16 bytes where rows are multiples of that, else by elements."""
    value = "cast(cast(X[m, n], f32) + at, bf16)" if kind == "bf16" else "X[m, n] + at"
    text = STRADDLING.format(kind=kind, columns=columns, value=value)
    x = np.stack([numbered(m, n) * 10.0**rank for rank in range(ranks)])
    count = blocks.count(0, m, 64) * blocks.count(0, n, columns)
    memory = run(text, ranks, count, {"M": m, "N": n}, X=x)
    at = np.arange(m)[:, None] * 1000.0 + np.arange(n)
    for owner in range(ranks):
        for rank, value in enumerate(x):
            mine = shards(value + at, ranks)[owner]
            np.testing.assert_array_equal(memory.arrays["Y.slots"][owner][rank, : len(mine)], mine)
