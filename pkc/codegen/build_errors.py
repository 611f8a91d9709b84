"""Findings of the CUDA C++ compiler about code that it accepts (PK803 to PK807)."""

from __future__ import annotations

from pkc.diagnostics import Diagnostic


class Spills(Diagnostic):
    """Values that do not fit into registers go through memory."""

    code = "PK803"
    severity = "warning"
    title = "registers of `{kernel}` spill: {found}"
    label = "the largest tile in registers"
    help = (
        "`--explain` says of other tiles whether they spill, such as `--schedule tile_M=64`; `pkc tune` measures them"
    )
    kernel: str
    found: str


class RegistersNotMoved(Diagnostic):
    """Warps cannot hand registers to others, so those that compute have too few."""

    code = "PK804"
    title = "warps of `{kernel}` keep the registers they start with"
    label = "registers are reassigned here"
    note = "{found}"
    help = "this is a mistake in pkc, not in your program; please report it with the output of `--emit cuda`"
    kernel: str
    found: str


class MmasSerialized(Diagnostic):
    """The tensor cores complete each MMA before the next one is issued."""

    code = "PK805"
    severity = "warning"
    title = "the MMAs of `{kernel}` run one after the other"
    label = "the first MMA"
    note = "{found}"
    help = "smaller blocks leave more registers; what is computed between two MMAs may touch their accumulator"
    kernel: str
    found: str


class AllBarriers(Diagnostic):
    """A barrier is named by a value, which takes all sixteen."""

    code = "PK806"
    title = "`{kernel}` takes all barriers of a CTA"
    label = "in this kernel"
    help = "this is a mistake in pkc, not in your program; please report it with the output of `--emit cuda`"
    kernel: str


class Remark(Diagnostic):
    """Anything else that the compiler warns about."""

    code = "PK807"
    severity = "warning"
    title = "the compiler of `{kernel}` remarks: {found}"
    label = "in this kernel"
    help = "please report it with the output of `--emit cuda`"
    kernel: str
    found: str
