"""One entry of a target's instruction table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Instruction:
    """One entry: `body` is the C++ of a function with parameters a, b, c, ... of the kinds in `operands`.

    Operands and results have the kinds of `KINDS` (`pkc/dialect/machine.py`); `registers<n x kind>` is an array of
    registers that the instruction reads and writes.
    """

    name: str
    operands: tuple[str, ...]
    result: str | None
    body: str
    description: str
    computes: str = ""
    """The operation on tiles that it carries out, element by element, by the name of the operation."""
