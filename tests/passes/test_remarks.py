"""What each pass that plans or optimises says when it leaves something as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects import scf

from pkc.cli.opt import parse_ir
from pkc.diagnostics import PkcError
from pkc.driver.compiler import compile_program, load
from pkc.frontend.parse import parse_text
from pkc.location import NOWHERE, Source
from pkc.passes import INSTRUMENTS, PASSES
from pkc.passes.machine.lowering.flat import loads_ahead
from pkc.passes.run import run_pipeline
from pkc.passes.tile.split_loops import SplitLoops
from pkc.remarks import Remark, collecting, missed

EXAMPLES = Path(__file__).parents[2] / "examples"

SUM = """
kernel k(A: bf16[M, N], C: bf16[M, N].{layout}):
    for m, n in tasks(blocks(M, {rows}), blocks(N, 64)):
        C[m, n] += A[m, n]
"""
AFTER = """
kernel k(A: bf16[M, N], C: bf16[M, N].shard(0), D: bf16[M, N], F: f32[M, N].shard(0)):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        C[m, n] += A[m, n]
{phase}
"""
MATMUL = """
kernel k(A: bf16[M, K], B: bf16[K, N], C: f32[M, N]):
    for m, n in tasks(blocks(M, {rows}), blocks(N, 64)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            {body}
        C[m, n] = acc
"""

COLUMNS = """
kernel k(X: bf16[T, K], Y: bf16[T, N], w: f32[N], C: f32[K, N], S: f32[N]):
    for k, n in tasks(blocks(K, 64), blocks(N, {columns})):
        acc = zeros(f32, k, n); s = zeros(f32, n)
        for t in blocks(T, 64):
            y = Y[t, n]
            acc += X[t, k].T @ y
            {body}
        C[k, n] = acc
        if start(k) == 0:
            S[n] = {result}
"""
_ACROSS = "pk.row_sum: each iteration reads columns of the tile element by element: "


def _columns(body: str, reason: str, result: str = "s") -> tuple[str, str, int, str]:
    return COLUMNS.format(columns=64, body=body, result=result), "", 7, _ACROSS + reason


CASES: dict[str, list[tuple[str, str, int, str]]] = {
    "pk-fold-columns": [
        _columns("s = s * 0.5 + rowsum(y.T)", "the result is used in the iteration that computes it"),
        _columns("s += rowsum((X[t, k].T @ y).T)", "it is computed before it is transposed"),
        _columns("s += rowsum(y.T * w[n])", "it is computed with what has one number for each row or column"),
        _columns("f = cast(y.T, f32); acc += rowsum(f * f); s += rowsum(f)", "something else is computed of it too"),
        _columns("s += rowsum(y.T)", "the result is used beside other tiles", "rowmax(acc.T * s)"),
        (
            COLUMNS.format(columns=64, body="if start(k) == 0:\n                s += rowsum(y.T)", result="s"),
            "",
            8,
            _ACROSS + "it stands in a branch of the loop; put the branch around what uses the result behind the loop",
        ),
    ],
    "pk-fuse-chains": [
        (
            """
kernel k(A: bf16[M, K], B: bf16[K, N], C: f32[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 128)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc = acc + (A[m, k] @ B[k, n]) * 0.5
        C[m, n] = acc
""",
            "consumers=1",
            5,
            "pk.mma: tensor cores are idle while its product is used: there is one warpgroup",
        ),
    ],
    "pk-give-registers": [
        (
            (EXAMPLES / "ring_attention_dkdv.pk").read_text(encoding="utf-8"),
            "",
            13,
            "pk.role: it has 40 registers instead of 56, and would spill others: the consumer's tiles need 232",
        ),
    ],
    "pk-stage-rows": [
        (
            """
kernel k(X: f32[M, N].shard(0), T: i32[L, P], Y: f32[L, P, N]):
    for l, p in tasks(L, blocks(P, 32)):
        for n in blocks(N, 64):
            Y[l, p, n] = gather(X, T[l, p], n)
""",
            "overlap=inter_sm",
            4,
            "pk.gather: a row of `X` crosses the link for each table: each comes before it is used;"
            " `overlap=copy_engine` fetches every row once, before all tasks",
        ),
    ],
    "pk-fuse-phases": [
        (
            AFTER.format(phase="    for m, n in tasks(blocks(M, 16), blocks(N, 64)):\n        D[m, n] = C[m, n]"),
            "",
            4,
            "pk.tasks: this phase begins when all of `C` is added up: the phase does not go once through all blocks of"
            " this rank's rows",
        ),
        (
            AFTER.format(
                phase="    for m, n in tasks(blocks(M, 16, of=rank), blocks(N, 64)):\n"
                "        F[m, n] = C[m, n] + rowsum(cast(C[m, n], f32))"
            ),
            "",
            4,
            "pk.tasks: this phase begins when all of `C` is added up: a row of the sum is complete later than a tile of"
            " it",
        ),
        (
            AFTER.format(
                phase="    for m, n in tasks(blocks(M, 16, of=rank), blocks(N, 64)):\n        A[m, n] = C[m, n]"
            ),
            "",
            4,
            "pk.tasks: this phase begins when all of `C` is added up: it writes `A`, which is used elsewhere in the"
            " kernel",
        ),
    ],
    "pk-collect-sums": [
        (
            """
kernel k(X: f32[M, N], S: bf16[N].replicate()):
    for m, n in tasks(blocks(M, 16), blocks(N, 64)):
        S[n] += rowsum(X[m, n].T)
""",
            "",
            3,
            "pk.accumulate: each task stores its share of `S`, 1024 x N x f32 of each rank in all, which a phase adds"
            " up in order: `deterministic=False` adds them where they live",
        ),
    ],
    "pk-load-windows": [
        (
            """
kernel k(X: bf16[M, 100], Y: bf16[M, 100]):
    for m, n in tasks(blocks(M, 16), blocks(100, 64)):
        Y[m, n] = X[m, n - 1]
""",
            "",
            3,
            "pk.gather: what is loaded of `X` is no part of a tile that TMA loads: rows of the array begin at no"
            " multiple of 16 bytes, and TMA moves such alone",
        ),
        (
            """
kernel k(X: bf16[M, N], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        Y[m, n] = X[m, n - 1]
""",
            "",
            3,
            "pk.gather: what is loaded of `X` is no part of a tile that TMA loads: TMA would bring more than a fourth"
            " too much",
        ),
        (
            """
kernel k(X: bf16[M, N], s: i32[1], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 64)):
        Y[m, n] = cast(X[m, n - s[0]], f32)
""",
            "",
            3,
            "pk.gather: what is loaded of `X` is no part of a tile that TMA loads: their blocks may begin where no"
            " multiple of 16 bytes is, which TMA needs",
        ),
        (
            """
kernel k(X: bf16[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 64)):
        Y[m, n] = cast(X[m, n], f32) + cast(X[m + 15, n + 60], f32)
""",
            "",
            3,
            "pk.load: what is loaded of `X` is no part of a tile that TMA loads: a tile with all of them is larger than"
            " theirs are together",
        ),
        (
            """
kernel k(X: f32[M, N], Y: f32[M, N]):
    for m, n in tasks(M, blocks(N, 1024)):
        Y[m, n] = exp(X[m, n - 1])
""",
            "",
            3,
            "pk.gather: what is loaded of `X` is no part of a tile that TMA loads: long rows move as they lie in"
            " memory, where nothing brings zeros for what lies outside",
        ),
    ],
    "pk-shift-blocks": [
        (
            """
kernel k(X: bf16[M, L], Y: bf16[M, N].shard(0)):
    for m, n in tasks(blocks(M, 16, of=rank), blocks(N, 64)):
        Y[m, n] = X[m + 1, n + 0]
""",
            "",
            3,
            "pk.gather: a shifted block goes by a table, not as other blocks do: it ends where a shard does",
        ),
        (
            """
kernel k(X: bf16[M, 64].shard(0), Y: bf16[M, 64]):
    for m in tasks(blocks(M, 16)):
        Y[m, :] = X[m + 1, :]
""",
            "",
            3,
            "pk.gather: a shifted block goes by a table, not as other blocks do: its rows may lie on several ranks",
        ),
        (
            """
kernel k(X: bf16[M, L], r: i32[M], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 64)):
        Y[m, n] = X[r[m], n + N]
""",
            "",
            3,
            "pk.gather: a shifted block goes by a table, not as other blocks do: another index is a table",
        ),
        (
            """
kernel k(X: f32[M, N], Y: f32[M, L]):
    for m, n in tasks(blocks(M, 16), blocks(N, 64)):
        store_add(Y[m, n + N], X[m, n])
""",
            "",
            3,
            "pk.scatter_store_add: a shifted block goes by a table, not as other blocks do: "
            "what is added goes element by element",
        ),
        (
            """
kernel k(X: f32[M], Y: f32[L, L]):
    for m in tasks(blocks(M, 16)):
        Y[m + 1, m + 2] = X[m]
""",
            "",
            3,
            "pk.scatter_store: a shifted block goes by a table, not as other blocks do: "
            "another index goes along its axis",
        ),
        (
            """
kernel k(X: f16[M, 128], Y: f16[M, 64]):
    for m in tasks(blocks(M, 16)):
        Y[m, :] = X[m, positions(64) + 64]
""",
            "",
            3,
            "pk.gather: a shifted block goes by a table, not as other blocks do: "
            "`positions(n)` is to be inside of the array, and only a block in arithmetic may go on past the end",
        ),
    ],
    "pk-coarsen-tasks": [
        (
            """
kernel k(A: bf16[M, 64], B: bf16[64, N], C: f32[M, N], S: f32[N].replicate()):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        acc = A[m, :] @ B[:, n]
        C[m, n] = acc
        S[n] += rowsum(acc.T)
""",
            "",
            2,
            "pk.tasks: each task contributes by itself: it has an MMA",
        ),
        (
            """
kernel k(X: bf16[M, 8192], S: f32[8192].replicate(), T: f32[8192].replicate(), U: f32[8192].replicate()):
    for m in tasks(M):
        x = cast(X[m, :], f32)
        S[:] += x
        T[:] += x * x
        U[:] += exp(x)
""",
            "consumers=1",
            2,
            "pk.tasks: each task contributes by itself: registers have no room for sums of its shares",
        ),
        (
            """
kernel k(X: f32[M, N], S: f32[N].replicate()):
    for m in tasks(blocks(M, 64)):
        for n in blocks(N, 64):
            S[n] += rowsum(X[m, n].T)
""",
            "",
            2,
            "pk.tasks: each task contributes by itself: to other tiles as it goes on, or in some cases only",
        ),
        (
            """
kernel k(X: f32[M, N], r: i32[M], S: f32[L, N].replicate(), T: f32[N].replicate()):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        S[r[m], n] += X[m, n]
        T[n] += rowsum(X[m, n].T)
""",
            "",
            2,
            "pk.tasks: each task contributes by itself: rows that a table names have places by its indices",
        ),
        (
            """
kernel k(X: f32[M, 64], S: f32[64].replicate()):
    for m in tasks(blocks(M, 16)):
        x = X[m, :]
        S[:] += rowsum(x.T)
        X[m, :] = x * 2.0
""",
            "",
            2,
            "pk.tasks: each task contributes by itself: it writes what it reads, in an order that tasks keep",
        ),
        (
            """
kernel k(X: bf16[M, N].shard(0), S: f32[N].replicate()):
    for m, n in tasks(blocks(M, 32), blocks(N, 64)):
        S[n] += rowsum(cast(X[m, n], f32).T)
""",
            "overlap=inter_sm,transfer=push",
            2,
            "pk.tasks: each task contributes by itself: `transfer` of the schedule is for tasks that go through shards",
        ),
    ],
    "pk-drop-prints": [
        (
            SUM.format(layout="shard(0)", rows=64) + "        print(start(m))\n",
            "",
            4,
            "pk.print: `print(start(m))` is dropped: values are printed at the tile level",
        ),
    ],
    "pk-spread-roles": [
        (
            """
kernel k(X: f32[M, N], Y: f32[M, N]):
    with role(consumer, warps=4):
        for m, n in tasks(blocks(M, 16), blocks(N, 16)):
            Y[m, n] = X[m, n]
""",
            "",
            2,
            "pk.role: `warps=4` changes nothing: pkc splits the role, and plans the warps of a loader, a consumer and"
            " a storer",
        )
    ],
    "pk-delay-signals": [
        (
            """
kernel k(X: f32[M, N], Y: f32[M, N].symmetric(), go: signal[ranks], done: signal[1]):
    with role(communicator):
        for m, n in tasks(blocks(M, 16, of=rank), blocks(N, 16)):
            t = X[m, n] + 1.0
            for r in ring():
                wait(go[r], 1)
                store(Y.at(r)[m, n], t)
                signal(done.at(r)[0], 1)
    with role(loader):
        for r in ring():
            signal(go.at(r)[rank], 1)
""",
            "",
            5,
            "scf.for: a signal in this loop stays between stores of a tile, because the loop does more",
        )
    ],
    "pk-plan-overlap": [
        (
            """
kernel k(X: f32[M, 16], S: f32[1].replicate()):
    for m in tasks(blocks(M, 16)):
        S[0] += rowsum(rowsum(X[m, :]))
""",
            "all_reduce=one_shot",
            1,
            "pk.kernel: `all_reduce=one_shot` changes nothing: no owner sends a sum to all ranks",
        ),
        (
            """
kernel k(X: f32[M, N].shard(0), Y: f32[L, N]):
    for l, n in tasks(L, blocks(N, 16)):
        acc = zeros(f32, n)
        i = 0
        for k in range(3):
            i = (i + 2) % 3
            acc = acc + X[i, n]
        Y[l, n] = acc
""",
            "",
            7,
            "pk.load: `X` is not fetched ahead, and each task along l fetches it again: its address is known"
            " only where it is used",
        ),
        (
            SUM.format(layout="shard(0)", rows=64),
            "overlap=inter_sm",
            3,
            "pk.accumulate: `overlap=inter_sm` changes nothing for this sum of `C`: one aligned write for each"
            " tile: the SM that computed it sends it",
        ),
        (
            SUM.format(layout="shard(0)", rows=64),
            "overlap=none,deterministic=False",
            3,
            "pk.accumulate: `overlap=none` changes nothing for this sum of `C`: `deterministic=False`: each"
            " contribution is added where the array lives, by the SM that computed it",
        ),
        (
            MATMUL.format(rows=64, body="acc += A[m, k] @ B[k, n]"),
            "overlap=inter_sm",
            1,
            "pk.kernel: `overlap=inter_sm` changes nothing: nothing goes from rank to rank",
        ),
        (
            SUM.format(layout="shard(0)", rows=64),
            "transfer=push",
            1,
            "pk.kernel: `transfer=push` changes nothing: no operand comes from other ranks",
        ),
    ],
    "pk-straddle-shards": [
        (
            MATMUL.format(rows=64, body="acc += A[m, k] @ B[k, n]"),
            "straddle=true",
            1,
            "pk.kernel: `straddle=true` changes nothing: no tasks go through all blocks of a dimension that an"
            " array shards",
        ),
        (
            """
kernel k(C: i32[M].shard(0, zigzag=True)):
    for m in tasks(blocks(M, 64)):
        C[m] += positions(m)
""",
            "straddle=true",
            2,
            "pk.tasks: blocks of `M` end where the ranks' shards do: in zigzag order, blocks have positions within one"
            " shard",
        ),
        (
            """
kernel k(X: f32[M], C: f32[M].replicate()):
    for m in tasks(blocks(M, 64)):
        C[m] += X[m] - rowmax(X[m])
""",
            "",
            3,
            "pk.accumulate: tiles of `C` go to several owners: results depend on where blocks of `M` end",
        ),
    ],
    "pk-plan-packets": [
        (
            SUM.format(layout="shard(0)", rows=64).replace("bf16", "f32"),
            "packets=true",
            3,
            "pk.accumulate: `C` does not travel in packets: its elements have not 2 bytes",
        ),
        (
            SUM.format(layout="shard(0)", rows=64),
            "packets=true,straddle=true",
            3,
            "pk.accumulate: `C` does not travel in packets: a block that straddles shards is announced to several"
            " owners",
        ),
        (
            SUM.format(layout="shard(0)", rows=64),
            "packets=true,deterministic=False",
            3,
            "pk.accumulate: `C` does not travel in packets: each contribution is added where the array lives",
        ),
        (
            MATMUL.format(rows=64, body="acc += A[m, k] @ B[k, n]"),
            "packets=true",
            1,
            "pk.kernel: `packets=true` changes nothing: nothing is sent to other ranks",
        ),
    ],
    "pk-stage-sums": [
        (
            """
kernel k(X: f32[M, 64], S: f32[64].replicate()):
    for m in tasks(blocks(M, 16)):
        S[:] += rowsum(X[m, :].T)
""",
            "",
            3,
            "pk.accumulate: every rank gets all contributions and adds them up, with no owner: no index of `S` goes"
            " through blocks of a dimension that is no constant",
        ),
        (
            SUM.format(layout="shard(0)", rows=48),
            "",
            3,
            "pk.accumulate: one task adds up all 48 rows of a tile of `C`: these are not a multiple of 32",
        ),
        (
            SUM.format(layout="shard(1)", rows=64),
            "",
            3,
            "pk.accumulate: one task adds up all 64 rows of a tile of `C`: the sharded dimension is"
            " not that of its rows",
        ),
    ],
    "pk-stage-remote-stores": [
        (
            """
kernel k(A: bf16[M, D], C: bf16[M, D].replicate(), D: const = 64):
    for m in tasks(blocks(M, 64, of=rank)):
        C[m] = A[m]
""",
            "overlap=copy_engine",
            3,
            "pk.store: a copy for each tile of `C`, not for a row: its last index is no block that a task"
            " index numbers",
        )
    ],
    "pk-begin-together": [
        (
            """
kernel k(X: bf16[T, H].shard(0), W: bf16[E, H, N], rows: i32[E, P], n: i32[E], Y: f32[S, E, P, N]):
    for s, e in tasks(S, E):
        for p, c in tasks(blocks(P, 64, stop=n[e]), blocks(N, 64)):
            acc = zeros(f32, p, c)
            for h in blocks(H, 64):
                acc += gather(X, rows[e, p], h) @ W[e, h, c]
            Y[s, e, p, c] = acc
""",
            "overlap=inter_sm",
            2,
            "pk.tasks: each task begins when its rows have come: lists have 2 indices, and it is not known which are"
            " the first ones",
        ),
    ],
    "pk-order-arrivals": [
        (
            """
kernel k(X: bf16[T, H].shard(0), W: bf16[H, N], rows: i32[P], Y: f32[P, N]):
    for p, n in tasks(blocks(P, 64), blocks(N, 64)):
        acc = zeros(f32, p, n)
        for h in blocks(H, 64):
            acc += gather(X, rows[p], h) @ W[h, n]
        Y[p, n] = acc
""",
            "overlap=copy_engine",
            2,
            "pk.tasks: all tasks wait for the rows of other ranks: their tasks are no lists",
        ),
    ],
    "pk-order-tasks": [
        (
            SUM.format(layout="shard(0)", rows=64),
            "straddle=true",
            1,
            "pk.kernel: tasks come in their natural order, not `local_last`: none of their indices goes through"
            " all shards of a dimension, one after the other",
        ),
    ],
    "pk-assign-roles": [
        (
            """
kernel k(X: f32[M, N], T: f32[L, P], Y: f32[L, P, N]):
    for l, p, n in tasks(L, blocks(P, 8), blocks(N, 16)):
        rows = cast(T[l, p], i32)
        Y[l, p, n] = gather(X, rows, n) * cast(rows, f32)
""",
            "",
            3,
            "pk.cast: consumers compute this table and pass it on: it says where an access goes, and is used"
            " for something else too",
        )
    ],
    "pk-split-loads": [
        (
            """
kernel k(X: f32[M, N].symmetric(), Y: f32[M, N]):
    with role(communicator):
        for m, n in tasks(blocks(M, 16), blocks(N, 16)):
            Y[m, n] = reduce(X[m, n])
""",
            "separate_loader=true",
            1,
            "pk.kernel: `separate_loader=true` changes nothing: no role loads for others",
        ),
        (
            MATMUL.format(rows=64, body="acc += A[m, k] @ B[k, n]"),
            "separate_loader=true",
            2,
            "pk.role: `separate_loader=true` changes nothing: no load waits for another rank",
        ),
    ],
    "pk-plan-warps": [
        (
            MATMUL.format(rows=16, body="acc += A[m, k] @ B[k, n]"),
            "",
            5,
            "pk.mma: 48 of 64 rows are computed for nothing: an MMA computes 64; make the operand with more rows the"
            " left one",
        )
    ],
    "pk-plan-stages": [
        (
            MATMUL.format(rows=128, body="acc += A[m, k] @ B[k, n]").replace("(N, 64)", "(N, 256)"),
            "",
            4,
            "pk.channel: what goes to `C` has one stage: the next task waits for this one; shared memory has no room"
            " for 131088 bytes more",
        )
    ],
    "pk-plan-transfers": [
        (
            """
kernel k(A: f32[M, N], C: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 2)):
        C[m, n] = A[m, n]
