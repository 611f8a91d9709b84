"""The opcodes of machine code for sm_90, without a disassembler: an instruction has 16 bytes, and its kind in 9 bits.

What the numbers stand for is found out in `test_build.py`: they are there with an instruction of PTX, not without it.
"""

from __future__ import annotations

from pkc.codegen.cubin import _sections

HGMMA, QGMMA, UTMALDG, UTMASTG = 0x1F0, 0x1F3, 0x1B4, 0x1B5
"""wgmma of 16-bit and of 8-bit floats, TMA load, TMA store."""


def opcodes(cubin: bytes, kernel: str) -> set[int]:
    """The kinds of instructions of a kernel."""
    section = _sections(cubin)[f".text.{kernel}"]
    code = cubin[section.offset : section.offset + section.size]
    return {int.from_bytes(code[at : at + 2], "little") & 0x1FF for at in range(0, len(code), 16)}
