"""Runs machine-level IR as `tests/codegen/threads.py` does, with the threads of a warp side by side: they multiply."""

from __future__ import annotations

from typing import Any

import numpy as np
from greenlet import getcurrent, greenlet
from xdsl.ir import Block

from tests.codegen.threads import Cta, Does, Thread

_WARP = 32


class Warps(Cta):
    """One CTA; the threads of a warp meet at each `mma`."""

    def run(self, body: Block, threads: range) -> None:
        for first in range(threads.start, threads.stop, _WARP):
            lanes = [greenlet(Lane(self, number).block) for number in range(first, first + _WARP)]
            found = [lane.switch(body) for lane in lanes]
            while not all(lane.dead for lane in lanes):
                assert not any(lane.dead for lane in lanes), "only some threads of the warp run the MMA"
                multiply(found)
                found = [lane.switch() for lane in lanes]


class Lane(Thread):
    """A thread that stops at each `mma`, until all of its warp have come there."""

    @classmethod
    def does(cls, name: str) -> Does:
        return _meet if name.startswith("mma_n8") else super().does(name)


def _meet(_: Thread, *operands: Any) -> None:
    here = getcurrent().parent
    assert here is not None
    here.switch(operands)


def multiply(operands: list[tuple[Any, ...]]) -> None:
    """PTX ISA, mma.m16n8k16: what thread l has of A[16, 16], B[16, 8] and the accumulator [16, 8]."""
    a, b = np.zeros((16, 16)), np.zeros((16, 8))
    for lane, (_, *registers) in enumerate(operands):
        group, at = lane // 4, 2 * (lane % 4)
        a[group, at : at + 2], a[group + 8, at : at + 2] = registers[0], registers[1]
        a[group, at + 8 : at + 10], a[group + 8, at + 8 : at + 10] = registers[2], registers[3]
        b[at : at + 2, group], b[at + 8 : at + 10, group] = registers[4], registers[5]
    added = a @ b
    for lane, ((registers, start), *_) in enumerate(operands):
        group, at = lane // 4, 2 * (lane % 4)
        for i, (row, column) in enumerate(((group, at), (group, at + 1), (group + 8, at), (group + 8, at + 1))):
            registers[start + i] += added[row, column]