""",
            "",
            3,
            "pk.load: `A` is not loaded by TMA: rows of 8 bytes: TMA moves multiples of 16",
        ),
        (
            """
kernel k(count: i32[E], A: f32[E, M, N], C: f32[E, M]):
    for e, m in tasks(E, blocks(M, 64)):
        acc = zeros(f32, m)
        for n in blocks(N, 64, stop=count[e]):
            acc = acc + rowsum(A[e, m, n])
        C[e, m] = acc
""",
            "",
            5,
            "pk.load: threads load the last block of `A`, which may end inside of the array, where TMA does not stop",
        ),
    ],
    "pk-reuse-memory": [
        (
            """
kernel k(X: bf16[M, N], A: bf16[M, K], B: bf16[K, N], Y: bf16[M, N], C: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        Y[m, n] = X[m, n]
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] = acc
""",
            "",
            1,
            "pk.kernel: channels of different phases divide shared memory among them: a phase uses nothing that the one"
            " before writes, so that they run at the same time",
        ),
    ],
    "pk-plan-mma": [
        (
            MATMUL.format(rows=64, body="acc = acc * 0.5 + A[m, k] @ B[k, n]"),
            "",
            5,
            "pk.mma: each MMA is waited for: what `acc` adds to is computed in the same iteration",
        )
    ],
}
"""By pass: a program, its schedule, the line of the remark, and the remark."""

ELSEWHERE = {
    "pk-unroll-phases": "unroll_phases.mlir",
    "pk-guard-tasks": "guard_tasks.mlir",
    "pk-join-tasks": "join_tasks.mlir",
    "pk-lift-sums": "lift_sums.mlir",
    "pk-start-at-zero": "start_at_zero.mlir",
    "pk-split-loops": "test_a_loop_that_is_split_already",
    "pk-order-scatters": "PK510-scatter.pk",
    "pk-split-blocks": "split_blocks.mlir",
    "pk-split-rows": "split_rows.mlir",
    "pk-load-quotients": "load_quotients.mlir",
    "pk-join-dimensions": "join_dimensions.mlir",
    "pk-unroll-taps": "unroll_taps.mlir",
    "pk-hoist-loads": "hoist_loads.mlir",
    "pk-split-copies": "test_remarks_of_examples",
    "pk-piece-gathers": "piece_gathers.mlir",
    "pk-wrap-statements": "test_wrap_statements.py",
    "pk-pipeline-mma": "pipeline_mma.mlir",
    "pk-overlap-mma": "overlap_mma.mlir",
    "pk-swap-operands": "swap_operands.mlir",
    "pk-defer-signals": "defer_signals.mlir",
    "pk-share-sums": "share_sums.mlir",
    "pk-split-edges": "split_edges.mlir",
    "pk-guard-values": "guard_values.mlir",
    "pk-skip-blocks": "skip_blocks.mlir",
    "pk-lower-tiles": "lower_tiles.mlir",
    "pk-balance-tasks": "balance_tasks.mlir",
    "pk-plan-cache": "plan_cache.mlir",
    "pk-plan-queue": "plan_queue.mlir",
    "pk-plan-clusters": "test_plan_clusters.py",
    "pk-load-once": "load_once.mlir",
    "pk-part-axes": "part_axes.mlir",
    "pk-pad-axes": "pad_axes.mlir",
    "pk-share-stages": "share_stages.mlir",
    "pk-plan-epilogues": "plan_epilogues.mlir",
    "pk-piece-tiles": "piece_tiles.mlir",
    "pk-align-rows": "align_rows.mlir",
    "pk-overlap-epilogues": "overlap_epilogues.mlir",
}
"""Where the remarks of other passes are tested."""

NOTHING = {
    "pk-repeat-tables": "copies every table that something else needs too",
    "pk-look-ahead": "where an MMA is in flight, or none is alone in its loop, a look costs nothing",
    "pk-attach-target": "names the target",
    "pk-plan-layouts": "leaves a swizzle to what is read by columns, or may come from other ranks",
    "pk-expand-reduce": "writes out every sum",
    "pk-expand-barriers": "writes out every barrier, or refuses it",
    "pk-stage-packets": "stages what pk-plan-packets, which says why, has planned",
    "pk-zero-sums": "adds what pk-order-scatters, which says why, has left",
    "pk-order-phases": "adds the waits that the order of phases needs, and no others",
    "pk-spread-rows": "spreads what pk-plan-clusters, which says why, has planned",
    "pk-plan-memory": "places what is planned",
    "pk-plan-barriers": "numbers what is planned",
    "pk-check-indices": "marks every access of which memory decides an index",
    "pk-split-roles": "obeys roles",
    "pk-keep-tiles": "copies every tile that outlives what loads it",
    "pk-stage-axes": "stages every tile that lies along rows where its elements are needed along columns",
    "pk-stage-operands": "stages every operand that MMAs cannot read in registers",
    "pk-guard-launches": "adds what launches need",
    "pk-clip-operands": "threads load the last block of what it leaves, as pk-plan-transfers says",
    "pk-plan-boxes": "marks all rows that surely lie so; of others pk-plan-transfers says how they move",
    "pk-plan-padding": "marks every tile of which nothing reads the padding",
    "pk-split-stores": "obeys transfers",
    "pk-insert-fences": "adds the fences that the order of memory needs",
    "pk-merge-channels": "merges all channels of one kind, of which one comes behind the other in both roles",
    "pk-release-shared": "obeys what stages share",
    "pk-recompute-integers": "computes all that comes from dimensions again, where it is needed",
    "pk-rebase-stages": "finds all stages again in every innermost loop",
    "pk-restart-counters": "adds what copy engines need",
    "pk-guard-waits": "guards every wait for a counter",
    "pk-canonicalize": "applies every pattern that matches",
    "pk-simplify-arithmetic": "applies both patterns wherever they match",
    "pk-drop-clips": "drops all that are known to change nothing",
    "pk-store-own-sums": "stores all that each rank alone adds to its shard",
    "pk-cse": "merges all that is equal",
    "pk-dce": "drops all that is unused",
}
"""Passes that leave nothing undone that they promise."""

FETCHING: set[str] = {"pk-stage-remote-reads", "pk-plan-fetch", "pk-expand-fetch"}
CHECKS = {"pk-check-program", "pk-check-roles", "pk-check-lowering", "pk-check-machine"}


def test_every_pass_has_remarks_or_a_reason() -> None:
    instruments = {step.name for steps in INSTRUMENTS.values() for step in steps}
    known = [set(CASES), set(ELSEWHERE), set(NOTHING), FETCHING, CHECKS, instruments]
    assert set(PASSES) == set().union(*known)
    assert sum(map(len, known)) == len(PASSES)


@pytest.mark.parametrize(
    ("step", "text", "schedule", "line", "remark"),
    [(step, *case) for step, cases in CASES.items() for case in cases],
    ids=lambda value: value if str(value).startswith("pk-") else "",
)
def test_remark(step: str, text: str, schedule: str, line: int, remark: str) -> None:
    program = parse_text(Source("k.pk", f"{text.strip()}\n").remember())
    options = dict(setting.split("=") for setting in schedule.split(",") if setting)
    found = [str(one) for one in compile_program(program, schedule=options, level="roles").remarks]
    assert f"k.pk:{line}: {remark} [{step}]" in found


@pytest.mark.parametrize(
    ("index", "reason"),
    [
        ("n // 7", "`n // 7` is computed for each position, and threads load what it names: TMA copies boxes"),
        ("(2 * n + 1) % 40", "`(2 * n + 1) % 40` is computed for each position, and threads load what it names:"),
        ("n ^ 1", "`n ^ 1` is computed for each position,"),
        ("40 - n * (n + 1)", "`40 - (n * (n + 1))` is computed for each position,"),
        ("rows[n]", "rows that the table leaves out are zero, which no copy writes"),
        ("rows[n] // 2", "rows that the table leaves out are zero, which no copy writes"),
    ],
)
def test_what_names_rows_that_threads_load(index: str, reason: str) -> None:
    text = f"""\
