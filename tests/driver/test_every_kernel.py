"""A schedule is chosen for every ordinary kernel: no operation is without a rate, and the choice says what it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import product

import pytest
from xdsl.ir import Attribute, Operation

from pkc.dialect.declaration import OPERATIONS, Semantics
from pkc.dialect.elementwise import Binary, SelectOp, SteepExpOp, Unary
from pkc.dialect.reductions import RowReduction
from pkc.dialect.types import f32, i1, i32
from pkc.driver.autoschedule import autoschedule
from pkc.driver.chosen import Autoschedule
from pkc.driver.compiler import compile_program
from pkc.frontend.elaborate import build_module
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes.run import run_pipeline
from pkc.passes.tile.simplify_arithmetic import SimplifyArithmetic
from pkc.targets.arch import ANY
from pkc.targets.sm_90a import TARGET
from tests.matmuls import FORMS, matmul
from tests.sweeps import sweep

SOFTMAX = """kernel k(A: f32[M, 64], C: f32[M]):
    for m in tasks(blocks(M, 64)):
        x = A[m]
        C[m] = rowsum(exp(x - rowmax(x)))
"""
HEAD = "kernel k({params}):\n    for m, n in tasks(blocks(M, 64), blocks(N, 64)):\n"
ELEMENTS: dict[Attribute, str] = {f32: "f32", i32: "i32", i1: "f32"}


def chosen(text: str, dims: Mapping[str, int], ranks: int = 1, **schedule: str) -> Autoschedule:
    return autoschedule(parse_text(Source("k.pk", text)), dims=dims, ranks=ranks, schedule=schedule)


def tiny(op: type[Operation], declared: Semantics, element: str) -> str:
    """A kernel of one operation on elements of a type, conditions being those of a comparison."""
    if op is SteepExpOp:  # no word of the language
        return SOFTMAX
    a, b = ("A[m, n]", "B[m, n]") if i1 not in declared.types or op is SelectOp else ("(A[m, n] > 0)", "(B[m, n] > 0)")
    if issubclass(op, Unary | RowReduction):
        result = f"{declared.word} {a}" if declared.word in ("-", "not") else f"{declared.word}({a})"
    elif op is SelectOp:
        result = f"where({a} > 0, {a}, {b})"
    else:
        assert issubclass(op, Binary)
        result = f"{declared.word}({a}, {b})" if declared.word in ("max", "min") else f"{a} {declared.word} {b}"
    if i1 in declared.types and op is not SelectOp:
        result = f"where({result}, A[m, n], B[m, n])"
    rows = issubclass(op, RowReduction)
    params = f"A: {element}[M, N], B: {element}[M, N], C: {element}[{'M' if rows else 'M, N'}]"
    loop = "    for m in tasks(blocks(M, 64)):\n        C[m] = " + result.replace(", n]", "]")
    whole = params.replace("N", "64")
    return f"kernel k({whole}):\n{loop}\n" if rows else f"{HEAD.format(params=params)}        C[m, n] = {result}\n"


DECLARED = [
    pytest.param(op, ELEMENTS[element], id=f"{op.name}-{ELEMENTS[element]}")
    for op, declared in OPERATIONS.items()
    for element in sorted(declared.types, key=str)
    if element is not i1 or op is not SelectOp
]


@pytest.mark.parametrize(("op", "element"), DECLARED)
def test_every_operation_has_a_rate(op: type[Operation], element: str) -> None:
    text = tiny(op, OPERATIONS[op], element)
    module = build_module(parse_text(Source("k.pk", text)))
    run_pipeline(module, (SimplifyArithmetic(),), verify_each=False)  # some stand for several of the language
    assert any(isinstance(found, op) for found in module.walk()), text
    found = chosen(text, {"M": 256, "N": 64} if "N]" in text else {"M": 256})
    assert found.taken is not None and "estimated" in str(found), found
    assert not any("no rate" in remark.reason or "no schedule" in remark.reason for remark in found.remarks)
    # One of its own, and not that of any operation.
    name = op.COMBINE.name if issubclass(op, RowReduction) else op.name
    assert TARGET.per_element(name) is not ANY


def test_an_operation_of_which_nothing_is_known_is_uncertain() -> None:
    assert TARGET.per_element("pk.unheard_of") is ANY
    assert ANY.error >= 1


MATMUL = """\
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += {a} @ B[k, n]
"""
TASKS = "    for m, n in tasks(blocks(M, 128), blocks(N, 128)):\n"
GEMM = "kernel k(A: bf16[M, K], B: bf16[K, N], D: bf16[K, N], bias: f32[N], C: bf16[M, N]):\n" + TASKS
ROWS = "kernel k(X: f32[M, N], Y: f32[M, N], Z: f32[M]):\n    for m in tasks(blocks(M, 128)):\n"
PAIR = "kernel k(X: f32[M, N], Y: f32[M, N]):\n" + TASKS
ORDINARY = {
    "copy": PAIR + "        Y[m, n] = X[m, n]\n",
    "activation": PAIR + "        x = X[m, n]\n        Y[m, n] = 0.5 * x * (1.0 + erf(x * 0.7071))\n",
    "cast": "kernel k(X: f32[M, N], Y: bf16[M, N]):\n" + TASKS + "        Y[m, n] = -X[m, n]\n",
    "transpose": "kernel k(X: f32[M, N], Y: f32[N, M]):\n" + TASKS + "        Y[n, m] = X[m, n].T\n",
    "row sums": ROWS
    + "        s = zeros(f32, m)\n        for n in blocks(N, 64):\n            s += rowsum(X[m, n])\n"
    + "        Z[m] = s\n",
    "softmax": "kernel k(X: f32[M, D], Y: f32[M, D], D: const = 128):\n    for m in tasks(blocks(M, 64)):\n"
    "        x = X[m]\n        e = exp(x - rowmax(x))\n        Y[m] = e / rowsum(e)\n",
    "normalisation": "kernel k(X: bf16[M, D], Y: bf16[M, D], D: const = 128):\n    for m in tasks(blocks(M, 64)):\n"
    "        x = X[m]\n        Y[m] = x * rsqrt(rowsum(x * x) / 128.0 + 0.00001)\n",
    "matmul with an epilogue": GEMM + MATMUL.format(a="A[m, k]") + "        C[m, n] = max(acc + bias[n], 0.0)\n",
    "matmul of a computed operand": GEMM + MATMUL.format(a="cast(max(A[m, k], 0.0), bf16)") + "        C[m, n] = acc\n",
    "two matmuls of a shape": GEMM
    + MATMUL.format(a="A[m, k]").replace("acc", "gate")
    + MATMUL.format(a="A[m, k]").replace("acc", "up").replace("B[", "D[")
    + "        C[m, n] = gate * sigmoid(gate) * up\n",
    "two matmuls of two shapes": "kernel k(A: bf16[M, K], B: bf16[K, N], H: bf16[M, N], D: bf16[N, K],"
    " C: bf16[M, K]):\n"
    + TASKS
    + MATMUL.format(a="A[m, k]")
    + "        H[m, n] = max(acc, 0.0)\n"
    + "    for m, k in tasks(blocks(M, 128), blocks(K, 128)):\n        acc = zeros(f32, m, k)\n"
    + "        for n in blocks(N, 64):\n            acc += H[m, n] @ D[n, k]\n        C[m, k] = acc\n",
    "lists that memory bounds": "kernel k(A: bf16[M, K], B: bf16[K, N], count: i32[E], C: bf16[M, N]):\n"
    "    for e in tasks(E):\n        for m, n in tasks(blocks(M, 128, stop=count[e]), blocks(N, 128)):\n"
    + "\n".join("    " + line if line else "" for line in MATMUL.format(a="A[m, k]").split("\n"))
    + "            C[m, n] = acc\n",
    "a branch": PAIR + "        x = X[m, n]\n        if start(m) > 0:\n            x = exp2(x)\n        Y[m, n] = x\n",
}
SIZES = ({"M": 16, "N": 4096}, {"M": 4096, "N": 4096})


ROTATED = [(name, SIZES[number % len(SIZES)]) for number, name in enumerate(ORDINARY)]


@pytest.mark.parametrize(("name", "sizes"), sweep(product(ORDINARY, SIZES), lambda *case: case in ROTATED), ids=str)
def test_ordinary_kernels_get_a_choice(name: str, sizes: dict[str, int]) -> None:
    text = ORDINARY[name]
    dims = {dim: size for dim, size in {**sizes, "K": 2048, "E": 4}.items() if re.search(rf"\[.*\b{dim}\b.*\]", text)}
    found = chosen(text, dims)
    assert found.taken is not None and found.instead is not None and found.taken.total > 0
    line = str(found)
    assert re.search(r"tasks? for 132 SMs.*; estimated [\d.]+ [mu]s", line), line
    assert "\n" not in line
    # What it was chosen over: the program's tiles, or the best of the others; but where there are none.
    if name != "a branch":
        assert " against " in line or re.search(
            r"; best of \d+ others: tile_\w+ = \d+.*, [\d.]+ us(, not taken: [a-z ]+)?", line
        ), line
    if found.schedule:
        # Tiles that only go through threads were measured: the fastest are taken, or those of a list.
        assert found.taken.total < (1.05 if found.taken.flows else 0.93) * found.instead.total


def test_the_less_is_measured_the_less_sure_is_an_estimate() -> None:
    """A matmul is estimated well, a copy is not; with other tiles both are off alike, so both take as small a gain."""
    copy, epilogue = (chosen(ORDINARY[name], {"M": 16, "N": 4096, **more}) for name, more in (
        ("copy", {}),
        ("matmul with an epilogue", {"K": 2048}),
    ))  # fmt: skip
    assert copy.taken is not None and epilogue.taken is not None
    assert (copy.taken.error, "give or take 50%" in str(copy)) == (0.5, True)
    assert epilogue.taken.error == pytest.approx(0.14)
    assert {copy.taken.doubt} == {0.14} and epilogue.schedule["tile_M"] == "16"
    assumed = chosen(ORDINARY["lists that memory bounds"], {"M": 64, "N": 256, "K": 64, "E": 4})
    assert str(assumed).endswith("; give or take 114%, assuming lists of blocks that are half as long as they may be)")


def test_what_the_user_sets_stays() -> None:
    dims = {"M": 16, "N": 4096, "K": 2048}
    text = ORDINARY["matmul with an epilogue"]
    assert chosen(text, dims, tile_N="128").schedule == {}
    staged = chosen(text, dims, stages="3").schedule
    assert staged and "stages" not in staged
    assert chosen(text.replace(TASKS, "    schedule(tile_K=64)\n" + TASKS), dims).schedule == {}


def tried(text: str, dims: Mapping[str, int]) -> set[str]:
    """The keys of all that was estimated."""
    return {key for _, settings in chosen(text, dims).others for key in settings}


def test_blocks_that_are_reduced_by_themselves_keep_their_size() -> None:
    """Else the program would be another."""
    dims = {"M": 256, "N": 256, "K": 256}
    pair = {"M": 256, "N": 256}
    each = PAIR + "        x = X[m, n]\n        Y[m, n] = exp(x - rowmax(x))\n"
    assert tried(each, pair) == {"tile_M", "consumers"}
    assert tried(PAIR + "        Y[m, n] = cumsum(X[m, n])\n", pair) == {"tile_M"}
    assert tried(ORDINARY["row sums"], pair) == {"tile_M", "tile_N"}
    assert tried(ORDINARY["row sums"].replace("Z[m] = s", "Z[m] = s / cast(len(blocks(N, 64)), f32)"), pair) == {
        "tile_M"
    }
    so_far = ORDINARY["row sums"].replace("        Z[m] = s\n", "            Y[m, n] = X[m, n] - s\n")
    assert tried(so_far, pair) == {"tile_M"}
    top = GEMM + MATMUL.format(a="A[m, k]") + "        C[m, n] = acc - rowmax(acc)\n"
    assert tried(top, dims) == {"tile_M", "tile_K", "consumers"}
    assert tried(ORDINARY["matmul with an epilogue"], dims) == {"tile_M", "tile_N", "tile_K", "consumers"}


COLUMNS = """\
kernel k(A: bf16[M, K], B: bf16[K, N], C: f32[M, N], s: f32[N].replicate(), q: f32[N].replicate()):
    for m, n in tasks(blocks(M, 128), blocks(N, 128)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] = acc
        s[n] += rowsum(acc.T)
        q[n] += rowsum((acc * acc).T)
