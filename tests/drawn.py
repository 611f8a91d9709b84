"""Ordinary programs, drawn by a seed: elementwise chains, reductions of rows, one or two matmuls with epilogues, over
ranks or not. What each computes is evaluated by numpy in float64, from the same expressions, without pkc.
`PKC_DRAWN` is the first of the 60 seeds."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Arrays = dict[str, Any]
Dims = dict[str, int]

FIRST = int(os.environ.get("PKC_DRAWN", "0"))
SEEDS = range(FIRST, FIRST + 60)


def _inverse_root(a: Any) -> Any:
    return 1 / np.sqrt(a)


def _sigmoid(a: Any) -> Any:
    return 1 / (1 + np.exp(-a))


def _of_rows(reduction: Callable[..., Any]) -> Callable[[Any], Any]:
    def reduced(a: Any) -> Any:
        return reduction(a, axis=-1, keepdims=True)

    return reduced


_WORDS: dict[str, Callable[..., Any]] = {
    "max": np.maximum,
    "min": np.minimum,
    "abs": np.abs,
    "tanh": np.tanh,
    "cos": np.cos,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": _inverse_root,
    "sigmoid": _sigmoid,
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "rowsum": _of_rows(np.sum),
    "rowmax": _of_rows(np.max),
    "rowmin": _of_rows(np.min),
}
"""Functions of the language that expressions have: rows stay an axis, so that numpy aligns them."""

_OF_ONE = (
    "tanh({a})",
    "sigmoid({a})",
    "({a} * sigmoid({a}))",
    "exp(min({a}, 1.0))",
    "log(abs({a}) + 1.0)",
    "sqrt(abs({a}) + 0.5)",
    "max({a}, 0.0)",
    "(0.5 * {a} * (1.0 + erf({a} * 0.703125)))",
    "(-{a})",
    "({a} * 0.75 + 0.25)",
)
_OF_TWO = (
    "({a} + {b})",
    "({a} - {b})",
    "max({a}, {b})",
    "min({a}, {b})",
    "({a} / (1.5 + abs({b})))",
    "({a} * cos({b}))",
)

_NORMS = (
    ("e = exp(x - rowmax(x))", "y = e / rowsum(e)"),
    ("y = x * rsqrt(rowsum(x * x) / {n}.0 + 0.0009765625)",),
    ("c = x - rowsum(x) / {n}.0", "y = c * rsqrt(rowsum(c * c) / {n}.0 + 0.0009765625)"),
    ("t = rowmax(x)", "y = x - t - log(rowsum(exp(x - t)))"),
    ("y = x / (rowmax(abs(x)) + 0.5)",),
    ("y = (x - rowmin(x)) / (rowmax(x) - rowmin(x) + 1.0)",),
)


@dataclass
class Drawn:
    """A program, and what it computes of the arrays of all ranks at some dimensions."""

    seed: int
    text: str
    values: list[tuple[str, str]]
    """Names and expressions, in their order, of arrays and of names before."""
    outputs: dict[str, str]
    """By array: the name of its value."""
    over: str = ""
    """What goes from rank to rank: `gather` of A, `scatter` or `reduce` of the sum, or nothing."""
    matmuls: int = 0

    @property
    def name(self) -> str:
        return f"drawn {self.seed}"

    def dims(self, ranks: int, *, uneven: bool) -> Dims:
        each = {"M": 37 * ranks + 2, "N": 133, "K": 75} if uneven else {"M": 64 * ranks, "N": 264, "K": 136}
        head = self.text.partition(":\n")[0]
        return {dim: size for dim, size in each.items() if f"{dim}," in head or f"{dim}]" in head}

    def expected(self, arrays: Mapping[str, Any], ranks: int) -> Arrays:
        """Each output: private ones for each rank, others as a whole."""
        given = {name: np.asarray(value).astype(np.float64) for name, value in arrays.items()}
        sums = [self._matmul(given, number) for number in range(1, self.matmuls + 1)]
        found = [self._of_rank(given, sums, rank) for rank in range(ranks)]
        of_ranks = {array: np.stack([one[name] for one in found]) for array, name in self.outputs.items()}
        if self.over not in ("scatter", "reduce"):
            return of_ranks
        rows = np.arange(len(found[0]["y"]))
        owner = rows // -(-len(rows) // ranks)
        return {array: values[owner, rows] for array, values in of_ranks.items()}

    def _matmul(self, given: Arrays, number: int) -> np.ndarray:
        a, b = given["A"], given[f"B{number}"]
        found = np.matmul(a[None] if self.over == "gather" else a, b)
        return np.broadcast_to(found.sum(axis=0), found.shape) if self.over in ("scatter", "reduce") else found

    def _of_rank(self, given: Arrays, sums: Sequence[np.ndarray], rank: int) -> Arrays:
        known: Arrays = {f"acc{number}": found[rank] for number, found in enumerate(sums, 1)}
        for name, value in given.items():
            if name.startswith(("A", "B")):
                continue
            of_rank = value[rank]
            known[name] = of_rank[:, None] if name.startswith("s") else of_rank
        for name, expression in self.values:
            known[name] = eval(expression, {"__builtins__": {}}, {**_WORDS, **known})
        return {name: value[:, 0] if name == "z" else value for name, value in known.items()}


def draw(seed: int) -> Drawn:
    """The program of a seed."""
    rng = random.Random(seed)
    return rng.choice((_elements, _rows, _pieces, _matmul, _matmul, _ranks))(seed, rng)


def _chain(rng: random.Random, leaves: Sequence[str], depth: int) -> str:
    """An expression that stays small for operands that are."""
    if depth == 0:
        return rng.choice(leaves)
    if rng.random() < 0.55:
        return rng.choice(_OF_ONE).format(a=_chain(rng, leaves, depth - 1))
    a = _chain(rng, leaves, depth - 1)
    return rng.choice(_OF_TWO).format(a=a, b=_chain(rng, leaves, rng.randrange(depth)))


def _with_all(rng: random.Random, leaves: Sequence[str], depth: int) -> str:
    """A chain that every leaf is in."""
    found = _chain(rng, leaves, depth)
    for leaf in leaves:
        if leaf not in found:
            found = f"({found} {rng.choice('+-')} {leaf})"
    return found


def _kind(rng: random.Random) -> str:
    return rng.choice(("bf16", "bf16", "f16", "f32"))


def _more(rng: random.Random) -> list[str]:
    """Arrays beside the first. Of vectors of rows and of columns one: which axes come first, the first says."""
    return rng.sample(["W", rng.choice("bs")], rng.randrange(3))


def _loads(rng: random.Random, names: Sequence[str], columns: str) -> tuple[list[str], list[str], list[str]]:
    """Parameters, leaves of expressions, and the lines that load them: tiles x, w, vectors of columns b, of rows s."""
    shapes = {"X": f"[M, {columns}]", "W": f"[M, {columns}]", "b": f"[{columns}]", "s": "[M]"}
    index = {"X": "m, n", "W": "m, n", "b": "n", "s": "m"}
    if columns.isdigit():
        index = {"X": "m, :", "W": "m, :", "b": ":", "s": "m"}
    parameters: list[str] = []
    leaves: list[str] = []
    lines: list[str] = []
    for name in names:
        parameters.append(f"{name}: {_kind(rng)}{shapes[name]}")
        leaves.append(f"{name.lower()}_")
        lines.append(f"{name.lower()}_ = cast({name}[{index[name]}], f32)")
    return parameters, leaves, lines


def _values(lines: Sequence[str]) -> list[tuple[str, str]]:
    """Names and expressions for numpy: what is loaded is the array."""
    found: list[tuple[str, str]] = []
    for line in lines:
        name, _, expression = line.partition(" = ")
        loaded = expression.startswith("cast(") and expression.endswith(", f32)")
        found.append((name, expression[len("cast(") :].partition("[")[0] if loaded else expression))
    return found


def _text(name: str, parameters: Sequence[str], lines: Sequence[str]) -> str:
    return f"kernel {name}({', '.join(parameters)}):\n" + "".join(f"    {line}\n" for line in lines)


def _elements(seed: int, rng: random.Random) -> Drawn:
    names = ["X", *_more(rng)]
    parameters, leaves, loads = _loads(rng, names, "N")
    lines = [*loads, f"y = {_with_all(rng, leaves, rng.randrange(2, 5))}"]
    body = [f"for m, n in tasks(blocks(M, {rng.choice((8, 16, 64))}), blocks(N, {rng.choice((64, 128, 256))})):"]
    body += [f"    {line}" for line in (*lines, "Y[m, n] = y")]
    return Drawn(seed, _text("elements", [*parameters, f"Y: {_kind(rng)}[M, N]"], body), _values(lines), {"Y": "y"})


def _rows(seed: int, rng: random.Random) -> Drawn:
    """Whole rows: a norm of a chain, and a chain behind it."""
    length = rng.choice((64, 200, 1024, 4096))
    names = ["X", *_more(rng)]
    parameters, leaves, loads = _loads(rng, names, str(length))
    norm = [line.format(n=length) for line in rng.choice(_NORMS)]
    lines = [
        *loads,
        f"x = {_with_all(rng, leaves, rng.randrange(3))}",
        *norm,
    ]
    lines.append(f"z = {rng.choice(('rowmax', 'rowsum'))}(y * y)")
    rows = rng.choice((1, 2, 4, 16))
    body = [f"for m in tasks({'M' if rows == 1 else f'blocks(M, {rows})'}):"]
    body += [f"    {line}" for line in (*lines, "Y[m, :] = y", "Z[m] = z")]
    schedule = [f"schedule(row={rng.choice((48, 512))})"] if rng.random() < 0.4 else []
    outputs = [f"Y: {_kind(rng)}[M, {length}]", "Z: f32[M]"]
    return Drawn(seed, _text("rows", [*parameters, *outputs], [*schedule, *body]), _values(lines), {"Y": "y", "Z": "z"})


def _pieces(seed: int, rng: random.Random) -> Drawn:
    """Sums of rows that the program's own loop goes through."""
    names = ["X", *rng.sample(["W", "b"], rng.randrange(3))]
    parameters, leaves, loads = _loads(rng, names, "N")
    lines = [*loads, f"x = {_with_all(rng, leaves, rng.randrange(3))}"]
    body = [
        f"for m in tasks(blocks(M, {rng.choice((16, 64))})):",
        "    total = zeros(f32, m)",
        f"    for n in blocks(N, {rng.choice((64, 128))}):",
        *(f"        {line}" for line in lines),
        "        total += rowsum(x)",
        "    Z[m] = tanh(total * 0.0078125)",
    ]
    values = [*_values(lines), ("y", "x"), ("z", "tanh(rowsum(x) * 0.0078125)")]
    return Drawn(seed, _text("pieces", [*parameters, "Z: f32[M]"], body), values, {"Z": "z"})


