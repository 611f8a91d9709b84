"""Where the locations, counters, registers and stages of an instance of a litmus test are, as CUDA C++."""

from __future__ import annotations

import struct

from tests.litmus.kernel import locations_of, ranks_of, registers_of, uses_mma, weakened
from tests.litmus.statements import Litmus

_SHARED = 32768
"""Bytes of all stages of a CTA."""

OPERAND = 2048
"""Bytes that an MMA reads: 64 rows of 16 bf16."""

_COUNTERS = ("signal", "raise", "wait", "reset", "barrier")


def counters_of(test: Litmus) -> list[str]:
    """The names of its counters."""
    return list(dict.fromkeys(s.operands[0] for thread in test.threads for s in thread.body if s.op in _COUNTERS))


def outcomes_of(test: Litmus) -> list[str]:
    """The registers that its threads load."""
    return [f"{thread.name}.{register}" for thread in weakened(test).threads for register in registers_of(thread)]


class Places:
    """The addresses of one instance, `at`, of a launch of `run.instances`."""

    def __init__(self, test: Litmus) -> None:
        self.test = test
        self.ranks = ranks_of(test)
        self._locations, self._counters, self.outcomes = (
            locations_of(weakened(test)),
            counters_of(test),
            outcomes_of(test),
        )
        named = [s.operands[0] for t in test.threads for s in t.body if s.op in ("acquire", "commit", "consume")]
        self.rings = list(dict.fromkeys(named))
        self.stages = max(1, len(self.rings) * test.stages)
        self.stage_bytes = 8192 if self.stages <= _SHARED // 8192 else 4096
        """Of which a launch uses the first ones."""

    def place(self, location: str, rank: int) -> str:
        """The address of a location of this instance on a rank."""
        number = self._locations.index(location) * self.ranks + rank
        return f"(run.data + ({number}ull * run.instances + at) * (run.bytes / 4))"

    def counter(self, name: str, rank: int) -> str:
        """The address of a counter of this instance on a rank."""
        number = self._counters.index(name) * self.ranks + rank
        return f"(run.counters + ({number}ull * run.instances + at) * 4)"

    def outcome(self, register: str) -> str:
        """The address of the four elements of a register."""
        return f"(run.outcome + ({self.outcomes.index(register)}ull * run.instances + at) * 4)"

    def hung(self) -> str:
        return f"run.outcome[({len(self.outcomes)}ull * run.instances + at) * 4]"

    def stage(self, ring: str, number: int) -> str:
        """The address in shared memory of a stage, counted from 0."""
        return f"smem(stages[{self.rings.index(ring) * self.test.stages + number % self.test.stages}])"

    def barrier(self, kind: str, ring: str, number: int) -> str:
        """The address of the mbarrier that says that a stage is full, or empty."""
        return f"smem(&{kind}[{self.rings.index(ring) * self.test.stages + number % self.test.stages}])"

    def encoded(self, value: int) -> str:
        """A value as a word: a number, or two bf16 where MMAs read."""
        if not uses_mma(self.test):
            return f"{value}u"
        return f"{bf16(value) * 0x10001:#x}u"


def bf16(value: float) -> int:
    """The bits of a number that bf16 holds exactly."""
    return int(struct.unpack("<I", struct.pack("<f", value))[0]) >> 16
