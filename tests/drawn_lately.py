"""More programs drawn by a seed (`tests/drawn.py`): statements outside of tasks, bits of integers, reductions of
reductions, positions in a whole row, sums that several tasks contribute to, rows whose panels are padded, several
results of values that are used more than once, or are stored as they are loaded."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Arrays = Mapping[str, Any]
Dims = dict[str, int]

SEEDS = range(28)


@dataclass(frozen=True)
class Drawn:
    """A program, its dimensions, and what its outputs are of the arrays of all ranks, each rank first."""

    name: str
    text: str
    dims: Dims
    expected: Callable[[Arrays], dict[str, Any]]
    """Sums over ranks as a whole, other outputs of each rank."""


def draw(seed: int) -> Drawn:
    """The program of a seed: each kind in turn."""
    return _KINDS[seed % len(_KINDS)](random.Random(seed))


def _outside(rng: random.Random) -> Drawn:
    """A vector that is computed once, for all tasks."""
    length, doublings, rows = rng.choice((16, 24, 40)), rng.randrange(1, 5), rng.choice((4, 8))
    lines = ["x = X[:] * 0.25", *["x = x + x"] * doublings, "t = rowsum(abs(x))", "y = x / (t + 1.0)", "Y[:] = y"]
    tasks = [f"for m in tasks(blocks(M, {rows})):", "    Z[m, :] = W[m, :] * y + rowmax(W[m, :])"]
    parameters = "X: f32[D], W: f32[M, D], Y: f32[D], Z: f32[M, D]"

    def expected(given: Arrays) -> dict[str, Any]:
        x = given["X"] * 0.25 * 2**doublings
        y = x / (np.abs(x).sum(axis=-1, keepdims=True) + 1)
        w = given["W"]
        return {"Y": y, "Z": w * y[:, None, :] + w.max(axis=-1, keepdims=True)}

    return Drawn("outside", _text("outside", parameters, [*lines, *tasks], length), {"M": 19}, expected)


def _bits(rng: random.Random) -> Drawn:
    """Integers by their bits."""
    mask, left, right = rng.choice((1, 7, 255)), rng.randrange(1, 8), rng.randrange(1, 8)
    first, second = rng.choice("&|^"), rng.choice("&|^")
    expression = f"((x {first} {mask}) {second} (x << {left})) ^ (x >> {right})"
    lines = ["for m, n in tasks(blocks(M, 8), blocks(N, 16)):", "    x = X[m, n]", f"    Y[m, n] = {expression}"]

    def expected(given: Arrays) -> dict[str, Any]:
        x = given["X"].astype(np.int64)
        by = {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}
        y = by[second](by[first](x, mask), x << left) ^ (x >> right)
        return {"Y": y.astype(np.int32)}

    return Drawn("bits", _text("bits", "X: i32[M, N], Y: i32[M, N]", lines), {"M": 13, "N": 37}, expected)


def _reductions(rng: random.Random) -> Drawn:
    """Reductions of what reductions gave, along the other axis."""
    outer, inner = rng.choice(("rowmax", "rowmin", "rowsum")), rng.choice(("rowmax", "rowmin", "rowsum"))
    turned, rows = rng.choice(("", ".T")), rng.choice((8, 16))
    lines = ["for m in tasks(blocks(M, ROWS)):", f"    t = {inner}(X[m, :]{turned})", f"    u = {outer}(t)"]
    lines += ["    Y[m, :] = X[m, :] - u"]
    by = {"rowmax": np.max, "rowmin": np.min, "rowsum": np.sum}

    def expected(given: Arrays) -> dict[str, Any]:
        x, found = given["X"], np.empty_like(given["X"])
        for first in range(0, x.shape[1], rows):
            part = x[:, first : first + rows]
            each = by[inner](part, axis=2 if not turned else 1)
            found[:, first : first + rows] = part - by[outer](each, axis=1)[:, None, None]
        return {"Y": found}

    lines[0] = lines[0].replace("ROWS", str(rows))
    return Drawn("reductions", _text("reductions", "X: f32[M, D], Y: f32[M, D]", lines, 24), {"M": 2 * rows}, expected)


def _places(rng: random.Random) -> Drawn:
    """Where the greatest element of a row is: positions in a row of a constant length."""
    length, rows = rng.choice((24, 40, 100)), rng.choice((1, 4))
    index = "M" if rows == 1 else f"blocks(M, {rows})"
    lines = [
        f"for m in tasks({index}):",
        "    x = X[m, :]",
        "    at = rowmin(where(x == rowmax(x), positions(D), 1000))",
    ]
    lines += ["    I[m] = at", "    Y[m, :] = where(positions(D) < at, x, 0.0)"]

    def expected(given: Arrays) -> dict[str, Any]:
        x = given["X"]
        at = x.argmax(axis=-1)
        return {"I": at, "Y": np.where(np.arange(length) < at[..., None], x, 0)}

    text = _text("places", "X: f32[M, D], Y: f32[M, D], I: i32[M]", lines, length)
    return Drawn("places", text, {"M": 11}, expected)


def _collected(rng: random.Random) -> Drawn:
    """Sums over ranks to which each task contributes a share."""
    tile, layout = rng.choice((8, 16)), rng.choice(("replicate()", "shard(0)"))
    lines = [f"for m, n in tasks(blocks(M, {tile}), blocks(N, 16)):", "    x = X[m, n] * 0.5"]
    lines += ["    S[0] += rowsum(rowsum(x))", "    G[n] += rowsum(x.T)"]
    parameters = f"X: f32[M, N], S: f32[1].replicate(), G: f32[N].{layout}"

    def expected(given: Arrays) -> dict[str, Any]:
        x = given["X"] * 0.5
        return {"S": x.sum().reshape(1), "G": x.sum(axis=(0, 1))}

    return Drawn("collected", _text("collected", parameters, lines), {"M": 21, "N": 35}, expected)


def _padded(rng: random.Random) -> Drawn:
    """Rows of several in a tile whose length is 8 times a prime: the last panel of their stage is padded."""
    length, kind = rng.choice((88, 104, 136)), rng.choice(("bf16", "f16"))
    lines = [f"for m in tasks(blocks(M, {rng.choice((4, 16))})):", "    x = cast(X[m, :], f32)"]
    lines += ["    Y[m, :] = x * rsqrt(rowsum(x * x) + 1.0)"]

    def expected(given: Arrays) -> dict[str, Any]:
        x = given["X"]
        return {"Y": x / np.sqrt((x * x).sum(axis=-1, keepdims=True) + 1)}

    return Drawn("padded", _text("padded", f"X: {kind}[M, D], Y: f32[M, D]", lines, length), {"M": 21}, expected)


def _several(rng: random.Random) -> Drawn:
    """Several results: each of what is loaded, or of what is computed of any values before it."""
    names, lines, steps = ["x", "w"], ["x = X[m, n]", "w = W[m, n]"], list[tuple[str, str, str, str]]()
    for number in range(rng.randrange(1, 4)):
        a, b = ("x", "w") if not number else (rng.choice(names), rng.choice(names))
        word = rng.choice(sorted(_OF_TWO))
        lines.append(f"v{number} = {_OF_TWO[word][0].format(a=a, b=b)}")
        steps.append((f"v{number}", word, a, b))
        names.append(f"v{number}")
    outputs = {"Y": "v0"} | {f"Y{number}": rng.choice(("x", *names)) for number in range(rng.randrange(1, 4))}
    for array, name in outputs.items():
        defined = next(at for at, line in enumerate(lines) if line.startswith(f"{name} = "))
        lines.insert(rng.randrange(defined + 1, len(lines) + 1), f"{array}[m, n] = {name}")
    parameters = ", ".join(f"{array}: f32[M, N]" for array in ("X", "W", *outputs))
    tasks = f"for m, n in tasks(blocks(M, {rng.choice((8, 32))}), blocks(N, {rng.choice((16, 64))})):"

    def expected(given: Arrays) -> dict[str, Any]:
        known = {"x": given["X"], "w": given["W"]}
        for name, word, a, b in steps:
            known[name] = _OF_TWO[word][1](known[a], known[b])
        return {array: known[name] for array, name in outputs.items()}

    text = _text("several", parameters, [tasks, *(f"    {line}" for line in lines)])
    return Drawn("several", text, {"M": 37, "N": 70}, expected)


_OF_TWO: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "sum": ("{a} + {b}", np.add),
    "greater": ("max({a}, {b})", np.maximum),
    "product": ("{a} * ({b} * 0.25)", lambda a, b: a * (b * 0.25)),
}


def _text(name: str, parameters: str, lines: list[str], length: int = 0) -> str:
    constant = f", D: const = {length}" if length else ""
    return f"kernel {name}({parameters}{constant}):\n" + "".join(f"    {line}\n" for line in lines)


_KINDS = (_outside, _bits, _reductions, _places, _collected, _padded, _several)
