"""Errors in naming a kernel of a file, in what it is compiled for, and in calls: PK910 to PK916, PK923 and PK926."""

from __future__ import annotations

from pkc.diagnostics import Diagnostic


class UnknownKernel(Diagnostic):
    """Raised when `--kernel` names no kernel of the file."""

    code = "PK910"
    title = "`{path}` has no kernel `{name}`"
    help = "{hint}"
    path: str
    name: str
    hint: str


class KernelNotChosen(Diagnostic):
    """Raised when a file has several kernels and the command does not name one."""

    code = "PK911"
    title = "`{path}` has {count} kernels"
    help = "choose one with `--kernel`, in Python with `kernel=`: {names}"
    path: str
    count: int
    names: str


class UnknownName(Diagnostic):
    """Raised when `kernel.simulate` is given something for a name that the kernel does not have."""

    code = "PK916"
    title = "kernel `{kernel}` has nothing named `{name}`"
    help = "{hint}"
    kernel: str
    name: str
    hint: str


class PrintOnGpus(Diagnostic):
    """Raised when a kernel that prints is compiled for GPUs."""

    code = "PK914"
    title = "`print` is for the simulator"
    label = "GPUs do not print"
    help = "leave it out, or run the kernel on simulated ranks: `pkc run` without `--target`"


class NotWritten(Diagnostic):
    """Raised when `--out`, or Python, asks for an array that the kernel does not write."""

    code = "PK923"
    title = "kernel `{kernel}` does not write `{name}`"
    help = "it writes {written}"
    kernel: str
    name: str
    written: str


class BadArgument(Diagnostic):
    """Raised when Python passes something for an argument that it cannot be, such as a number of ranks that is a
    text."""

    code = "PK926"
    title = "`{name}` cannot be {value}"
    help = "`{name}` is {expected}"
    name: str
    value: str
    expected: str


class HiddenName(Diagnostic):
    """Raised when Python passes something by a name that both a kernel and the call have for what they take."""

    code = "PK927"
    title = "`{name}` is a keyword of {call}, and a name in kernel `{kernel}`"
    label = "the kernel's"
    help = "give it another name in the kernel, such as `{name}_`"
    name: str
    call: str
    kernel: str
