"""Findings of the lowering to the machine level, and of its checks: PK510 to PK517."""

from __future__ import annotations

from pkc.diagnostics import Diagnostic


class NotLowered(Diagnostic):
    """The program is right, but pkc cannot lower something in it yet."""

    code = "PK510"
    title = "cannot be compiled for {target} yet: {what}"
    label = "{where}"
    help = "{hint}"
    target: str
    what: str
    hint: str
    where: str = "needed here"
    sizes: tuple[tuple[str, int], ...] = ()
    """By dimension: the size of its blocks that mends it."""


class NotPlanned(Diagnostic):
    """A dump or a list of passes leaves out a pass that the lowering obeys."""

    code = "PK511"
    title = "`{op}` has no `{attribute}`, which `{writer}` writes"
    label = "lowered without its plan"
    help = "run `{writer}` first; `pkc opt -h` lists the passes in their order"
    op: str
    attribute: str
    writer: str


class NotOfTheMachine(Diagnostic):
    """An operation of a higher level is left at the machine level."""

    code = "PK512"
    title = "`{op}` is not an operation of the machine level"
    label = "left over here"
    help = "`pk-lower-tiles` replaces it; a pass after it must not make it again"
    op: str


class RegisterByValue(Diagnostic):
    """The index of a register is known only when the kernel runs, so the registers would have to be in memory."""

    code = "PK513"
    title = "a register of {registers} is chosen when the kernel runs"
    label = "chosen here"
    help = "registers have no addresses: an index must follow from constants and from loops that are unrolled"
    registers: str


class BarrierOfOthers(Diagnostic):
    """A named barrier is used with two numbers of threads."""

    code = "PK514"
    title = "barrier {barrier} counts {counted} threads here and {other} elsewhere"
    label = "this one"
    help = "a named barrier is for one set of warps"
    barrier: int
    counted: int
    other: int


class NotWhole(Diagnostic):
    """The threads of a CTA, or the registers they ask for, do not fit the target."""

    code = "PK515"
    title = "{what}"
    label = "{limit}"
    what: str
    limit: str


class NoInstruction(Diagnostic):
    """The lowering needs an instruction that the table of the target lacks."""

    code = "PK517"
    title = "{target} has no instruction `{name}`"
    label = "needed here"
    help = "add it to the target's table, or compile for another `--target`"
    target: str
    name: str
