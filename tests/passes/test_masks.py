"""Passes on masks keep the results of programs: at many sizes, and with numbers that are not finite."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

from pkc.cli.main import main
from pkc.dialect import blocks
from pkc.dialect.access import LoadOp
from pkc.dialect.coordinates import VisitedOp, ZigzagCountOp
from pkc.dialect.tile import ClipOp, MmaIssueOp
from pkc.driver.compiler import load, load_program
from pkc.frontend.elaborate import build_module
from pkc.frontend.parse import parse_text
from pkc.frontend.tree import Program
from pkc.location import Source
from pkc.passes import TILE_PIPELINE
from pkc.passes.build import is_constant
from pkc.passes.run import run_pipeline
from pkc.passes.tile.drop_clips import DropClips
from pkc.passes.tile.skip_blocks import SkipBlocks
from pkc.passes.tile.split_edges import SplitEdges
from pkc.sim.draw import draw_inputs
from pkc.sim.run import simulate

LEVELS = ("tile", "roles")
EXAMPLES = Path(__file__).parents[2] / "examples"
MASKS = (DropClips, SplitEdges, SkipBlocks)

ROWS = """
kernel rows(X: f32[M, N], Y: f32[M], first: f32):
    for m in tasks(blocks(M, 64)):
        top = full(f32, -inf, m)
        total = zeros(f32, m)
        for n in blocks(N, 64):
            s = X[m, n] * 2
            t = {row}
            total = total + rowsum({function})
            top = max(top, rowmax(s))
        Y[m] = total + top
"""

CASES = {
    "softmax": (ROWS.format(row="max(top, rowmax(s))", function="exp2(s - t)"), 1),
    "greatest": (ROWS.format(row="rowmax(s)", function="exp(s - t)"), 1),
    "another row": (ROWS.format(row="max(top, rowsum(s))", function="exp2(s - t)"), 2),
    "not a number is dropped": (
        ROWS.format(row="max(top, rowmax(s))", function="where(exp2(s - t) == exp2(s - t), exp2(s - t), 0)"),
        2,
    ),
    "not to zero": (ROWS.format(row="max(top, rowmax(s))", function="exp2(s - t) + 1"), 2),
}
"""Kernels, and how many clips are left."""

INFINITE = (np.inf, -np.inf, np.nan)


def _lowered(program: Program, without: tuple[type, ...], **constants: Any) -> ModuleOp:
    module = build_module(program, constants=constants)
    run_pipeline(module, [step for step in TILE_PIPELINE if not isinstance(step, without)], verify_each=False)
    return module


def _clips(module: ModuleOp) -> int:
    return sum(isinstance(op, ClipOp) for op in module.walk())


def _same(
    before: ModuleOp,
    after: ModuleOp,
    dims: dict[str, int],
    seed: int,
    *,
    finite: bool,
    skips: bool = False,
    ranks: int = 1,
) -> None:
    """Both programs give the same bits, any NaN being one; with some numbers that are not finite in the inputs."""
    inputs = draw_inputs(before, ranks=ranks, dims=dims, seed=seed)
    rng = np.random.default_rng(seed)
    if "W" in inputs:
        inputs["W"] = int(rng.integers(1, 200))
    for array in inputs.values():
        if not finite and isinstance(array, np.ndarray) and array.size and array.dtype.kind != "i":
            flat = array.reshape(-1)
            flat[rng.integers(0, array.size, max(1, array.size // 500))] = rng.choice(INFINITE)
    first, second = (simulate(module, ranks=ranks, dims=dims, inputs=inputs) for module in (before, after))
    for name in first:
        a, b = (found[name].astype(np.float64) for found in (first, second))
        # What may differ: a NaN that does not arise in a block that is left out.
        np.testing.assert_array_equal(a, np.where(np.isnan(a), a, b), err_msg=f"{name} at {dims}")
        assert skips or not np.any(np.isnan(a) & ~np.isnan(b))


@pytest.mark.parametrize("name", CASES)
def test_padding_is_known_or_clipped(name: str) -> None:
    text, left = CASES[name]
    program = parse_text(Source("k.pk", text))
    before, after = (_lowered(program, without) for without in (MASKS, ()))
    assert _clips(after) == left
    for seed, n in enumerate((1, 40, 64, 65, 128, 150)):
        for finite in (True, False):
            _same(before, after, {"M": 70, "N": n}, seed, finite=finite)


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal: bool) -> None:
    program = load_program(EXAMPLES / "attention.pk")
    before, after = (_lowered(program, without, D=16, causal=causal) for without in (MASKS, ()))
    assert (_clips(before), _clips(after)) == (3, 1)
    rng = np.random.default_rng(0)
    sizes = [(1, 1), (128, 128), (129, 300), (300, 129), *((int(n), int(n)) for n in rng.integers(1, 301, 4))]
    for seed, (s, t) in enumerate((*sizes, *(map(int, rng.integers(1, 301, 2)) for _ in range(4)))):
        dims = {"B": 1, "H": 1, "S": s, "T": t}
        for finite in (True, False):
            _same(before, after, dims, seed, finite=finite, skips=causal)


WINDOW = """
kernel window(Q: bf16[S, D], K: bf16[T, D], V: bf16[T, D], O: bf16[S, D], scale: f32, W: i32, D: const = 16):
    for q in tasks(blocks(S, {rows})):
        top = full(f32, {top}, q); total = zeros(f32, q); o = zeros(f32, q, D)
        for kv in blocks(T, {columns}):
            s = Q[q] @ K[kv].T * scale
            s = where({condition}, s, {masked})
            t = max(top, rowmax(s)); p = exp2(s - t); c = exp2(top - t)
            total = total * c + rowsum(p)
            o = o * c + cast(p, bf16) @ V[kv]
            top = t
        O[q] = o / total
