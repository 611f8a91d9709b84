"""The kernels of the operators: matmuls, for each type and each order in which the right operand lies in memory,
and examples."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Sequence
from pathlib import Path

from pkc.frontend.known import read_text
from pkc.frontend.tree import Program
from pkc.frontend.words import Reading
from pkc.kernels import Kernel
from pkc.location import Source

TYPES = {"bfloat16": "bf16", "float16": "f16"}
"""Element types that the kernels multiply, by torch's names."""

_MOVED = TYPES | {"int32": "i32"}
"""Those that they move."""

EXAMPLES = (
    "all_gather",
    "attention_delta",
    "attention_dkdv",
    "attention_dq",
    "grouped_attention",
    "grouped_ring_attention",
    "moe_mlp",
    "ring_attention_dkdv",
    "ring_attention_dq",
    "ulysses_attention",
)
"""The examples that operators run; an installed package has these."""

_PLACED = (
    ("e * P", "first[e]"),
    ("count: i32[E],", "first: i32[E], count: i32[E],"),
    (", P: const = 1024", ""),
)
"""What of `moe_mlp` is otherwise where experts' rows lie one behind the other."""

_FOLDERS = tuple(folder / "examples" for folder in Path(__file__).parents[1:3])
"""Where the examples are: in an installed package, and in a checkout."""

_SOURCE = """\
kernel {name}(A: {type}[M, K]{gathered}, B: {type}[{right}], C: {type}[M, N]{summed}):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ {tile}
        C[m, n] {stored}
"""


_ACTIVATED = """\
def gelu(x):
    return 0.5 * x * (1.0 + erf(x * 0.7071067811865476))

def gelu_tanh(x):
    return 0.5 * x * (1.0 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))

def silu(x):
    return x * sigmoid(x)

def relu(x):
    return max(x, 0.0)

kernel all_gather_matmul_{activation}(A: {type}[M, K].shard(0), {arrays}):
    for m, n in tasks(blocks(M, 128), blocks(N, {columns})):
{zeros}
        for k in blocks(K, 64):
{matmuls}
{behind}
        C[m, n] = {value}
"""

ACTIVATIONS = ("gelu", "gelu_tanh", "silu", "relu")
"""Those that kernels compute, by what torch calls them."""


@functools.cache
def matmul(dtype: str) -> Kernel:
    """C = A @ B on one GPU."""
    return _kernel("matmul", dtype, transposed=False)


@functools.cache
def gather_matmul(dtype: str, *, transposed: bool) -> Kernel:
    """C = all_gather(A) @ B over rows of A; B is `[K, N]` in memory, or `[N, K]` if `transposed`."""
    return _kernel("all_gather_matmul", dtype, transposed, gathered=".shard(0)")


@functools.cache
def gather_activated(
    dtype: str, activation: str, *, transposed: Sequence[bool], biased: bool = False, kept: bool = False
) -> Kernel:
    """C = activation(all_gather(A) @ B + b), or, if two operands may be `transposed`, that times all_gather(A) @ V + v.

    Without `b` and `v` unless `biased`; the products are P and Q if they are `kept`.
    """
    kind, names = TYPES[dtype], list(zip("BV", "bv", "PQ", transposed, strict=False))
    product = f"{kind}[M, N]"
    arrays = [f"{right}: {kind}[{_right(right, turned)[0]}]" for right, _, _, turned in names]
    arrays += [f"{bias}: {kind}[N]" for _, bias, _, _ in names if biased]
    arrays += [f"C: {product}", *(f"{whole}: {product}" for _, _, whole, _ in names if kept)]
    zeros, matmuls, behind, factors = list[str](), list[str](), list[str](), list[str]()
    for right, bias, whole, turned in names:
        tile = whole.lower()
        zeros.append(f"        {tile} = zeros(f32, m, n)")
        matmuls.append(f"            {tile} += A[m, k] @ {_right(right, turned)[1]}")
        if biased:
            behind.append(f"        {tile}_{bias} = {tile} + cast({bias}[n], f32)")
            tile = f"{tile}_{bias}"
        if kept:
            behind.append(f"        {whole}[m, n] = {tile}")
        factors.append(tile)
    text = _ACTIVATED.format(
        activation=activation,
        type=kind,
        arrays=", ".join(arrays),
        columns=256 // len(names),
        zeros="\n".join(zeros),
        matmuls="\n".join(matmuls),
        behind="\n".join(behind),
        value=" * ".join([f"{activation}({factors[0]})", *factors[1:]]),
    )
    name = f"all_gather_matmul_{activation}"
    return Kernel(lambda: Reading(_parsed(name, text)), name)


@functools.cache
def matmul_scatter(dtype: str, *, transposed: bool, average: bool) -> Kernel:
    """C = reduce_scatter(A @ B) over rows, the sum or the `average`."""
    return _kernel("matmul_reduce_scatter", dtype, transposed, summed=".shard(0)", average=average)


@functools.cache
def matmul_reduce(dtype: str, *, transposed: bool, average: bool) -> Kernel:
    """C = all_reduce(A @ B), the sum or the `average`."""
    return _kernel("matmul_all_reduce", dtype, transposed, summed=".replicate()", average=average)


@functools.cache
def example(name: str, dtype: str) -> Program:
    """The program of an example, for tensors of a type in place of bf16."""
    return _parsed(name, _text(name).replace("bf16", _MOVED[dtype]))


@functools.cache
def experts(dtype: str) -> Program:
    """`moe_mlp` with the experts' rows one behind the other, from `first` [experts] on, in place of room for as many
    rows for each."""
    text = _text("moe_mlp").replace("bf16", TYPES[dtype])
    for there, here in _PLACED:
        text = text.replace(there, here)
    return _parsed("moe_mlp", text)


def _text(name: str) -> str:
    path = next(folder / f"{name}.pk" for folder in _FOLDERS if folder.is_dir())
    return path.read_text(encoding="utf-8")


def rows_of_schedule(rows: int) -> int:
    """The number of rows that a schedule is chosen for: at least as many, at most a fourth more.

    Machine code serves all numbers of rows, and choosing a schedule takes about a second. So that batches of any size
    need few of them, the three leading bits of a number decide.
    """
    unit = 1 << max(rows.bit_length() - 3, 0)
    return -(-rows // unit) * unit


def type_name(dtype: object) -> str:
    """What torch calls an element type."""
    return str(dtype).removeprefix("torch.")


def _right(name: str, transposed: bool) -> tuple[str, str]:
    """The dimensions of a right operand in memory, and its tile."""
    return ("N, K", f"{name}[n, k].T") if transposed else ("K, N", f"{name}[k, n]")


def _kernel(
    name: str, dtype: str, transposed: bool, *, gathered: str = "", summed: str = "", average: bool = False
) -> Kernel:
    right, tile = _right("B", transposed)
    value = "acc / cast(ranks, f32)" if average else "acc"
    text = _SOURCE.format(
        name=name,
        type=TYPES[dtype],
        right=right,
        tile=tile,
        gathered=gathered,
        summed=summed,
        stored=f"+= {value}" if summed else f"= {value}",
    )
    return Kernel(lambda: Reading(_parsed(name, text)), name)


@functools.cache
def _parsed(name: str, text: str) -> Program:
    """A program, whose text messages find by a name that no other text has."""
    return read_text(Source(f"pkc.torch/{name}-{zlib.crc32(text.encode()):08x}.pk", text))
