"""What can go wrong between CUDA C++ and machine code (PK801...)."""

from __future__ import annotations

from pkc.diagnostics import Diagnostic


class RejectedCode(Diagnostic):
    """NVRTC does not accept the CUDA C++ that pkc has written: a mistake in pkc."""

    code = "PK801"
    title = "the code generated for `{name}` does not compile for {target}"
    note = "{log}"
    help = "this is a mistake in pkc, not in your program; please report it with the output of `--emit cuda`"
    name: str
    target: str
    log: str


class NoNvrtc(Diagnostic):
    """The library that compiles CUDA C++ cannot be loaded."""

    code = "PK802"
    title = "NVRTC, which compiles CUDA C++, cannot be loaded"
    note = "{reason}"
    help = "`pip install 'pkc[gpu]'` installs it; no GPU or driver is needed"
    reason: str
