"""How long a simulation takes, counted before each loop: one that would take hours ends at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import scf
from xdsl.ir import Block, Operation

from pkc.diagnostics import PkcError
from pkc.dialect.counters import CounterOp
from pkc.dialect.program import TasksOp
from pkc.dialect.tile import AnyMmaOp, tile_type
from pkc.dialect.types import TileType
from pkc.location import span_of
from pkc.sim import errors

_MOST = 3600.0
"""Seconds that one run may take: an hour."""

ITERATION = 2e-6
_ELEMENT = 0.5e-9
_PRODUCT = 0.02e-9
_STEP = 8e-6
"""Seconds on a fast machine for an iteration of Python, for an element of a tile, for a product of an MMA, and for a
signal or a wait, at which others may run."""


class TooLongError(PkcError):
    """The one finding that says nothing of the protocol."""


@dataclass
class Work:
    """The seconds that a run takes at least, as far as its loops have begun."""

    seconds: float = 0.0

    def spend(self, op: Operation, times: int, each: float) -> None:
        """Begin a loop of so many iterations. Raises `PkcError` if the run would take too long."""
        self.seconds += max(0, times) * each
        if self.seconds > _MOST:
            raise TooLongError(errors.TooMuchWork(span_of(op.location), times, "an hour"))

    def begin_tasks(self, op: TasksOp, each: float, counts: Sequence[int]) -> None:
        self.spend(op, prod(counts), each)

    def begin(self, op: scf.ForOp, each: float, start: int, stop: int, step: int) -> None:
        self.spend(op, -(-(stop - start) // step), each)


def seconds_of_iteration(body: Block) -> float:
    """What an iteration takes at least, without branches, and without loops, which are counted when they
    begin."""
    return ITERATION + sum(map(_seconds, body.ops))


def _seconds(op: Operation) -> float:
    if isinstance(op, CounterOp):
        return _STEP
    if isinstance(op, AnyMmaOp):
        (rows, depth), columns = tile_type(op.a).shape, tile_type(op.b).shape[1]
        return _PRODUCT * rows * depth * columns
    return sum(_ELEMENT * prod(result.type.shape) for result in op.results if isinstance(result.type, TileType))
