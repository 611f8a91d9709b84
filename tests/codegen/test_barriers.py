"""Phases of mbarriers, as all threads of a kernel use them: each gets the arrivals and bytes that complete it."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import pytest

from pkc.codegen.build import machine_level
from pkc.dialect.machine import InstructionOp
from pkc.dialect.types import dtype_bytes
from pkc.driver.compiler import compile_program, load_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from tests.codegen.barriers import Barrier, Barriers
from tests.codegen.threads import Cta, Does, Map, Memory, Thread, warps
from tests.pipelines import LOOPS
from tests.tiles import EPILOGUES

EXAMPLES = Path(__file__).parents[2] / "examples"
_REAL = ("mbarrier", "thread_number", "warp_number", "cta_", "shared_base", "unknown")


@dataclass
class Watched(Cta):
    """A CTA that knows where each box lies that TMA brings, and the barriers that say that it is there, and read."""

    boxes: dict[range, tuple[int, int]] = field(default_factory=dict[range, tuple[int, int]])

    def stage_at(self, address: int) -> tuple[int, int] | None:
        return next((barriers for box, barriers in self.boxes.items() if address in box), None)


class Counting(Thread):
    """A thread that goes its way through loops and barriers; what it computes is zero, and no tile moves.

    MMAs read stages that the thread has awaited, and it releases none that an MMA of its own may still read. Of a warp
    the first thread releases what all of them have read. Of a warpgroup behind the first the rows may not exist.
    """

    def __init__(self, cta: Watched, number: int) -> None:
        super().__init__(cta, number)
        self.watched = cta
        self.free = -1
        """The barrier that the thread has awaited last."""
        self.had, self.released = Counter[int](), Counter[int]()
        self.groups: list[set[int]] = [set()]
        """The barriers that free what groups of MMAs read which may be in flight; the last group is not closed."""

    @classmethod
    def does(cls, name: str) -> Does:
        if name.startswith("wgmma_n"):
            return partial(Counting.multiply, staged="_ss_" in name)
        if name.startswith("wgmma_wait_"):
            return partial(Counting.complete, left=int(name.removeprefix("wgmma_wait_")))
        if name.startswith("tma_load"):
            return Counting.load
        if name.startswith(("load_shared", "ldmatrix")):
            return Counting.read
        if name in _OWN:
            return _OWN[name]
        return super().does(name) if name.startswith(_REAL) else lambda *_: 0

    def wait(self, barrier: int, parity: int) -> None:
        self.free = barrier
        self.had[barrier] += 1
        self.cta.barriers[barrier].wait(self.number, parity)

    def arrive(self, barrier: int) -> None:
        assert not any(barrier in group for group in self.groups), "an MMA may still read what is released"
        self.released[barrier] += 1
        self.cta.barriers[barrier].arrive(self.number)

    def load(self, address: int, box: Map, barrier: int, *_place: int) -> None:
        size = prod(box.spec.box) * dtype_bytes(box.kind.element_type)
        self.watched.boxes[range(address, address + size)] = barrier, self.free
        self.cta.barriers[barrier].complete(self.number, size)

    def read(self, *operands: Any) -> int:
        self._awaited(operands[-1])
        return 0

    def _awaited(self, address: int) -> int | None:
        """The barrier that frees the stage that lies there, if TMA fills it and this thread may release it."""
        stage = self.watched.stage_at(address)
        if stage is None or self.number % _WARP or self.number >= _WARPGROUP:
            return None
        filled, free = stage
        assert self.had[filled] > self.released[free], "a thread reads what is not awaited, or released"
        return free

    def multiply(self, acc: tuple[list[Any], int], *operands: Any, staged: bool) -> None:
        registers, start = acc
        registers[start:] = [0.0] * (len(registers) - start)
        for descriptor in operands[:2] if staged else operands[4:5]:
            free = self._awaited((descriptor & 0x3FFF) << 4)  # PTX ISA, matrix descriptor: bits 0 to 13
            if free is not None:
                self.groups[-1].add(free)

    def commit(self) -> None:
        self.groups.append(set())

    def complete(self, *, left: int) -> None:
        del self.groups[: max(0, len(self.groups) - 1 - left)]


_OWN: dict[str, Does] = {
    "mbarrier_wait": Counting.wait,
    "mbarrier_arrive": Counting.arrive,
    "wgmma_commit": Counting.commit,
}
_WARP, _WARPGROUP = 32, 128

KERNELS: dict[str, tuple[dict[str, int], dict[str, str]]] = {
    "gemm": ({"M": 300, "N": 500, "K": 64 * 9}, {}),
    "gemm_rs": ({"M": 300, "N": 260, "K": 64 * 5}, {}),
    "ag_gemm": ({"M": 700, "N": 260, "K": 64 * 7}, {"overlap": "inter_sm", "comm_sms": "1"}),
    "attention_dkdv": ({"B": 1, "H": 1, "G": 1, "S": 64 * 5, "T": 130, "scale": 1}, {}),
    "chained GEMMs": ({"M": 150, "N": 64 * 13}, {}),
    "both_computed": ({"M": 300, "N": 130, "K": 64 * 5}, {}),
    "chained_right": ({"M": 62, "N": 129, "K": 64 * 8 + 5}, {}),
    # Half of an epilogue beside the next task.
    "gemm_silu": ({"M": 300, "N": 500, "K": 64 * 9}, {}),
    # With the registers that are left beside those that add up, chains are made twice.
    "fp8/gemm_rs_fp8_blocks": ({"M": 900, "N": 130, "K": 128 * 5, "G": 5, "H": 2}, {}),
    "gemm_fp8_blocks": ({"M": 500, "N": 130, "K": 128 * 5, "G": 5, "H": 2}, {}),
}
"""Examples, loops of `tests/pipelines.py` and epilogues of `tests/tiles.py` at sizes for which stages are used
again; sizes, schedules."""

UNEVEN = {"chained_right": {"M": 2, "N": 1, "K": 1}}
"""What rows are multiples of: those of X and V are loaded by threads of two warps, those of W by TMA."""


@pytest.mark.parametrize("name", KERNELS)
def test_every_phase_is_completed_and_awaited(name: str) -> None:
    sizes, schedule = KERNELS[name]
    text = (LOOPS | EPILOGUES).get(name)
    program = parse_text(Source("k.pk", text)) if text is not None else load_program(EXAMPLES / f"{name}.pk")
    roles = compile_program(program, schedule=schedule, level="roles", divisors=UNEVEN.get(name)).kernel
    lowered = machine_level(roles)
    memory = Memory(lowered, 2, sizes)
    cta = [Watched(memory, 1, number, 2) for number in range(2)]
    for numbers, threads in warps(roles, 2):
        for number in numbers:
            for thread in threads:
                Counting(cta[number], thread).block(lowered.body.block)
    for found in cta:
        found.barriers.check()
    phases = [max(barrier.arrivals.values(), default=0) for found in cta for barrier in found.barriers.values()]
    assert max(phases) > 2


def test_a_warp_that_is_late_finds_the_phase_that_it_awaits() -> None:
    """Thread 32 awaits that a stage is free, but has no share in filling it: it may be free once more by then."""
    for shares in (True, False):
        barriers = Barriers()
        filled, emptied = barriers[0], barriers[8]
        for phase in range(3):
            for thread in (0, 32):
                emptied.wait(thread, 1 - phase % 2)
                if shares or not thread:
                    filled.arrive(thread)
            filled.wait(64, phase % 2)
            emptied.arrive(64)
        filled.init(1 + shares)
        emptied.init(1)
        with nullcontext() if shares else pytest.raises(AssertionError, match="thread 32 waits for ever"):
            barriers.check()


def full(*, count: int = 2, arrivals: int = 2, expected: int = 0, arriving: int = 0, parities: str = "01") -> Barrier:
    """A barrier that is used in two phases, by thread 0 and others; thread 9 waits."""
    barrier = Barrier()
    for _ in range(2):
        barrier.expect(0, expected)
        barrier.complete(0, arriving)
        for thread in range(1, arrivals):
            barrier.arrive(thread)
    barrier.init(count)
    for parity in parities:
        barrier.wait(9, int(parity))
    return barrier


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"count": 1, "arrivals": 1, "expected": 64, "arriving": 64},
        {"parities": "001"},  # it asks for the first phase twice
        {"parities": "10"},  # as one who waits until it is free
        {"parities": "101"},
    ],
)
def test_what_is_right(how: dict[str, Any]) -> None:
    full(**how).check()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"arrivals": 1}, "phase 0 gets 1 of 2 arrivals"),
        ({"arrivals": 3}, "phase 0 gets 3 of 2 arrivals"),
        ({"expected": 64, "arriving": 48}, "16 bytes of the phase before never arrive"),
        ({"expected": 64, "arriving": 80}, "80 bytes arrive, 64 are expected"),
        ({"parities": "0"}, "thread 9 waits for phase 0 of 2"),
        ({"parities": "00"}, "thread 9 waits for phase 0 of 2"),
        ({"parities": "010"}, "thread 9 waits for phase 2 of 2"),
        ({"parities": "1"}, "thread 9 waits for phase -1 of 2"),
        ({"parities": "1010"}, "thread 9 waits for phase 2 of 2"),
    ],
    ids=str,
)
def test_what_is_wrong(how: dict[str, Any], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        full(**how).check()


def test_who_waits_for_what_needs_it_hangs() -> None:
    """Thread 0 fills what thread 1 empties; the first time it is free, which has the parity of a phase before."""
    for parity, message in ((1, ""), (0, "thread 0 waits for ever")):
        barriers = Barriers()
        filled, emptied = barriers[0], barriers[8]
        emptied.wait(0, parity)
        filled.expect(0, 64)
        filled.complete(0, 64)
        filled.wait(1, 0)
        emptied.arrive(1)
        for barrier in (filled, emptied):
            barrier.init(1)
        with pytest.raises(AssertionError, match=message) if message else nullcontext():
            barriers.check()


_ATTEND = """
    with role(consumer):
        for m in tasks(blocks(M, {rows})):
            o = zeros(f32, m, 64)
            q = Q[m, :]
            for t in blocks(T, 64):
                o += cast(q @ K[t, :].T, bf16) @ V[t, :]
            {to}[m, :] = o
