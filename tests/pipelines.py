"""Loops in which an MMA needs what is computed from the result of another one, each for one thing that pipelining them
must get right."""

from __future__ import annotations

_HEAD = "kernel k(X: bf16[M, D], A: bf16[N, D], B: bf16[N, D], C: f32[M, D], D: const = 64):\n"
_TASKS = """\
    for m in tasks(blocks(M, 64)):
        o = zeros(f32, m, D)"""
_LOOP = f"""\
{_HEAD}{_TASKS}
        for j in blocks(N, 64):"""

LOOPS: dict[str, str] = {
    "attention": """\
kernel k(X: bf16[M, D], A: bf16[N, D], B: bf16[N, D], C: bf16[M, D], scale: f32, D: const = 64):
    for m in tasks(blocks(M, 128)):
        top = full(f32, -inf, m); total = zeros(f32, m); o = zeros(f32, m, D)
        for j in blocks(N, 64):
            s = X[m] @ A[j].T * scale
            t = max(top, rowmax(s)); p = exp2(s - t); c = exp2(top - t)
            total = total * c + rowsum(p)
            o = o * c + cast(p, bf16) @ B[j]
            top = t
        C[m] = o / total
""",
    "chained GEMMs": f"""\
{_LOOP}
            o += cast(max(X[m] @ A[j].T, 0.0), bf16) @ B[j]
        C[m] = o
""",
    "late operand loaded first": f"""\
{_LOOP}
            b = B[j]
            o += cast(max(X[m] @ A[j].T, 0.0), bf16) @ b
        C[m] = o
""",
    "gate and up": f"""\
kernel k(X: bf16[M, D], A: bf16[N, D], U: bf16[N, D], B: bf16[N, D], C: f32[M, D], D: const = 64):
{_TASKS}
        for j in blocks(N, 64):
            gate = X[m] @ A[j].T
            o += cast(gate * sigmoid(gate) * (X[m] @ U[j].T), bf16) @ B[j]
        C[m] = o
""",
    "taps": f"""\
kernel k(X: bf16[M, D], A: bf16[L, N, D], B: bf16[L, N, D], C: f32[M, D], D: const = 64, N: const = 64):
{_TASKS}
        for i in range(L):
            o += cast(max(X[m] @ A[i].T, 0.0), bf16) @ B[i] * cast(i + 1, f32)
        C[m] = o
""",
    "two results": f"""\
{_LOOP.replace("o = zeros(f32, m, D)", "o = zeros(f32, m, D); u = zeros(f32, m, D)")}
            s = X[m] @ A[j].T
            o += cast(max(s, 0.0), bf16) @ B[j]
            u += cast(min(s, 0.0), bf16) @ B[j]
        C[m] = o * u
""",
    "positions": f"""\
{_LOOP}
            s = X[m] @ A[j].T
            late = cast(s, bf16) @ B[j]
            o += late + late * where(positions(m) >= start(j), 1.0, 2.0)
        C[m] = o
""",
    "carried": f"""\
{_LOOP.replace("o = zeros(f32, m, D)", "o = zeros(f32, m, D); x = zeros(f32, m); y = full(f32, 1.0, m); i = 0")}
            s = X[m] @ A[j].T
            o = o * x + cast(s, bf16) @ B[j] * cast(i, f32)
            z = x; x = y; y = z + rowmax(s)
            i = (i + 3) % 5
        C[m] = o + x * cast(i, f32)
""",
    "swapped": f"""\
{_LOOP.replace("o = zeros(f32, m, D)", "o = zeros(f32, m, D); u = full(f32, 1.0, m, D)")}
            w = o * 0.5 + cast(X[m] @ A[j].T, bf16) @ B[j]; o = u; u = w
        C[m] = o - u
""",
    "branches": f"""\
{_LOOP.replace("o = zeros(f32, m, D)", "o = zeros(f32, m, D); i = 0")}
            s = X[m] @ A[j].T
            if i > 1:
                s = s * 0.5
            o += cast(s, bf16) @ B[j]
            if i == 1:
                o = o * 0.25
            i = i + 1
        C[m] = o
""",
    "inner loop": f"""\
{_LOOP}
            s = X[m] @ A[j].T
            for i in range(2):
                s = s * 0.5 + cast(i, f32)
            o += cast(s, bf16) @ B[j]
            for i in range(3):
                o = o + 0.25
        C[m] = o
""",
    "cast stage": f"""\
kernel k(X: bf16[M, D], A: bf16[N, D], Y: f32[M, N], B: bf16[N, D], C: f32[M, D], D: const = 64):
{_TASKS}
        for j in blocks(N, 64):
            o = o * rowmax(X[m] @ A[j].T) + cast(Y[m, j], bf16) @ B[j]
        C[m] = o
""",
    "operand from outside": f"""\
kernel k(X: bf16[M, D], A: bf16[L, 64, D], Y: f32[M, N], B: bf16[L, N, D], C: f32[M, D], D: const = 64):
{_TASKS}
        for n in blocks(N, 64):
            h = cast(Y[m, n] + 1.0, bf16)
            for i in range(L):
                o = o * sigmoid(rowmax(X[m] @ A[i].T)) + h @ B[i, n]
        C[m] = o
""",
    "no iteration": f"""\
{_HEAD}{_TASKS}
        for j in blocks(N, 64, stop=start(m)):
            o = o * 0.5 + cast(max(X[m] @ A[j].T, 0.0), bf16) @ B[j]
        C[m] = o
""",
    "bias": f"""\
kernel k(X: bf16[M, D], A: bf16[N, D], Y: bf16[M, N], B: bf16[N, D], C: f32[M, D], D: const = 64):
{_TASKS}
        for j in blocks(N, 64):
            y = cast(Y[m, j], f32)
            o = o * rowmax(y) + cast(X[m] @ A[j].T + y, bf16) @ B[j]
        C[m] = o
""",
    "in a branch": f"""\
{_HEAD}
    for m in tasks(blocks(M, 64)):
        o = zeros(f32, m, D)
        if start(m) > 0:
            for j in blocks(N, 64):
                o += cast(max(X[m] @ A[j].T, 0.0), bf16) @ B[j]
        C[m] = o
""",
    "in a loop": f"""\
kernel k(X: bf16[M, D], A: bf16[L, N, D], B: bf16[L, N, D], C: f32[M, D], D: const = 64):
{_TASKS}
        for i in range(L):
            for j in blocks(N, 64):
                o = o * 0.5 + cast(max(X[m] @ A[i, j].T, 0.0), bf16) @ B[i, j]
        C[m] = o
""",
}

