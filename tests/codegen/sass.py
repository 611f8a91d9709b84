"""The opcodes of machine code for sm_90, without a disassembler: an instruction has 16 bytes, and its kind in 9 bits.

What the numbers stand for is found out in `test_build.py`: they are there with an instruction of PTX, not without it.
"""

from __future__ import annotations

from pkc.codegen.cubin import code_of
from pkc.targets.sm_90a.machine_code import HGMMA, QGMMA, WARPGROUP

UTMALDG, UTMASTG = 0x1B4, 0x1B5
"""TMA load, TMA store."""

__all__ = ["BRA", "FFMA", "HGMMA", "QGMMA", "UTMALDG", "UTMASTG", "WARPGROUP", "loops", "opcodes"]

FFMA, BRA, CALL, EXIT, ELECT, USETMAXREG = 0x023, 0x147, 0x144, 0x14D, 0x02F, 0x1C8
"""Fused multiply-add of three registers, branch, call, end of a thread, choice of one thread, change of registers."""


def opcodes(cubin: bytes, kernel: str) -> set[int]:
    """The kinds of instructions of a kernel."""
    return {_kind(word) for word in _instructions(cubin, kernel)}


def loops(cubin: bytes, kernel: str) -> list[list[int]]:
    """The kinds of instructions from the target of each branch back up to the branch, in the order of the branches."""
    code = _instructions(cubin, kernel)
    found: list[list[int]] = []
    for at, word in enumerate(code):
        first = at + 1 + _offset(word) // 16
        if _kind(word) == BRA and first <= at:
            found.append([_kind(inside) for inside in code[first : at + 1]])
    return found


def least(cubin: bytes, kernel: str) -> list[list[int]]:
    """As `loops`, of each the fewest instructions that an iteration carries out: branches past others are taken."""
    code = _instructions(cubin, kernel)
    found: list[list[int]] = []
    for at, word in enumerate(code):
        first = at + 1 + _offset(word) // 16
        if _kind(word) == BRA and first <= at:
            found.append([_kind(code[place]) for place in _shortest(code, first, at)])
    return found


def _shortest(code: list[int], first: int, last: int) -> list[int]:
    """The places on the shortest way from one instruction forward to another one; none if there is no way."""
    before: dict[int, int] = {first: first}
    todo = [first]
    for at in todo:
        word = code[at]
        following = [] if _kind(word) in (BRA, EXIT) and word >> 12 & 0xF == _ALWAYS else [at + 1]
        if _kind(word) == BRA:
            following.append(at + 1 + _offset(word) // 16)
        for place in following:
            if at < place <= last and place not in before:
                before[place] = at
                todo.append(place)
    way = [last] if last in before else []
    while way and way[-1] != first:
        way.append(before[way[-1]])
    return way[::-1]


def _instructions(cubin: bytes, kernel: str) -> list[int]:
    code = code_of(cubin, kernel)
    return [int.from_bytes(code[at : at + 16], "little") for at in range(0, len(code), 16)]


def _kind(word: int) -> int:
    return word & 0x1FF


def _offset(word: int) -> int:
    """Bytes from behind a branch to its target: the number of words of 32 bits in bits 16 to 23 and 34 to 81."""
    high = word >> 34 & (1 << 48) - 1
    high -= (high >> 47) << 48
    return 4 * ((word >> 16 & 0xFF) + (high << 8))


def registers(cubin: bytes, kernel: str) -> list[tuple[int, int]]:
    """For each USETMAXREG: how many registers of a thread it leaves, and how many the code from there to its exits or
    to the next one writes, from R0 to the last."""
    code = _instructions(cubin, kernel)
    return [(word >> 32 & 0xFF, _written(code, at)) for at, word in enumerate(code) if _kind(word) == USETMAXREG]


def _written(code: list[int], start: int) -> int:
    seen, todo, most = set[int](), [start + 1], 0
    while todo:
        at = todo.pop()
        word = code[at] if at < len(code) else 0
        if at in seen or at >= len(code) or _kind(word) == USETMAXREG:
            continue
        seen.add(at)
        register = word >> 16 & 0xFF
        if _kind(word) in _WRITERS and register < _ZERO:
            most = max(most, register + 1)
        if _kind(word) in (BRA, CALL):
            todo.append(at + 1 + _offset(word) // 16)
        if not (_kind(word) in (BRA, EXIT) and word >> 12 & 0xF == _ALWAYS):
            todo.append(at + 1)
    return most


_WRITERS = {*range(0x80), *range(0x100, 0x140), *range(0x180, 0x190)} - {ELECT}
"""Kinds with a register of the thread in bits 16 to 23, or 0: arithmetic, special registers, loads; the others are of
uniform registers, of control flow, or asynchronous."""

_ZERO, _ALWAYS = 255, 7
"""RZ, which is no register; the predicate PT."""
