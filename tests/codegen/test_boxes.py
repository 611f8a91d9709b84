"""Rows that tables name, in boxes: pages of a cache, each row to its place."""

from __future__ import annotations

import numpy as np
import pytest

from pkc.dialect.by_table import GatherOp
from pkc.dialect.machine import TensorMapOp
from pkc.dialect.program import KernelOp
from pkc.dialect.tile import tile_type
from pkc.dialect.transfers import boxes, moves_by_tma
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from tests.codegen.test_layouts import numbered, run

LISTED = """\
kernel listed(table: i32[B, N], length: i32[B], K: bf16[{cache}, H], Y: f32[B, T, H]):
    for b in tasks(B):
        for t, h in tasks(blocks(T, {block}, stop=length[b]), blocks(H, 64)):
            Y[b, t, h] = cast(K[{place}, h], f32) * 2.0
"""
IN_PAGES, FLAT = "P, {page}", "P"
PLACES = {
    IN_PAGES: "table[b, t // {page}], t % {page}",
    FLAT: "table[b, t // {page}] * {page} + t % {page}",
}


def _kernel(text: str) -> KernelOp:
    return compile_program(parse_text(Source("test.pk", text)), level="roles").kernel


def _box(text: str) -> tuple[int, int] | None:
    """The box of the only gather with two axes."""
    gathers = [op for op in _kernel(text).walk() if op.name == "pk.gather" and len(op.results[0].type.shape) > 1]
    (one,) = gathers
    assert "tma" in str(one.attributes["transfer"]) or boxes(one) is None
    return boxes(one)


