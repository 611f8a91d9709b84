"""Runs the PTX of one thread: integers, predicates, loops, global memory (PTX ISA 9.0). Registers hold bits."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

BASE = 1 << 32
"""The address of the first byte of memory."""

_STATEMENT = re.compile(r"(?:@(!?)(%?\w+)\s+)?([a-z][\w.:]*)\s*(.*)", re.S)
_ADDRESS = re.compile(r"\[(%?\w+)(?:\+(-?\d+))?\]")


def _permuted(low: int, high: int, picks: int) -> int:
    """Each byte of the result is one of the eight of two registers, as four bits of `picks` say (PTX: prmt)."""
    found = (low | high << 32).to_bytes(8, "little")
    return int.from_bytes(bytes(found[picks >> 4 * place & 7] for place in range(4)), "little")


_NUMBERS: dict[str, Callable[..., int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "shl": operator.lshift,
    "shr": operator.rshift,
    "min": min,
    "max": max,
    "prmt": _permuted,
}
_COMPARE = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt}
_COMPARE["ge"] = operator.ge
_EIGHT_BIT = {"e4m3x2": ml_dtypes.float8_e4m3fn, "e5m2x2": ml_dtypes.float8_e5m2}
_MOST_STEPS = 100_000


@dataclass
class Thread:
    """A thread with `memory` bytes of global memory. `others` is called before each load, with the address: what other
    threads do meanwhile. `clock` gives %globaltimer, `special` what other special registers have."""

    memory: bytearray
    others: Callable[[int], None] = lambda _: None
    clock: Callable[[], int] = lambda: 0
    special: dict[str, int] = field(default_factory=dict[str, int])
    loads: int = 0
    registers: dict[str, int] = field(default_factory=dict[str, int])

    def word(self, offset: int) -> int:
        return int.from_bytes(self.memory[offset : offset + 4], "little")

    def put(self, offset: int, *words: int) -> None:
        for place, word in enumerate(words):
            self.memory[offset + 4 * place : offset + 4 * place + 4] = (word % 2**32).to_bytes(4, "little")

    def run(self, ptx: str, parameters: Sequence[int]) -> None:
        """The only kernel of a text, to its end."""
        statements, labels = _statements(ptx)
        given = {f"{ptx.split('.entry ')[1].split('(')[0]}_param_{n}": value for n, value in enumerate(parameters)}
        at = 0
        for _ in range(_MOST_STEPS):
            negated, predicate, name, rest = statements[at]
            at += 1
            if predicate and bool(self.registers[predicate]) == (negated == "!"):
                continue
            if name == "ret":
                return
            if name.startswith("bra"):
                at = labels[rest.strip()]
            else:
                self._step(name.split("."), _operands(rest), given)
        raise AssertionError("it does not end")

    def _step(self, parts: list[str], operands: list[str], given: Mapping[str, int]) -> None:
        kind, target = parts[0], operands[0]
        if kind == "ld":
            self._load(parts, target, operands[1], given)
        elif kind in ("st", "red"):
            self._store(parts, target, operands[1])
        elif kind == "mov" and target.startswith("{"):
            low, high = _operands(target.strip("{}"))
            value = self._value(operands[1])
            self.registers |= {low: value & 0xFFFF, high: value >> 16}
        elif kind == "mov" and operands[1].startswith("{"):
            low, high = map(self._value, _operands(operands[1].strip("{}")))
            self.registers[target] = high << 16 | low
        elif kind in ("mov", "cvta"):
            self.registers[target] = self._value(operands[1])
        elif kind == "cvt":
            self.registers[target] = _converted(parts[1:], [self._value(operand) for operand in operands[1:]])
        else:
            self.registers[target] = self._computed(kind, parts, [self._value(operand) for operand in operands[1:]])

    def _computed(self, kind: str, parts: list[str], values: list[int]) -> int:
        if kind == "selp":
            return values[0] if values[2] else values[1]
        if parts[-1] == "pred":
            return _NUMBERS[kind](*values)
        if parts[-1] == "f32" and kind == "abs":
            return values[0] & 0x7FFFFFFF
        if parts[-1] == "f32" and kind == "setp":
            return int(_COMPARE[parts[1]](*map(_float, values[:2])))
        bits = int(parts[-1][1:])
        numbers = [_signed(value, bits) if parts[-1][0] == "s" else value % 2**bits for value in values]
        if kind == "setp":
            return int(_COMPARE[parts[1]](*numbers[:2]))
        bits *= 2 if parts[1] == "wide" else 1
        if kind == "mad":
            return (numbers[0] * numbers[1] + values[2]) % 2**bits
        return _NUMBERS[kind](*numbers) % 2**bits

    def _load(self, parts: list[str], target: str, source: str, given: Mapping[str, int]) -> None:
        if parts[1] == "param":
            self.registers[target] = given[source.strip("[]")]
            return
        offset, size = self._place(source), int(parts[-1][1:]) // 8
        self.loads += 1
        self.others(offset)
        for place, name in enumerate(_operands(target.strip("{}"))):
            first = offset + place * size
            assert 0 <= first <= len(self.memory) - size, "no such memory"
            self.registers[name] = int.from_bytes(self.memory[first : first + size], "little")

    def _store(self, parts: list[str], target: str, source: str) -> None:
        offset, size = self._place(target), int(parts[-1][1:]) // 8
        values = [self._value(name) % 2 ** (8 * size) for name in _operands(source.strip("{}"))]
        for first, value in zip(range(offset, offset + 64, size), values, strict=False):
            assert 0 <= first <= len(self.memory) - size, "no such memory"
            old = int.from_bytes(self.memory[first : first + size], "little")
            new = _NUMBERS[parts[-2]](old, value) % 2 ** (8 * size) if parts[0] == "red" else value
            self.memory[first : first + size] = new.to_bytes(size, "little")

    def _place(self, operand: str) -> int:
        found = _ADDRESS.fullmatch(operand)
        assert found is not None, operand
        return self.registers[found[1]] + int(found[2] or 0) - BASE

    def _value(self, operand: str) -> int:
        if operand == "%globaltimer":
            return self.clock()
        if operand in self.special:
            return self.special[operand]
        if operand in self.registers:
            return self.registers[operand]
        return int(operand[2:], 16) if operand.startswith("0f") else int(operand)


def _converted(parts: list[str], values: list[int]) -> int:
    """PTX ISA, cvt: of two sources the first goes to the upper half."""
    if parts[-2:] in (["f16x2", "f32"], ["bf16x2", "f32"]):
        assert parts[0] == "rn"
        kind = np.float16 if parts[1] == "f16x2" else ml_dtypes.bfloat16
        upper, lower = (int(_float(value).astype(kind).view(np.uint16)) for value in values)
        return upper << 16 | lower
    if parts[:2] == ["rn", "satfinite"]:
        kind = _EIGHT_BIT[parts[2]]
        most = float(ml_dtypes.finfo(kind).max)
        # A finite value instead of one that is too large; NaN stays.
        upper, lower = (int(np.clip(_float(value), -most, most).astype(kind).view(np.uint8)) for value in values)
        return upper << 8 | lower
    if parts[:2] == ["rn", "f16x2"]:
        upper, lower = (np.uint8(byte).view(_EIGHT_BIT[parts[2]]) for byte in (values[0] >> 8, values[0] & 0xFF))
        upper, lower = (int(value.astype(np.float16).view(np.uint16)) for value in (upper, lower))
        return upper << 16 | lower
    if parts == ["pack", "sat", "s8", "s32", "b32"]:  # the low half of the third goes above the other two
        upper, lower = (min(max(_signed(value, 32), -128), 127) % 256 for value in values[:2])
        return (values[2] << 16 | upper << 8 | lower) % 2**32
    if parts == ["f32", "f16"]:
        return int(np.uint16(values[0]).view(np.float16).astype(np.float32).view(np.uint32))
    source, target = int(parts[1][1:]), int(parts[0][1:])
    return (_signed(values[0], source) if parts[1][0] == "s" else values[0] % 2**source) % 2**target


def _float(bits: int) -> Any:
    return np.uint32(bits).view(np.float32)


def _signed(value: int, bits: int) -> int:
    return (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def _operands(text: str) -> list[str]:
    return [part.strip() for part in re.split(r",(?![^{\[]*[}\]])", text)]


def _statements(ptx: str) -> tuple[list[tuple[str, str, str, str]], dict[str, int]]:
    """The instructions of a kernel, each with its predicate, and the number of the one behind each label."""
    body = re.sub(r"//.*|^\s*\.loc.*", "", ptx[ptx.index("{") + 1 : ptx.index("\n\t.file")], flags=re.M)
    statements: list[tuple[str, str, str, str]] = []
    labels: dict[str, int] = {}
    for part in re.sub(r"^(\$\w+):", r"\1;", body, flags=re.M).split(";"):
        text = re.sub(r"^[\s{}]+", "", part).strip()
        if text.startswith("$"):
            labels[text] = len(statements)
        elif text and not text.startswith("."):
            found = _STATEMENT.fullmatch(text)
            assert found is not None, text
            statements.append((found[1] or "", found[2] or "", found[3], found[4]))
    return statements, labels
