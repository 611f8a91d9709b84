"""Numbers on the two sides of each comparison that a program makes with an integer of its caller.

A flag that is compared with 2 decides nothing as long as it is drawn from 0 to 99: 2 and 3 do. So what is compared, in
a branch, by a limit, or as the end of a loop, is followed back through arithmetic to the integer that was given.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, Operation, SSAValue, Use

from pkc.dialect import elementwise
from pkc.dialect.access import LoadOp, ReadOp
from pkc.dialect.by_table import GatherOp
from pkc.dialect.coordinates import BlockCountOp, DimOp, RankOp, RingPeerOp
from pkc.dialect.numeric import Values
from pkc.dialect.program import TasksOp
from pkc.dialect.scalars import constant_of, scalar
from pkc.dialect.tile import BroadcastOp, ClipOp, FullOp, PositionsOp, SplatOp, block_type, tile_type
from pkc.dialect.types import RANKS, i1, i32
from pkc.sim.numbers import end_of

_MOST = 8
"""As many values are looked at of an integer that a comparison is with, as those of ranks and loop variables."""

_SAME = (arith.IndexCastOp, SplatOp, ClipOp, BroadcastOp, arith.SelectOp, elementwise.SelectOp)
_ADD, _SUB = (arith.AddiOp, elementwise.AddOp), (arith.SubiOp, elementwise.SubOp)
_MUL, _FLOORDIV = (arith.MuliOp, elementwise.MulOp), (arith.FloorDivSIOp, elementwise.FloorDivOp)
_MIN, _MAX = (arith.MinSIOp, elementwise.MinOp), (arith.MaxSIOp, elementwise.MaxOp)
_BINARY = (*_ADD, *_SUB, *_MUL, *_FLOORDIV, *_MIN, *_MAX, arith.AndIOp, elementwise.BitAndOp, elementwise.ModOp)

_PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge", "lt", "le", "gt", "ge")
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_SIDES = {"eq": (0, 1, -1), "ne": (1, 0, -1), "lt": (-1, 0, 1), "le": (0, 1, -1), "gt": (1, 0, -1), "ge": (0, -1, 1)}
"""What is one side and the other one of a number, by what it is compared by, and the third of its neighbours."""

_ASKED = {"eq": {"equal"}, "ne": {"equal"}, "gt": {"above"}, "le": {"above"}}

_MOST_SIDES = 64
"""As many numbers are drawn at most of one integer."""

_LIMIT = 1 << 31


@dataclass(frozen=True)
class Cases:
    """What an integer is drawn from: numbers that are `chosen`, and as often as there are `others` any."""

    chosen: tuple[int, ...]
    others: int

    @property
    def number(self) -> int:
        return len(self.chosen) + self.others


def sides(value: SSAValue, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The values of an integer, or of the elements of an array of them, at which comparisons with it change: for each
    one that holds and one that does not, then the others beside its number. None twice, and not too many."""
    return _Sides(sizes).of(value)


