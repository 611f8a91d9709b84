"""What each target does with every construct of the language: small kernels, each for one of them.

`python -m tools.constructs` writes the table in docs/language.md; a test simulates and compiles each kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tools import told

PAGE = Path(__file__).parents[1] / "docs" / "language.md"

MEANS: Mapping[str, tuple[str, ...]] = {
    "TMA": ("tma_",),
    "threads": ("load_global_", "store_global_"),
    "tensor cores": ("wgmma_",),
    "atomic additions": ("add_global_",),
    "signals": ("signal_relaxed_", "signal_release_"),
}
"""How the instructions of sm_90a begin that move tiles, multiply, add or signal so."""


@dataclass(frozen=True)
class Construct:
    """One construct and a kernel that uses it: `means` are those of `MEANS` that sm_90a takes, or `refused` is the code
    with which it refuses it. `how` is what else there is to say.
    """

    name: str
    text: str
    means: str = ""
    how: str = ""
    refused: str = ""
    schedule: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def row(self) -> str:
        done = f"refused ({self.refused})" if self.refused else self.means or "runs"
        return f"| {self.name} | runs | {'; '.join(filter(None, (done, self.how)))} |"


def _kernel(arrays: str, *body: str) -> str:
    return f"kernel k({arrays}):\n" + "".join(f"    {line}\n" for line in body)


def _tile(arrays: str, *body: str, rank: str = "") -> str:
    """Statements for each tile of M by N, of M of one rank's shard if `rank` says so."""
    return _kernel(arrays, f"for m, n in tasks(blocks(M, 64{rank}), blocks(N, 64)):", *(f"    {line}" for line in body))


_LOCAL = ", of=rank"
_SUM = ("acc = zeros(f32, m, n)", "for k in blocks(K, 64):", "    acc += {product}", "C[m, n] = acc")
_LOOP = "for m, n in tasks(blocks(M, 8), blocks(N, 16)):"
_ANYHOW = {"deterministic": "False"}


def _product(kind: str, product: str = "A[m, k] @ B[k, n]", b: str = "K, N", a: str = "M, K") -> str:
    body = (line.format(product=product) for line in _SUM)
    return _tile(f"A: {kind}[{a}], B: {kind}[{b}], C: f32[M, N]", *body)


def _value(value: str, kind: str = "f32") -> str:
    return _tile(f"X: {kind}[M, N], Y: {kind}[M, N]", f"Y[m, n] = {value}")


def _by_author(arrays: str, *body: str) -> str:
    return _kernel(arrays, "with role(communicator):", *(f"    {line}" for line in body))


def _primitive(*body: str) -> str:
    """What an author lets a communicator do with each tile of an array, between two barriers."""
    arrays = "X: f32[M, N], S: f32[M, N].symmetric(), Y: f32[M, N], at: signal[2]"
    return _by_author(arrays, "barrier(at[0])", _LOOP, *(f"    {line}" for line in body), "barrier(at[1])")


_MOVES = "TMA, threads"
_MULTIPLIES = "TMA, tensor cores"

