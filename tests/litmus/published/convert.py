"""Published tests in pkc's own format: what is a counter there, what an array, and what pkc has no notion of.

Threads of one GPU become roles of one rank, wherever their CTAs are. Locations are on the rank that has the first
thread. A location whose accesses are all strong, and whose reads the outcome asks for a value that one thread has
stored or all have added, becomes a counter: a store a signal, a load that must give 1 a wait for 1. `bar.sync` between
threads of a CTA becomes a stage from each to each, as mbarriers order alike (PTX ISA 9.7.13.15.16, 8.9.4). Loads
through the texture, surface or constant proxy become loads by TMA, and fences to that proxy `fence async.global`: the
rule for proxies is the same for all (8.6, 8.9.5). `.cta` becomes `.gpu` between threads of a CTA, and orders nothing
otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from tests.litmus.published.ptx import Asked, Instruction, PtxTest, PtxThread, numbered
from tests.litmus.statements import HANG, Atom, Condition, Litmus, Statement, Thread

_WIDTH = {"cta": 0, "gpu": 1, "sys": 2}
_LOADS = {"ld": "generic", "suld": "surface", "tld": "texture", "cold": "constant"}
_STORES = {"st": "generic", "sust": "surface"}
_Meeting: TypeAlias = tuple[tuple[int, int], tuple[str, ...], int]
"""A CTA, a barrier, and how often its threads have been there before."""

_BRANCHES = ("beq", "bne", "blt", "bgt", "ble", "bge", "goto")


class NotModelled(ValueError):
    """Why pkc has no notion of a test."""


def converted(test: PtxTest, sections: Sequence[str] = ("8.9",)) -> Litmus:
    """The test in pkc's format. Raises `NotModelled`."""
    return _Conversion(test).litmus(sections)