"""
ALIGNED = "positions(q) + (T - S) >= positions(kv)"
BEFORE = "positions(q) - positions(kv) < W"
WINDOWS = {
    "aligned at the end": ((ALIGNED, "-inf", "-inf", 64, 64), (True, False)),
    "window": ((f"{ALIGNED} and {BEFORE}", "-inf", "-1e30", 64, 32), (True, True)),
    "window from -inf": ((f"positions(q) > positions(kv) and {BEFORE}", "-inf", "-inf", 32, 64), (True, True)),
    "not below": (("not (positions(q) < positions(kv))", "-inf", "-inf", 64, 128), (True, False)),
    "within a block": (("positions(q) >= positions(kv) - start(kv)", "-inf", "-inf", 32, 64), (False, False)),
    "by the first position": (("positions(q) >= start(kv)", "-inf", "-inf", 64, 32), (True, False)),
    "of half the blocks": (("positions(q) >= positions(kv) - start(kv) // 2", "-inf", "-inf", 64, 32), (False, False)),
    "a number": (("positions(q) >= positions(kv)", "-1e30", "-1e30", 64, 64), (False, False)),
    "zero": (("positions(q) >= positions(kv)", "0", "-inf", 64, 64), (False, False)),
    "the diagonal": (("positions(q) != positions(kv)", "-inf", "-inf", 64, 64), (False, False)),
}
"""Masks, and whether blocks at the end and at the beginning are left out."""


def _bounds(module: ModuleOp) -> list[tuple[bool, bool]]:
    loops = [op for op in module.walk() if isinstance(op, scf.ForOp)]
    return [(isinstance(loop.ub.owner, VisitedOp), not is_constant(loop.lb, 0)) for loop in loops]


@pytest.mark.parametrize("name", WINDOWS)
def test_blocks_are_left_out_that_change_nothing(name: str) -> None:
    (condition, masked, top, rows, columns), expected = WINDOWS[name]
    text = WINDOW.format(condition=condition, masked=masked, top=top, rows=rows, columns=columns)
    program = parse_text(Source("k.pk", text))
    before, after = (_lowered(program, without) for without in (MASKS, ()))
    assert _bounds(after) == [expected]
    rng = np.random.default_rng(len(name))
    sizes = [(200, 200), (70, 300), (300, 70), *((int(a), int(b)) for a, b in rng.integers(1, 301, (5, 2)))]
    for seed, (s, t) in enumerate(sizes):
        for finite in (True, False):
            _same(before, after, {"S": s, "T": t}, seed, finite=finite, skips=any(expected))


OTHERS = WINDOW.replace("V: bf16[T, D],", "V: bf16[T, D], keep: i8[T], hide: i32[S],").replace(
    "condition}, s, {masked}", "mask}"
)
NESTED = "positions(q) >= positions(kv), where(keep[kv] != 0, s, -inf), -inf"
PARTS = {
    "and": ("positions(q) >= positions(kv) and keep[kv] != 0, s, -inf", NESTED),
    "and, the other first": ("keep[kv] != 0 and positions(q) >= positions(kv), s, -inf", NESTED),
    "or": ("positions(q) < positions(kv) or keep[kv] == 0, -inf, s", NESTED),
    "not or": ("not (keep[kv] == 0 or positions(kv) > positions(q)), s, -inf", NESTED),
    "not and": ("not (keep[kv] != 0 and not (positions(kv) > positions(q))), -inf, s", NESTED),
    "turned around": (
        "positions(q) < positions(kv), -inf, s",
        "positions(q) >= positions(kv), s, -inf",
    ),
    "three": (
        f"(keep[kv] != 0 and {BEFORE}) and (positions(q) >= positions(kv) and hide[q] != 3), s, -inf",
        f"positions(q) >= positions(kv) and {BEFORE}, where(keep[kv] != 0 and hide[q] != 3, s, -inf), -inf",
    ),
    "or within and": (
        "(keep[kv] != 0 or positions(kv) == 3) and positions(q) >= positions(kv), s, -inf",
        "positions(q) >= positions(kv), where(keep[kv] != 0 or positions(kv) == 3, s, -inf), -inf",
    ),
}
"""Masks of which other numbers decide a part, and nested ones that mean the same."""


@pytest.mark.parametrize("name", PARTS)
def test_parts_by_positions_are_masks_of_their_own(name: str) -> None:
    texts = [OTHERS.format(mask=mask, top="-1e30", rows=64, columns=32) for mask in PARTS[name]]
    first, nested = (_lowered(parse_text(Source("k.pk", text)), ()) for text in texts)
    plain = _lowered(parse_text(Source("k.pk", texts[0])), MASKS)
    assert _bounds(first) == _bounds(nested) == [(True, name == "three")]
    assert _branches(first) == _branches(nested) == [1]
    rng = np.random.default_rng(len(name))
    sizes = [(200, 200), (70, 300), (300, 70), *((int(a), int(b)) for a, b in rng.integers(1, 301, (2, 2)))]
    for seed, (s, t) in enumerate(sizes):
        for finite in (True, False):
            _same(plain, first, {"S": s, "T": t}, seed, finite=finite, skips=True)


def test_a_mask_by_positions_under_another() -> None:
    text = OTHERS.format(
        mask="keep[kv] != 0, where(positions(q) >= positions(kv), s, -inf), -inf", top="-1e30", rows=64, columns=32
    )
    program = parse_text(Source("k.pk", text))
    before, after = (_lowered(program, without) for without in (MASKS, ()))
    assert _bounds(after) == [(True, False)]
    for seed, finite in enumerate((True, False)):
        _same(before, after, {"S": 150, "T": 200}, seed, finite=finite, skips=True)


def test_a_part_that_does_not_decide_leaves_nothing_out() -> None:
    """Where one part of an `or` fails, the others may hold; and of an `and` where one holds."""
    for mask in (
        "positions(q) >= positions(kv) or keep[kv] != 0, s, -inf",
        "positions(q) < positions(kv) and keep[kv] != 0, -inf, s",
    ):
        text = OTHERS.format(mask=mask, top="-1e30", rows=64, columns=32)
        program = parse_text(Source("k.pk", text))
        before, after = (_lowered(program, without) for without in (MASKS, ()))
        assert _bounds(after) == [(False, False)]
        for seed, finite in enumerate((True, False)):
            _same(before, after, {"S": 150, "T": 200}, seed, finite=finite)


def _branches(module: ModuleOp) -> list[int]:
    """How many branches each loop has that has a mask inside, which are for blocks that are masked in part."""
    loops = [op for op in module.walk() if isinstance(op, scf.ForOp)]
    return [sum(isinstance(op, scf.IfOp) for op in loop.body.block.ops) for loop in loops]


@pytest.mark.parametrize(("ranks", "size"), [(1, 300), (2, 256), (3, 300), (3, 500), (4, 390)])
def test_ring_attention_leaves_out_shards(ranks: int, size: int) -> None:
    program = load_program(EXAMPLES / "ring_attention.pk")
    before, after = (_lowered(program, without, D=16, causal=True) for without in (MASKS, ()))
    assert _bounds(after) == [(False, False), (True, False)]
    for finite in (True, False):
        _same(before, after, {"B": 1, "H": 1, "S": size}, ranks, finite=finite, skips=True, ranks=ranks)


def _folded(text: str) -> str:
    """The window over shards in zigzag order."""
    shards = ".shard(0, zigzag=True)"
    text = re.sub(r"(\w: bf16\[)[ST](, D\])", rf"\1S\2{shards}", text)
    text = text.replace("blocks(S, {rows})", "blocks(S, {rows}, of=rank)")
    loop = "        for kv in blocks(T, {columns}):\n"
    assert loop in text
    before, after = text.split(loop)
    body, store = after.split("        O[q]")
    ring = "        for r in ring():\n            for kv in blocks(S, {columns}, of=r):\n"
    return before + ring + textwrap.indent(body, "    ") + "        O[q]" + store


FOLDED = {
    "causal": ("positions(q) >= positions(kv)", (True, False)),
    "keys to the end": ("positions(q) <= positions(kv)", (False, True)),
    "window": ("positions(q) >= positions(kv) and positions(q) - positions(kv) < W", (True, True)),
    "window, its end first": ("positions(q) - positions(kv) < W and positions(q) >= positions(kv)", (True, True)),
    "by the first position": ("positions(q) >= start(kv)", (True, False)),
    "within a block": ("positions(q) >= positions(kv) - start(kv)", (False, False)),
}


@pytest.mark.parametrize(("ranks", "rows", "columns"), [(1, 16, 32), (2, 32, 32), (3, 32, 16), (4, 16, 16)])
@pytest.mark.parametrize("name", FOLDED)
def test_zigzag_shards_are_left_out_from_the_first_masked_block_on(
    name: str, ranks: int, rows: int, columns: int
) -> None:
    condition, expected = FOLDED[name]
    text = _folded(WINDOW).format(condition=condition, masked="-inf", top="-inf", rows=rows, columns=columns)
    program = parse_text(Source("k.pk", text))
    before, after = (_lowered(program, without) for without in (MASKS, ()))
    assert _bounds(after) == [(False, False), expected]
    for size in (64 * ranks, 37 * ranks, 131, 17):
        for finite in (True, False):
            _same(before, after, {"S": size}, size, finite=finite, skips=any(expected), ranks=ranks)


def _sharded(text: str) -> str:
    """The window over shards, all of whose blocks are one list."""
    text = re.sub(r"(\w: bf16\[)[ST](, D\])", r"\1S\2.shard(0)", text)
    return text.replace("blocks(S, {rows})", "blocks(S, {rows}, of=rank)").replace("blocks(T,", "blocks(S,")


@pytest.mark.parametrize(("ranks", "rows", "columns"), [(1, 16, 32), (2, 32, 32), (3, 32, 16), (4, 16, 16)])
@pytest.mark.parametrize("name", FOLDED)
def test_shards_in_one_list_are_left_out_from_the_first_masked_block_on(
    name: str, ranks: int, rows: int, columns: int
) -> None:
    """Where shards end within a block, the next block begins closer than others do."""
    condition, expected = FOLDED[name]
    text = _sharded(WINDOW).format(condition=condition, masked="-inf", top="-inf", rows=rows, columns=columns)
    program = parse_text(Source("k.pk", text))
    before, after = (_lowered(program, without) for without in (MASKS, ()))
    assert _bounds(after) == [expected]
    for size in (64 * ranks, 37 * ranks, 131, 17):
        for finite in (True, False):
            _same(before, after, {"S": size}, size, finite=finite, skips=any(expected), ranks=ranks)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_zigzag_ranks_visit_as_many_blocks(ranks: int) -> None:
    """Causal: of n blocks of queries and of keys, n (n + 1) / 2 are visited, and each rank its share."""
    module = _lowered(load_program(EXAMPLES / "ring_attention.pk"), (), D=16, causal=True, zigzag=True)
    (bound,) = (op for op in module.walk() if isinstance(op, ZigzagCountOp))
    each, size = 3, 128
    n = 2 * ranks * each
    counts = [
        sum(
            min(blocks.zigzag_count(n * size, ranks, size, shard, 0, last + 1), 2 * each)
            for shard in range(ranks)
            for last in (blocks.zigzag(n * size, ranks, rank, (block + 1) * size - 1) for block in range(2 * each))
        )
        for rank in range(ranks)
    ]
    assert bound.block.extent == size
    assert counts == [n * (n + 1) // 2 // ranks] * ranks


@pytest.mark.parametrize("zigzag", [False, True])
@pytest.mark.parametrize("schedule", ["overlap=inter_sm", "overlap=none", "overlap=copy_engine", "transfer=push"])
def test_ranks_that_need_no_shard_of_others_wait_for_them(schedule: str, zigzag: bool) -> None:
    """The first rank needs its own shard alone: it must not leave before others have stored to it."""
    sizes = f"S=390,B=1,H=1,D=16,causal=True,zigzag={zigzag}"
    file = str(EXAMPLES / "ring_attention.pk")
    arguments = ["check", file, "--ranks", "2", "--seeds", "2", "--set", sizes, "--schedule", schedule]
    assert main(arguments) == 0


@pytest.mark.parametrize(("s", "t"), [(129, 300), (300, 129)])
def test_roles_skip_the_same_blocks(s: int, t: int) -> None:
    tile, roles = (
        load(EXAMPLES / "attention.pk", constants={"D": 16, "causal": True}, level=level) for level in LEVELS
    )
    dims = {"B": 1, "H": 1, "S": s, "T": t}
    inputs = draw_inputs(tile.module, ranks=1, dims=dims, seed=s)
    first, second = (simulate(found.module, ranks=1, dims=dims, inputs=inputs)["O"] for found in (tile, roles))
    assert first.tobytes() == second.tobytes()
    loops = [op for op in roles.module.walk() if isinstance(op, scf.ForOp) and isinstance(op.ub.owner, VisitedOp)]
    found = [{type(inner) for inner in loop.walk()} for loop in loops]
    assert len(loops) == 2 and any(LoadOp in ops for ops in found) and any(MmaIssueOp in ops for ops in found)
