"""Which axes of operands go together: those of one block, whatever the order in which each operand has them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from pkc.diagnostics import PkcError
from pkc.frontend.kinds import Axis, BlockAxis, Columns, Tile, Value, Whole, axes_text, axis_text, base
from pkc.frontend.tile_errors import AmbiguousAxes, AxesDiffer
from pkc.location import Span

Axes = tuple[Axis, ...]


def axes_of(value: Value) -> Axes:
    return value.axes if isinstance(value, Tile) else ()


def place_of(axis: Axis, axes: Axes) -> int | None:
    """Which of `axes` an axis goes along: of a block, or a dimension, that is there twice the rows, or, as columns, the
    columns; of whole dimensions that are as long the one of its name."""
    named = _of_its_name(axis, axes)
    if len(named) == 1:
        return named[0]
    if axis in axes:
        return axes.index(axis)
    same = [number for number, other in enumerate(axes) if base(other) == base(axis)]
    return None if not same else same[-1] if isinstance(axis, Columns) else same[0]


def is_ambiguous(axis: Axis, axes: Axes) -> bool:
    """Whether a whole axis could go along either of two dimensions that are as long; one of a name that both have goes
    along rows."""
    if not isinstance(axis, int) or axes.count(axis) < 2:
        return False
    named = len(_of_its_name(axis, axes))
    return named != 1 and not (named == axes.count(axis) and _name(axis))


def _of_its_name(axis: Axis, axes: Axes) -> list[int]:
    """Which of `axes` are whole dimensions with the length and the name of an axis."""
    alike = [number for number, other in enumerate(axes) if isinstance(other, int) and other == axis]
    return [number for number in alike if _name(axes[number]) == _name(axis)]


def _name(axis: Axis) -> str:
    return axis.name if isinstance(axis, Whole) else ""


def fits(value: Tile, axes: Axes) -> bool:
    """Whether `Frame.tile` makes a tile of these axes of a value."""
    if _bare(value.axes) == _bare(axes):
        return True
    places = [None if is_ambiguous(axis, axes) else place_of(axis, axes) for axis in value.axes]
    return None not in places and (ascends(places) or (value.loose and len(places) == 2))


def fitting(axes: Axes, wanted: Axes) -> str:
    """How to make the axes of a tile those of a place, if that can be told; else nothing."""
    if _bare(axes[:-1]) == _bare(wanted) and isinstance(axes[-1], int):
        return "`rowsum(x)`, `rowmax(x)` or `rowmin(x)` of it has no last axis"
    differ = [(mine, other) for mine, other in zip(map(base, axes), map(base, wanted), strict=False) if mine != other]
    if len(axes) != len(wanted) or len(differ) != 1:
        return ""
    mine, other = differ[0]
    if not isinstance(mine, BlockAxis):
        return ""
    if other == mine.size:
        index = f"`positions({mine.size}) + start({mine.name})`"
        return f"`{mine.name}` is a block, and `:` a dimension: index with {index} for `{mine.name}`"
    if isinstance(other, BlockAxis) and (mine.dim, mine.size) == (other.dim, other.size):
        two = f"`{mine.name}` and `{other.name}` are blocks of {mine.dim} from two loops"
        return f"{two}: index both arrays with one of them"
    return ""


def ascends(places: Sequence[int | None]) -> bool:
    """Whether places are in order."""
    known = [place for place in places if place is not None]
    return all(first < second for first, second in pairwise(known))


def merge(op: str, values: Sequence[Value], span: Span) -> tuple[Axes, bool]:
    """The axes of an element-wise result, and whether nothing but the order of the operands gave theirs."""
    axes, loose = axes_of(values[0]), isinstance(values[0], Tile) and values[0].loose
    for value in values[1:]:
        axes, loose = _merge(op, (axes, loose), (axes_of(value), isinstance(value, Tile) and value.loose), span)
    return axes, loose


def _merge(op: str, left: tuple[Axes, bool], right: tuple[Axes, bool], span: Span) -> tuple[Axes, bool]:
    if len(left[0]) == len(right[0]) and (
        left[0] == right[0] or (len(left[0]) > 1 and _bare(left[0]) == _bare(right[0]))
    ):
        return left[0], left[1] and right[1]
    (wide, loose), (narrow, other) = (left, right) if len(left[0]) >= len(right[0]) else (right, left)
    places = [place_of(axis, wide) for axis in narrow]
    if len(wide) == 1 or not any(place is not None for place in places):
        return _apart(left[0], right[0]), bool(loose or narrow)
    for axis in narrow:
        if is_ambiguous(axis, wide):
            raise PkcError(AmbiguousAxes(span, axes_text(wide), axis_text(axis)))
    if None not in places and ascends(places):
        return wide, loose and (other or len(narrow) < 2)
    if None not in places and other and len(narrow) == 2:
        return wide, loose
    if None not in places and loose and len(wide) == 2:
        return narrow, False
    hint = "one of them is the transpose of the other: `.T`" if set(left[0]) == set(right[0]) else ""
    raise PkcError(AxesDiffer(span, op, axes_text(left[0]), axes_text(right[0]), hint))


def _bare(axes: Axes) -> Axes:
    return tuple(map(base, axes))


def _apart(left: Axes, right: Axes) -> Axes:
    """The axes of operands that share none: of one block those of rows come before those of columns."""
    turned = len(left) == len(right) == 1 and isinstance(left[0], Columns) and left[0].of == right[0]
    return right + left if turned else left + right