class _Conversion:
    """One test on its way."""

    def __init__(self, test: PtxTest) -> None:
        self.test = test
        _refuse(test)
        self._bodies = {
            thread.name: tuple(_constants(_spins(thread.body), _begun(test, thread))) for thread in test.threads
        }
        self._ranks = numbered([str(thread.gpu) for thread in test.threads])
        self._proxy = self._the_proxy()
        self._counters = {name: found for name in self._locations() if (found := self._values(name)) is not None}
        self._bars = self._meetings()

    def litmus(self, sections: Sequence[str]) -> Litmus:
        threads = tuple(
            Thread(thread.name, self.rank(thread), tuple(_Role(self, thread).statements()))
            for thread in self.test.threads
        )
        exists = self._exists(threads)
        return Litmus(self.test.name, bool(self.test.forbidden), tuple(sections), threads=threads, exists=exists)

    def body(self, thread: PtxThread) -> Sequence[Instruction]:
        return self._bodies[thread.name]

    def place(self, name: str) -> str:
        """The location that a name stands for."""
        return self.test.aliases[name][1] if name in self.test.aliases else name

    def values(self, location: str) -> Sequence[str] | None:
        """What a counter is set to, one after the other; none of an array."""
        return self._counters.get(location)

    def is_other_proxy(self, found: Instruction) -> bool:
        return _LOADS.get(found.op, "generic") != "generic"

    def fences(self, found: Instruction) -> bool:
        """Whether a fence between proxies is for the proxy of this test."""
        return found.words[2] == self._proxy

    def scope(self, thread: PtxThread, location: str, scope: str) -> str:
        """The scope in pkc of a strong access to a counter: nothing if it orders nothing here."""
        if scope != "cta":
            return scope
        others = [
            other
            for other in self.test.threads
            if other is not thread
            and any(self.place(operand) == location for i in self.body(other) for operand in i.operands)
        ]
        near = [other.cta == thread.cta for other in others]
        if any(near) and not all(near):
            raise NotModelled("a scope of CTA, for threads inside and outside of it")
        return "gpu" if near and all(near) else ""

    def waiting(self, location: str) -> Sequence[int]:
        """The ranks that wait for a counter."""
        reading = [
            self.rank(thread) for thread in self.test.threads if any(_reads(i) == location for i in self.body(thread))
        ]
        return sorted(set(reading))

    def meetings(self, thread: PtxThread, found: Instruction, number: int) -> Sequence[str]:
        """Who else comes to a barrier of a CTA for the `number`th time."""
        return self._bars[thread.cta, found.operands, number]

    # What the test has

    def rank(self, thread: PtxThread) -> int:
        """The rank that has a thread."""
        return self._ranks[str(thread.gpu)]

    def _locations(self) -> list[str]:
        accesses = [i for body in self._bodies.values() for i in body]
        return list(dict.fromkeys(place for i in accesses for place in (_reads(i), _writes(i)) if place))

    def _values(self, location: str) -> Sequence[str] | None:
        """What one thread stores to a counter, or how often all add 1; none if it is an array."""
        stored, added, asked = list[tuple[str, str]](), 0, list[str]()
        for name, body in self._bodies.items():
            for i in body:
                if location not in (_reads(i), _writes(i)):
                    continue
                if i.order == "weak":
                    return None
                if i.op == "st":
                    stored.append((name, i.operands[1]))
                elif i.op == "red" and i.operands[1] == "1":
                    added += 1
                elif i.op == "spin":
                    asked.append(i.operands[2])
                elif i.op == "ld":
                    wanted = {_wanted(f"{name}:{i.operands[0]}", every) for every in self.test.outcome}
                    if len(wanted) != 1 or (value := wanted.pop()) is None:
                        return None
                    asked.append(value)
        values = [value for _, value in stored] + [str(number + 1) for number in range(added)]
        one = len({name for name, _ in stored}) + bool(added) == 1
        rises = all(value.isdigit() for value in values) and sorted(set(map(int, values))) == [*map(int, values)]
        final = any(asks.what == location for every in self.test.outcome for asks in every)
        if not one or not rises or not asked or final or "0" in values or not set(asked) <= set(values):
            return None
        return values

    def _the_proxy(self) -> str:
        found = {_LOADS[i.op] for body in self._bodies.values() for i in body if i.op in _LOADS} - {"generic"}
        if len(found) > 1:
            raise NotModelled("two proxies beside the generic one")
        return found.pop() if found else ""

    def _meetings(self) -> Mapping[_Meeting, Sequence[str]]:
        """The threads that come."""
        found: dict[_Meeting, list[str]] = {}
        for thread in self.test.threads:
            seen = Counter[tuple[str, ...]]()
            for i in self.body(thread):
                if i.op == "bar":
                    found.setdefault((thread.cta, i.operands, seen[i.operands]), []).append(thread.name)
                    seen[i.operands] += 1
        for (_, operands, _), names in found.items():
            if len(operands) == 3 and operands[2] != str(len(names)):
                raise NotModelled("a barrier of another number of threads than come to it")
        return found

    # What is asked

    def _exists(self, threads: Sequence[Thread]) -> Condition:
        loaded = {
            f"{thread.name}:{s.operands[0]}" for thread in threads for s in thread.body if s.op[:2] in ("ld", "re")
        }
        made = [self._every(every, loaded) for every in self.test.outcome]
        return tuple(every for every in made if every is not None)

    def _every(self, every: Sequence[Asked], loaded: set[str]) -> tuple[Atom, ...] | None:
        atoms: list[Atom] = []
        for asked in every:
            if asked.what == HANG:
                atoms.append(Atom(HANG, True, 1))
                continue
            if not asked.value.isdigit():
                raise NotModelled("two registers are compared")
            if ":" not in asked.what:
                atoms.append(Atom(f"{asked.what}@0", asked.equal, int(asked.value)))
            elif asked.what in loaded:
                atoms.append(Atom(asked.what.replace(":", "."), asked.equal, int(asked.value)))
            elif not self._is_wait(asked) and (asked.value == "0") is not asked.equal:
                return None  # a register that nothing loads
        return tuple(atoms)

    def _is_wait(self, asked: Asked) -> bool:
        thread, register = asked.what.split(":")
        return any(
            i.op in ("ld", "spin") and i.operands[0] == register and self.values(i.operands[1]) is not None
            for i in self._bodies[thread]
        )


