"""Runs machine-level IR as `threads.py` does, with the threads of a warpgroup side by side: wgmma multiplies.

Operands in shared memory are found by their descriptors alone, as PTX ISA says how to read these (Asynchronous
Warpgroup Level Matrix Instructions: matrix descriptor, strides, canonical layouts, swizzling modes).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from greenlet import getcurrent, greenlet
from xdsl.ir import Block

from tests.codegen.threads import Cta, Does, Thread, swizzled

_WARPGROUP, _WARP = 128, 32
_NAME = re.compile(r"wgmma_n(\d+)_([a-z0-9]+)(?:_(e\dm\d))?_([sr])s_([km])([kn])")
_WIDTHS = {1: 128, 2: 64, 3: 32}
"""Bytes of a row of a swizzled panel, by the mode in bits 62 and 63; mode 0, without swizzle, is not used."""

Values = np.ndarray[Any, Any]


class Warpgroups(Cta):
    """One CTA; the threads of a warpgroup meet at each wgmma and shuffle, and so do the warpgroups of a role."""

    def run(self, body: Block, threads: range) -> None:
        if len(threads) % _WARPGROUP:
            super().run(body, threads)
            return
        meeting = [_Meeting(self, number) for number in threads]
        made = [greenlet(thread.block) for thread in meeting]
        groups = [made[first : first + _WARPGROUP] for first in range(0, len(made), _WARPGROUP)]
        found = [[one.switch(body) for one in group] for group in groups]
        while not all(one.dead for one in made):
            assert not any(one.dead for one in made), "only some threads of the role come here"
            self._store(meeting)
            given = [self._meet(met) for met in found]
            found = [
                [one.switch(value) for one, value in zip(group, values, strict=True)]
                for group, values in zip(groups, given, strict=True)
            ]
        self._store(meeting)

    def _store(self, threads: list[_Meeting]) -> None:
        """Where they meet, all have stored the same matrices."""
        for first in range(0, len(threads), _WARP):
            self._store_matrices([thread.matrices for thread in threads[first : first + _WARP]])
        for thread in threads:
            thread.matrices.clear()

    def _meet(self, met: list[tuple[Any, ...]]) -> list[Any]:
        """What each thread gets: of a shuffle what another one of its warp has."""
        (name,) = {name for name, *_ in met}
        if name.startswith("wgmma"):
            self._multiply(met)
            return [None] * len(met)
        return [met[number - number % _WARP + lane][1] for number, lane in enumerate(map(_lane, range(len(met)), met))]

    def _multiply(self, met: list[tuple[Any, ...]]) -> None:
        (name,) = {name for name, *_ in met}
        match = _NAME.fullmatch(name)
        assert match is not None
        n, step = int(match[1]), 8 if match[2] == "f32" else 32 if match[2].startswith("e") else 16
        operands = [rest for _, *rest in met]
        right, adds = operands[0][-2:]
        assert all(rest[-2:] == [right, adds] for rest in operands), "threads disagree"
        b = self._read(right, n, step, along_k=match[6] == "k").T
        if match[4] == "s":
            assert len({rest[1] for rest in operands}) == 1, "threads disagree"
            a = self._read(operands[0][1], 64, step, along_k=match[5] == "k")
        else:
            a = _of_registers([rest[1:5] for rest in operands])
        product = a @ b
        for thread, ((registers, start), *_) in enumerate(operands):
            rows, columns = _places(thread, n)
            assert len(rows) == n // 2
            before = np.array(registers[start : start + n // 2], float) if adds else 0.0
            registers[start : start + n // 2] = (before + product[rows, columns]).tolist()

    def _read(self, number: int, others: int, step: int, *, along_k: bool) -> Values:
        """What a descriptor says: `[others, step]`, the dimension that is summed over last."""
        found, size = Descriptor.of(number), 32 // step
        other, k = np.indices((others, step))
        if along_k:
            offset = other // 8 * found.stride + other % 8 * found.width + k * size
            assert found.start % found.width + step * size <= found.width, "beyond the row of a panel"
        else:
            columns = found.width // size
            offset = other // columns * found.leading + k // 8 * found.stride + k % 8 * found.width
            offset = offset + other % columns * size
        places = swizzled(found.start + offset, found.width)
        return np.array([self.shared.get(place, np.nan) for place in places.ravel().tolist()]).reshape(places.shape)


@dataclass(frozen=True)
class Descriptor:
    """Bytes: where an operand begins, its leading and its stride offset, and the width of its swizzle."""

    start: int
    leading: int
    stride: int
    width: int

    @classmethod
    def of(cls, number: int) -> Descriptor:
        """Bits 0 to 13, 16 to 29, 32 to 45, in units of 16 bytes; base offset 0; bits 62 and 63."""
        number %= 2**64
        start, leading, stride = ((number >> first & 0x3FFF) << 4 for first in (0, 16, 32))
        rest = number & ~(0x3FFF | 0x3FFF << 16 | 0x3FFF << 32 | 3 << 62)
        assert not rest, f"bits that have to be 0 are {rest:#x}"
        return cls(start, leading, stride, _WIDTHS[number >> 62])


def _of_registers(found: list[list[tuple[float, float]]]) -> Values:
    """Matrix A: thread l of warp w has rows 16 w + l / 4 and 8 more, k of 2 (l mod 4), 1 more, and 8 more."""
    a = np.full((64, 16), np.nan)
    for thread, registers in enumerate(found):
        row, k = 16 * (thread // _WARP) + thread % _WARP // 4, 2 * (thread % 4)
        for register, pair in enumerate(registers):
            first = k + 8 * (register // 2)
            a[row + 8 * (register % 2), first : first + 2] = pair
    return a


def _places(thread: int, n: int) -> tuple[Values, Values]:
    """Matrix D: the rows and columns of the registers of a thread."""
    number = np.arange(n // 2)
    row = 16 * (thread // _WARP) + thread % _WARP // 4
    return row + 8 * (number // 2 % 2), 8 * (number // 4) + 2 * (thread % 4) + number % 2


def _lane(number: int, met: tuple[str, Any, int]) -> int:
    """Whose value a thread gets in a shuffle."""
    name, _, by = met
    lane = number % _WARP
    if name.startswith("shuffle_xor"):
        return lane ^ by
    return by if name.startswith("shuffle_from") else lane - by if lane >= by else lane


class _Meeting(Thread):
    """A thread that stops at each wgmma and shuffle, until all of its warpgroup have come there."""

    @classmethod
    def does(cls, name: str) -> Does:
        if not name.startswith(("wgmma_n", "shuffle_")):
            return super().does(name)

        def meet(_: Thread, *operands: Any) -> Any:
            here = getcurrent().parent
            assert here is not None
            return here.switch((name, *operands))

        return meet
