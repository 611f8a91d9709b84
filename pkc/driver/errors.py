"""Errors in naming a kernel of a file, and in what it is compiled for: PK910, PK911, PK914 and PK916."""

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