class _Role:
    """The statements of one thread."""

    def __init__(self, conversion: _Conversion, thread: PtxThread) -> None:
        self._from, self._thread = conversion, thread
        self._scopes: list[str] = []
        """Of the counters that have been awaited and not acquired."""
        self._released = ""
        """The scope of a fence that stands in front of the next strong store."""
        self._met = Counter[tuple[str, ...]]()
        self._rings = 0

    def statements(self) -> Iterator[Statement]:
        for i in self._from.body(self._thread):
            yield from getattr(self, f"_{i.op}")(i)
            if i.op not in ("fence", "bar"):
                self._released = ""

    def _at(self) -> int | None:
        return None if self._from.rank(self._thread) == 0 else 0

    def _ld(self, i: Instruction) -> Iterator[Statement]:
        register, name = i.operands
        location = self._from.place(name)
        values = self._from.values(location)
        if values is None:
            op = "ld" if i.order == "weak" else f"ld.{i.order}.{i.scope}"
            yield Statement(op, (register, location), self._at())
            return
        wanted = next(
            value for every in self._from.test.outcome if (value := _wanted(f"{self._thread.name}:{register}", every))
        )
        yield from self._awaited(i, location, values.index(wanted) + 1)

    def _spin(self, i: Instruction) -> Iterator[Statement]:
        location = self._from.place(i.operands[1])
        values = self._from.values(location)
        if values is None:
            raise NotModelled("a loop on what is no counter")
        yield from self._awaited(i, location, values.index(i.operands[2]) + 1)

    def _awaited(self, i: Instruction, location: str, value: int) -> Iterator[Statement]:
        yield Statement("wait", (location, str(value)))
        scope = self._from.scope(self._thread, location, i.scope)
        if i.order == "acquire":
            if scope:
                yield Statement("fence", (f"acquire.{scope}",))
        else:
            self._scopes.append(scope)

    def _st(self, i: Instruction) -> Iterator[Statement]:
        name, value = i.operands
        location = self._from.place(name)
        if self._from.values(location) is None:
            op = "st" if i.order == "weak" else f"st.{i.order}.{i.scope}"
            yield Statement(op, (location, value), self._at())
            return
        yield from self._signalled(i, location)

    def _red(self, i: Instruction) -> Iterator[Statement]:
        location = self._from.place(i.operands[0])
        if self._from.values(location) is not None:
            yield from self._signalled(i, location)
        elif i.scope == "cta" and not self._from.scope(self._thread, location, "cta"):
            raise NotModelled("additions of a scope that leaves out who else adds")
        else:
            yield Statement("red", (location, i.operands[1]), self._at())

    def _signalled(self, i: Instruction, location: str) -> Iterator[Statement]:
        scope = self._from.scope(self._thread, location, i.scope)
        fenced = self._from.scope(self._thread, location, self._released) if self._released else ""
        if i.order not in ("release", "acq_rel"):
            scope = min(scope, fenced, key=lambda s: _WIDTH.get(s, -1)) if scope and fenced else ""
        order = f"release.{scope}" if scope else "relaxed.sys"
        here = self._from.rank(self._thread)
        for rank in self._from.waiting(location):
            yield Statement("signal", (location, order), None if rank == here else rank)

    def _fence(self, i: Instruction) -> Iterator[Statement]:
        if i.words[1] == "proxy":
            if self._from.fences(i):
                yield Statement("fence", ("async.global",))
            return
        self._released = i.scope
        if i.order == "sc":
            yield Statement("fence", (f"sc.{i.scope}",))
        scopes = [scope for scope in self._scopes if scope]
        if scopes:
            narrow = "gpu" if "gpu" in (*scopes, i.scope) else "sys"
            if i.scope == "cta" and not self._near():
                return
            yield Statement("fence", (f"acquire.{narrow if i.scope != 'cta' else 'gpu'}",))
            self._scopes = []

    def _near(self) -> bool:
        """Whether all threads are of this CTA."""
        return all(other.cta == self._thread.cta for other in self._from.test.threads)

    def _bar(self, i: Instruction) -> Iterator[Statement]:
        number, self._met[i.operands] = self._met[i.operands], self._met[i.operands] + 1
        others = [name for name in self._from.meetings(self._thread, i, number) if name != self._thread.name]
        for name in others:
            ring = _ring(i, number, self._thread.name, name)
            for op, operands in (("acquire", (ring,)), ("put", (ring, "0")), ("commit", (ring,))):
                yield Statement(op, operands)
        for name in others if i.words[2] == "sync" else ():
            yield Statement("consume", (_ring(i, number, name, self._thread.name),))

    def _through_tma(self, i: Instruction) -> Iterator[Statement]:
        self._rings += 1
        ring, location = f"via_{self._thread.name}_{self._rings}", self._from.place(i.operands[1])
        yield Statement("acquire", (ring,))
        yield Statement("tma.ld", (ring, location), self._at())
        yield Statement("commit", (ring,))
        yield Statement("consume", (ring,))
        yield Statement("read", (i.operands[0], ring))

    _suld = _tld = _cold = _through_tma


def _ring(i: Instruction, number: int, first: str, second: str) -> str:
    return "_".join(["B", *i.operands, str(number), first, second])


# Instructions


