"""When two litmus tests are one: the same statements of the same threads, whatever names, places and values."""

from __future__ import annotations

from itertools import permutations
from typing import TypeAlias

from tests.litmus.statements import Atom, Litmus, Statement, Thread

Form: TypeAlias = tuple[object, ...]

_NUMBERED = ("wait", "raise", "wait_group", "wait_group.read")
"""Statements whose numbers count something; others store a value, of which only equality matters."""


def canonical(test: Litmus) -> Form:
    """What equal tests have in common. On whose rank a location is does not matter, nor where a signal goes: to who
    waits for it."""
    busy = [thread for thread in test.threads if thread.body]
    return min((_form(test, order) for order in permutations(busy)), key=repr)


def _form(test: Litmus, order: tuple[Thread, ...]) -> Form:
    names: dict[str, str] = {}
    values: dict[str, str] = {"0": "0"}

    def name(kind: str, found: str) -> str:
        return names.setdefault(f"{kind} {found}", f"{kind}{len(names)}")

    def value(found: str) -> str:
        return values.setdefault(found, f"v{len(values)}")

    def operand(thread: Thread, s: Statement, found: str) -> str:
        if found.isdigit():
            return found if s.op in _NUMBERED else value(found)
        if (s.op in ("fence", "signal") and found[-4:] in (".sys", ".gpu")) or s.op == "fence":
            return found
        return name("n", f"{thread.name}.{found}" if _is_register(thread, found) else found)

    bodies = [
        (
            name("rank", str(thread.rank)),
            tuple((s.op, *(operand(thread, s, found) for found in s.operands)) for s in thread.body),
        )
        for thread in order
    ]
    choices = _choices(test)
    exists = {
        tuple(
            sorted(
                (name("n", atom.what.split("@")[0]), atom.equal, value(str(atom.value)))
                for atom in (_equal(atom, choices.get(atom.what.split("@")[0])) for atom in every)
            )
        )
        for every in test.exists
    }
    return (tuple(bodies), tuple(sorted(exists, key=repr)), test.launched, test.stages)


def _is_register(thread: Thread, found: str) -> bool:
    return any(s.op.split(".")[0] in ("ld", "read", "mma") and s.operands[0] == found for s in thread.body)


def _equal(atom: Atom, choices: frozenset[str] | None) -> Atom:
    """`!=` as `=` where there is only one other value."""
    if atom.equal or choices is None or len(choices) != 2 or str(atom.value) not in choices:
        return atom
    return Atom(atom.what, True, int(next(iter(choices - {str(atom.value)}))))


def _choices(test: Litmus) -> dict[str, frozenset[str]]:
    """The values that a location, or a register of it, can have: 0 and what is stored there, if that is all numbers."""
    body = [s for thread in test.threads for s in thread.body]
    stores = {s.operands[0]: {"0"} for s in body if s.op.split(".")[0] == "st"}
    for s in body:
        if s.op.split(".")[0] == "st":
            stores[s.operands[0]].add(s.operands[1])
    others = {s.operands[0] for s in body if s.op in ("red", "tma.st", "tma.red")}
    found = {
        place: frozenset(values)
        for place, values in stores.items()
        if place not in others and all(map(str.isdigit, values))
    }
    rings = {s.operands[0]: s.operands[1] for s in body if s.op == "tma.ld"}
    for thread in test.threads:
        for s in thread.body:
            if s.op.split(".")[0] not in ("ld", "read"):
                continue
            place = s.operands[1] if s.op != "read" else rings.get(s.operands[1], "")
            if place in found:
                found[f"{thread.name}.{s.operands[0]}"] = found[place]
    return found
