"""What the help of a refusal says is done to the program, mechanically, and the program compiles.

`tried` settings are those that a diagnostic prints as `it compiles with`; other helps name settings or keys of the
schedule, or a text of the program and what to write instead, of which a part stands in the help.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field

import pytest

from pkc.diagnostics import PkcError
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes.machine.lower_tiles import LowerTiles
from tests.errors.golden import HERE
from tests.sweeps import sweep

TRIED = re.compile(r"it compiles with `--schedule (.*)`")


@dataclass(frozen=True)
class Followed:
    """What is done: keys of the schedule that go, settings that come, texts that are replaced."""

    without: tuple[str, ...] = ()
    settings: dict[str, str] = field(default_factory=dict[str, str])
    edits: tuple[tuple[str, str], ...] = ()
    said: str = ""
    """A part of the help."""


_ANYHOW = Followed(settings={"deterministic": "false"}, said="deterministic=False")
_OVERLAP = Followed(without=("overlap",), said="leave `overlap` out")
_PUSH = Followed(without=("transfer", "overlap"), said="without `transfer=push`")
_WHOLE = Followed(without=("split_M",), edits=(("    schedule(split_N=4)\n", ""),), said="can be divided")
_STRADDLE = Followed(without=("straddle",), said="leave `straddle` out")

FOLLOWED: dict[str, Followed] = {
    "PK110-bits": Followed(edits=(("0x85ebca6b", "-2048144789"),), said="`-2048144789` has the same 32 bits"),
    **dict.fromkeys(("PK430-copy-engine-loop", "PK430-copy-engine-phases", "PK430-copy-engine-table"), _OVERLAP),
    **dict.fromkeys(("PK432-branch", "PK432-carried"), Followed(settings={"overlap": "intra_sm"}, said="intra_sm")),
    "PK445-element": Followed(
        edits=(("            signal(there.at(rank)[start(m) // 8], 0 - 1)\n", ""),), said="take nothing off"
    ),
    "PK445-wait": Followed(
        edits=(("wait(full[0], 1)\n            signal(full.at(rank)[0], 0 - 1)", "wait(full[0], i + 1)"),),
        said="wait for more each time",
    ),
    "PK431-loop": Followed(edits=(("range(R)", "tasks(R)"),), said="`tasks(...)` in place of the loop"),
    "PK431-branch": Followed(
        edits=(
            ("    if n[0] > 0:\n", ""),
            ("        first = X[0]\n        for m", "    first = X[0]\n    for m"),
            ("            Y[m]", "        if n[0] > 0:\n            Y[m]"),
        ),
        said="put the `if` into the tasks",
    ),
    "PK433-owners": _ANYHOW,
    "PK433-heads": _ANYHOW,
    "PK433-shares": Followed(
        edits=(
            ("for m, n in tasks(blocks(M, 32, of=rank), blocks(N, 128)):", "for m in tasks(blocks(M, 32, of=rank)):"),
            (
                "        R[m] += rowsum(G[m, n])\n",
                "        t = zeros(f32, m)\n        for n in blocks(N, 128):\n"
                "            t += rowsum(G[m, n])\n        R[m] = t\n",
            ),
        ),
        said="a loop inside of a task, and `=` behind it",
    ),
    "PK433-diagonal": Followed(
        edits=(
            ("for m in tasks(blocks(M, 16)):", "for m, n in tasks(blocks(M, 16), blocks(M, 16)):"),
            ("        C[m, m] += A[m, m]", "        if start(m) == start(n):\n            C[m, n] += A[m, n]"),
        ),
        said="with an `if`",
    ),
    "PK433-nested": Followed(
        edits=(("tasks(2)", "tasks(N)"), ("            C[m, i]", "            if i < 2:\n                C[m, i]")),
        said="with an `if`",
    ),
    "PK433-part": Followed(
        edits=((", stop=40)", ")"), ("        C[m, n]", "        if start(n) < 40:\n            C[m, n]")),
        said="with an `if`",
    ),
    "PK433-loop": Followed(
        edits=(
            (
                "        s = zeros(f32, m)\n        for n in blocks(N, 32):\n",
                "        for n in tasks(blocks(N, 32)):\n",
            ),
            ("            s += rowsum(A[m, n])\n        Y[m] = s\n", ""),
        ),
        said="make the loop `tasks`",
    ),
    "PK433-positions": Followed(edits=(("tasks(M,", "tasks(blocks(M, 16),"),), said="`blocks(...)` in place of"),
    "PK433-rank": Followed(edits=(("+=", "="),), said="`=` stores what one rank alone has"),
    "PK433-by-table": Followed(
        edits=(
            ("O: f32", "R: f32[T, N].shard(0).scratch(), O: f32"),
            ("O[rows[p], n] +=", "R[rows[p], n] +="),
            ("O[t, n] += X[t, n]", "O[t, n] = X[t, n] + R[t, n]"),
        ),
        said="let the one by a table sum into scratch memory",
    ),
    "PK433-before-table": Followed(
        edits=(
            ("X: f32[T, N]", "X: f32[T, N], R: f32[T, N].shard(0).scratch(), S: f32[T, N].shard(0).scratch()"),
            ("O[t, n] +=", "S[t, n] +="),
            (
                "O[rows[p], n] += Y[p, n]\n",
                "R[rows[p], n] += Y[p, n]\n    for t, n in tasks(blocks(T, 16, of=rank), blocks(N, 16)):\n"
                "        O[t, n] = S[t, n] + R[t, n]\n",
            ),
        ),
        said="store both together behind it",
    ),
    "PK433-twice": Followed(
        edits=(("    for m, n in tasks(blocks(M, 16), blocks(N, 32)):\n        C[m, n] += B", "        C[m, n] += B"),),
        said="into the same `tasks`",
    ),
    "PK433-tasks": Followed(
        edits=(
            (", length[0]):", "):\n        acc = zeros(f32, m, n)\n        for i in range(length[0]):"),
            ("for m, n, i in", "for m, n in"),
            ("        C[m, n] += A[i, m, :] @", "            acc += A[i, m, :] @"),
            ("@ B[:, n]\n", "@ B[:, n]\n        C[m, n] += acc\n"),
        ),
        said="in a loop inside of the task",
    ),
    "PK468-latent": Followed(
        edits=(
            ("tasks(blocks(S, 64))", "tasks(blocks(S, 64), blocks(512, 256))"),
            ("for q in", "for q, d in"),
            ("zeros(f32, q, 512)", "zeros(f32, q, d)"),
            ("@ C[t, :]\n", "@ C[t, d]\n"),
            ("O[q, :]", "O[q, d]"),
        ),
        said="`tasks(..., blocks(512, 256))`",
    ),
    "PK435-in-place": Followed(
        settings={"row": "8192"},
        edits=(("(X: bf16[M, V],", "(X: bf16[M, V], Y: bf16[M, V],"), ("        X[m, :] = e", "        Y[m, :] = e")),
        said="if they were stored to another array than `X`",
    ),
    "PK468-in-place": Followed(
        settings={"row": "16384"},
        edits=(("(X: bf16[M, V],", "(X: bf16[M, V], Y: bf16[M, V],"), ("        X[m, :] = e", "        Y[m, :] = e")),
        said="if they were stored to another array than `X`",
    ),
    "PK468-sums": Followed(
        edits=(
            ("tasks(blocks(M, 64)):", "tasks(M):"),
            (
                "        dw[:] += rowsum((x * y).T)",
                "    for m, n in tasks(blocks(M, 64), blocks(N, 128)):\n"
                "        dw[n] += rowsum((cast(X[m, n], f32) * cast(Y[m, n], f32)).T)",
            ),
        ),
        said="add up `dw` in `tasks` of blocks of both dimensions, and let rows be `tasks(M)`",
    ),
    "PK510-scatter-along-columns": Followed(
        edits=(("O: f32[M, N]", "O: f32[N, M]"), ("O[m, to[p]] += Y[m, p]", "O[to[p], m] += Y[m, p].T")),
        said="`O[to[p], m] += t.T`",
    ),
    **dict.fromkeys([f"PK438-{name}" for name in ("gather", "heads", "next", "overlap", "row", "triangle")], _PUSH),
    **dict.fromkeys([f"PK443-{name}" for name in ("copy-engine", "none", "part", "push", "read")], _STRADDLE),
    "PK443-table": Followed(without=("straddle", "overlap"), said="leave `straddle` out"),
    **dict.fromkeys([f"PK442-{name}" for name in ("carried", "inner", "none", "several", "table")], _WHOLE),
    **dict.fromkeys(
        ("PK303-mixed", "PK303-wide"), Followed(edits=(("B[k, n]", "cast(B[k, n], bf16)"),), said="`cast(x, bf16)`")
    ),
    "PK301-distances": Followed(
        edits=(
            ("        Z[m, n] =", "        z = zeros(f32, m, n)\n        for i in range(D):\n            z +="),
            ("rowsum(abs(X[m, :] - Y[n, :]))", "abs(X[m, i] - Y[n, i])\n        Z[m, n] = z"),
        ),
        said="`for i in range(D):`",
    ),
    "PK301-three-axes": Followed(edits=(("positions(32) == at", "at == positions(32)"),), said="as in `b == a`"),
    "PK301-whole-and-block": Followed(
        edits=(
            (
                "        o = zeros(f32, m, D)\n        for d in blocks(D, 64):",
                "        for d in blocks(D, 64):\n            o = zeros(f32, m, d)",
            ),
            ("        Y[m, :] = o", "            Y[m, d] = o"),
        ),
        said="write one of them for both",
    ),
    "PK301-where-order": Followed(edits=(("B[n, m])", "B[n, m].T)"),), said="the transpose of the other: `.T`"),
    "PK306-inverse": Followed(
        edits=(("Y: f32[B, 32, 32]", "Y: f32[B, 32, 32], D: const = 64 // 2"), ("32, 32", "D, D"), ("(32)", "(D)")),
        said="as in `D: const = 32`",
    ),
    "PK306-square": Followed(edits=(("w[:]", "w[:].T"),), said="`x.T` of a tile with one axis"),
    "PK303-i8": Followed(
        edits=(("A[m, k] @ B[k, n]", "cast(A[m, k], bf16) @ cast(B[k, n], bf16)"),), said="`cast(x, bf16)`"
    ),
    "PK305-sum-of-i8": Followed(
        edits=(
            ("C: i8[M, N].replicate()", "S: i32[M, N].replicate().scratch(), C: i8[M, N]"),
            (
                "C[m, n] += X[m, n]\n",
                "S[m, n] += X[m, n]\n    for m, n in tasks(blocks(M, 64), blocks(N, 64)):\n"
                "        C[m, n] = cast(S[m, n], i8)\n",
            ),
        ),
        said="`cast` the result",
    ),
    "PK305-at-table": Followed(
        edits=(("Y: f32[ranks, H]", "slot: i32[T], Y: f32[ranks, P, H]"), ("[rank, h]", "[rank, slot[t], h]")),
        said="`Y.at(to[t])[slot[t], h] = x`",
    ),
    "PK333-sharded-bounds": Followed(
        edits=((", stop=n[0])", ")"), ("        B[m] = A[m]", "        if start(m) < n[0]:\n            B[m] = A[m]")),
        said="`if start(m) < n[0]:`",
    ),
    "PK310-axes": Followed(edits=(("s = 0.0", "s = zeros(f32, m)"),), said="`zeros(f32, m)`"),
    "PK310-axis-of-the-loop": Followed(edits=(("1, 0))", "1, 0).T)"),), said="`rowsum(x.T)` along the first"),
    "PK310-computed": Followed(
        edits=(("        for n", "        s = s + zeros(f32, m)\n        for n"),), said="`s = s + zeros(f32, m)`"
    ),
    "PK310-first-branch": Followed(edits=(("x = 1.0", "x = full(f32, 1.0, m)"),), said="`full(f32, 1.0, m)`"),
    "PK310-function": Followed(edits=(("r = 1.0", "r = x * 0.0 + 1.0"),), said="`x * 0.0 + 1.0`"),
    "PK310-largest": Followed(edits=(("s = -inf", "s = full(f32, -inf, m)"),), said="`full(f32, -inf, m)`"),
    "PK341-constant": Followed(
        edits=(("E[n] += (1.0", "E[n] = E[n] + (1.0"),), said="`E[n] = E[n] + (1.0 - decay) * (P[n] - E[n])`"
    ),
    "PK341-one": Followed(
        edits=(("Y[0] += rowsum(X[m])", "store_add(Y[0], rowsum(X[m]))"),),
        settings={"deterministic": "false"},
        said="`store_add(Y[0], ...)` and `schedule(deterministic=False)`",
    ),
    "PK341-several": Followed(
        edits=(("db[n] += rowsum(cast(dY[m, n], f32).T)", "store_add(db[n], rowsum(cast(dY[m, n], f32).T))"),),
        settings={"deterministic": "false"},
        said="`store_add(db[n], ...)` and `schedule(deterministic=False)`",
    ),
    "PK341-private": Followed(edits=(("C: f32[M, N]", "C: f32[M, N].shard(0)"),), said="`f32[M, N].shard(0)`"),
    "PK402-number": Followed(edits=(("s: f32[1].replicate()", "s: f32[1]"),), said="leave `.replicate()` out"),
    "PK402-replicate": Followed(edits=(("B: f32[M].replicate()", "B: f32[M]"),), said="leave `.replicate()` out"),
    "PK107-method-without-arguments": Followed(edits=(("X[m, n].sum()", "rowsum(X[m, n])"),), said="`rowsum(x)`"),
    "PK107-half": Followed(edits=(("64:128", "positions(64) + 64"),), said="`positions(64) + 64`"),
    "PK107-slice-to-n": Followed(
        edits=(("D:2 * D", "positions(2 * D - D) + D"),),
        said="from a to b, if both are constants, with `positions(b - a) + a`",
    ),
    "PK204-whole": Followed(edits=(("* w", "* w[:]"),), said="`w[:]`"),
    "PK214-thirds": Followed(edits=(("3 * N", "N3"), ("W[d, n]", "W[d, n + N]")), said="such as `N3`"),
    "PK303-i8-sum": Followed(
        edits=(
            ("A[m, k] @ B[k, n]", "cast(A[m, k], bf16) @ cast(B[k, n], bf16)"),
            ("zeros(i32, m, n)", "zeros(f32, m, n)"),
            ("= acc", "= cast(acc, i32)"),
        ),
        said="`zeros(f32, m, n)`",
    ),
    "PK327-other-axis": Followed(edits=(("rowsum(hit)", "rowsum(hit.T)"),), said="`rowsum(x.T)` goes along the other"),
    "PK327-columns": Followed(
        edits=(("X[m, n]", "X[m, positions(64) + start(n)]"),), said="with `positions(64) + start(n)` for `n`"
    ),
    "PK327-row": Followed(edits=(("A[m, k]", "A[m, n]"),), said="index both arrays with one of them"),
    "PK327-name": Followed(edits=(("w: f32[E]", "w: f32[D]"),), said="write one name for both"),
    "PK327-whole": Followed(edits=(("= X[m, :]", "= rowsum(X[m, :])"),), said="`rowsum(x)`"),
    "PK118-shape": Followed(edits=(("A.shape", "M"),), said="sizes have names"),
    "PK322-swapped": Followed(edits=(("A[n, m]", "A[m, n]"),), said="in the order of its dimensions"),
    "PK322-three": Followed(edits=(("B[k, m, n]", "B[m, n, k]"),), said="in the order of its dimensions"),
    "PK322-scope": Followed(edits=(("B[m, n]", "B[k, n]"),), said="index it with `k`"),
    "PK322-constant": Followed(edits=(("A[m, m]", "A[m, :]"),), said="write `:` for all of D"),
    "PK322-shorter": Followed(edits=(("X[m, d]", "X[m, d + 0]"),), said="`d + 0` for its first 64 positions"),
    "PK322-as-long": Followed(edits=(("B: f32[N, K]", "B: f32[M, K]"),), said="declare `B` of shape [M, K]"),
    "PK322-diagonal": Followed(edits=(("A: f32[M, N]", "A: f32[M, M]"),), said="declare `A` of shape [M, M]"),
    "PK322-longer": Followed(
        edits=(
            (
                "    for m in tasks(blocks(M, 128)):\n        Z[m] = rowsum(B[m, :])",
                "    for n in tasks(blocks(N, 128)):\n        Z[n] = rowsum(B[n, :])",
            ),
        ),
        said="loop over blocks(N, 128)",
    ),
    "PK323-float-table": Followed(edits=(("Y[rows[p]", "Y[cast(rows[p], i32)"),), said="`cast(t, i32)`"),
    "PK204-gather-block": Followed(edits=(("gather(X, m, t[k])", "X[m, t[k]]"),), said="`X[m, t[k]]`"),
    "PK323-copy": Followed(
        edits=(
            ("B: f32[M, K]", "B: f32[M, K], L: f32[M, N].scratch()"),
            (
                "    for m, k",
                "    for m, n in tasks(blocks(M, 32), blocks(N, 64)):\n        L[m, n] = A.at(0)[m, n]\n    for m, k",
            ),
            ("= A.at(0)[m, t[k]]", "= L[m, t[k]]"),
        ),
        said="copy what is needed of it",
    ),
    "PK303-vector": Followed(edits=(("A[m, k] @ x[k]", "rowsum(A[m, k] * x[k])"),), said="`rowsum(a * x)`"),
    "PK107-gather": Followed(edits=(("rows[m], :)", "rows[m])"),), said="whole rows need no `:`"),
    "PK323-computed": Followed(
        edits=(
            ("Y[rowmin(", "at[m] = rowmin("),
            ("64))] = m\n", "64))\n    for m in tasks(M):\n        Y[at[m]] = m\n"),
            ("p: i32[1]", "at: i32[M].scratch()"),
        ),
        said="an array of i32 first",
    ),
    "PK327-number": Followed(edits=(("zeros(f32, 1)", "zeros(f32)"),), said="without `1`"),
    "PK327-transposed": Followed(edits=(("= A[m, n]", "= A[m, n].T"),), said="store the transpose: `.T`"),
    "PK327-turned": Followed(edits=(("acc.T", "acc"),), said="without `.T`"),
    "PK436-role": Followed(edits=(("role(consumer)", "role(communicator)"),), said="`with role(communicator)`"),
    "PK436-other": Followed(
        edits=(("S: f32[B, C, 2]", "S: f32[B, C, 2], N: f32[B, C, 2]"), ("        S[", "        N[")),
        said="another array",
    ),
    "PK436-behind": Followed(
        edits=(("T[m] = X[m] * 2.0", "t = X[m] * 2.0; T[m] = t"), ("= T[m] + 1.0", "= t + 1.0")),
        said="keep the value in a variable",
    ),
    "PK439-read": Followed(edits=(("Y[m, n] = C[m, n]", "Y[m, n] = A[m, n]"),), said="use another array"),
    "PK435-communicator": Followed(settings={"tile_N": "32"}, said="use smaller blocks"),
    "PK439-iterations": Followed(
        edits=(("s: f32[1]", "s: f32[I]"), ("s[0] +=", "s[it] +="), ("rsqrt(s[0])", "rsqrt(s[it])")),
        said="an element for each sum",
    ),
    "PK464-comm-sms": Followed(settings={"overlap": "inter_sm"}, said="overlap=inter_sm"),
    "PK510-eight-bits": Followed(edits=(("Y: e4m3", "Y: bf16"), ("X: e4m3", "X: bf16")), said="an array of bf16"),
    "PK510-read": Followed(
        edits=(
            ("        count[e] = A[e] * 2\n", ""),
            (
                "    for e in tasks(E):\n",
                "    for e in tasks(E):\n        count[e] = A[e] * 2\n    for e in tasks(E):\n",
            ),
        ),
        said="before these",
    ),
    "PK510-read-outside": Followed(
        edits=(
            ("    n = count[0]\n", "    kept[0] = count[0]\n"),
            ("n // 2", "kept[0] // 2"),
            ("stop=n", "stop=kept[0]"),
            ("count: i32[1],", "count: i32[1], kept: i32[1].scratch(),"),
        ),
        said="a scratch array",
    ),
    "PK510-read-role": Followed(
        edits=(
            ("A: i32[1], ", ""),
            ("    with role(communicator):\n        for i in tasks(1):\n", ""),
            ("            store(count.at((rank + 1) % ranks)[0], A[0])\n", ""),
            ("            signal(ready.at((rank + 1) % ranks)[0], 1)\n", ""),
            ("        wait(ready[0], 1)\n", ""),
            (".symmetric().scratch(), Y", ".symmetric(), Y"),
            (", ready: signal[1], read: signal[1]", ""),
            ("        wait(read[0], 1)\n", ""),
            ("        signal(read.at((rank + ranks - 1) % ranks)[0], 1)\n", ""),
        ),
        said="a kernel of its own",
    ),
    "PK510-rows-of-blocks": Followed(
        edits=(("Y[:, m] = rowsum(X[:, m, :])", "for b in range(2):\n            Y[b, m] = rowsum(X[b, m, :])"),),
        said="numbers, not blocks",
    ),
    "PK510-rows-of-three": Followed(edits=(("blocks(T, 8)", "T"),), said="`T` for `blocks(T, 8)`"),
    "PK510-few-columns": Followed(
        edits=(
            ("place: i32", "L: f32[T, E].scratch(), place: i32"),
            (
                "        i = zeros",
                "        L[t, :] = l\n    for t in tasks(blocks(T, 64)):\n        l = L[t, :]\n        i = zeros",
            ),
        ),
        said="a scratch array for what the MMA gives, and other `tasks`",
    ),
    "PK510-first-axis": Followed(edits=(("blocks(T, 8)", "T"),), said="`T` for `blocks(T, 8)`"),
    "PK430-scatter": _OVERLAP,
    "PK510-scatter": _ANYHOW,
    "PK510-store-add": _ANYHOW,
    "PK510-store-add-tiles": _ANYHOW,
    "PK510-table": Followed(
        edits=(
            ("p = positions(m) % 5", "p = next[next[positions(m) % 5]]"),
            ("        for i in range(2):\n            p = next[p]\n", ""),
        ),
        said="write the iterations out",
    ),
    "PK510-part": Followed(edits=(("blocks(200, 100)", "blocks(200, 112)"),), said="`blocks(200, 112)`"),
}

OTHER = {
    "PK431-outside": "the help is another program",
    "PK431-read": "the help is another program",
    "PK436-turns": "the help is another program",
    "PK444-branch": "the help is another protocol",
    "PK444-used": "the help is another protocol",
    "PK445-branch": "the help is another protocol",
    "PK445-signal": "the help is another protocol",
    "PK445-statement": "the help is another protocol",
    "PK468-other-rows": "the help says that no size of blocks changes it",
    "PK476-many": "the help says what the words mean",
}
"""Helps that no replacement follows."""

PROGRAMS = {
    path.stem: path
    for path in sorted(HERE.glob("*.pk"))
    if "PK430" <= path.name < "PK477" or path.name[:5] == "PK510" or path.stem in FOLLOWED
}
"""What is refused on the way to the machine level, and some of what is before."""


def refused(name: str) -> tuple[str, dict[str, str], str]:
    """The text of a program, the schedule of its command, and the level that this is for."""
    text = PROGRAMS[name].read_text(encoding="utf-8")
    command = shlex.split(text.partition("\n")[0].removeprefix("# pkc: compile"))
    options = dict(zip(command[::2], command[1::2], strict=True)) if text.startswith("# pkc:") else {}
    given = options.get("--schedule", "")
    schedule = dict(setting.split("=") for setting in given.split(",")) if given else {}
    return text, schedule, "roles" if options.get("--emit", "roles") == "roles" else "machine"


def compiles(text: str, schedule: dict[str, str], level: str) -> None:
    compile_program(parse_text(Source("mended.pk", text)), schedule=schedule, level=level, smaller=False)


@pytest.mark.parametrize("name", sweep(sorted(set(PROGRAMS) - set(OTHER)), lambda name: name.startswith("PK510")))
def test_a_program_that_follows_the_help_compiles(name: str) -> None:
    text, schedule, level = refused(name)
    printed = PROGRAMS[name].with_suffix(".err").read_text(encoding="utf-8")
    tried = TRIED.search(printed)
    if tried is not None:
        compiles(text, {**schedule, **dict(setting.split("=") for setting in tried[1].split(","))}, level)
        return
    followed = FOLLOWED[name]
    assert any(followed.said in line for line in printed.splitlines() if "= help: " in line)
    for before, after in followed.edits:
        assert before in text or followed is _WHOLE
        text = text.replace(before, after)
    kept = {key: value for key, value in schedule.items() if key not in followed.without}
    compiles(text, {**kept, **followed.settings}, level)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name.startswith("PK510")])
def test_nothing_is_lowered_of_what_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def lowered(*_: object) -> None:
        raise AssertionError("lowering has begun")

    monkeypatch.setattr(LowerTiles, "run", lowered)
    text, schedule, _ = refused(name)
    with pytest.raises(PkcError):
        compiles(text, schedule, "machine")


def test_every_refusal_is_listed() -> None:
    tried = {name for name, path in PROGRAMS.items() if TRIED.search(path.with_suffix(".err").read_text("utf-8"))}
    assert tried.isdisjoint(FOLLOWED)
    assert tried | set(FOLLOWED) | set(OTHER) == set(PROGRAMS)
