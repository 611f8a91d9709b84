"""How the results of a run are printed: errors against the reference, and the verdict."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from pkc.console import coloured
from pkc.dialect.probable_bounds import EXCEEDED
from pkc.sim.reference import Comparison, Expected

_HEAD = ("array", "shape", "written", "max error", "bound there", "error/bound")


def comparison_table(expected: Mapping[str, Expected], compared: Sequence[Comparison]) -> str:
    """One line for each array that was checked: shape, elements written, largest error, both bounds there, verdict."""
    return _table(comparison_rows(expected, compared))


def comparison_rows(expected: Mapping[str, Expected], compared: Sequence[Comparison]) -> list[tuple[str, ...]]:
    """The cells of that table, its head first."""
    rows: list[tuple[str, ...]] = [(*_HEAD, "probable", "error/probable", "")]
    for item in compared:
        likely = (f"{item.probable_there:.3e}", f"{item.probable_ratio:.3f}")
        rows.append((*_extent(item, expected[item.array]), *_errors(item), *likely, _found(item)))
    return rows


def short_table(expected: Mapping[str, Expected], compared: Sequence[Comparison]) -> str:
    """The same without the probable bound."""
    rows: list[tuple[str, ...]] = [(*_HEAD, "")]
    rows += [(*_extent(item, expected[item.array]), *_errors(item), _found(item)) for item in compared]
    return _table(rows)


def _extent(item: Comparison, expected: Expected) -> tuple[str, str, str]:
    written = expected.written
    count = "all" if written.all() else f"{int(written.sum())} of {written.size}"
    return item.array, " x ".join(map(str, written.shape)), count


def _errors(item: Comparison) -> tuple[str, str, str]:
    return f"{item.max_error:.3e}", f"{item.bound_there:.3e}", f"{item.worst_ratio:.3f}"


def _found(item: Comparison) -> str:
    if item.problem:
        return f"WRONG: [{', '.join(map(str, item.where))}] {item.problem}"
    if item.unjudged:
        return f"NOT JUDGED: {item.reason}"
    return f"IN DOUBT: {item.doubt}" if item.doubted else "ok"


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(f"  {line}".rstrip() for line in lines)


def improbable(compared: Sequence[Comparison]) -> list[str]:
    """A line for each array with an error that is within its bound, and larger than is probable."""
    names = [item.array for item in compared if item.ok and item.probable_ratio > 1]
    rule = f"an element is with a probability of {EXCEEDED:.1e} if roundings have mean zero"
    return [f"{_warning()}: `{name}` is further off than is probable; {rule}" for name in names]


def doubtful(expected: Mapping[str, Expected], compared: Sequence[Comparison]) -> list[str]:
    """A line for each array with elements that may be right or wrong: a comparison that errors leave open decides, or
    nothing is known of them."""
    unjudged = [_unjudged(item, expected[item.array]) for item in compared if item.unjudged]
    return [*unjudged, *(_doubted(item, expected[item.array]) for item in compared if item.doubted)]


def _unjudged(item: Comparison, expected: Expected) -> str:
    several = f"{item.unjudged} of {int(expected.written.sum())} elements of `{item.array}`"
    return f"{_warning()}: {several} cannot be told right from wrong: {item.reason}"


def _doubted(item: Comparison, expected: Expected) -> str:
    several = f"{item.doubted} of {int(expected.written.sum())} elements of `{item.array}`"
    why = f"they depend on a comparison of values that are equal within their errors ({', '.join(expected.open_at)})"
    return f"{_warning()}: {several} cannot be told right from wrong: {why}"


def unwritten(expected: Mapping[str, Expected]) -> list[str]:
    """A line for each array of which the kernel writes nothing at all: there was nothing to check."""
    names = [name for name, array in expected.items() if not array.written.any()]
    return [f"{_warning()}: no element of `{name}` is written" for name in names]


def _warning() -> str:
    return "\x1b[1;33mwarning\x1b[0m" if coloured(sys.stdout) else "warning"


def verdict(compared: Sequence[Comparison], others: Sequence[tuple[str, Sequence[Comparison]]] = ()) -> str:
    """The last line of a run: against pkc's own reference, and others by name."""
    checks = [("the float64 reference", compared), *others]
    wrong = [(name, [item.array for item in items if item.problem]) for name, items in checks]
    if any(arrays for _, arrays in wrong):
        text = "; ".join(f"{', '.join(arrays)} outside the bound of {name}" for name, arrays in wrong if arrays)
        return _painted(f"WRONG: {text}", "31")
    unjudged = [(name, [item.array for item in items if item.unjudged]) for name, items in checks]
    if any(arrays for _, arrays in unjudged):
        text = "; ".join(f"{name} has no bound for all of {', '.join(arrays)}" for name, arrays in unjudged if arrays)
        return _painted(f"NOT JUDGED: {text}, so nothing says whether it is right", "33")
    open_ = [(name, [item.array for item in items if not item.ok]) for name, items in checks]
    if any(arrays for _, arrays in open_):
        text = "; ".join(f"most of {', '.join(arrays)} is not that of {name}" for name, arrays in open_ if arrays)
        return _painted(f"IN DOUBT: {text}, and no bound says whether it is wrong", "33")
    names = " and of ".join(name for name, _ in checks)
    doubted = sum(item.doubted for _, items in checks for item in items)
    but = f", but for {doubted} {'element' if doubted == 1 else 'elements'} in doubt" if doubted else ""
    return _painted(f"ok: {', '.join(item.array for item in compared)} within the bound of {names}{but}", "32")


def _painted(text: str, colour: str) -> str:
    return f"\x1b[1;{colour}m{text}\x1b[0m" if coloured(sys.stdout) else text