def _multiply(rng: random.Random, matmuls: int, tile: tuple[int, int]) -> list[str]:
    accumulators = [f"acc{number}" for number in range(1, matmuls + 1)]
    return [
        f"for m, n in tasks(blocks(M, {tile[0]}), blocks(N, {tile[1]})):",
        *(f"    {acc} = zeros(f32, m, n)" for acc in accumulators),
        f"    for k in blocks(K, {rng.choice((32, 64))}):",
        *(f"        acc{number} += A[m, k] @ B{number}[k, n]" for number in range(1, matmuls + 1)),
    ]


def _operands(rng: random.Random, matmuls: int, left: str) -> list[str]:
    kind = rng.choice(("bf16", "bf16", "f16"))
    return [f"A: {kind}[M, K]{left}", *(f"B{number}: {kind}[K, N]" for number in range(1, matmuls + 1))]


def _matmul(seed: int, rng: random.Random) -> Drawn:
    """One or two matmuls, and an epilogue of them and of what is loaded."""
    matmuls = rng.choice((1, 1, 2))
    tile = rng.choice(((64, 64), (128, 128), (128, 256), (64, 256)) if matmuls == 1 else ((64, 64), (128, 128)))
    parameters, leaves, loads = _loads(rng, _more(rng), "N")
    scaled = [f"acc{number} * 0.125" for number in range(1, matmuls + 1)]
    lines = [*loads, *(f"p{number} = {value}" for number, value in enumerate(scaled, 1))]
    products = [f"p{number}" for number in range(1, matmuls + 1)]
    lines.append(f"y = {' + '.join(products)} + {_with_all(rng, [*leaves, *products], rng.randrange(1, 4))}")
    body = [*_multiply(rng, matmuls, tile), *(f"    {line}" for line in (*lines, "Y[m, n] = y"))]
    text = _text("multiplied", [*_operands(rng, matmuls, ""), *parameters, f"Y: {_kind(rng)}[M, N]"], body)
    return Drawn(seed, text, _values(lines), {"Y": "y"}, matmuls=matmuls)


