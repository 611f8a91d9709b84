"""Whether an iteration changes nothing that its loop carries, by evaluating its operations on what little is known."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from pkc.dialect.access import LOADS, StoreAddOp
from pkc.dialect.elementwise import AddOp, Binary, CompareOp, DivOp, MaxOp, MinOp, MulOp, SelectOp, SubOp, Unary
from pkc.dialect.reductions import RowReduction, RowSumOp
from pkc.dialect.tile import BroadcastOp, CastOp, ClipOp, FullOp, MmaOp, TransposeOp, tile_type
from pkc.dialect.types import FLOATS, TileType
from pkc.passes.analysis.scaled import is_positive, scaled_of
from pkc.semantics.tile_ops import of_numbers


@dataclass(frozen=True)
class _Known:
    """Elements that are all `number`, or, where that is None, those of carried tile `carried`, which are finite.

    With `or_nan` some may be NaN instead. Elements of a `row` are all alike, or come from the same one of a row.
    """

    number: float | None
    carried: tuple[int, tuple[int, ...]] | None = None
    or_nan: bool = False
    row: bool = True


_CLASSES = (None, -math.inf, math.inf, math.nan)
"""What an element of a carried tile may be: finite, or one of these."""

_MOST = 4
"""Carried tiles of floats that are looked at: each multiplies the cases by four."""

_NEUTRAL: dict[type[Operation], tuple[float, bool]] = {
    AddOp: (0.0, True),
    SubOp: (0.0, False),
    MulOp: (1.0, True),
    DivOp: (1.0, False),
    MaxOp: (-math.inf, True),
    MinOp: (math.inf, True),
}
"""The number that leaves the other operand as it is, zeros but for their sign; and whether it may be on the left."""


def is_unchanged(loop: scf.ForOp, given: Mapping[SSAValue, SSAValue]) -> bool:
    """Whether an iteration in which some tiles are others (`given`) leaves each element of what its loop carries as it
    is, or makes it NaN; whatever these elements are, and those of arrays; what it adds to arrays counts as carried.
    Zeros may change their sign."""
    body = loop.body.block
    last, carried = body.last_op, body.args[1:]
    assert last is not None
    touching = [op for op in body.ops if op is not last and not (isinstance(op, LOADS) or is_side_effect_free(op))]
    added = [op for op in touching if isinstance(op, StoreAddOp)]
    if len(added) < len(touching) or any(op.regions for op in body.ops):
        return False
    floats = [value for value in carried if isinstance(value.type, TileType) and value.type.element_type in FLOATS]
    ends = dict(zip(carried, last.operands, strict=True))
    if any(ends[value] is not value for value in carried if value not in floats) or len(floats) > _MOST:
        return False
    for known in _cases(floats, _by_last(body, floats, given), {}, given):
        if not all(_stays(known.get(ends[value]), known[value]) for value in floats):
            return False
        if not all(_stays(known.get(op.tile), _NOTHING) for op in added):
            return False
    return True


_NOTHING = _Known(0.0)


def _stays(end: _Known | None, start: _Known) -> bool:
    if end is None:
        return False
    if end.number is not None and (math.isnan(end.number) or end.number == start.number):
        return True
    return end.carried is not None and end.carried == start.carried


def _by_last(
    body: Block, floats: Sequence[SSAValue], given: Mapping[SSAValue, SSAValue]
) -> list[list[tuple[Operation, SSAValue]]]:
    """The operations of a body that make a tile: those that need no carried one, then those that need the first of
    them, and so on, each with the last one that it needs."""
    found: list[list[tuple[Operation, SSAValue]]] = [[] for _ in range(len(floats) + 1)]
    last = {value: place for place, value in enumerate(floats, start=1)}
    for op in body.ops:
        if len(op.results) != 1 or not isinstance(op.results[0].type, TileType):
            continue
        value = op.results[0]
        sources = (given[value],) if value in given else op.operands
        last[value] = max((last.get(source, 0) for source in sources), default=0)
        found[last[value]].append((op, value))
    return found


def _cases(
    floats: Sequence[SSAValue],
    made: Sequence[list[tuple[Operation, SSAValue]]],
    known: Mapping[SSAValue, _Known],
    given: Mapping[SSAValue, SSAValue],
) -> Iterator[dict[SSAValue, _Known]]:
    """What is known of the tiles of a body, for all that its carried ones may be; `made` begins with the operations
    that need none but those that are `known`."""
    known = dict(known)
    for op, value in made[0]:
        one = _find(given[value], known) if value in given else _result(op, [_find(of, known) for of in op.operands])
        if one is not None:
            known[value] = one
    if len(made) == 1:
        yield known
        return
    place = len(floats) + 1 - len(made)
    for number in _CLASSES:
        carried = _Known(number, (place, ()) if number is None else None, row=False)
        yield from _cases(floats, made[1:], {**known, floats[place]: carried}, given)


def _find(value: SSAValue, known: Mapping[SSAValue, _Known]) -> _Known | None:
    """What is known of a value; a constant tile may stand in front of the loop."""
    return _Known(float(value.owner.constant)) if isinstance(value.owner, FullOp) else known.get(value)


def _result(op: Operation, operands: list[_Known | None]) -> _Known | None:
    match op:
        case BroadcastOp():
            return _broadcast(op, operands[0])
        case RowReduction():
            return _reduced(op, operands[0])
        case TransposeOp():
            return operands[0] and replace(operands[0], row=False) if _is_number(operands[0]) else None
        case MmaOp():
            return _mma(operands)
        case ClipOp():
            tile = operands[0]
            if tile is None or tile.number is None:
                return None
            return tile if math.isnan(tile.number) or tile.number == op.constant else None
        case SelectOp():
            condition, one, other = operands
            if one is not None and one == other and one.number is not None and not one.or_nan:
                return one  # whatever the condition is
            if condition is None or condition.number is None or condition.or_nan:
                return None
            chosen = one if condition.number else other
            return chosen and replace(chosen, row=chosen.row and condition.row)
        case MulOp() if (of := scaled_of(op)) is not None and is_positive(of.factor):
            tile = operands[0 if of.tile is op.lhs else 1]
            endless = tile is not None and tile.number is not None and math.isinf(tile.number)
            return replace(tile, or_nan=True) if tile is not None and endless else _by_element(op, operands)
        case Unary() | Binary() | CastOp() | CompareOp():
            return _by_element(op, operands)
        case _:
            return None


def _broadcast(op: BroadcastOp, tile: _Known | None) -> _Known | None:
    if tile is None:
        return None
    last = tile_type(op.result).rank - 1
    view = tile.carried and (tile.carried[0], (*tile.carried[1], *op.positions))
    return replace(tile, carried=view, row=last not in op.positions or (tile.row and op.positions[-1] == last))


def _reduced(op: RowReduction, tile: _Known | None) -> _Known | None:
    """Of rows of equal numbers."""
    if tile is None or tile.number is None or not tile.row:
        return None
    if isinstance(op, RowSumOp) and tile.number != 0 and math.isfinite(tile.number):
        return None
    return replace(tile, row=False)


def _mma(operands: list[_Known | None]) -> _Known | None:
    """Zeros add nothing, or NaN where the other operand is not finite; rows with NaN make NaN."""
    left, right, sum_ = operands
    if left is not None and left.number is not None and math.isnan(left.number) and left.row:
        return _Known(math.nan, row=False)
    zeros = any(operand is not None and operand.number == 0 for operand in (left, right))
    return replace(sum_, or_nan=True, row=False) if sum_ is not None and zeros else None


def _by_element(op: Operation, operands: list[_Known | None]) -> _Known | None:
    """Of operations that make NaN of NaN; comparisons do not."""
    compares = isinstance(op, CompareOp)
    if tile_type(op.results[0]).element_type not in FLOATS and not compares:
        return None
    known = [operand for operand in operands if operand is not None]
    nan = [operand.row for operand in known if operand.number is not None and math.isnan(operand.number)]
    if nan:
        return None if compares else _Known(math.nan, row=any(nan))
    if len(known) < len(operands):
        return _with_any(op, *operands) if len(operands) == 2 else None
    row, or_nan = all(operand.row for operand in known), any(operand.or_nan for operand in known)
    if compares and (or_nan or tile_type(op.operands[0]).element_type not in FLOATS):
        return None
    found = _of_carried(op, known) if any(operand.number is None for operand in known) else _of_numbers(op, known)
    return found and replace(found, row=row, or_nan=or_nan)


def _with_any(op: Operation, left: _Known | None, right: _Known | None) -> _Known | None:
    """Of a number and what may be anything: an infinity stays one in a sum, zero in a product; or it becomes NaN."""
    known = left or right
    if known is None or known.number is None:
        return None
    if isinstance(op, MulOp) and known.number == 0:
        return replace(known, or_nan=True)
    if isinstance(op, AddOp | SubOp) and math.isinf(known.number):
        sign = -1 if isinstance(op, SubOp) and known is right else 1
        return replace(known, number=sign * known.number, or_nan=True)
    return None


def _is_number(tile: _Known | None) -> bool:
    return tile is not None and tile.number is not None


def _of_numbers(op: Operation, operands: list[_Known]) -> _Known | None:
    """The semantics applied to numbers, where an exact result is sure: 0, 1, an infinity, NaN."""
    number = of_numbers(op, [operand.number for operand in operands if operand.number is not None])
    return _Known(number) if number in (0.0, 1.0) or not math.isfinite(number) else None


def _of_carried(op: Operation, operands: list[_Known]) -> _Known | None:
    """Of finite elements, and numbers."""
    if isinstance(op, CastOp):
        same = tile_type(op.tile) == tile_type(op.result)
        return operands[0] if same else None
    if len(operands) != 2:
        return None
    left, right = operands
    neutral, either = _NEUTRAL.get(type(op), (math.nan, False))
    if right.number == neutral:
        return left
    if either and left.number == neutral:
        return right
    if left.carried is not None and left.carried == right.carried:
        return _Known(0.0) if isinstance(op, SubOp) else left if isinstance(op, MaxOp | MinOp) else None
    numbers = [operand.number for operand in operands if operand.number is not None]
    if isinstance(op, MulOp) and numbers == [0.0]:
        return _Known(0.0)
    if isinstance(op, AddOp | SubOp | CompareOp) and len(numbers) == 1 and math.isinf(numbers[0]):
        # Any finite number gives what zero gives.
        return _of_numbers(op, [_Known(0.0) if operand.number is None else operand for operand in operands])
    return None