"""


@pytest.mark.parametrize("rows", [64, 128])
def test_warpgroups_of_two_roles_wait_by_barriers_of_their_own(rows: int) -> None:
    """Each waits for its own warps before it overwrites what they have read."""
    head = "kernel two(Q: bf16[M, 64], K: bf16[T, 64], V: bf16[T, 64], O: bf16[M, 64], P: bf16[M, 64]):"
    text = head + "".join(_ATTEND.format(rows=rows, to=to) for to in "OP")
    kernel = compile_program(parse_text(Source("two.pk", text)), level="machine").kernel
    names = [op.instruction_name.data for op in kernel.walk() if isinstance(op, InstructionOp)]
    waits = [name for name in names if name.startswith("sync_") and name.endswith("_of_128")]
    assert len(set(waits)) == len(waits) == 2 * rows // 64


@pytest.mark.parametrize(("name", "channels"), [("gemm", 0), ("gemm_fp8_blocks", 1), ("attention_dq", 2)])
def test_threads_that_read_a_stage_wait_for_each_other_before_one_frees_it(name: str, channels: int) -> None:
    """As the scales of rows, and L and delta; what only MMAs read is free when these have."""
    kernel = compile_program(load_program(EXAMPLES / f"{name}.pk"), level="machine").kernel
    instructions = [op for op in kernel.walk() if isinstance(op, InstructionOp)]
    assert sum(op.instruction_name.data == "sync_warp" for op in instructions) == channels
