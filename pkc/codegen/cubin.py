"""What a CUBIN says of its kernels, read from the ELF file: no GPU, driver or tool is needed."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

_SYMBOL_BYTES = 24
_SYMBOL_AND_VALUE = 4
"""The format of attributes in `.nv.info` that have a size and a payload; all others are four bytes long."""
_REGISTERS, _FRAME = 0x2F, 0x11
_RESERVED = 1024
"""Bytes of a shared memory section, if there is one, that are reserved for the system."""


@dataclass(frozen=True)
class KernelFacts:
    """Per thread: registers and bytes of stack frame (spills lie there). Per CTA: bytes of static shared memory.

    With `__launch_bounds__`, registers are the bound's cap, whatever `setmaxnreg` gives to single warps later.
    """

    registers: int
    frame: int
    shared: int
    code: int


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry: int


def kernel_facts(cubin: bytes) -> dict[str, KernelFacts]:
    """The facts of each kernel and device function of a CUBIN, by name."""
    sections = _sections(cubin)
    values = _attributes(cubin, sections)
    shared = {name[11:]: section.size for name, section in sections.items() if name.startswith(".nv.shared.")}
    return {
        name[6:]: KernelFacts(
            registers=values.get((_REGISTERS, name[6:]), 0),
            frame=values.get((_FRAME, name[6:]), 0),
            shared=max(0, shared.get(name[6:], 0) - _RESERVED),
            code=section.size,
        )
        for name, section in sections.items()
        if name.startswith(".text.")
    }


def code_of(cubin: bytes, kernel: str) -> bytes:
    """The instructions of a kernel."""
    section = _sections(cubin)[f".text.{kernel}"]
    return cubin[section.offset : section.offset + section.size]


def _sections(cubin: bytes) -> dict[str, _Section]:
    (table,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    sections = [_Section(*struct.unpack_from("<IIQQQQIIQQ", cubin, table + i * size)) for i in range(count)]
    return {_text(cubin, sections[names].offset + section.name): section for section in sections}


def _attributes(cubin: bytes, sections: dict[str, _Section]) -> dict[tuple[int, str], int]:
    """Values of `.nv.info` by attribute and function."""
    symbols, info = sections[".symtab"], sections[".nv.info"]
    texts = list(sections.values())[symbols.link].offset
    names = [
        _text(cubin, texts + struct.unpack_from("<I", cubin, symbols.offset + at)[0])
        for at in range(0, symbols.size, _SYMBOL_BYTES)
    ]
    found: dict[tuple[int, str], int] = {}
    at, end = info.offset, info.offset + info.size
    while at < end:
        form, attribute, length = struct.unpack_from("<BBH", cubin, at)
        at += 4
        if form != _SYMBOL_AND_VALUE:
            continue
        if length == 8 and attribute in (_REGISTERS, _FRAME):
            symbol, value = struct.unpack_from("<II", cubin, at)
            found[attribute, names[symbol]] = value
        at += length
    return found


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()