def _refuse(test: PtxTest) -> None:
    """Say of a test what pkc has no notion of."""
    if any(":" not in name for name in test.initial):
        raise NotModelled("memory begins with other values than 0")
    used = {place for thread in test.threads for i in thread.body for place in (_reads(i), _writes(i))}
    if any(_is_synonym(test, name) for name in used):
        raise NotModelled("two addresses of one location in one proxy")
    for thread in test.threads:
        for i in thread.body:
            if i.op in ("sust", "suatom", "sured"):
                raise NotModelled(
                    "stores through the surface proxy: pkc's other proxy is that of TMA, whose stores need no fence"
                )
            if i.op == "fence" and i.words[1:] == ("proxy", "alias"):
                raise NotModelled("two addresses of one location in one proxy")
            if i.op == "atom" and not _is_unused(test, thread, i):
                raise NotModelled("an atomic operation that gives a value")
            if i.op in ("atom", "red") and i.words[-1] != "add":
                raise NotModelled("an atomic operation other than an addition")
            if i.op == "bar" and any(operand in _loaded(thread) for operand in i.operands):
                raise NotModelled("a barrier that a loaded value names")
            if i.op in ("add", "sub", "mul", "div"):
                raise NotModelled("arithmetic")


def _is_synonym(test: PtxTest, name: str) -> bool:
    """Whether a name is that of another address, or of another proxy at one."""
    proxy, place = test.aliases.get(name, ("", ""))
    return proxy == "generic" or (bool(proxy) and _is_synonym(test, place))


def _is_unused(test: PtxTest, thread: PtxThread, i: Instruction) -> bool:
    register = i.operands[0]
    asked = {asked.what for every in test.outcome for asked in every} | {a.value for e in test.outcome for a in e}
    reads = sum(register in other.operands for other in thread.body if other is not i)
    return f"{thread.name}:{register}" not in asked and not reads


def _spins(body: Sequence[Instruction]) -> Iterator[Instruction]:
    """Loops that wait for a value, as one instruction `spin`; raises `NotModelled` for other branches."""
    at = 0
    while at < len(body):
        i = body[at]
        found = _spin(body, at) if i.op.endswith(":") else None
        if found is not None:
            at, i = found
            yield i
        elif i.op in _BRANCHES:
            raise NotModelled("what a thread does depends on a value that it reads")
        elif not i.op.endswith(":"):
            at += 1
            yield i
        else:
            at += 1


def _spin(body: Sequence[Instruction], at: int) -> tuple[int, Instruction] | None:
    """Label, load, branch out (and back): the load as a loop, and where it ends."""
    label, rest = body[at].op.rstrip(":"), body[at + 1 : at + 5]
    if len(rest) < 2 or rest[0].op != "ld" or rest[1].op not in ("beq", "bne"):
        return None
    load, branch = rest[0], rest[1]
    register, value, target = branch.operands
    if register != load.operands[0] or not value.isdigit():
        return None
    if branch.op == "beq" and target == label and value == "0":
        return at + 3, Instruction(("spin", *load.words[1:]), (*load.operands, "1"))
    goes_back = len(rest) == 4 and rest[2] == Instruction(("goto",), (label,)) and rest[3].op == f"{target}:"
    if not goes_back or (branch.op == "bne") is not (value == "0"):
        return None
    return at + 5, Instruction(("spin", *load.words[1:]), (*load.operands, "1" if value == "0" else value))


def _begun(test: PtxTest, thread: PtxThread) -> dict[str, str]:
    """What the registers of a thread hold at first, but those that it loads."""
    used = {operand for i in thread.body for operand in i.operands if operand[:1] == "r"} - _loaded(thread)
    return {name: str(test.initial.get(f"{thread.name}:{name}", 0)) for name in used}


def _loaded(thread: PtxThread) -> set[str]:
    return {i.operands[0] for i in thread.body if i.op in (*_LOADS, "atom", "add", "sub", "mul", "div")}


def _constants(body: Iterator[Instruction], known: dict[str, str]) -> Iterator[Instruction]:
    """With what is known of registers in their place, also by `ld r0, 1`; `atom` that gives nothing is `red`."""
    for i in body:
        if i.words == ("ld",):
            known[i.operands[0]] = i.operands[1]
            continue
        if i.op == "atom":
            i = Instruction(("red", *i.words[1:]), i.operands[1:])
        if i.op == "bar":
            i = Instruction(i.words, tuple(known.get(operand, operand) for operand in i.operands))
        if _writes(i):
            i = Instruction(i.words, (i.operands[0], *[known.get(operand, operand) for operand in i.operands[1:]]))
        elif i.op in (*_LOADS, "spin"):
            known.pop(i.operands[0], None)
        yield i


def _reads(i: Instruction) -> str:
    return i.operands[1] if i.op in (*_LOADS, "spin") else ""


def _writes(i: Instruction) -> str:
    return i.operands[0] if i.op in (*_STORES, "red") else ""


def _wanted(register: str, every: Sequence[Asked]) -> str | None:
    """The value that an alternative asks of a register, unless it is 0."""
    found = {asked.value for asked in every if asked.what == register and asked.equal}
    return found.pop() if len(found) == 1 and "0" not in found else None