kernel k(X: bf16[M, 64], rows: i32[N], Y: bf16[M, N], N: const = 64):
    for m in tasks(blocks(M, 64)):
        for n in blocks(N, 64):
            Y[m, n] = X[m, {index}]
"""
    remarks = compile_program(parse_text(Source("k.pk", text)), level="roles").remarks
    (found,) = {one.reason for one in remarks if one.operation == "pk.gather" and one.step == "pk-plan-transfers"}
    assert found.startswith(f"rows of `X` do not move by TMA: {reason}")


@pytest.mark.parametrize("row", [0, 1, 12, 16, 64])
def test_additions_in_no_order_are_advised_where_they_compile(row: int) -> None:
    length, share = (row, "total[:] += rowsum(X[n, :].T)") if row else (1, "total[0] += rowsum(X[n, 0])")
    text = f"kernel k(X: f32[N, {length}], total: f32[{length}].replicate()):\n"
    program = parse_text(Source("k.pk", f"{text}    for n in tasks(blocks(N, 64)):\n        {share}\n"))
    remarks = [one.reason for one in compile_program(program).remarks if one.step == "pk-collect-sums"]
    try:
        compile_program(program, schedule={"deterministic": "false"}, level="machine")
        compiles = True
    except PkcError:
        compiles = False
    assert [reason.endswith("`deterministic=False` adds them where they live") for reason in remarks] == [compiles]


MASKED = """
kernel k(A: bf16[M, K], B: bf16[N, K], C: f32[M]):
    for m in tasks(blocks(M, 128)):
        total = zeros(f32, m)
        for n in blocks(N, 128):
            acc = zeros(f32, m, n)
            for k in blocks(K, 64):
                acc += {product}
            total += rowsum(where(positions(n) < 100, acc, 0.0))
        C[m] = total
