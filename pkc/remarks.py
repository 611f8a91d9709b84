"""Missed optimisations as data: which pass left which operation as it was, and why."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pkc.location import Span, span_of

if TYPE_CHECKING:
    from xdsl.ir import Operation


@dataclass(frozen=True)
class Remark:
    """What a pass did not do, though its docstring promises it for operations like this one."""

    step: str
    """The pass, as `pkc opt -p` names it."""
    operation: str
    """The operation that was left as it was, as the IR names it."""
    reason: str
    span: Span
    of_ranks: bool = False
    """Whether it is of no interest on one rank."""

    @property
    def place(self) -> str:
        """`file:line`; empty if the operation has no line."""
        return f"{self.span.source.name}:{self.span.line}" if self.span.source.text else ""

    def __str__(self) -> str:
        text = f"{self.operation}: {self.reason} [{self.step}]"
        return f"{self.place}: {text}" if self.place else text


_COLLECTED: ContextVar[list[Remark] | None] = ContextVar("remarks", default=None)


def missed(step: str, op: Operation, reason: str, *, of_ranks: bool = False) -> None:
    """Record that the pass `step` left `op` as it was, though its docstring promises more. Operations that the
    pass is not made for get no remark.

    `reason` says in the words of the program what was not done, what prevents it, and what would help: a short clause
    or two, without a full stop. What is `of_ranks` does not matter on one rank. Nothing happens unless somebody is
    `collecting`.
    """
    collected = _COLLECTED.get()
    if collected is None:
        return
    remark = Remark(step, op.name, reason, span_of(op.location), of_ranks)
    if remark not in collected:
        collected.append(remark)


@contextmanager
def collecting() -> Generator[list[Remark], None, None]:
    """The remarks of all passes that run inside, in their order, each once."""
    found: list[Remark] = []
    token = _COLLECTED.set(found)
    try:
        yield found
    finally:
        _COLLECTED.reset(token)
