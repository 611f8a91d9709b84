"""Programs to IR: what the frontend builds for each rule of docs/language.md."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import pytest
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import UNKNOWN_LOC, FileLineColLoc, ModuleOp
from xdsl.ir import Operation

from pkc.diagnostics import PkcError
from pkc.dialect import access, by_table, coordinates, counters, elementwise, program, reductions, scans, tile
from pkc.dialect.attributes import Role
from pkc.dialect.program import KernelOp
from pkc.dialect.types import RANKS, BlockType, Layout, PGLType, PrivateType, SignalType, TileType, bf16, f32, i1, i32
from pkc.driver.compiler import compile_program, load
from pkc.frontend.elaborate import build_module
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes.run import print_ir
from pkc.passes.verify import verify

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.pk"))
PARAMS = "A: bf16[M, K], B: bf16[K, N], X: f32[M, N], v: f32[M], c: i32[M], n: i32, s: f32"

Op = TypeVar("Op", bound=Operation)


def build(text: str, **constants: float) -> ModuleOp:
    """The module of a text; what comes of it is well-formed."""
    module = build_module(parse_text(Source("t.pk", text)), constants=constants)
    verify(module)
    return module


def body(*lines: str, params: str = PARAMS, **constants: float) -> ModuleOp:
    """The module of a kernel with these lines."""
    return build(f"kernel f({params}):\n" + "".join(f"    {line}\n" for line in lines), **constants)


def in_tasks(*lines: str, params: str = PARAMS) -> ModuleOp:
    """The module of a kernel with these lines for all blocks m of M and n of N."""
    head = "for m, n in tasks(blocks(M, 128), blocks(N, 64)):"
    return body(head, *(f"    {line}" for line in lines), params=params.replace("n: i32", "count: i32"))


def find(module: ModuleOp, kind: type[Op]) -> list[Op]:
    return [op for op in module.walk() if isinstance(op, kind)]


def one(module: ModuleOp, kind: type[Op]) -> Op:
    (op,) = find(module, kind)
    return op


def kernel(module: ModuleOp) -> KernelOp:
    return one(module, KernelOp)


# Parameters


def test_parameters() -> None:
    params = (
        "P: bf16[M, 2 * D], S: f32[M, N].shard(0), R: f32[N].replicate(), Y: i32[D].symmetric().scratch(), "
        "T: f32[M].scratch(), x: f32, i: i32, D: const = 8, ready: signal[ranks, 2]"
    )
    op = kernel(body("T[0] = 1", params=params))
    assert [arg.type for arg in op.body.block.args] == [
        PrivateType(["M", 16], bf16),
        PGLType(["M", "N"], f32, Layout.Shard, 0),
        PGLType(["N"], f32, Layout.Replicate),
        PGLType([8], i32, Layout.Symmetric),
        PrivateType(["M"], f32),
        f32,
        i32,
        SignalType([RANKS, 2]),
    ]
    names = [op.argument_name(arg) for arg in op.body.block.args]
    assert names == ["P", "S", "R", "Y", "T", "x", "i", "ready"]
    assert [op.argument_name(arg) for arg in op.body.block.args if op.is_scratch(arg)] == ["Y", "T"]


@pytest.mark.parametrize(("constants", "size"), [({}, 32), ({"D": 16}, 16)])
def test_constants(constants: dict[str, float], size: int) -> None:
    params = "A: f32[M, D], D: const = 4 * 8, E: const = -D"
    module = body("for m in tasks(blocks(M, D)):", "    A[m, :] = E", params=params, **constants)
    assert one(module, coordinates.BlockCountOp).block == BlockType("M", size)
    assert one(module, tile.FullOp).result.type == TileType([size, size], f32)
    assert float(one(module, tile.FullOp).value.value.data) == -size


# Blocks, tasks and loops


@pytest.mark.parametrize(
    ("blocks", "given", "sharded"),
    [
        ("blocks(N, 64)", (), False),
        ("blocks(M, 64)", (), True),
        ("blocks(M, 64, of=n)", ("shard",), True),
        ("blocks(N, 64, of=rank)", ("shard",), False),
        ("blocks(N, 64, start=n)", ("start",), False),
        ("blocks(N, 64, start=n, stop=c[0])", ("start", "stop"), False),
    ],
)
def test_block_lists(blocks: str, given: tuple[str, ...], sharded: bool) -> None:
    params = "C: f32[M, N].shard(0), c: i32[E], n: i32"
    module = body(f"for b in {blocks}:", f"    n1 = len({blocks})", params=params)
    for op in (*find(module, coordinates.BlockCountOp), one(module, coordinates.BlockOp)):
        assert tuple(key for key in ("shard", "start", "stop") if getattr(op, key) is not None) == given
        assert (op.sharded is not None) == sharded


def test_one_position_is_an_integer() -> None:
    module = body("for i in blocks(M, 1, of=rank):", "    x = v[i]; y = i + 1")
    load = one(module, access.LoadOp)
    assert load.result.type == TileType([], f32)
    assert [type(index.owner) for index in load.indices] == [coordinates.BlockPositionOp]


def test_positions_in_zigzag_order() -> None:
    params = "Z: f32[S].shard(0, zigzag={}), Y: f32[M], z: const = False"
    lines = ("for q in blocks(S, 8, of=rank):", "    x = positions(q) + start(q)", "for i in blocks(S, 1): y = i + 1")
    module = body(*lines, params=params.format("not z"))
    kinds = [type(number.owner) for number in one(module, tile.PositionsOp).zigzag]
    ends = [coordinates.ZigzagPositionOp] * 2
    assert kinds == [*ends, coordinates.ZigzagGapOp]
    assert [op.last is not None for op in find(module, coordinates.ZigzagPositionOp)] == [False, True, False, False]
    assert not find(module, coordinates.BlockPositionOp)
    plain = body(*lines, params=params.format("z"))
    assert len(find(plain, coordinates.BlockPositionOp)) == 2
    assert not one(plain, tile.PositionsOp).zigzag


def test_scratch_arrays_have_the_order_of_their_blocks() -> None:
    params = "Z: f32[S].shard(0, zigzag=True), Y: f32[S].scratch(), W: f32[S].shard(0).scratch()"
    body("for q in blocks(S, 8, of=rank):", "    x = Z[q] + Y[q] + W[q]", params=params)


def test_tasks() -> None:
    module = body("for i, m in tasks(n, blocks(M, 128)):", "    for k in tasks(blocks(K, 64)):", "        x = A[m, k]")
    outer, inner = find(module, program.TasksOp)
    assert inner.parent_op() is outer
    assert [type(count.owner) for count in outer.counts] == [arith.IndexCastOp, coordinates.BlockCountOp]
    assert len(find(module, scf.ForOp)) == 0


def test_ring_and_range() -> None:
    module = body("for r in ring():", "    for i in range(2, n):", "        x = v[i + r]")
    ring, counted = find(module, scf.ForOp)
    assert isinstance(ring.ub.owner, coordinates.DimOp)
    assert ring.ub.owner.dim.data == RANKS
    assert one(module, coordinates.RingPeerOp).step is ring.body.block.args[0]
    assert isinstance(counted.lb.owner, arith.ConstantOp)
    assert isinstance(counted.ub.owner, arith.IndexCastOp)


def test_carried_through_a_loop() -> None:
    module = body(
        "for m in tasks(blocks(M, 128)):",
        "    t = v[m]; i = 0; o = 1",
        "    for k in range(n):",
        "        u = t + 1.0; t = u; i += k",
        "    v[m] = t * 2.0",
        "    c[i] = o",
    )
    (loop,) = find(module, scf.ForOp)
    assert [arg.name_hint for arg in loop.body.block.args[1:]] == ["t", "i"]
    store, last = find(module, access.StoreOp)
    assert isinstance(store.tile.owner, elementwise.MulOp)
    assert store.tile.owner.lhs is loop.results[0]
    assert last.indices[0] is loop.results[1]


def test_carried_out_of_a_branch() -> None:
    module = in_tasks(
        "a = 1", "if count > 0:", "    a = 2; b = v[m]; t = a", "else:", "    b = v[m] * s", "v[m] = b; c[a] = 0"
    )
    branch = one(module, scf.IfOp)
    assert [result.name_hint for result in branch.results] == ["a", "b"]
    first, second = find(module, access.StoreOp)
    assert (first.tile, second.indices[0]) == (branch.results[1], branch.results[0])


def test_constant_condition_keeps_one_branch() -> None:
    lines = ("if D == 8:", "    v[0] = 1", "elif D > 8:", "    v[0] = 2", "else:", "    unknown(v)")
    for value, stored in ((8, 1), (9, 2)):
        module = body(*lines, params="v: f32[M], D: const", D=value)
        assert not find(module, scf.IfOp)
        assert one(module, tile.FullOp).value.value.data == stored
    with pytest.raises(PkcError, match="PK205"):
        body(*lines, params="v: f32[M], D: const", D=0)


# Tiles


def test_axes_of_a_load() -> None:
    module = body("for b, h, q in tasks(B, H, blocks(S, 32)):", "    x = Q[b, h, q]", params="Q: bf16[B, H, S, 64]")
    assert one(module, access.LoadOp).result.type == TileType([32, 64], bf16)
    module = body("x = c[0]; y = v[n]")
    assert one(module, access.ReadOp).result.type == one(module, access.ReadOp).indices[0].type
    assert one(module, access.LoadOp).result.type == TileType([], f32)


@pytest.mark.parametrize(
    ("expression", "axes"),
    [
        ("X[m, n] - v[m]", [[0]]),
        ("v[m] - X[m, n]", [[0]]),
        ("rowmax(X[m, n].T) * X[m, n]", [[1]]),
        ("max(positions(n), positions(m))", [[0], [1]]),
        ("where(v[m] > 0.0, X[m, n], 0.0)", [[0]]),
        ("X[m, n] + X[m, n]", []),
        ("v[m] + cast(positions(16), f32)", [[0], [1]]),
    ],
)
def test_axes_align_by_their_block(expression: str, axes: list[list[int]]) -> None:
    module = in_tasks(f"x = {expression}")
    assert [list(op.axes.get_values()) for op in find(module, tile.BroadcastOp)] == axes


def test_axes_of_one_dimension_differ_by_their_loop() -> None:
    module = body("for a, b in tasks(blocks(M, 64), blocks(M, 64)):", "    x = v[a] * v[b]")
    assert one(module, elementwise.MulOp).result.type == TileType([64, 64], f32)
    assert one(module, elementwise.MulOp).lhs is not one(module, elementwise.MulOp).rhs


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("X[m, n] + v[m]", elementwise.AddOp),
        ("X[m, n] / 2", elementwise.DivOp),
        ("c[m] // 2", elementwise.FloorDivOp),
        ("c[m] % 2", elementwise.ModOp),
        ("min(X[m, n], s)", elementwise.MinOp),
        ("-X[m, n]", elementwise.NegOp),
        ("abs(X[m, n])", elementwise.AbsOp),
        ("exp(X[m, n])", elementwise.ExpOp),
        ("exp2(X[m, n])", elementwise.Exp2Op),
        ("log2(X[m, n])", elementwise.Log2Op),
        ("sqrt(X[m, n])", elementwise.SqrtOp),
        ("X[m, n] < 1", elementwise.CompareOp),
        ("X[m, n] < 1 and c[m] == 0", elementwise.AndOp),
        ("X[m, n] < 1 or c[m] == 0", elementwise.OrOp),
        ("not X[m, n] < 1", elementwise.NotOp),
        ("where(c[m] > 0, s, 1.0)", elementwise.SelectOp),
        ("rowmax(X[m, n])", reductions.RowMaxOp),
        ("rowsum(X[m, n])", reductions.RowSumOp),
        ("X[m, n].T", tile.TransposeOp),
        ("cast(X[m, n], bf16)", tile.CastOp),
        ("positions(m)", tile.PositionsOp),
        ("positions(64)", tile.PositionsOp),
        ("cumsum(X[m, n])", scans.CumSumOp),
        ("c[m] & 255 | c[m] << 8", elementwise.BitOrOp),
        ("n1 ^ c[m]", elementwise.BitXorOp),
        ("n1 - 1", arith.SubiOp),
        ("n1 // 2", arith.FloorDivSIOp),
        ("max(n1, 0)", arith.MaxSIOp),
        ("n1 < 2", arith.CmpiOp),
        ("start(m)", coordinates.BlockPositionOp),
        ("not n1 < 2", arith.XOrIOp),
        ("cast(n1, f32)", tile.CastOp),
    ],
)
def test_operators(expression: str, kind: type[Operation]) -> None:
    module = in_tasks(f"x = {expression}", params=PARAMS.replace("n: i32", "n1: i32"))
    assert find(module, kind)[-1].results[0].name_hint == "x"


@pytest.mark.parametrize(
    ("cast", "chosen"),
    [
        ("cast(A[m] > 0.0, f32)", "where(A[m] > 0.0, 1.0, 0.0)"),
        ("cast(cast(A[m] > 0.0, i32), f32)", "cast(where(A[m] > 0.0, 1, 0), f32)"),
        ("cast(A[m] > 0.0, bf16) * 2.0", "cast(where(A[m] > 0.0, 1.0, 0.0), bf16) * 2.0"),
        ("cast(M > 5, f32) + A[m]", "where(M > 5, 1.0, 0.0) + A[m]"),
    ],
)
def test_a_condition_as_a_number(cast: str, chosen: str) -> None:
    """As `where` of 1 and 0."""
    text = "kernel k(A: f32[M], B: f32[M]):\n    for m in tasks(blocks(M, 16)):\n        B[m] = {}\n"
    found, wanted = (compile_program(parse_text(Source("k.pk", text.format(value)))) for value in (cast, chosen))
    assert str(found.module) == str(wanted.module)


def test_constants_fold() -> None:
    module = body("v[0] = max(2, 3.5) * 2 - exp2(3)", "c[0] = 7 // 2 + 7 % 4")
    assert [op.value.value.data for op in find(module, tile.FullOp)] == [-1.0, 6]


@pytest.mark.parametrize(
    ("expression", "element"),
    [("X[m, n] * 2", f32), ("c[m] * 2", i32), ("s + 1", f32), ("A[m, 0] * 2", f32), ("where(c[m] > 0, 1, 2.0)", f32)],
)
def test_literals_take_the_type_of_the_other_operand(expression: str, element: object) -> None:
    module = in_tasks(f"x = {expression}")
    literals = {op.result.type.element_type for op in find(module, tile.FullOp)} - {i32}
    assert literals == ({element} - {i32})
    (named,) = [op for op in module.walk() if op.results and op.results[0].name_hint == "x"]
    assert isinstance(named.results[0].type, TileType)
    assert named.results[0].type.element_type == element


def test_narrow_tiles_widen_and_round_at_the_store() -> None:
    module = body("for m in tasks(blocks(M, 128)):", "    h[m] = h[m] + h[m]; h[m] = h[m]", params="h: bf16[M]")
    casts = [(op.tile.type.element_type, op.result.type.element_type) for op in find(module, tile.CastOp)]
    assert casts == [(bf16, f32), (bf16, f32), (f32, bf16)]
    computed, copied = find(module, access.StoreOp)
    assert isinstance(computed.tile.owner, tile.CastOp)
    assert isinstance(copied.tile.owner, access.LoadOp)


def test_product() -> None:
    module = in_tasks("acc = zeros(f32, m, n)", "for k in blocks(K, 32):", "    acc += A[m, k] @ B[k, n]")
    mma = one(module, tile.MmaOp)
    assert (mma.a.type, mma.b.type, mma.result.type) == (
        TileType([128, 32], bf16),
        TileType([32, 64], bf16),
        TileType([128, 64], f32),
    )


# Ragged edges


def clips(module: ModuleOp) -> list[tuple[int, float]]:
    return [(op.axis.value.data, float(op.fill.value.data)) for op in find(module, tile.ClipOp)]


@pytest.mark.parametrize(
    ("line", "built"),
    [
        ("v[m] = rowsum(X[m, n])", [(1, 0.0)]),
        ("v[m] = rowmax(X[m, n])", [(1, float("-inf"))]),
        ("c[m] = rowmax(max(positions(m), positions(n)))", [(1, -(2.0**31))]),
        ("x = A[m, :] @ A[m, :].T", []),
        ("x = A[m, :].T @ A[m, :]", [(1, 0.0), (0, 0.0)]),
    ],
)
def test_clips(line: str, built: list[tuple[int, float]]) -> None:
    assert clips(in_tasks(line, params=PARAMS + ", K: const = 32")) == built


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("X[m, n] = rowsum(X[m, n])", []),
        ("X[m, n] = rowsum(exp(X[m, n]))", [(1, 0.0)]),
        ("X[m, n] = rowmax(X[m, n])", [(1, float("-inf"))]),
    ],
)
def test_clips_of_loads_fold(line: str, kept: list[tuple[int, float]]) -> None:
    text = f"kernel f(X: f32[M, N]):\n    for m, n in tasks(blocks(M, 128), blocks(N, 64)):\n        {line}\n"
    assert clips(compile_program(parse_text(Source("t.pk", text))).module) == kept


# Writing


@pytest.mark.parametrize(
    ("layout", "statement", "kind", "rank"),
    [
        ("", "C[m] = t", access.StoreOp, False),
        (".shard(0)", "C[m] = t", access.StoreOp, False),
        (".shard(0)", "C[m] += t", access.AccumulateOp, False),
        (".replicate()", "C[m] += t", access.AccumulateOp, False),
        (".symmetric()", "C[m] += t", access.StoreAddOp, False),
        (".symmetric()", "C.at(rank + 1)[m] += t", access.StoreAddOp, True),
        (".symmetric()", "C.at(0)[m] = t", access.StoreOp, True),
        (".symmetric()", "store(C.at(0)[m], t)", access.StoreOp, True),
        (".symmetric()", "store_add(C[m], t)", access.StoreAddOp, False),
        ("", "store_add(C[m], t)", access.StoreAddOp, False),
        (".shard(0)", "C[c[m]] += t", by_table.ScatterAccumulateOp, False),
        (".replicate()", "C[c[m]] += t", by_table.ScatterAccumulateOp, False),
    ],
)
def test_writes(layout: str, statement: str, kind: type[Operation], rank: bool) -> None:
    params = f"C: bf16[M]{layout}, v: f32[M], c: i32[M]"
    module = body("for m in tasks(blocks(M, 128)):", "    t = v[m]", f"    {statement}", params=params)
    op = one(module, kind)
    assert (getattr(op, "rank", None) is not None) == rank
    assert op.operands[0].type == TileType([128], bf16)


def test_rows_past_the_edge_are_not_scattered() -> None:
    module = body(
        "for m in tasks(blocks(M, 128)):", "    Y[c[m]] += v[m]", params="Y: f32[T].shard(0), v: f32[M], c: i32[M]"
    )
    assert clips(module) == [(0, -1.0)]
    assert one(module, by_table.ScatterAccumulateOp).rows is one(module, tile.ClipOp).result


def test_stored_values_spread_to_the_place() -> None:
    module = in_tasks("X[m, n] = v[m]; X[m, n] = 1; X[0, n] = s; c[m] = count")
    assert [op.tile.type.shape for op in find(module, access.StoreOp)] == [(128, 64), (128, 64), (64,), (128,)]


# Irregular access


@pytest.mark.parametrize(
    ("layout", "rows"), [("", "r[p]"), (".shard(0)", "r[p]"), (".replicate()", "r[p]"), (".symmetric()", "rr[p, :]")]
)
def test_gather(layout: str, rows: str) -> None:
    params = f"X: bf16[T, H]{layout}, r: i32[P], rr: i32[P, 2], Y: f32[P, H]"
    module = body(
        "for p, h in tasks(blocks(P, 16), blocks(H, 64)):", f"    Y[p, h] = gather(X, {rows}, h)", params=params
    )
    op = one(module, by_table.GatherOp)
    assert op.result.type == TileType([16, 64], bf16)
    assert len(op.indices) == 1


# Explicit communication


def test_roles_and_signals() -> None:
    module = body(
        "with role(communicator, sms=16, warps=2):",
        "    for m in tasks(blocks(M, 128)):",
        "        signal(ready.at(1)[0], 2); signal(ready[0], 1); signal_all(ready[rank], n)",
        "        x = reduce(C[m]); all_reduce(C[m])",
        "with role(consumer):",
        "    wait(ready[0], n + 1); barrier(ready[1])",
        params="C: bf16[M].symmetric(), n: i32, ready: signal[ranks]",
    )
    sender, receiver = find(module, program.RoleOp)
    assert (sender.role.data, receiver.role.data) == (Role.Communicator, Role.Consumer)
    assert sender.sms is not None and sender.warps is not None
    assert (sender.sms.value.data, sender.warps.value.data, receiver.sms) == (16, 2, None)
    to_one, to_self = find(module, counters.SignalOp)
    assert isinstance(to_one.rank.owner, arith.ConstantOp)
    assert isinstance(to_self.rank.owner, coordinates.RankOp)
    assert isinstance(one(module, counters.SignalAllOp).amount.owner, arith.IndexCastOp)
    assert isinstance(one(module, counters.WaitOp).count.owner, arith.AddiOp)
    assert one(module, access.ReduceOp).result.type == TileType([128], f32)
    assert len(find(module, access.AllReduceOp)) == len(find(module, counters.BarrierOp)) == 1


# The schedule


def schedule_of(module: ModuleOp) -> str:
    return str(kernel(module).attributes["schedule"])


def test_schedule(tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text(
        "import pkc\nfrom pkc.language import *\n@pkc.kernel(stages=3, order='ring')\ndef f(v: f32[4]):\n"
        "    schedule(stages=2, overlap=intra_sm, deterministic=False)\n    v[0] = 1\n",
        encoding="utf-8",
    )
    module = load(path, schedule={"order": "natural", "comm_sms": "8"}).module
    assert schedule_of(module) == (
        '{overlap = "intra_sm", comm_sms = 8 : i64, stages = 3 : i64, order = "natural", deterministic = false}'
    )
    assert schedule_of(body("v[0] = 1")) == "{}"


def test_tiles_of_the_schedule() -> None:
    text = (
        "kernel f(A: bf16[M, K], S: f32[M]):\n    schedule(tile_M=32)\n    for m in tasks(blocks(M, 128)):\n"
        "        for k in blocks(K, 64):\n            a = A[m, k]\n"
        "    for i in tasks(blocks(M, 1)):\n        S[i] = 1\n"
    )
    module = build_module(parse_text(Source("t.pk", text)), options={"tile_K": "16"})
    verify(module)
    blocks = [str(op.results[0].type) for op in find(module, coordinates.BlockOp)]
    assert blocks == ["!pk.block<M by 32>", "!pk.block<K by 16>", "!pk.block<M by 1>"]
    assert schedule_of(module) == "{tile_K = 16 : i64, tile_M = 32 : i64}"
    other = build_module(parse_text(Source("t.pk", text)), options={"tile_M": "64"})
    assert schedule_of(other) == "{tile_M = 64 : i64}"


def test_blocks_of_a_constant_have_tiles_too() -> None:
    text = "kernel f(A: bf16[M, H], S: f32[M], H: const = 512):\n    for m in tasks(blocks(M, 128)):\n"
    text += "        s = zeros(f32, m)\n        for h in blocks(H, 128):\n            s += rowsum(A[m, h])\n"
    text += "        S[m] = s\n"
    module = build_module(parse_text(Source("t.pk", text)), options={"tile_H": "64"})
    assert "!pk.block<512 by 64>" in str(module) and "!pk.block<512 by 128>" not in str(module)
    with pytest.raises(PkcError, match="PK504"):  # nothing says that 512 is H
        build_module(parse_text(Source("t.pk", text.replace("blocks(H,", "blocks(512,"))), options={"tile_H": "64"})


# Locations


def test_every_operation_has_its_line() -> None:
    text = EXAMPLES[0].parent.joinpath("ring_attention.pk").read_text(encoding="utf-8")
    module = build(text)
    assert not [op for op in kernel(module).walk() if op.location is UNKNOWN_LOC]
    lines = text.split("\n")
    for kind, words in {
        access.StoreOp: "O[b, h, q] =", tile.MmaOp: "@", elementwise.Exp2Op: "exp2", reductions.RowMaxOp: "rowmax",
        program.TasksOp: "tasks", coordinates.RingPeerOp: "ring()", KernelOp: "kernel", elementwise.DivOp: "/",
    }.items():  # fmt: skip
        found = find(module, kind)
        assert found
        for op in found:
            assert isinstance(op.location, FileLineColLoc)
            assert words in lines[op.location.line.data - 1]
    parameter = kernel(module).body.block.args[2].location
    assert isinstance(parameter, FileLineColLoc)
    assert lines[parameter.line.data - 1][parameter.column.data - 1 :].startswith("V:")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_keep_locations_through_the_passes(path: Path) -> None:
    unknown = [op for op in load(path).module.walk() if op.location is UNKNOWN_LOC and not isinstance(op, ModuleOp)]
    assert not unknown


# Both spellings


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_both_spellings_give_the_same_ir(path: Path) -> None:
    assert print_ir(load(path).module) == print_ir(load(path.with_suffix(".py")).module)


def test_every_example_has_both_spellings() -> None:
    assert {path.with_suffix(".py") for path in EXAMPLES} == set(EXAMPLES[0].parent.glob("*.py"))


# Several kernels and several mistakes


def test_kernels_of_a_file() -> None:
    text = "kernel f(v: f32[M]):\n    v[0] = 1\nkernel g(v: f32[M]):\n    v[0] = x\n"
    parsed = parse_text(Source("t.pk", text))
    assert [op.sym_name.data for op in find(build_module(parsed, kernel="f"), KernelOp)] == ["f"]
    with pytest.raises(PkcError, match="PK201"):
        build_module(parsed)


def test_one_mistake_is_reported_once_and_others_too() -> None:
    with pytest.raises(PkcError) as caught:
        in_tasks(
            "x = y", "z = x + 1", "v[m] = z", "v[m] = w", "for k in blocks(K, 64):", "    x += z", "c[m] = X[m, n]"
        )
    assert [(d.code, d.span.text) for d in caught.value.diagnostics] == [
        ("PK201", "y"),
        ("PK201", "w"),
        ("PK328", "X[m, n]"),
    ]


def test_findings_are_limited() -> None:
    with pytest.raises(PkcError) as caught:
        body(*["v[0] = y"] * 50)
    assert len(caught.value.diagnostics) == 20


def test_compared_tiles_are_boolean() -> None:
    assert one(in_tasks("x = X[m, n] >= v[m]"), elementwise.CompareOp).result.type == TileType([128, 64], i1)