class _Sides:
    """What is looked for of each value once, however many ways lead to it."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = sizes
        self._found: dict[SSAValue, tuple[int, ...]] = {}
        self._numbers_of: dict[SSAValue, tuple[int, ...]] = {}

    def of(self, value: SSAValue) -> tuple[int, ...]:
        if value not in self._found:
            found = [number for use in value.uses for number in self._of_use(use) if -_LIMIT <= number < _LIMIT]
            below = [-1] if {"equal", "above"} <= self._asked_of_zero(value) else []
            self._found[value] = tuple(dict.fromkeys(below + found))[:_MOST_SIDES]
        return self._found[value]

    def _asked_of_zero(self, value: SSAValue) -> set[str]:
        """Whether it is asked of an integer if it is equal to 0, and if it is above: these differ below zero alone."""
        asked: set[str] = set()
        for use in value.uses:
            op = use.operation
            if isinstance(op, ReadOp | LoadOp | GatherOp | arith.IndexCastOp | SplatOp | ClipOp | BroadcastOp):
                asked |= self._asked_of_zero(op.results[0]) if use.index == 0 else set()
            elif isinstance(op, arith.CmpiOp | elementwise.CompareOp):
                of_zero = 0 in self._numbers(op.operands[1 - use.index])
                asked |= _ASKED.get(_predicate(op, use), set()) if of_zero else set()
        return asked

    def _of_use(self, use: Use) -> Iterator[int]:
        op = use.operation
        if isinstance(op, ReadOp | LoadOp | GatherOp):
            yield from self.of(op.result) if use.index == 0 else ()
        elif isinstance(op, scf.YieldOp) and isinstance(branch := op.parent_op(), scf.IfOp):
            yield from self.of(branch.results[use.index])
        elif isinstance(op, arith.CmpiOp | elementwise.CompareOp | scf.ForOp) and use.index < 2:
            yield from _around(self._numbers(op.operands[1 - use.index]), _predicate(op, use))
            yield from self._ends(op.body.block.args[0]) if isinstance(op, scf.ForOp) else ()
        elif isinstance(op, TasksOp):
            yield from _around([0], "gt")
            yield from self._ends(op.body.block.args[use.index])
        elif isinstance(op, (*_SAME, *_BINARY)) and op.results[0].type != i1:
            yield from self._through(op, use) if isinstance(op, _BINARY) else self.of(op.results[0])

    def _ends(self, variable: SSAValue) -> Iterator[int]:
        """Where loops end that just come to what their variable is compared with, and just not."""
        yield from (end for number in self.of(variable) if number >= 0 for end in (number + 1, number))

    def _through(self, op: Operation, use: Use) -> Iterator[int]:
        """What an operand of integer arithmetic has to be for its result to be on either side; beside limits also what
        is just cut off."""
        divisor = _divisor_of_rest(op)
        if divisor is not None and use.index == 1:
            return
        others = self._numbers(op.operands[1 - use.index] if divisor is None else divisor)
        if isinstance(op, _MIN):
            yield from _around(others, "le")
        elif isinstance(op, _MAX):
            yield from _around(others, "ge")
        for number in others:
            for result in self.of(op.results[0]):
                yield from _before(op, use, result, number, rest=divisor is not None)

    def _numbers(self, value: SSAValue) -> tuple[int, ...]:
        """Some of what an integer, or an element of a tile, can be; 1 of what is given as well."""
        if value not in self._numbers_of:
            self._numbers_of[value] = tuple(dict.fromkeys(self._some(value)))[:_MOST]
        return self._numbers_of[value]

    def _some(self, value: SSAValue) -> Iterable[int]:
        constant = constant_of(value)
        if constant is not None:
            return [constant]
        if isinstance(value, BlockArgument):
            end = end_of(value)
            return [1] if end is None else [number for last in self._numbers(end) for number in (0, last - 1)]
        op = value.owner
        assert isinstance(op, Operation)
        if isinstance(op, FullOp):
            return [int(op.constant)] if tile_type(op.result).element_type == i32 else []
        if isinstance(op, DimOp):
            return [self._sizes[op.dim.data]]
        if isinstance(op, RankOp | RingPeerOp):
            return range(self._sizes[RANKS])
        if isinstance(op, BlockCountOp | PositionsOp):
            return self._of_blocks(op)
        if isinstance(op, ReadOp | LoadOp | GatherOp):
            return [1]
        if isinstance(op, SplatOp | ClipOp | BroadcastOp):
            return self._numbers(op.operands[0])
        computed = scalar(op)
        if computed is None:
            return []
        return [computed(*operands) for operands in product(*map(self._numbers, op.operands))]

    def _of_blocks(self, op: BlockCountOp | PositionsOp) -> list[int]:
        """How many blocks there are of a dimension, or the first and the last of its positions."""
        kind = op.block if isinstance(op, BlockCountOp) else block_type(op.block)
        size = kind.of if isinstance(kind.of, int) else self._sizes[kind.of]
        if isinstance(op, PositionsOp):
            return [0, max(0, size - 1)]
        return [] if op.operands else [-(-size // kind.extent)]


def _predicate(op: arith.CmpiOp | elementwise.CompareOp | scf.ForOp, use: Use) -> str:
    """What an integer is to the other operand, for the branch to be taken, or for a loop to have iterations."""
    if isinstance(op, scf.ForOp):
        predicate = "lt"
    elif isinstance(op, arith.CmpiOp):
        predicate = _PREDICATES[op.predicate.value.data]
    else:
        predicate = str(op.predicate.data)
    return predicate if use.index == 0 else _MIRRORED.get(predicate, predicate)


def _around(numbers: Iterable[int], predicate: str) -> Iterator[int]:
    """Below zero only where the comparison asks for that, or two of them do together."""
    numbers = list(numbers)
    one, other, third = _SIDES[predicate]
    yield from (number + by for number in numbers for by in (one, other))
    yield from (number + third for number in numbers if number + third >= 0 or number < 0)


def _before(op: Operation, use: Use, result: int, other: int, *, rest: bool) -> tuple[int, ...]:
    """The operand for a result, if the other one is a number; the first and the last, if there are several."""
    left = use.index == 0
    if rest:
        return (result, result + other) if 0 <= result < other else ()
    if isinstance(op, _ADD):
        return (result - other,)
    if isinstance(op, _SUB):
        return (result + other if left else other - result,)
    if isinstance(op, _MUL):
        return (result // other, -(-result // other)) if other else ()
    if isinstance(op, _FLOORDIV):
        return (result * other, result * other + other - 1) if left and other > 0 else ()
    if isinstance(op, arith.AndIOp | elementwise.BitAndOp):
        return other, 0
    return (result,)


def _divisor_of_rest(op: Operation) -> SSAValue | None:
    """What a rest is of a division by; scalars have no operation for it."""
    if isinstance(op, elementwise.ModOp):
        return op.rhs
    whole = op.rhs.owner if isinstance(op, arith.SubiOp) else None
    part = whole.lhs.owner if isinstance(whole, arith.MuliOp) else None
    return part.rhs if isinstance(part, arith.FloorDivSIOp) and part.lhs is op.operands[0] else None


def spread_out(drawn: Values, cases: Cases, *, name: str, seed: int, on_ranks: bool) -> Values:
    """Each element one of the chosen numbers, or as it was drawn.

    From seed to seed an element goes through all cases, at first each rank from another one. When it has had them all,
    it does so again: together with all elements, together with those of its row, or rank, in turn from one that all
    ranks share, and from any, so that what elements are together differs too.
    """
    rounds, step = divmod(seed, cases.number)
    of_rank = drawn.shape[1:] if on_ranks else drawn.shape
    rng = np.random.default_rng([zlib.crc32(name.encode()), rounds])
    first = _first_cases(rounds, drawn.shape, of_rank, cases, rng)
    case = np.broadcast_to(first + step, drawn.shape) % cases.number
    numbers = np.resize(np.array(cases.chosen, drawn.dtype), cases.number)
    return np.where(case < len(cases.chosen), numbers[case], drawn)


def _first_cases(
    rounds: int, shape: tuple[int, ...], of_rank: tuple[int, ...], cases: Cases, rng: np.random.Generator
) -> Values:
    """The cases that elements begin a round with; `of_rank` is the shape of what a rank has of them."""
    rows = np.arange(shape[0]).reshape(-1, *[1] * (len(shape) - 1))
    if rounds == 0:
        spread = np.arange(prod(of_rank)).reshape(of_rank)
        return spread if shape == of_rank else spread + rows
    kind = (rounds - 1) % 4
    if (kind == 0 and prod(of_rank) > 1) or (kind == 1 and prod(shape[1:]) > 1):
        return rows * kind
    return rng.integers(0, cases.number, of_rank if kind % 2 == 0 else shape)
