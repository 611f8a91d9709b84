"""How the results of a run are printed: errors against the reference, and the verdict."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from pkc.console import coloured
from pkc.dialect.probable_bounds import EXCEEDED
from pkc.sim.reference import Comparison, Expected


def comparison_table(expected: Mapping[str, Expected], compared: Sequence[Comparison]) -> str:
    """One line for each array that was checked: shape, elements written, largest error, both bounds there, verdict."""
    head = ("array", "shape", "written", "max error", "bound there", "error/bound", "probable", "error/probable", "")
    rows = [head]
    for item in compared:
        written = expected[item.array].written
        rows.append(
            (
                item.array,
                " x ".join(map(str, written.shape)),
                "all" if written.all() else f"{int(written.sum())} of {written.size}",
                f"{item.max_error:.3e}",
                f"{item.bound_there:.3e}",
                f"{item.worst_ratio:.3f}",
                f"{item.probable_there:.3e}",
                f"{item.probable_ratio:.3f}",
                "ok" if item.ok else f"WRONG: [{', '.join(map(str, item.where))}] {item.problem}",
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(f"  {line}".rstrip() for line in lines)


def improbable(compared: Sequence[Comparison]) -> list[str]:
    """A line for each array with an error that is within its bound, and larger than is probable."""
    names = [item.array for item in compared if item.ok and item.probable_ratio > 1]
    rule = f"an element is with a probability of {EXCEEDED:.1e} if roundings have mean zero"
    return [f"{_warning()}: `{name}` is further off than is probable; {rule}" for name in names]


def unwritten(expected: Mapping[str, Expected]) -> list[str]:
    """A line for each array of which the kernel writes nothing at all: there was nothing to check."""
    names = [name for name, array in expected.items() if not array.written.any()]
    return [f"{_warning()}: no element of `{name}` is written" for name in names]


def _warning() -> str:
    return "\x1b[1;33mwarning\x1b[0m" if coloured(sys.stdout) else "warning"


def verdict(compared: Sequence[Comparison]) -> str:
    """The last line of a run."""
    wrong = [item.array for item in compared if not item.ok]
    painted = coloured(sys.stdout)
    if not wrong:
        text = f"ok: {', '.join(item.array for item in compared)} within the bound of the float64 reference"
        return f"\x1b[1;32m{text}\x1b[0m" if painted else text
    text = f"WRONG: {', '.join(wrong)} outside the bound of the float64 reference"
    return f"\x1b[1;31m{text}\x1b[0m" if painted else text
