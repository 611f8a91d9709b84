"""A published litmus test, as its file has it: threads of PTX instructions, and what is asked of an outcome."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field


class NotRead(ValueError):
    """A file that is no test in the format that it should have."""


@dataclass(frozen=True)
class Instruction:
    """`st.release.cta flag, 1`: its words and its operands. A label is `("LC00:",)`."""

    words: tuple[str, ...]
    operands: tuple[str, ...] = ()

    @property
    def op(self) -> str:
        return self.words[0]

    @property
    def scope(self) -> str:
        """`cta`, `gpu` or `sys`; none if it is weak."""
        return next((word for word in self.words[1:] if word in ("cta", "gpu", "sys")), "")

    @property
    def order(self) -> str:
        """`weak`, `relaxed`, `acquire`, `release`, `acq_rel` or `sc`."""
        return next((word for word in self.words[1:] if word in ORDERS), "weak")

    def __str__(self) -> str:
        return " ".join([".".join(self.words), ", ".join(self.operands)]).strip()


ORDERS = ("weak", "relaxed", "acquire", "release", "acq_rel", "sc")


@dataclass(frozen=True)
class PtxThread:
    """A thread, and where it runs."""

    name: str
    cta: tuple[int, int]
    """Its GPU, and its CTA there."""
    body: tuple[Instruction, ...]

    @property
    def gpu(self) -> int:
        return self.cta[0]


@dataclass(frozen=True)
class Asked:
    """`P1:r0 == 1` of a register, or `x == 1` of memory at the end; or `!=`. The right side is a number or a name."""

    what: str
    equal: bool
    value: str

    def negated(self) -> Asked:
        return Asked(self.what, not self.equal, self.value)


Clauses = tuple[tuple[Asked, ...], ...]
"""Alternatives, each of conditions that all hold."""


@dataclass(frozen=True)
class PtxTest:
    """One test: the outcome is forbidden, or it is allowed, or the file does not say."""

    name: str
    source: str
    threads: tuple[PtxThread, ...]
    outcome: Clauses
    forbidden: bool | None = None
    aliases: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """By name, the proxy and the name that it is an alias of."""
    initial: Mapping[str, int] = field(default_factory=dict[str, int])
    """What is not 0 at first."""


def instruction(text: str) -> Instruction:
    """One instruction, or a label."""
    head, _, rest = text.strip().partition(" ")
    operands = tuple(operand.strip().strip("[]") for operand in rest.split(",")) if rest.strip() else ()
    return Instruction((head,) if head.endswith(":") else tuple(head.split(".")), operands)


# Conditions

_TOKEN = re.compile(r"\s*(/\\|\\/|&&|\|\||~|!(?!=)|not\b|\(|\)|==|!=|=|[\w:]+)")
_AND, _OR, _NOT = ("/\\", "&&"), ("\\/", "||"), ("~", "!", "not")


def clauses(text: str) -> Clauses:
    """A condition as alternatives. Raises `NotRead`."""
    tokens = _tokens(text)
    made = _either(tokens, wanted=True)
    if tokens:
        raise NotRead(f"`{' '.join(tokens)}` is left over of a condition")
    return made


def negation(of: Clauses) -> Clauses:
    """The opposite of a condition."""
    made: Clauses = ((),)
    for every in of:
        made = both(made, tuple((asked.negated(),) for asked in every))
    return made


def both(first: Clauses, second: Clauses) -> Clauses:
    """Two conditions together, without alternatives that another one has within it."""
    every = dict.fromkeys(tuple(dict.fromkeys((*a, *b))) for a in first for b in second)
    return tuple(a for a in every if not any(set(b) < set(a) for b in every))


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    at = 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        if found is None:
            raise NotRead(f"`{text[at:].strip()}` is no condition")
        tokens.append(found[1])
        at = found.end()
    return tokens


def _either(tokens: list[str], *, wanted: bool) -> Clauses:
    return _joined(tokens, _OR, lambda: _every(tokens, wanted=wanted), alternatives=wanted)


def _every(tokens: list[str], *, wanted: bool) -> Clauses:
    return _joined(tokens, _AND, lambda: _one(tokens, wanted=wanted), alternatives=not wanted)


def _joined(tokens: list[str], by: Iterable[str], part: Callable[[], Clauses], *, alternatives: bool) -> Clauses:
    made = part()
    while tokens and tokens[0] in by:
        tokens.pop(0)
        more = part()
        made = (*made, *more) if alternatives else both(made, more)
    return made


def _one(tokens: list[str], *, wanted: bool) -> Clauses:
    if not tokens:
        raise NotRead("a condition ends too early")
    first = tokens.pop(0)
    if first in _NOT:
        return _one(tokens, wanted=not wanted)
    if first == "(":
        made = _either(tokens, wanted=wanted)
        if not tokens or tokens.pop(0) != ")":
            raise NotRead("a bracket of a condition is not closed")
        return made
    if len(tokens) < 2 or tokens[0] not in ("==", "=", "!="):
        raise NotRead(f"`{first}` is compared with nothing")
    return ((Asked(first, (tokens.pop(0) != "!=") is wanted, tokens.pop(0)),),)


def lines_between(text: str, first: str, last: str) -> Iterator[str]:
    """What stands between two brackets, by `;`."""
    inside = text[text.index(first) + 1 : text.index(last)]
    yield from (line.strip() for line in inside.split(";") if line.strip())


def numbered(names: Sequence[str]) -> Mapping[str, int]:
    """Numbers for names, in order of appearance."""
    return {name: number for number, name in enumerate(dict.fromkeys(names))}