"""


def test_tiles_that_do_not_fit_beside_shares_of_sums_are_smaller() -> None:
    """Shares are counted by rows, whose blocks stay; those of columns and of the sum of products need not."""
    assert tried(COLUMNS, {"M": 4096, "N": 4096, "K": 1024}) == {"tile_N", "tile_K", "consumers"}
    found = compile_program(parse_text(Source("k.pk", COLUMNS)), level="roles")
    (remark,) = (remark for remark in found.remarks if remark.step == "fit")
    assert "but tile_N=64:" in remark.reason


UNEVEN = ({"M": 100, "N": 72, "K": 136}, {"M": 37, "N": 100, "K": 200})
TURNS = [(form, UNEVEN[number % len(UNEVEN)]) for number, form in enumerate(FORMS)]


@pytest.mark.parametrize(("form", "dims"), sweep(product(FORMS, UNEVEN), lambda *case: case in TURNS), ids=str)
def test_tiles_that_are_chosen_have_instructions(form: str, dims: dict[str, int]) -> None:
    """Operands either way round, of few rows."""
    program = parse_text(Source("k.pk", matmul(form, "bf16", "bf16")))
    found = autoschedule(program, dims=dims, ranks=1).schedule
    assert compile_program(program, schedule=found, level="machine").kernel
