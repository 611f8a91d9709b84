"""What `pkc check` prints of findings: each in the smallest run that shows it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pkc import console
from pkc.check.counterexample import Alike, Counterexample, Search, counterexample, follows_from, same_as
from pkc.check.run import Trial
from pkc.cli.check_instance import Checked
from pkc.diagnostics import Diagnostic
from pkc.dialect.types import i32
from pkc.sim.draw import tables_given_to
from pkc.sim.program import Program


def show(checked: Checked, found: list[Diagnostic], failed: Trial | None) -> None:
    """Print what was found, as it is in the smallest run that shows the same."""
    search = Search()
    example = _example(checked, failed, same_as(found[0]), search)
    console.diagnostics(_with_tables(checked, found if example is None else example.found))
    console.lines([f"  on {checked.where}"] if example is None else _run(example))
    console.lines(_stopped(search))


_PLACED = ("PK702", "PK709", "PK730")
"""Findings about places that tables may name: two writers, lists of blocks out of range, accesses in no order."""


def _with_tables(checked: Checked, found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Findings that may be due to tables that were drawn say so."""
    kernel = checked.tile.kernel
    called, told = Program(kernel), tables_given_to(kernel)
    drawn = [name for name in called.inputs if called.arrays[name].element_type == i32 and name not in told]
    if not drawn:
        return [*found]
    names = ", ".join(f"`{name}`" for name in drawn)
    hint = (
        f"{names} {'are' if len(drawn) > 1 else 'is'} drawn: if callers promise more, as that rows do not overlap,"
        f" `{' '.join(f'--in {name}={name}.npy' for name in drawn)}` checks what they pass"
    )
    return [replace(one, context=hint) if one.code in _PLACED else one for one in found]


def show_run(checked: Checked, found: list[Diagnostic]) -> None:
    """Print a run that goes wrong because of what the static check has found, with its finding in short."""
    search = Search()
    example = _example(checked, None, follows_from(found), search)
    if example is None:
        console.lines([f"  on {checked.where}", *_stopped(search)])
        return
    first = example.found[0]
    console.lines([*_run(example), f"    {in_short(first)}"])


def _example(checked: Checked, failed: Trial | None, alike: Alike, search: Search) -> Counterexample | None:
    with console.progress("looking for a small run that fails"):
        most = checked.request.exhaustive
        return counterexample(checked.tile, checked.roles, most, checked.instance(), failed, alike, search)


def _stopped(search: Search) -> list[str]:
    """What is said of a search that had too little time."""
    said = f"  smaller runs that fail were looked for during {search.seconds:g} s, and not all"
    return [said] if search.stopped else []


def _run(example: Counterexample) -> list[str]:
    return [f"  a run with {example.size}:", *(f"    {line}" for line in example.lines)]


def in_short(found: Diagnostic) -> str:
    return f"{found.code}: {found.fill(found.title)}"
