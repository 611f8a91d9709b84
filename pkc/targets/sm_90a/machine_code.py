"""Machine code of sm_90, without a disassembler: an instruction has 16 bytes, and its kind in the low 9 bits.

What the numbers stand for is found out in `tests/codegen/test_build.py`: they are there with an instruction of PTX, not
without it.
"""

from __future__ import annotations

from pkc.targets.target import MachineCode

HGMMA, QGMMA = 0x1F0, 0x1F3
"""wgmma of 16-bit and of 8-bit floats."""
WARPGROUP, DEPBAR = 0x1C5, 1 << 47
"""Instructions that order wgmma, and the bit of those that wait."""

_LEFT, _GROUP = 64 + 8, 64 + 20
"""Where three bits are that say how many groups a wait leaves in flight, and those that are 0 at the end of a group."""


def _ends_group(code: int) -> bool:
    return code & 0x1FF in (HGMMA, QGMMA) and code >> _GROUP & 7 == 0


def _left(code: int) -> int | None:
    return code >> _LEFT & 7 if code & 0x1FF == WARPGROUP and code & DEPBAR else None


MACHINE_CODE = MachineCode(16, _ends_group, _left)