ALONE: dict[str, tuple[str, dict[str, str], str]] = {
    "stored": (
        f"""\
kernel k(X: bf16[M, D], A: bf16[N, D], B: bf16[N, D], S: bf16[M, N], C: f32[M, D], D: const = 64):
{_TASKS}
        for j in blocks(N, 64):
            s = cast(X[m] @ A[j].T, bf16)
            S[m, j] = s
            o += s @ B[j]
        C[m] = o
""",
        {},
        "5: pk.acquire: the MMAs of the loop are not pipelined: `pk.acquire` in the loop keeps its place among the"
        " operations around it",
    ),
    "read twice": (
        f"""\
{_LOOP}
            o += cast(X[m] @ A[j].T, bf16) @ A[j]
        C[m] = o
""",
        {},
        "5: pk.consume: the MMAs of the loop are not pipelined: both halves of an iteration read the stage of A",
    ),
    "one stage": (
        f"""\
{_LOOP}
            o += cast(X[m] @ A[j].T, bf16) @ B[j]
        C[m] = o
""",
        {"stages": "1"},
        "5: pk.consume: the MMAs of the loop are not pipelined: B has one stage, and two iterations would have one at a"
        " time",
    ),
    "too many registers": (
        """\
kernel k(X: bf16[M, D], A: bf16[L, 64, D], B: bf16[L, 64, E], G: bf16[L, 64, D], C: bf16[M, E], O: bf16[M, D],
         D: const = 64, E: const = 256):
    for m in tasks(blocks(M, 64)):
        o = zeros(f32, m, E); u = zeros(f32, m, D)
        for i in range(L):
            e = exp2(X[m] @ A[i].T)
            o = o * 0.5 + cast(e, bf16) @ B[i]
            u = u * e + cast(e, bf16) @ G[i]
        C[m] = o
        O[m] = u
""",
        {},
        "5: scf.for: the MMAs of the loop are not pipelined: tiles would take 240 registers of a thread, which has 220"
        " for them",
    ),
    "three in a chain": (
        f"""\
kernel k(X: bf16[M, D], A: bf16[L, N, D], B: bf16[L, N, D], C: f32[M, D], D: const = 64, N: const = 64):
{_TASKS}
        for i in range(L):
            p = cast(X[m] @ A[i].T, bf16) @ B[i]
            o += cast(p, bf16) @ B[i]
        C[m] = o
""",
        {},
        "6: pk.mma: the MMAs of the loop are not pipelined: it is the third of three MMAs that need one another",
    ),
    "late operand": (
        f"""\
{_LOOP}
            s = cast(o, bf16) @ A[j].T
            o += cast(s, bf16) @ B[j]
        C[m] = o
""",
        {},
        "5: pk.mma: the MMAs of the loop are not pipelined: it needs what a later MMA made in the iteration before",
    ),
    "two into one": (
        f"""\
{_LOOP}
            s = X[m] @ A[j].T
            s += X[m] @ B[j].T
            o += cast(s, bf16) @ A[j]
        C[m] = o
""",
        {},
        "6: pk.mma: the MMAs of the loop are not pipelined: it adds to the result of another MMA of the iteration",
    ),
}
"""Loops that are left alone: the program, its schedule, the remark and its line."""
