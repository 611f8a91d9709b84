"""Runs straight-line PTX on many inputs at once; approximate instructions are off by all that PTX ISA allows them.

For the bodies of instructions: arithmetic on registers of 32 bits and of f64, predicates, branches forward. The figures
are those of PTX ISA 9.0, section Floating Point Instructions, under the name of each instruction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
RELATIVE = {"ex2": 2.0**-22, "rcp": 2.0**-23, "rsqrt": 2.0**-22.9, "sqrt": 2.0**-23, "tanh": 2.0**-11}
"""The largest relative error of `<name>.approx.f32`."""

_EXACT: dict[str, Callable[[Array], Array]] = {
    "ex2": np.exp2,
    "lg2": np.log2,
    "rcp": lambda a: 1.0 / a,
    "rsqrt": lambda a: 1.0 / np.sqrt(a),
    "sqrt": np.sqrt,
    "tanh": np.tanh,
}
_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
_LINE = re.compile(r"(?:@(!?)(%p\d+)\s+)?([a-z][\w.]*)\s*(.*);")


class Unknown(Exception):
    """An instruction that is not known here."""


def run(ptx: str, inputs: Sequence[Array], side: Array) -> Array:
    """What a kernel stores that loads each of its pointer parameters but the last once, and stores to that.

    `side` is 1 or -1 for each input: in which direction approximate instructions are off.
    """
    return _Run(list(inputs), side).kernel(ptx)


class _Run:
    def __init__(self, inputs: list[Array], side: Array) -> None:
        self._inputs, self._side = inputs, side
        self._registers: dict[str, Any] = {}
        self._active = np.ones(side.shape, np.bool_)
        self._waiting: dict[str, Array] = {}
        self._stored = np.zeros(side.shape, np.float32)

    def kernel(self, ptx: str) -> Array:
        body = ptx[ptx.index("{") : ptx.index("ret;")]
        with np.errstate(all="ignore"):
            for line in map(str.strip, body.splitlines()):
                if line.endswith(":"):
                    self._active = self._active | self._waiting.pop(line[:-1], ~self._active & False)
                elif found := _LINE.fullmatch(line):
                    self._step(*found.groups())
        assert not self._waiting
        return self._stored

    def _step(self, negated: str | None, predicate: str | None, name: str, rest: str) -> None:
        operands = [operand.strip() for operand in rest.split(",")]
        if name == "bra":
            taken = self._active.copy()
            if predicate is not None:
                taken &= self._registers[predicate] ^ bool(negated)
            self._waiting[operands[0]] = self._waiting.get(operands[0], taken) | taken
            self._active = self._active & ~taken
            return
        assert predicate is None
        if name.startswith("ld.param"):
            self._registers[operands[0]] = int(operands[1].rstrip("]").rsplit("_", 1)[1])
        elif name.startswith("cvta"):
            self._registers[operands[0]] = self._registers[operands[1]]
        elif name.startswith("ld.global"):
            self._registers[operands[0]] = self._inputs[self._registers[operands[1].strip("[]")]]
        elif name.startswith("st.global"):
            assert self._registers[operands[0].strip("[]")] == len(self._inputs)
            self._stored = np.where(self._active, self._value(operands[1]).view(np.float32), self._stored)
        elif operands[0].startswith("{"):
            halves = self._value(operands[2]).view(np.int32).reshape(-1, 2)
            self._registers |= {operands[0][1:]: halves[:, 0], operands[1][:-1]: halves[:, 1]}
        else:
            made = self._compute(name, [self._value(operand) for operand in operands[1:]])
            if re.match(r"%f\d", operands[0]) and made.dtype != np.float32:
                made = made.astype(np.int32).view(np.float32)
            old = self._registers.get(operands[0], made)
            self._registers[operands[0]] = np.where(self._active, made, old)

    def _value(self, operand: str) -> Array:
        if operand.startswith("0f"):
            return np.full(self._side.shape, int(operand[2:], 16), np.uint32).view(np.float32)
        if operand.startswith("0d"):
            return np.full(self._side.shape, int(operand[2:], 16), np.uint64).view(np.float64)
        if operand.startswith("%"):
            return self._registers[operand]
        return np.full(self._side.shape, int(operand), np.int64).astype(np.int32)

    def _compute(self, name: str, values: list[Array]) -> Array:
        kind, *modifiers = name.split(".")
        if kind == "mov":
            return values[0].view(np.int32) if modifiers == ["b32"] and values[0].dtype == np.float32 else values[0]
        if "approx" in modifiers:
            return self._approximate(kind, values[0], flush="ftz" in modifiers)
        if name == "div.full.f32":
            return self._quotient(*(value.astype(np.float64) for value in values))
        if kind == "setp":
            return self._compare(modifiers, *values)
        if kind == "selp":
            return np.where(values[2], values[0], values[1])
        if kind == "cvt":
            if modifiers == ["rn", "f32", "s32"]:
                return values[0].astype(np.float32)
            if modifiers in (["f64", "f32"], ["rn", "f32", "f64"]):
                return values[0].astype(np.float64 if modifiers[0] == "f64" else np.float32)
            if modifiers in (["rni", "f32", "f32"], ["rmi", "f32", "f32"]):
                return (np.rint if modifiers[0] == "rni" else np.floor)(values[0])
            if modifiers == ["sat", "f32", "f32"]:
                return np.nan_to_num(np.clip(values[0], 0, 1), nan=0.0)
            raise Unknown(name)
        if modifiers[-1] in ("b32", "s32", "u32"):
            return _integer(kind, *values)
        if modifiers[-1] == "f64":
            return _double(kind, *values)
        return _float(kind, modifiers, *(value.astype(np.float64) for value in values))

    def _compare(self, modifiers: list[str], a: Array, b: Array) -> Array:
        if modifiers[1] == "u32":
            a, b = a.view(np.uint32), b.view(np.uint32)
        unordered = modifiers[0].endswith("u") and modifiers[0] not in _COMPARE
        found = _COMPARE[modifiers[0].removesuffix("u")](a, b)
        return found | np.isnan(a) | np.isnan(b) if unordered else found

    def _quotient(self, a: Array, b: Array) -> Array:
        """PTX ISA, div.full: at most 2 ulp over the full range, with subnormal numbers."""
        exact = a / b
        nearest = exact.astype(np.float32)
        towards = np.where(self._side > 0, np.float32(np.inf), np.float32(-np.inf))
        moved = nearest
        for _ in range(2):
            moved = np.nextafter(moved, towards)
        return np.where(np.isfinite(nearest) & (exact != 0), moved, nearest)

    def _approximate(self, kind: str, a: Array, *, flush: bool) -> Array:
        x = (_flushed(a) if flush else a).astype(np.float64)
        exact = _EXACT[kind](x)
        size = np.abs(exact)
        # PTX ISA: the error of lg2 is absolute where the logarithm is near zero.
        error = np.where((x > 0.5) & (x < 2), 2.0**-22, size * 2.0**-22) if kind == "lg2" else size * RELATIVE[kind]
        nearest = exact.astype(np.float32)
        moved = (exact + self._side * error).astype(np.float32)
        inward = np.nextafter(moved, nearest)
        moved = np.where(np.abs(moved - exact) <= error, moved, inward)
        # Zeros and infinities are exact, and so is what has no other float within the error.
        result = np.where(np.isfinite(exact) & (exact != 0) & (np.abs(moved - exact) <= error), moved, nearest)
        return _flushed(result) if flush else result


def _flushed(a: Array) -> Array:
    return np.where(np.abs(a) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), a), a)


def _integer(kind: str, a: Array, b: Array) -> Array:
    # A register of bits that holds a float.
    x, y = (value.view(np.int32).astype(np.int64) for value in (a, b))
    made = {"add": x + y, "sub": x - y, "and": x & y, "or": x | y, "xor": x ^ y, "shl": x << np.clip(y, 0, 32)}
    if kind not in made:
        raise Unknown(kind)
    return made[kind].astype(np.uint64).astype(np.uint32).view(np.int32)


def _double(kind: str, *values: Array) -> Array:
    if kind == "add":
        return values[0] + values[1]
    if kind != "fma":
        raise Unknown(kind)
    a, b, c = values
    product, lost = a * b, _lost(a, b)
    total = product + c
    part = total - product
    rest = (product - (total - part)) + (c - part) + lost
    return np.where(rest == 0, total, total + rest)  # zero keeps its sign


def _lost(a: Array, b: Array) -> Array:
    """What the rounding of a product of f64 loses, exactly (Dekker 1971)."""
    (high, low), (upper, lower) = map(_halves, (a, b))
    return low * lower - (((a * b - high * upper) - low * upper) - high * lower)


def _halves(a: Array) -> tuple[Array, Array]:
    scaled = a * (2.0**27 + 1)
    high = scaled - (scaled - a)
    return high, a - high


def _float(kind: str, modifiers: list[str], *values: Array) -> Array:
    """In f64 and rounded to f32, down for `rm`: f32 additions and multiplications in f64 are nearly exact."""
    a, b, c = (*values, values[0], values[0])[:3]
    if kind == "fma":
        found = a * b + c
        nearest = found.astype(np.float32)
        if "rm" in modifiers:
            return np.where(nearest > found, np.nextafter(nearest, np.float32(-np.inf)), nearest)
        return nearest
    if kind == "max" or kind == "min":
        number, other = (np.fmax, np.maximum) if kind == "max" else (np.fmin, np.minimum)  # without NaN if one is none
        return (other if "NaN" in modifiers else number)(a, b).astype(np.float32)
    made = {
        "add": lambda: a + b,
        "sub": lambda: a - b,
        "mul": lambda: a * b,
        "div": lambda: a / b,
        "sqrt": lambda: np.sqrt(a),
        "neg": lambda: -a,
        "abs": lambda: np.abs(a),
        "copysign": lambda: np.copysign(b, a),
    }
    if kind not in made or "ftz" in modifiers:
        raise Unknown(".".join((kind, *modifiers)))
    return made[kind]().astype(np.float32)