"""


@pytest.mark.parametrize(
    ("product", "remarks"),
    [
        (
            "A[m, k] @ B[n, k].T",
            {
                "whole blocks are masked element by element like others: the MMAs of its loop are in another loop"
                " inside of it, beside which it takes little"
            },
        ),
        ("cast(rowsum(A[m, k]), f32)", set()),
    ],
)
def test_masks_of_a_kernel_without_mmas_are_no_work(product: str, remarks: set[str]) -> None:
    compiled = compile_program(parse_text(Source("k.pk", MASKED.format(product=product).lstrip())))
    assert {one.reason for one in compiled.remarks if one.step == "pk-split-edges"} == remarks


def test_a_loop_that_is_split_already() -> None:
    compiled = load(EXAMPLES / "gemm.pk", schedule={"split_K": "4"})
    with collecting() as remarks:
        run_pipeline(compiled.module, [SplitLoops()])
    assert [(remark.operation, remark.reason) for remark in remarks] == [
        ("scf.for", "`split_K` leaves this loop as it is: tasks share its iterations already")
    ]


def test_remarks_of_examples() -> None:
    path = EXAMPLES / "ag_gemm.pk"
    remarks = [str(one) for one in load(path, level="roles").remarks]
    reason = "it has 16384 bytes, and copies beside tasks have 16384; `comm_sms` leaves room for more"
    found = f"{path}:6: pk.load: one tile at a time is in flight in each SM: {reason} [pk-split-copies]"
    assert found in remarks
    separate = load(path, schedule={"overlap": "inter_sm", "comm_sms": "8"}, level="roles").remarks
    assert "pk-split-copies" not in {remark.step for remark in separate}


@pytest.mark.parametrize(("at", "reason"), [("%i", ""), ("%last", "its address is computed in the iteration before")])
def test_loads_that_wait_for_each_other(at: str, reason: str) -> None:
    module = parse_ir(
        f"""