CONSTRUCTS = (
    # Arrays
    Construct(
        "a tile of a private array, stored to one", _value("X[m, n]"), "TMA", "threads where rows do not suit TMA"
    ),
    Construct(
        "`.shard(d)`, read on other ranks",
        _tile("X: f32[M, N].shard(0), Y: f32[M, N]", "Y[m, n] = X[m, n]"),
        "TMA, signals",
    ),
    Construct(
        "`.shard(d)`, stored at the owner",
        _tile("X: f32[M, N].shard(0), Y: f32[M, N].shard(0)", "Y[m, n] = X[m, n]", rank=_LOCAL),
        "TMA",
    ),
    Construct(
        "`.shard(d)` along two dimensions of one access",
        _tile("X: f32[M, N].shard(0), Y: f32[M, N].shard(1)", "Y[m, n] = X[m, n]", rank=_LOCAL),
        "threads, signals",
        "TMA where the sizes of a launch let all shards end with whole blocks",
    ),
    Construct(
        "`.shard(d, zigzag=True)`",
        _tile(
            "X: f32[M, N].shard(0, zigzag=True), Y: f32[M, N].shard(0, zigzag=True)", "Y[m, n] = X[m, n]", rank=_LOCAL
        ),
        "TMA",
    ),
    Construct(
        "`.replicate()`, stored on every rank",
        _tile("X: f32[M, N].shard(0), Y: f32[M, N].replicate()", "Y[m, n] = X[m, n]", rank=_LOCAL),
        "TMA, signals",
    ),
    Construct("`.symmetric()`", _tile("X: f32[M, N].symmetric(), Y: f32[M, N]", "Y[m, n] = X[m, n]"), "TMA"),
    Construct(
        "`.symmetric()`, `A.at(r)`",
        _kernel(
            "X: f32[M, N].symmetric(), Y: f32[ranks, M, N]",
            "for r, m, n in tasks(ranks, blocks(M, 64), blocks(N, 64)):",
            "    Y[r, m, n] = X.at(r)[m, n]",
        ),
        "TMA, signals",
    ),
    Construct("scalars", _tile("s: f32, X: f32[M, N], Y: f32[M, N]", "Y[m, n] = X[m, n] * s"), "TMA"),
    # Sums
    Construct(
        "`+=` into `.shard(d)`",
        _tile("X: f32[M, N], Y: f32[M, N].shard(0)", "Y[m, n] += X[m, n]"),
        f"{_MOVES}, signals",
        "slots at the owner, added up in rank order",
    ),
    Construct(
        "`+=` into `.replicate()`",
        _tile("X: f32[M, N], Y: f32[M, N].replicate()", "Y[m, n] += X[m, n]"),
        f"{_MOVES}, signals",
        "with `all_reduce=one_shot` every rank has slots for all",
    ),
    Construct(
        "`+=` with `deterministic=False`",
        _tile("X: f32[M, N], Y: f32[M, N].replicate()", "Y[m, n] += X[m, n]"),
        f"{_MOVES}, atomic additions, signals",
        schedule=_ANYHOW,
    ),
    # Indices
    Construct(
        "tables: `gather(X, rows, n)`",
        _tile("X: f32[T, N].shard(0), rows: i32[M], Y: f32[M, N]", "Y[m, n] = gather(X, rows[m], n)"),
        f"{_MOVES}, signals",
    ),
    Construct(
        "tables: `X[m, t[n]]`",
        _tile("X: f32[M, K], t: i32[N], Y: f32[M, N]", "Y[m, n] = X[m, t[n]]"),
        _MOVES,
        "of sharded arrays also from other ranks",
    ),
    Construct(
        "shifted blocks: `X[m, n - 1]`",
        _tile("X: f32[M, N], Y: f32[M, N]", "Y[m, n] = X[m, n - 1]"),
        "TMA",
        "threads start copies of the elements, of rows of 16 bytes",
    ),
    Construct(
        "shifted blocks: `X[m, n + 64]`",
        _tile("X: f32[M, K], Y: f32[M, N]", "Y[m, n] = X[m, n + 64]"),
        "TMA",
        "and `X[m, n + N]` at sizes at which it begins at a multiple of 16 bytes; of private and replicated arrays and "
        "of this rank's shard",
    ),
    Construct(
        "tables: `Y[rows, n] = t`",
        _tile("X: f32[M, N], rows: i32[M], Y: f32[T, N]", "Y[rows[m], n] = X[m, n]"),
        _MOVES,
        "each row by the threads that have it, 16 bytes at a time; signals where it is another rank's",
    ),
    Construct(
        "tables: `Y[rows, n] += t`",
        _tile("X: f32[M, N], rows: i32[M], Y: f32[T, N].shard(0)", "Y[rows[m], n] += X[m, n]"),
        f"{_MOVES}, signals",
        "slots at the rank that computes, added up by entry; else refused (PK510)",
    ),
    Construct(
        "tables: `Y[rows, n] += t`, with `deterministic=False`",
        _tile("X: f32[M, N], rows: i32[M], Y: f32[T, N].replicate()", "Y[rows[m], n] += X[m, n]"),
        f"{_MOVES}, atomic additions, signals",
        schedule=_ANYHOW,
    ),
    Construct(
        "integers from arrays, as bounds of blocks",
        _kernel(
            "count: i32[E], X: f32[E, M, N], Y: f32[E, M, N]",
            "for e in tasks(E):",
            "    for m, n in tasks(blocks(M, 64, stop=count[e]), blocks(N, 64)):",
            "        Y[e, m, n] = X[e, m, n]",
        ),
        _MOVES,
        "the last block by threads",
    ),
    Construct(
        "integers from arrays that the kernel writes",
        _kernel(
            "count: i32[E], X: i32[E], Y: f32[E, M]",
            "for e in tasks(blocks(E, 64)):",
            "    count[e] = X[e]",
            "for e in tasks(E):",
            "    for m in tasks(blocks(M, 64, stop=min(count[e], M))):",
            "        Y[e, m] = full(f32, 1.0, m)",
        ),
        f"{_MOVES}, signals",
        "of other `tasks` than those that write; else refused (PK510)",
    ),
    Construct(
        "integers from arrays, in `if`",
        _tile("flag: i32[1], X: f32[M, N], Y: f32[M, N]", "if flag[0] > 50:", "    Y[m, n] = X[m, n]"),
        _MOVES,
    ),
    # Control
    Construct(
        "`range`, variables that it carries",
        _tile("X: f32[M, N], Y: f32[M, N]", "t = X[m, n]", "for i in range(3):", "    t = t * t", "Y[m, n] = t"),
        "TMA",
    ),
    Construct(
        "two phases",
        _kernel(
            "X: f32[M, N], S: f32[M, N].scratch(), Y: f32[M, N]",
            "for m, n in tasks(blocks(M, 64), blocks(N, 64)):",
            "    S[m, n] = X[m, n]",
            "for m, n in tasks(blocks(M, 64), blocks(N, 64)):",
            "    Y[m, n] = S[m, n]",
        ),
        "TMA, signals",
    ),
    # Tiles
    Construct("`a @ b` of bf16", _product("bf16"), _MULTIPLIES),
    Construct("`a @ b` of f16", _product("f16"), _MULTIPLIES),
    Construct("`a @ b` of 8-bit floats", _product("e4m3", "A[m, k] @ B[n, k].T", b="N, K"), _MULTIPLIES),
    Construct("`a @ b` of 8-bit floats, `b[k, n]` as it lies", _product("e4m3"), _MULTIPLIES),
    Construct("`a @ b` of f32, cut to tf32", _product("f32", "A[m, k] @ B[n, k].T", b="N, K"), _MULTIPLIES),
    Construct("`a @ b` of f32, `b[k, n]` as it lies", _product("f32"), _MULTIPLIES),
    Construct("`a.T @ b`", _product("bf16", "A[k, m].T @ B[k, n]", a="K, M"), _MULTIPLIES),
    Construct("`+ - * /`, functions, `where`", _value("where(X[m, n] > 0.0, exp2(X[m, n]) / 3.0, -X[m, n])"), "TMA"),
    Construct("integers: `//`, `%`", _value("X[m, n] // 3 + X[m, n] % 5", "i32"), "TMA"),
    Construct("arrays of i8", _tile("X: i8[M, N], Y: i8[M, N]", "Y[m, n] = X[m, n] * 2 - 1"), "TMA"),
    Construct(
        "`a @ cast(b, bf16)`, b of i8",
        _kernel(
            "A: bf16[M, K], B: i8[K, N], Y: f32[M, N]",
            "for m, n in tasks(blocks(M, 64), blocks(N, 64)):",
            "    acc = zeros(f32, m, n)",
            "    for k in blocks(K, 64):",
            "        acc += A[m, k] @ cast(B[k, n], bf16)",
            "    Y[m, n] = acc",
        ),
        _MULTIPLIES,
    ),
    Construct("`positions`", _value("where(positions(m) >= positions(n), X[m, n], 0.0)"), "TMA"),
    Construct(
        "`rowmax`, `rowmin`, `rowsum`", _value("X[m, n] - rowmax(X[m, n]) + rowsum(X[m, n]) * rowmin(X[m, n])"), "TMA"
    ),
    Construct("`cumsum`", _value("cumsum(X[m, n])"), "TMA"),
    Construct("`a.T`, stored", _tile("X: f32[N, M], Y: f32[M, N]", "Y[m, n] = X[n, m].T"), "TMA"),
    Construct("`print`", _tile("X: f32[M, N], Y: f32[M, N]", "print(X[m, n])", "Y[m, n] = X[m, n]"), refused="PK914"),
    # Roles of an author
    Construct("`store`", _primitive("store(S.at(rank)[m, n], X[m, n])"), "TMA, signals"),
    Construct("`store_add`", _primitive("store_add(S.at(rank)[m, n], X[m, n])"), refused="PK510"),
    Construct(
        "`store_add`, with `deterministic=False`",
        _primitive("store_add(S.at(rank)[m, n], X[m, n])"),
        "threads, atomic additions, signals",
        schedule=_ANYHOW,
    ),
    Construct("`reduce`", _primitive("Y[m, n] = reduce(S[m, n])"), "threads, signals"),
    Construct("`reduce` with `max`, `min`", _primitive("Y[m, n] = reduce(S[m, n], max)"), "threads, signals"),
    Construct(
        "`all_reduce`",
        _by_author(
            "S: f32[M, N].symmetric(), at: signal[2]",
            "barrier(at[0])",
            "for m, n in tasks(blocks(M, 8, of=rank), blocks(N, 16)):",
            "    all_reduce(S[m, n])",
            "barrier(at[1])",
        ),
        "threads, signals",
    ),
    Construct(
        "`signal`, `signal_all`, `wait`",
        _by_author(
            "X: f32[16], Y: f32[ranks, 16], done: signal[2]",
            "for r in ring():",
            "    signal(done.at(r)[0], 1)",
            "signal_all(done[1], 1)",
            "wait(done[0], ranks)",
            "wait(done[1], ranks)",
            "for i in tasks(ranks):",
            "    Y[i, :] = X[:]",
        ),
        "TMA, signals",
    ),
    Construct("`barrier`", _primitive("Y[m, n] = S.at(ranks - 1 - rank)[m, n]"), "TMA, signals"),
)


BEGIN, END = "<!-- constructs: written by `python -m tools.constructs` -->\n", "<!-- end of constructs -->"


def page(text: str) -> str:
    """docs/language.md with a row for every construct."""
    rows = ["| construct | simulator | sm_90a |", "|---|---|---|", *(construct.row for construct in CONSTRUCTS)]
    start = text.index(BEGIN) + len(BEGIN)
    return text[:start] + "\n".join(rows) + "\n" + text[text.index(END) :]


if __name__ == "__main__":
    told.words(__doc__)
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