@pytest.mark.parametrize("cache", PLACES)
@pytest.mark.parametrize(
    ("page", "block", "box"), [(16, 64, 16), (8, 32, 8), (64, 64, 64), (128, 64, 64), (48, 96, 48)]
)
def test_each_row_of_a_page(cache: str, page: int, block: int, box: int) -> None:
    """Whole pages or parts of them, some of which no page is named for; nothing is stored behind the end of a list."""
    text = LISTED.format(cache=cache.format(page=page), block=block, place=PLACES[cache].format(page=page))
    assert _box(text) == (box, 0 if cache == FLAT else 1)
    h, pages, named = 72, 5, -(-150 // page)
    lengths, t = [150, 0, page + 3], max(150, page + 3)
    table = np.resize([3, 1, -1, 4, 0], (3, max(named, 2)))
    k = numbered(pages * page, h) % 251
    shape = (1, pages * page, h) if cache == FLAT else (1, pages, page, h)
    count = 3 * 2 * -(-t // block)
    sizes = {"B": 3, "N": table.shape[1], "P": shape[1], "T": t, "H": h}
    memory = run(text, 1, count, sizes, table=table[None], length=[lengths], K=k.reshape(shape))
    maps = {
        tuple(op.box.get_values())
        for op in memory.kernel.walk()
        if isinstance(op, TensorMapOp) and op.array.name_hint == "K"
    }
    assert {size for sizes in maps for size in sizes[1:]} == ({1, box} if cache == IN_PAGES else {box})
    for b, length in enumerate(lengths):
        found, at = memory.arrays["Y"][0][b], np.arange(length)
        pages_of = table[b, at // page]
        rows = k[np.maximum(pages_of, 0) * page + at % page] * (pages_of >= 0)[:, None] * 2
        np.testing.assert_array_equal(found[:length], rows)
        assert np.isnan(found[length:]).all()


SPELLED: dict[str, int | None] = {
    "{page} * 16 + t % 16": 16,
    "t % 16 + 16 * {page}": 16,
    "(t - 16) % 16 + {page} * 16": 16,
    "where({page} >= 2, {page} * 16 + t % 16, -1)": 16,
    "{page} * 8 + t % 16": 8,
    # The first row of a page is no multiple of its rows; pages go on within others; rows go backwards, or by twos.
    "{page} + t % 16": None,
    "table[b, t // 7] * 16 + t % 16": None,
    "{page} * 16 + 15 - t % 16": None,
    "{page} * 16 + t % 16 * 2": None,
    # Rows that are none, all of a page or some, are others once something is added.
    "{page} * 16 + where({page} == 4, t % 16, -1)": None,
    "where(t % 64 < 32, t % 16, -1) + {page} * 16": None,
    "where(positions(t) < 64, positions(t), -1) % 16 + {page} * 16": None,
    "where(t % 16 < 9, {page} * 16 + t % 16, -1)": None,
    # What the other dimension of a table goes along: each row has another page.
    "slot[t // 16, t] * 16 + t % 16": None,
}
"""Of ways to name rows how many lie behind each other; without a number that is not known, though it may be so."""


@pytest.mark.parametrize("place", SPELLED)
def test_what_is_a_box(place: str) -> None:
    text = """\
kernel named(table: i32[B, N], slot: i32[N, T], K: bf16[P, 64], Y: f32[B, T, 64]):
    for b, t in tasks(B, blocks(T, 64)):
        Y[b, t] = cast(K[PLACE], f32) * 2.0
""".replace("PLACE", place.format(page="table[b, t // 16]"))
    (found,) = (boxes(op) for op in _kernel(text).walk() if isinstance(op, GatherOp) and tile_type(op.result).rank == 2)
    assert found == (None if SPELLED[place] is None else (SPELLED[place], 0))
    rng, k = np.random.default_rng(1), numbered(400, 64) % 251
    table, slot = rng.integers(-1, 12, (2, 22)), rng.integers(-1, 12, (22, 150))
    sizes = {"B": 2, "N": 22, "P": 400, "T": 150}
    found = run(text, 1, 6, sizes, table=table[None], slot=slot[None], K=k[None]).arrays["Y"][0]
    names = {"t": np.arange(150), "table": table, "slot": slot, "where": np.where, "positions": lambda t: t}
    for b in range(2):
        rows = eval(place.format(page="table[b, t // 16]"), names | {"b": b})
        np.testing.assert_array_equal(found[b], k[rows] * 2 * (rows >= 0)[:, None])


SUMMED = """\
kernel summed(table: i32[B, N], length: i32[B], A: f32[64, 512], K: f32[P, 16, H], Y: f32[B, 64, H]):
    for b, h in tasks(B, blocks(H, 64)):
        acc = zeros(f32, 64, h)
        for t in blocks(512, 64, stop=length[b]):
            acc += A[:, t] @ K[table[b, t // 16], t % 16, h]
        Y[b, :, h] = acc
"""
COUNTED = """\
kernel counted(table: i32[B, N], n: i32[B], K: f32[P, 16, H], A: f32[64, T], Y: f32[B, 64, H]):
    for b, h in tasks(B, blocks(H, 64)):
        acc = zeros(f32, 64, h)
        for t in blocks(T, 64, stop=n[b] * 16):
            acc += A[:, t] @ K[table[b, t // 16], t % 16, h]
        Y[b, :, h] = acc
"""
NARROW = """\
kernel narrow(table: i32[B, N], K: bf16[P, 16, 36], Y: f32[B, T, 36]):
    for b, t in tasks(B, blocks(T, 64)):
        Y[b, t] = cast(K[table[b, t // 16], t % 16], f32) * 2.0
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (SUMMED, "a list may end within 16 rows"),
        (COUNTED, "a list may end within 16 rows"),
        (NARROW, "begin where no multiple of 16 bytes is"),
    ],
)
def test_what_no_box_brings(text: str, reason: str) -> None:
    compiled = compile_program(parse_text(Source("test.pk", text)), level="roles")
    gathers = [op for op in compiled.kernel.walk() if op.name == "pk.gather" and boxes(op) is not None]
    assert gathers and not any(map(moves_by_tma, gathers))
    assert any(reason in remark.reason for remark in compiled.remarks)