pk.kernel @k(%S: !pk.private<[M], f32> {{pk.name = "S"}}) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end = scf.for %i = %zero to %one step %one iter_args(%last = %zero) -> (index) {{
    %m = pk.block[{at}] : !pk.block<M by 16>
    %s = pk.load %S[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
    %next = arith.addi %last, %one : index
    scf.yield %next : index
  }}
}}
""",
        "loop.mlir",
    )
    (loop,) = (op for op in module.walk() if isinstance(op, scf.ForOp))
    with collecting() as remarks:
        ahead = loads_ahead(loop.body.block)
    assert [op.name for op in ahead] == ([] if reason else ["pk.block", "pk.load"])
    expected = [f"each iteration waits for its own load: {reason}"] if reason else []
    assert [remark.reason for remark in remarks] == expected


def test_a_remark_is_recorded_once_and_by_whoever_asks() -> None:
    kernel = load(EXAMPLES / "gemm.pk").kernel
    missed("pk-cse", kernel, "nobody asks")
    with collecting() as outer:
        missed("pk-cse", kernel, "first")
        with collecting() as inner:
            missed("pk-cse", kernel, "second")
        missed("pk-cse", kernel, "first")
    assert [remark.reason for remark in outer] == ["first"]
    assert [remark.reason for remark in inner] == ["second"]
    assert str(Remark("pk-cse", "pk.load", "a reason", NOWHERE)) == "pk.load: a reason [pk-cse]"
