"""CUDA C++ to machine code and PTX by NVRTC: in process, without headers, GPU or driver, cached on disk."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pkc import cache
from pkc.codegen.compile_errors import NoNvrtc, RejectedCode
from pkc.diagnostics import PkcError
from pkc.location import NOWHERE

# --no-cache: the cache of the driver would need a driver. 177: functions that a kernel does not use.
OPTIONS = ("-std=c++17", "-lineinfo", "--ptxas-options=-v", "--no-cache", "-diag-suppress=177")

_ENTRY = re.compile(r"Compiling entry function '(\w+)'")
_CODED = re.compile(r"ptxas info\s*: \(C\d{4}\) (.*)")
"""The numbers mean nothing outside of ptxas."""
_WARNING = re.compile(r"(?:ptxas warning\s*: |.*\): warning (?:#\S+: )?)(.*)")
_FUNCTION = re.compile(r"in (?:the )?function '(\w+)'")
_SPILLS = re.compile(r"([1-9]\d*) bytes spill stores")

Kind = Literal["setmaxnreg", "serialized", "spills", "barriers", "other"]
"""A kind of finding: `setmaxnreg` was ignored for want of launch bounds; wgmma does not run asynchronously, because it
is serialized or waits were added; registers spill; a barrier is named by a register, which takes all 16; any other."""


@dataclass(frozen=True)
class Finding:
    """What NVRTC or ptxas remarks on code that it accepts; `kernel` is empty if it does not say which."""

    kind: Kind
    kernel: str
    text: str


@dataclass(frozen=True)
class Compiled:
    """Machine code (an ELF file), the PTX it comes from, and what the compiler printed."""

    cubin: bytes
    ptx: str
    log: str

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(_findings(self.log))


def compile_cuda(source: str, target: str, name: str) -> Compiled:
    """Compile one file of CUDA C++ for a target, as `-arch` of NVRTC calls it; `name` is what messages call it.

    Takes a tenth to half of a second, and under a millisecond when this source was compiled before. Raises `PkcError`.
    """
    options = (f"-arch={target}", *OPTIONS)
    key = cache.key("nvrtc 1", version(), name, *options, source)
    kept = cache.get(key)
    if kept is not None:
        return _unpack(kept)
    compiled = _compile(source, options, target, name)
    cache.put(key, _pack(compiled))
    return compiled


def _compile(source: str, options: tuple[str, ...], target: str, name: str) -> Compiled:
    nvrtc = _nvrtc()
    result, program = nvrtc.nvrtcCreateProgram(source.encode(), f"{name}.cu".encode(), 0, [], [])
    if result:
        raise PkcError(RejectedCode(NOWHERE, name, target, _error_text(result)))
    try:
        (result,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
        log = _read(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).rstrip(b"\0\n ").decode()
        if result:
            raise PkcError(RejectedCode(NOWHERE, name, target, log or _error_text(result)))
        cubin = _read(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
        ptx = _read(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program).rstrip(b"\0").decode()
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    return Compiled(cubin, ptx, log)


def _read(size_of: Any, get: Any, program: Any) -> bytes:
    _, size = size_of(program)
    buffer = bytearray(size)
    get(program, buffer)
    return bytes(buffer)


def _error_text(result: Any) -> str:
    return _nvrtc().nvrtcGetErrorString(result)[1].decode()


@functools.cache
def _nvrtc() -> Any:
    """The bindings, with the library loaded. They are untyped, and slow to import."""
    try:
        nvrtc = importlib.import_module("cuda.bindings.nvrtc")
        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as error:
        # The bindings find the library at the first call.
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise PkcError(NoNvrtc(NOWHERE, reason)) from None
    return nvrtc


@functools.cache
def version() -> str:
    """The version of NVRTC."""
    _, major, minor = _nvrtc().nvrtcVersion()
    return f"{major}.{minor}"


@functools.cache
def release() -> str:
    """What tells one NVRTC from another: its package's version, which the bindings take first; it is not loaded.

    Raises `PkcError` if there is none.
    """
    try:
        return importlib.metadata.version("nvidia-cuda-nvrtc")
    except importlib.metadata.PackageNotFoundError:
        return version()


def _pack(compiled: Compiled) -> bytes:
    fields = [compiled.cubin, compiled.ptx.encode(), compiled.log.encode()]
    return b"".join(struct.pack("<Q", len(field)) + field for field in fields)


def _unpack(data: bytes) -> Compiled:
    fields: list[bytes] = []
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        fields.append(data[at + 8 : at + 8 + length])
        at += 8 + length
    cubin, ptx, log = fields
    return Compiled(cubin, ptx.decode(), log.decode())


def _findings(log: str) -> Iterator[Finding]:
    kernel = ""
    for line in log.splitlines():
        if entry := _ENTRY.search(line):
            kernel = entry[1]
        elif coded := _CODED.match(line):
            kind = _kind(coded[1])
            if kind is not None:
                yield Finding(kind, _named(line), coded[1])
        elif spills := _SPILLS.search(line):
            yield Finding("spills", kernel, spills[0])
        elif "used 16 barriers" in line:
            yield Finding("barriers", kernel, "used 16 barriers")
        elif warning := _WARNING.match(line):
            yield Finding("other", _named(line), warning[1])


def _kind(text: str) -> Kind | None:
    if "'setmaxnreg' ignored" in text:
        return "setmaxnreg"
    # ptxas has a code for each reason, and names wgmma or only its warpgroup.
    if "are serialized" in text or "warpgroup.wait is injected" in text:
        return "serialized"
    # Registers that are written before the first MMA: those behind it are not held up.
    return None if "warpgroup.arrive is injected" in text else "other"


def _named(line: str) -> str:
    found = _FUNCTION.search(line)
    return found[1] if found else ""
