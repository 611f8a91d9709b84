"""What is run on GPUs: kernels, schedules, and sizes by the number of ranks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pkc.codegen.artifact import Artifact
from pkc.dialect.declaration import OPERATIONS
from pkc.dialect.reductions import RowReduction
from pkc.dialect.types import dtype_name, f32
from pkc.driver.builder import artifact_for
from pkc.driver.compiler import Compiled, compile_program, load_program
from pkc.frontend.parse import parse_text
from pkc.frontend.tree import Program
from pkc.location import Source
from tests.drawn import SEEDS, Drawn, draw
from tests.exchanges import DIMS, PAIRS, exchange
from tests.functions import elements, program
from tests.matmuls import FORMS, LOOPS, SUMS, matmul
from tests.tiles import EPILOGUES, OVER_RANKS, TILES
from tests.written import WRITTEN

EXAMPLES = Path(__file__).parents[2] / "examples"

_RANKS_OF_MANY_SMS = 4
"""Ranks that can share one GPU with 16 SMs that communicate each."""

Dims = dict[str, int]
Sizes = Callable[[int], Sequence[Dims]]
"""The sizes to run on a number of ranks; the last one is launched many times."""


@dataclass(frozen=True)
class Case:
    """A kernel under a schedule; `text` is the name of an example or a program.

    `alone` if ranks do not wait for each other; then few numbers of ranks are enough. `refused` has sizes that the
    hardware does not support, with the code of the diagnostic.
    """

    name: str
    text: str
    sizes: Sizes
    schedule: dict[str, str] = field(default_factory=dict)
    constants: dict[str, int] = field(default_factory=dict)
    alone: bool = False
    refused: tuple[tuple[Dims, str], ...] = ()

    def program(self) -> Program:
        if "\n" in self.text:
            return parse_text(Source(f"{self.name}.pk", self.text))
        return load_program(EXAMPLES / f"{self.text}.pk")

    def tile_level(self) -> Compiled:
        """The kernel at the tile level."""
        return compile_program(self.program(), constants=self.constants, schedule=self.schedule)

    def artifact(self, ranks: int, dims: Dims) -> Artifact:
        """The machine code for these sizes. Raises `PkcError`."""
        given = {"constants": self.constants, "schedule": self.schedule}
        return artifact_for(self.program(), dims=dims, ranks=ranks, **given)


# Sizes. M is any number from 1 up; N and K are lengths of rows of arrays, multiples of 16 bytes if not said otherwise.


def _matrices(step: int = 8) -> Sizes:
    def sizes(ranks: int) -> Sequence[Dims]:
        found = [
            (1, step, step),
            (7, 264, 3 * step),
            (16, step, 64),
            (127, 256, 72),
            (129, 264, 136),
            (128 * ranks, 512, 256),
            (61 * ranks + 5, 520, 200),
        ]
        return [{"M": m, "N": _up(n, step), "K": _up(k, step)} for m, n, k in found]

    return sizes


def _scaled(ranks: int) -> Sequence[Dims]:
    """Matrices whose scales are for blocks of 128."""
    found = [(1, 16, 128), (300, 264, 400), (512, 512, 1024)]
    return [{"M": m, "N": n, "K": k, "G": -(-k // 128), "H": -(-n // 128)} for m, n, k in found]


def _few(of: Sizes) -> Sizes:
    """The smallest, one around a block, the last one."""
    return lambda ranks: [of(ranks)[0], of(ranks)[4], of(ranks)[-1]]


def _up(size: int, step: int) -> int:
    return -(-size // step) * step


def _transposed(of: Sizes) -> Sizes:
    """M is the length of rows of A."""
    return lambda ranks: [dims | {"M": _up(dims["M"], 8)} for dims in of(ranks)]


def _collective(ranks: int) -> Sequence[Dims]:
    found = [(1, 8), (7, 264), (16, 24), (128, 256), (129, 264), (128 * ranks, 512), (61 * ranks + 5, 520)]
    return [{"M": m, "N": n} for m, n in found]


def _even_and_uneven(ranks: int) -> Sequence[Dims]:
    """Shards of whole blocks, of parts of them, of rows that do not suit TMA."""
    found = [(2 * ranks, 32 * ranks, 64 * ranks), (5, 13 * ranks + 1, 40), (3, 48 * ranks, 96 * ranks), (4, 35, 131)]
    return [{"A": a, "B": b, "C": c} for a, b, c in found]


def _sequence(ranks: int) -> Sequence[Dims]:
    found = [(1, 1, 1), (1, 3, 7), (2, 1, 127), (1, ranks, 128 * ranks), (1, 2, 129), (2, 3, 53 * ranks + 2)]
    return [{"B": b, "H": h, "S": s} for b, h, s in found]


def _halves(ranks: int) -> Sequence[Dims]:
    """Halves of shards of whole blocks of 64, of parts of them, of several."""
    return [{"B": 1, "H": 2, "S": s} for s in (128 * ranks, 70 * ranks + 3, 512 * ranks)]


def _one_gpu(ranks: int) -> Sequence[Dims]:
    found = [(1, 1, 1, 1), (1, 3, 7, 130), (2, 1, 127, 64), (1, 2, 256, 256), (1, 2, 129, 1), (2, 3, 145, 203)]
    return [{"B": b, "H": h, "S": s, "T": t} for b, h, s, t in found]


def _groups(group: int) -> Sizes:
    """Heads of Q by groups, more and fewer rows than keys."""
    found = [(1, 1, 1, 1), (1, 2, 7, 130), (2, 1, 127, 64), (1, 2, 256, 256), (1, 1, 129, 1), (2, 2, 145, 403)]
    return lambda ranks: [{"B": b, "H": group * g, "G": g, "S": s, "T": t} for b, g, s, t in found]


def _packed(group: int) -> Sizes:
    """Heads of K and V, rows and keys of all sequences, one more than sequences: empty, of one row, of many blocks."""
    found = [(1, 1, 1, 2), (2, 130, 257, 3), (1, 129, 64, 40), (3, 900, 1700, 9)]
    return lambda ranks: [{"H": group * g, "G": g, "S": s, "T": t, "N": n} for g, s, t, n in found]


def _decoded(ranks: int) -> Sequence[Dims]:
    """Heads of K and V, rows for each, room for keys."""
    found = [(1, 1, 1), (5, 5, 301), (2 * ranks, 16, 1000), (3 * ranks + 1, 20, 2050)]
    return [{"H": h, "R": r, "T": t} for h, r, t in found]


def _nested(ranks: int) -> Sequence[Dims]:
    return [{"E": 1, "M": 1, "N": 8}, {"E": 3, "M": 1000, "N": 264}]


def _more_than_ctas(dims: Dims) -> Sizes:
    """More tasks than a GPU has SMs; not on every number of ranks, as it takes long."""
    return lambda ranks: [dims] if ranks in (1, 4) else []


# Programs

NESTED = """\
kernel nested(X: bf16[E, M, N], Y: bf16[E, M, N]):
    for e in tasks(E):
        for m, n in tasks(blocks(M, 64), blocks(N, 64)):
            Y[e, m, n] = cast(cast(X[e, m, n], f32) * 0.5, bf16)
