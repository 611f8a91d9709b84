"""Litmus tests as text: the format, and a parser for it.

    test MP+release+acquire                       a name
    about The signal releases the store.          what it shows, on one line or more
    ptx forbidden 8.8 8.9.4 8.10.6                the verdict of the PTX ISA 9.0 on the condition, and its sections
    code PK731                                    optional: how pkc must refuse the program
    explained imprecise: why                      optional: why pkc's verdict is another one (`imprecise`, or a `hole`)
    launched                                      optional: arrays belong to each rank's caller before and after
    P0 rank 0:                                    a thread: a warp role of a rank; more on one rank have a CTA in common
      st x 1 @1                                   one statement a line
      signal f @1 release.sys
    P1 rank 1:
      wait f 1
      fence acquire.sys
      ld r x
    exists P1.r = 0 & x@1 = 1 or P1.r = 2         the condition on registers and, at the end, on memory;
                                                  `hang`: a wait never ends

`not modelled: why` in place of the threads and the condition is for what pkc has no notion of. Each location is an
array of 16 bytes on every rank, zero at first; `@1` names that of rank 1, otherwise it is the thread's own.

| statement | means | PTX |
|---|---|---|
| `st x 1`, `ld r x` | weak accesses through the generic proxy | st.weak, ld.weak |
| `red x 1` | an addition | red.relaxed.sys.add |
| `send x 1` | stores packets: each element with an epoch, in one word | st.relaxed.sys.v4 |
| `receive r x` | until the packets have the epoch; their elements | ld.relaxed.sys in a loop |
| `signal f release.sys` | adds 1 to a counter; or `release.gpu`, `relaxed.sys` | red.release.sys.add |
| `raise f 2 release.sys` | sets a counter to 2, unless it is greater | red.release.sys.max |
| `wait f 2` | until this rank's counter is 2 or more | ld.relaxed.sys in a loop |
| `reset f` | sets this rank's counter to 0 | st.relaxed |
| `fence acquire.sys` | or `acquire.gpu` | fence.acquire.sys |
| `fence async.global` | or `async.shared` | fence.proxy.async.global |
| `barrier b` | `signal` to all ranks with release.sys, and a `wait` for all | red.release.sys.add, ld.relaxed.sys |
| `st.relaxed.sys x 1`, `ld.acquire.sys r x`, ... | pkc has none: run as the weak access | the same |
| `fence sc.sys` | pkc has none: left out | the same |
| `acquire S` | until a stage of ring S is free | mbarrier.try_wait |
| `tma.ld S x` | an asynchronous load into the acquired stage | cp.async.bulk.shared.global |
| `put S 1` | an ordinary store into the acquired stage; `put S r`: of a register | st.shared |
| `commit S` | the stage is full when what was begun has arrived | mbarrier.arrive.expect_tx |
| `consume S` | until a stage is full | mbarrier.try_wait |
| `read r S` | an ordinary load from the consumed stage | ld.shared |
| `tma.st x S` | an asynchronous store from the consumed stage, a group of its own | cp.async.bulk.global.shared |
| `tma.red x S` | an asynchronous addition from the consumed stage, likewise | cp.reduce.async.bulk.global.shared.add |
| `mma r S` | an MMA that reads the consumed stage: r is what the stage holds | wgmma.mma_async, wait_group 0 |
| `mma.issue S`, `mma.wait r 0` | the same in two steps, in their order | wgmma.mma_async, wait_group |
| `release S` | the consumed stage is free | mbarrier.arrive |
| `wait_group 0`, `wait_group.read 0` | until all but the last 0 stores are complete, or read | the same |
| `wait_loads` | until what this thread has loaded by TMA has arrived | mbarrier.try_wait |
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_THREAD = re.compile(r"(\w+) rank (\d+):$")
_ATOM = re.compile(r"([\w.]+(?:@\d+)?) (=|!=) (-?\d+)$")
_RANK = re.compile(r"@(\d+)$")


@dataclass(frozen=True)
class Statement:
    """One statement: its operation, its operands, and the rank that it names."""

    op: str
    operands: tuple[str, ...]
    rank: int | None = None

    def __str__(self) -> str:
        at = [] if self.rank is None else [f"@{self.rank}"]
        return " ".join([self.op, *self.operands[:1], *at, *self.operands[1:]])


@dataclass(frozen=True)
class Thread:
    """A warp role of one rank."""

    name: str
    rank: int
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Atom:
    """`P0.r = 1` of a register, or `x@1 = 1` of memory; or `!=`."""

    what: str
    equal: bool
    value: int

    def holds(self, values: dict[str, float]) -> bool:
        """Whether it is true of an outcome."""
        return (values[self.what] == self.value) is self.equal

    def __str__(self) -> str:
        return f"{self.what} {'=' if self.equal else '!='} {self.value}"


Condition = tuple[tuple[Atom, ...], ...]
"""Alternatives, each of atoms that all hold."""

HANG = "hang"
"""The condition that a wait never ends."""


@dataclass(frozen=True)
class Litmus:
    """One litmus test."""

    name: str
    forbidden: bool
    """Whether PTX forbids the condition."""
    sections: tuple[str, ...] = ()
    about: str = ""
    code: str | None = None
    explained: str = ""
    unmodelled: str = ""
    launched: bool = False
    stages: int = 1
    threads: tuple[Thread, ...] = ()
    exists: Condition = ()


@dataclass
class _Draft:
    lines: dict[str, str] = field(default_factory=dict[str, str])
    threads: list[tuple[str, int, list[Statement]]] = field(default_factory=list[tuple[str, int, list[Statement]]])


_WORDS = ("test", "about", "ptx", "code", "explained", "not modelled:", "launched", "stages", "exists")


def parse_file(path: Path) -> list[Litmus]:
    """The tests of a file. Raises `ValueError` with the line that is wrong."""
    return list(parse(path.read_text(encoding="utf-8"), path.name))


def parse(text: str, name: str = "") -> Iterator[Litmus]:
    """The tests of a text. Raises `ValueError` with the line that is wrong."""
    draft: _Draft | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.split("#")[0].rstrip()
        if not line:
            continue
        try:
            if line.startswith("test "):
                if draft is not None:
                    yield _finished(draft)
                draft = _Draft()
            if draft is None:
                raise ValueError("a test begins with `test`")
            _line(draft, line)
        except (ValueError, IndexError) as error:
            raise ValueError(f"{name}:{number}: {line.strip()}: {error}") from error
    if draft is not None:
        yield _finished(draft)


def _line(draft: _Draft, line: str) -> None:
    thread = _THREAD.match(line)
    if thread is not None:
        draft.threads.append((thread[1], int(thread[2]), []))
        return
    if line.startswith("  "):
        draft.threads[-1][2].append(statement(line))
        return
    word = next((word for word in _WORDS if line.startswith(word)), None)
    if word is None:
        raise ValueError("no such line")
    rest = line.removeprefix(word).strip()
    draft.lines[word] = f"{draft.lines[word]} {rest}" if word in draft.lines and word == "about" else rest


def statement(line: str) -> Statement:
    """One statement."""
    op, *operands = line.split()
    at = [int(found[1]) for word in operands if (found := _RANK.match(word)) is not None]
    plain = tuple(word for word in operands if _RANK.match(word) is None)
    return Statement(op, plain, at[0] if at else None)


def condition(text: str) -> Condition:
    """A condition: atoms, joined by `&`, and alternatives, joined by `or`."""
    if not text:
        return ()
    if text == HANG:
        return ((Atom(HANG, True, 1),),)
    return tuple(tuple(_atom(atom.strip()) for atom in every.split("&")) for every in text.split(" or "))


def _atom(text: str) -> Atom:
    found = _ATOM.match(text)
    if found is None:
        raise ValueError(f"`{text}` is no atom of a condition")
    return Atom(found[1], found[2] == "=", int(found[3]))


def _finished(draft: _Draft) -> Litmus:
    lines = draft.lines
    verdict, *sections = lines.get("ptx", "none").split()
    if verdict not in ("forbidden", "allowed"):
        raise ValueError(f"{lines['test']}: `{verdict}` is no verdict")
    if "exists" not in lines and "not modelled:" not in lines:
        raise ValueError(f"{lines['test']}: there is no condition")
    return Litmus(
        lines["test"],
        verdict == "forbidden",
        tuple(sections),
        lines.get("about", ""),
        lines.get("code"),
        lines.get("explained", ""),
        lines.get("not modelled:", ""),
        "launched" in lines,
        int(lines.get("stages", 1)),
        tuple(Thread(name, rank, tuple(body)) for name, rank, body in draft.threads),
        condition(lines.get("exists", "")),
    )