def _ranks(seed: int, rng: random.Random) -> Drawn:
    """A matmul whose rows come from all ranks, or whose sum goes to them, and a chain behind it."""
    over = rng.choice(("gather", "scatter", "reduce"))
    tile = rng.choice(((64, 128), (128, 128), (128, 256)))
    parameters, leaves, loads = _loads(rng, rng.sample(["b", "s"], rng.randrange(2)), "N")
    if over == "gather":
        lines = [*loads, f"y = acc1 * 0.125 + {_with_all(rng, [*leaves, 'acc1'], 2)}"]
        body = [*_multiply(rng, 1, tile), *(f"    {line}" for line in (*lines, "Y[m, n] = y"))]
        parameters = [*_operands(rng, 1, ".shard(0)"), *parameters, "Y: bf16[M, N]"]
        return Drawn(seed, _text("gathered", parameters, body), _values(lines), {"Y": "y"}, over, 1)
    layout = ".shard(0)" if over == "scatter" else ".replicate()"
    lines = [*loads, "p = P", f"y = p * 0.125 + {_with_all(rng, [*leaves, 'p'], 2)}"]
    body = [
        *_multiply(rng, 1, tile),
        "    P[m, n] += acc1",
        f"for m, n in tasks(blocks(M, {rng.choice((16, 64))}, of=rank), blocks(N, 128)):",
        *(f"    {line}" for line in (*loads, "p = cast(P[m, n], f32)", lines[-1], "Y[m, n] = y")),
    ]
    parameters = [*_operands(rng, 1, ""), *parameters, f"P: f32[M, N]{layout}.scratch()", "Y: bf16[M, N].shard(0)"]
    values = [*_values(loads), ("p", "acc1"), (lines[-1].partition(" = ")[0], lines[-1].partition(" = ")[2])]
    return Drawn(seed, _text("summed", parameters, body), values, {"Y": "y"}, over, 1)