"""

ACTIVATIONS = """\
def scaled(x, by):
    return x * by

def gelu(x):
    inner = scaled(x, 0.7071067811865476)
    return scaled(x, 0.5) * (1.0 + erf(inner))

def power(x, n):
    y = x
    for i in range(n - 1):
        y *= x
    return y

"""
EPILOGUE = f"""\
{ACTIVATIONS}kernel mlp_up(X: bf16[M, K], W: bf16[K, N], bias: f32[N], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 128)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += X[m, k] @ W[k, n]
        Y[m, n] = gelu(acc + bias[n])
"""
ELEMENTWISE = f"""\
{ACTIVATIONS}kernel activated(X: f32[M, N], Y: f32[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        Y[m, n] = gelu(power(X[m, n], 3))
"""
ROW_SUMS = """\
kernel sums(X: f32[M, N], Z: f32[M]):
    for m in tasks(blocks(M, 128)):
        s = zeros(f32, m)
        for n in blocks(N, 64):
            s += rowsum(X[m, n])
        Z[m] = s
"""
FROM_MEMORY = {
    "copies": """\
kernel copies(count: i32[E], X: bf16[E, M, N], Y: bf16[E, M, N]):
    for e in tasks(E):
        for m, n in tasks(blocks(M, 64, stop=count[e]), blocks(N, 64)):
            Y[e, m, n] = X[e, m, n]
""",
    "indices": """\
kernel indices(count: i32[E], row: i32[E, M], wanted: i32[E], X: bf16[M, N], Y: bf16[E, M, N]):
    for e in tasks(E):
        for i, n in tasks(blocks(M, 1, stop=count[e]), blocks(N, 64)):
            if wanted[e] > 50:
                Y[e, i, n] = X[row[e, i], n]
""",
    "sums": """\
kernel sums(first: i32[E], end: i32[E], X: bf16[E, M, N], Y: f32[E, M]):
    for e, m in tasks(E, blocks(M, 64)):
        acc = zeros(f32, m)
        for n in blocks(N, 64, start=first[e], stop=end[e]):
            acc = acc + rowsum(cast(X[e, m, n], f32))
        Y[e, m] = acc
""",
    "matmuls": """\
kernel matmuls(count: i32[E], end: i32[E], A: bf16[E, M, K], B: bf16[E, K, N], C: bf16[E, M, N]):
    for e in tasks(E):
        for m, n in tasks(blocks(M, 128, stop=count[e]), blocks(N, 128)):
            acc = zeros(f32, m, n)
            for k in blocks(K, 64, stop=end[e]):
                acc += A[e, m, k] @ B[e, k, n]
            C[e, m, n] = acc
""",
}

LONG_ROWS = {
    "softmax": """\
        x = cast(X[m, :], f32)
        e = exp(x - rowmax(x))
        Y[m, :] = e / rowsum(e) * w[:]
        Z[m] = rowmax(x)
""",
    "layernorm": """\
        x = cast(X[m, :], f32)
        c = x - rowsum(x) / LENGTH.0
        s = rsqrt(rowsum(c * c) / LENGTH.0 + 0.001)
        Y[m, :] = c * s * w[:]
        Z[m] = s
""",
    "loss": """\
        x = X[m, :] * 0.5
        Y[m, :] = x
        Z[m] = log(rowsum(exp(x - rowmax(x)))) + rowmax(x)
""",
}

_OPERANDS = {"16 bits": ("B: {t}[K, N]", "B[k, n]"), "8 bits": ("B: {t}[N, K]", "B[n, k].T")}
_COLLECTIVES = {
    "rs": ("A: {t}[M, K]", "C: {c}[M, N].shard(0)", "+="),
    "ar": ("A: {t}[M, K]", "C: {c}[M, N].replicate()", "+="),
    "ag": ("A: {t}[M, K].shard(0)", "C: {c}[M, N]", "="),
}


def with_collective(family: str, kind: str, result: str) -> str:
    """A matmul with a collective, of other element types than those of the examples."""
    left, target, write = _COLLECTIVES[family]
    right, operand = _OPERANDS["8 bits" if kind in ("e4m3", "e5m2") else "16 bits"]
    arrays = ", ".join((left, right, target)).format(t=kind, c=result)
    return (
        f"kernel matmul_{family}({arrays}):\n"
        "    for m, n in tasks(blocks(M, 128), blocks(N, 128)):\n"
        "        acc = zeros(f32, m, n)\n"
        "        for k in blocks(K, 64):\n"
        f"            acc += A[m, k] @ {operand}\n"
        f"        C[m, n] {write} acc\n"
    )


# The table


def _scheduled(text: str, sizes: Sizes, *schedules: str, **more: bool) -> Iterator[Case]:
    """A kernel with the default schedule at all sizes, and with others at few."""
    yield Case(text, text, sizes, **more)
    for schedule in schedules:
        yield Case(f"{text} {schedule}", text, _few(sizes), _settings(schedule), **more)


def _settings(schedule: str) -> dict[str, str]:
    return dict(setting.split("=") for setting in schedule.split(",") if setting)


def _table() -> Iterator[Case]:
    matrices = _matrices()
    sums = (
        "overlap=none",
        "overlap=intra_sm",
        "overlap=inter_sm",
        "overlap=inter_sm,comm_sms=8",
        "overlap=copy_engine",
        "straddle=true,tile_M=32,tile_N=64",
    )
    splits = ("split_K=2,tile_M=64,tile_N=64", "split_K=5,tile_M=16,tile_N=64,tile_K=32")
    little = ("tile_M=2,tile_N=64,tile_K=128", "tile_M=4,tile_N=16,tile_K=256", "tile_M=3,tile_N=128,split_K=2")
    orders = ("order=natural", "order=local_first", "order=local_last", "order=ring")
    yield from _scheduled(
        "gemm", matrices, "stages=1", "stages=2", "consumers=2", "order=natural", *splits, *little, alone=True
    )
    yield Case("gemm uneven", "gemm", _uneven, alone=True)
    yield Case(f"gemm uneven {splits[0]}", "gemm", _uneven, _settings(splits[0]), alone=True)
    for family in ("ag_gemm", "gemm_rs", "gemm_ar"):
        for schedule in ("", "overlap=none", "overlap=intra_sm", "overlap=inter_sm,comm_sms=8", "overlap=copy_engine"):
            yield Case(f"{family} uneven {schedule}".strip(), family, _uneven, _settings(schedule))
    yield from _tiles()
    yield Case("gemm_fp8", "gemm_fp8", _matrices(16), alone=True)
    yield Case("gemm_fp8 uneven", "gemm_fp8", _uneven, alone=True)
    yield Case("gemm_fp8_blocks", "gemm_fp8_blocks", _scaled, alone=True)
    yield Case("gemm_fp8_blocks tile_M=128", "gemm_fp8_blocks", _scaled, {"tile_M": "128"}, alone=True)
    for kind in ("bf16", "f16"):
        for form in FORMS:
            sizes = _transposed(matrices) if form.startswith("t") else matrices
            yield Case(f"matmul {kind} {form}", matmul(form, kind, kind), _few(sizes), alone=True)
        yield Case(f"matmul {kind} into {kind}", matmul("nn", kind, kind, c=kind), _few(matrices), alone=True)
    for a, b in (("e4m3", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "e4m3"), ("e5m2", "e5m2")):
        yield Case(f"matmul {a} {b}", matmul("nt", a, b), _few(_matrices(16)), alone=True)
    for name, text in LOOPS.items():
        sizes = _few(matrices) if name != "outer" else lambda _: [{"M": 300, "N": 200, "L": count} for count in (1, 9)]
        yield Case(f"loop {name}", text, sizes, alone="shard" not in text)
    yield Case("sums two", SUMS["two"], _few(matrices))
    yield Case("sums rows", SUMS["rows"], lambda ranks: [{"M": 61 * ranks + 5, "K": 200}, {"M": 3000, "K": 72}])
    for consumers, rows in ((1, 64), (2, 256), (3, 192)):
        text, schedule = matmul("nn", "bf16", "bf16", rows=rows, columns=64), {"consumers": str(consumers)}
        yield Case(f"matmul consumers={consumers}", text, _few(matrices), schedule, alone=True)
    yield Case("tasks in tasks", NESTED, _nested, alone=True)
    yield from _scheduled("gemm_rs", matrices, *sums, *orders, *splits, *little, "stages=1", "transfer=push")
    yield from _scheduled("gemm_ar", matrices, *sums, *splits, "order=natural", "stages=1")
    pushed = "overlap=inter_sm,transfer=push"
    separate = [
        f"separate_loader=true,{sizes}" for sizes in ("tile_N=128", "tile_M=16,tile_N=32,straddle=true", splits[0])
    ]
    more = (*separate, "stages=1", pushed, f"{pushed},{splits[0]}")
    yield from _scheduled("ag_gemm", matrices, *sums, *orders, *splits, *little, *more)
    for family in _COLLECTIVES:
        yield Case(f"matmul_{family} f16", with_collective(family, "f16", "f16"), _few(matrices))
        yield Case(f"matmul_{family} f16 f32", with_collective(family, "f16", "f32"), _few(matrices))
        yield Case(f"matmul_{family} e4m3", with_collective(family, "e4m3", "bf16"), _few(_matrices(16)))
    for name in ("gemm", "gemm_rs", "gemm_ar", "ag_gemm"):
        sizes = _more_than_ctas({"M": 2500, "N": 2056, "K": 72})
        yield Case(f"{name} many tasks", name, sizes, alone=name == "gemm")
    heads = _more_than_ctas({"B": 4, "H": 40, "S": 129})
    yield Case("ring_attention many tasks", "ring_attention", heads)
    yield Case("functions in an epilogue", EPILOGUE, _few(matrices), alone=True)
    yield Case("functions of elements", ELEMENTWISE, _few(_collective), alone=True)
    yield Case("swiglu", "swiglu", matrices, alone=True)
    yield Case("mlp", "mlp", lambda ranks: [{**dims, "P": dims["K"]} for dims in matrices(ranks)], alone=True)
    yield Case("sums of rows", ROW_SUMS, _few(_collective), alone=True)
    yield from _attention()
    yield from _from_memory()
    yield from _by_tables()
    for name in ("all_gather", "all_to_all", "reduce_scatter", "all_reduce"):
        yield from _scheduled(name, _collective, "overlap=copy_engine")
        text = (EXAMPLES / f"{name}.pk").read_text(encoding="utf-8")
        for kind in ("f16", "f32"):
            yield Case(f"{name} {kind}", text.replace("bf16", kind), _few(_collective))
    for name in ("all_reduce", "gemm_ar"):
        sizes = _matrices() if name.startswith("gemm") else _collective
        for schedule in ("all_reduce=one_shot", "all_reduce=one_shot,tile_M=8,tile_N=64"):
            yield Case(f"{name} {schedule}", name, sizes, _settings(schedule))
    for before, after in PAIRS:
        for kind in ("bf16", "f32") if before + after == DIMS.index("C") else ("bf16",):
            name = f"exchange {DIMS[before]} to {DIMS[after]}, {kind}"
            yield Case(name, exchange(before, after, kind), _even_and_uneven)
    yield from _written()
    yield from _functions()
    yield from _inference()
    yield from _long_rows()
    for drawn in map(draw, SEEDS):
        yield Case(drawn.name, drawn.text, _drawn(drawn), alone=not drawn.over)


def _drawn(drawn: Drawn) -> Sizes:
    return lambda ranks: [drawn.dims(ranks, uneven=uneven) for uneven in (False, True)]


def _inference() -> Iterator[Case]:
    """Norms and losses over ranks, at rows as long as models have them, and in pieces."""
    for path in sorted((EXAMPLES / "inference").glob("*.pk")):
        text = path.read_text(encoding="utf-8")
        found = re.search(r"(\w): const", text)
        length = found[1] if found else ""
        few, more = {"M": 9, "N": 264, "K": 136, "V": 264, "H": 264, "T": 37}, LARGE | {"M": 200, "T": 128}
        sizes = _of(text, *({dim: size for dim, size in each.items() if dim != length} for each in (few, more)))
        if not length:
            yield Case(f"inference {path.stem}", text, sizes)
            continue
        for constant, schedule in ((1024, {}), (1000, {}), (1000, {"row": "256"})):
            name = f"inference {path.stem} {length}={constant}" + ", in pieces" * bool(schedule)
            yield Case(name, text, sizes, schedule, {length: constant})
        if length == "V":
            long: Sizes = lambda ranks, sizes=sizes: sizes(ranks)[:1]  # noqa: E731
            yield Case(f"inference {path.stem} {length}=37984", text, long, constants={length: 37984})


def _long_rows() -> Iterator[Case]:
    """Rows in pieces, with a rest of any length."""
    sizes: Sizes = lambda ranks: [{"M": 1}, {"M": 150}]  # noqa: E731
    for length, row in ((151936, ""), (32768, ""), (4480, "1024"), (1000, "256"), (333, "64")):
        for name, body in LONG_ROWS.items():
            text = f"kernel {name}(X: bf16[M, {length}], w: bf16[{length}], Y: bf16[M, {length}], Z: f32[M]):\n"
            for head in ("tasks(M)", "tasks(blocks(M, 4))"):
                whole = f"{text}    for m in {head}:\n{body.replace('LENGTH', str(length))}"
                given = {"row": row} if row else {}
                yield Case(f"rows of {length}: {name}, {head}", whole, sizes, given, alone=True)


def _written() -> Iterator[Case]:
    """Roles that an author wrote; those with 16 SMs only where ranks have more."""
    for name, sizes in (("ag_gemm_explicit", _matrices()), ("all_reduce_explicit", _collective)):
        yield Case(name, name, lambda ranks, sizes=sizes: sizes(ranks) if ranks <= _RANKS_OF_MANY_SMS else [])
        yield Case(f"{name} comm_sms=4", name, _few(sizes), {"comm_sms": "4"})
    for kind in ("f16", "f32"):
        text = (EXAMPLES / "all_reduce_explicit.pk").read_text(encoding="utf-8").replace("bf16", kind)
        yield Case(f"all_reduce_explicit {kind}", text, _few(_collective), {"comm_sms": "4"})
    for name, text in WRITTEN.items():
        sizes: Sizes = lambda _: [{}]  # noqa: E731
        if "M, N]" in text:
            sizes = _few(_matrices() if "K]" in text else _collective)
        for kind in ("bf16", "f16", "f32"):
            yield Case(f"written: {name}, {kind}", text.replace("f32[", f"{kind}["), sizes)


def _lists(names: Sequence[str]) -> Sizes:
    """Numbers of lists, the most rows that each of them has, and how long these are."""
    found = [(1, 1, 8, 8), (3, 63, 24, 40), (5, 129, 136, 72), (33, 200, 264, 136)]
    return lambda ranks: [dict(zip(names, size, strict=False)) for size in found]


def _experts(ranks: int) -> Sequence[Dims]:
    """Tokens of all ranks, experts of each, the most tokens of an expert, lengths of rows."""
    found = [
        (1, 1, 1, 8, 8),
        (7 * ranks, 2, 130, 264, 72),
        (61 * ranks + 5, 3, 129, 72, 520),
        (128 * ranks, 4, 300, 256, 256),
        (40 * ranks + 3, 9, 77, 200, 264),
    ]
    return [{"T": t, "E": e, "P": p, "H": h, "N": n} for t, e, p, h, n in found]


_CAPACITY = 128
"""The most rows of an expert; more than `draw_inputs` gives."""


def _token_rows(ranks: int) -> Sequence[Dims]:
    """Tokens of all ranks and of one, experts of each, choices of a token, lengths of rows."""
    found = [(1, 1, 1, 1, 8, 8), (7 * ranks, 7, 2, 2, 264, 72), (61 * ranks + 5, 66, 3, 3, 72, 136)]
    found.append((128 * ranks, 128, 4, 8, 256, 256))
    names = "STEKHN"
    return [dict(zip(names, dims, strict=True)) | {"R": dims[2] * _CAPACITY} for dims in found]


def _returned(ranks: int) -> Sequence[Dims]:
    """The same, of what experts give back."""
    return [{dim: dims[dim] for dim in "RHKT"} for dims in _token_rows(ranks)]


def _combined(ranks: int) -> Sequence[Dims]:
    """The same, with rows of tables of a multiple of 16 bytes."""
    return [{"T": dims["T"], "E": dims["E"], "P": _up(dims["P"], 4), "N": dims["N"]} for dims in _experts(ranks)]


def _grouped(ranks: int) -> Sequence[Dims]:
    """The same, of rows that are here."""
    return [{"E": dims["E"], "P": dims["P"], "K": dims["H"], "N": dims["N"]} for dims in _experts(ranks)]


def _by_tables() -> Iterator[Case]:
    """Rows that tables pick, on all ranks, on this one, on one that the table names."""
    schedules = ("overlap=none", "overlap=intra_sm", "overlap=inter_sm,comm_sms=8", "overlap=copy_engine")
    yield from _scheduled("moe_dispatch_gemm", _experts, *schedules)
    yield Case("moe_gather_combine", "moe_gather_combine", _returned)
    for schedule in ("", "overlap=intra_sm", "overlap=inter_sm,comm_sms=4", "overlap=copy_engine"):
        name = f"moe_mlp {schedule}".strip()
        yield Case(name, "moe_mlp", _token_rows, _settings(schedule), {"P": _CAPACITY})
    text = (EXAMPLES / "moe_dispatch_gemm.pk").read_text(encoding="utf-8")
    private = text.replace("X: bf16[T, H].shard(0)", "X: bf16[T, H]")
    named = text.replace(".shard(0)", ".symmetric()").replace("rows: i32[E, P]", "rows: i32[E, P, 2]")
    anyhow = {"deterministic": "False"}
    yield Case("moe_combine", "moe_combine", _combined, anyhow)
    combine = (EXAMPLES / "moe_combine.pk").read_text(encoding="utf-8")
    for kind in ("f16", "f32"):
        settings = anyhow | {"tile_N": "64"}
        yield Case(f"moe_combine {kind}", combine.replace("bf16", kind), _few(_combined), settings)
    yield Case("grouped_gemm", "grouped_gemm", _grouped, alone=True)
    for name in ("all_reduce", "reduce_scatter", "gemm_ar", "gemm_rs"):
        sizes = _few(_matrices() if name.startswith("gemm") else _collective)
        yield Case(f"{name} deterministic=False", name, sizes, anyhow)
    yield Case("moe_combine replicated", combine.replace(".shard(0)", ".replicate()"), _few(_combined), anyhow)
    yield Case("moe_dispatch_gemm private", private, _experts, alone=True)
    yield Case("moe_dispatch_gemm symmetric", named, _experts)


def _from_memory() -> Iterator[Case]:
    """Tasks, blocks and conditions that arrays decide."""
    for name, text in FROM_MEMORY.items():
        yield Case(f"from memory {name}", text, _lists("EMNK" if "[E, K, N]" in text else "EMN"), alone=True)


def _tiles() -> Iterator[Case]:
    """Epilogues, and tiles that meet no MMA: at rows that suit TMA, and at others."""
    for name, text in (EPILOGUES | OVER_RANKS | TILES).items():
        alone = name not in OVER_RANKS
        # Where A or A.T is square, M is the length of rows too.
        yield Case(f"tiles {name}", text, _of(text, ALIGNED, LARGE), alone=alone)
        yield Case(f"tiles {name} uneven", text, _of(text, UNEVEN), alone=alone)


ALIGNED = {"B": 3, "H": 136, "M": 136, "N": 264, "K": 136, "S": 72, "V": 264}
UNEVEN = {"B": 3, "H": 131, "M": 131, "N": 259, "K": 133, "S": 71, "V": 261}
LARGE = {"B": 5, "H": 512, "M": 512, "N": 1024, "K": 512, "S": 512, "V": 1024}


def _of(text: str, *sizes: Dims) -> Sizes:
    """Sizes of the dimensions that a program has; M is of all ranks together."""
    head = text.partition(":\n")[0]
    found = [{dim: size for dim, size in each.items() if re.search(rf"[\[ ]{dim}[,\]]", head)} for each in sizes]
    return lambda ranks: [dims | ({"M": dims["M"] * ranks} if "M" in dims else {}) for dims in found]


def _uneven(ranks: int) -> Sequence[Dims]:
    """Rows that begin at no multiple of 16 bytes."""
    return [
        {"M": 1, "N": 1, "K": 1},
        {"M": 61 * ranks + 5, "N": 131, "K": 77},
        {"M": 128 * ranks, "N": 260, "K": 132},
    ]


def _functions() -> Iterator[Case]:
    """Every declared operation; `tests/gpu/functions.py` runs those element by element on all kinds of numbers."""
    for op in OPERATIONS:
        sizes = _few(_rows if issubclass(op, RowReduction) else _collective)
        for element in elements(op):
            text = program(op, element, positive=element == f32)
            yield Case(f"{op.name} {dtype_name(element)}", text, sizes, alone=True)


def _rows(ranks: int) -> Sequence[Dims]:
    return [{"M": dims["M"]} for dims in _collective(ranks)]


def _attention() -> Iterator[Case]:
    overlaps = ("overlap=none", "overlap=intra_sm", "overlap=inter_sm,comm_sms=8", "overlap=copy_engine")
    yield Case("attention", "attention", _one_gpu, alone=True)
    yield Case("attention causal", "attention", _one_gpu, constants={"causal": True}, alone=True)
    for name in ("attention", "ring_attention", "ulysses_attention"):
        text, sizes = (
            (EXAMPLES / f"{name}.pk").read_text(encoding="utf-8"),
            _one_gpu if name == "attention" else _sequence,
        )
        few, alone = _few(sizes), name == "attention"
        yield Case(f"{name} D=64", name, few, constants={"D": 64}, alone=alone)
        yield Case(f"{name} f16", text.replace("bf16", "f16"), few, alone=alone)
    for constants in ({"D": 256}, {"D": 256, "causal": True}):
        listed = ", ".join(f"{name}={value}" for name, value in constants.items())
        yield Case(f"attention {listed}", "attention", _one_gpu, {"tile_T": "64"}, constants, alone=True)
    for group in (1, 3, 4):
        for causal in (False, True):
            constants = {"group": group, "causal": causal}
            name = f"grouped_attention group={group}" + ", causal" * causal
            yield Case(name, "grouped_attention", _groups(group), constants=constants, alone=True)
    yield Case("grouped_attention D=64", "grouped_attention", _few(_groups(4)), constants={"D": 64}, alone=True)
    for window in (1, 70, 128):
        constants = {"window": window}
        yield Case(f"window_attention window={window}", "window_attention", _one_gpu, constants=constants, alone=True)
    for constants in ({}, {"causal": True}, {"D": 64}, {"group": 3, "causal": True}):
        listed = "".join(f" {name}={value}" for name, value in constants.items())
        sizes = _packed(constants.get("group", 1))
        yield Case(f"packed_attention{listed}", "packed_attention", sizes, constants=constants, alone=True)
    yield Case("packed_attention tile_T=160", "packed_attention", _packed(1), {"tile_T": "160"}, alone=True)
    for constants in ({}, {"splits": 1}, {"splits": 7, "D": 64}):
        listed = "".join(f" {name}={value}" for name, value in constants.items())
        yield Case(f"decode_attention{listed}", "decode_attention", _decoded, constants=constants)
    yield from _scheduled("ring_attention", _sequence, *overlaps)
    yield Case("ring_attention causal", "ring_attention", _sequence, constants={"causal": True})
    zigzag = {"causal": True, "zigzag": True}
    yield Case("ring_attention zigzag", "ring_attention", _sequence, constants=zigzag)
    for schedule in overlaps:
        settings = dict(setting.split("=") for setting in schedule.split(","))
        yield Case(f"ring_attention zigzag {schedule}", "ring_attention", _few(_sequence), settings, zigzag)
    yield Case("ring_attention zigzag tile_S=64", "ring_attention", _halves, {"tile_S": "64"}, zigzag)
    yield from _scheduled("ulysses_attention", _sequence, *overlaps)


CASES: tuple[Case, ...] = tuple(_table())
