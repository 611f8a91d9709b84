"""Which axes of operands go together: those of one block, whatever the order in which each operand has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from pkc.diagnostics import PkcError
from pkc.frontend.kinds import Axis, BlockAxis, Columns, Tile, Value, Whole, axes_text, axis_text, base
from pkc.frontend.tile_errors import AmbiguousAxes, AxesDiffer
from pkc.location import Span

Axes = tuple[Axis, ...]


def axes_of(value: Value) -> Axes:
    return value.axes if isinstance(value, Tile) else ()


def places_of(axes: Axes, among: Axes) -> list[int | None]:
    """Which of other axes each axis goes along. Whole dimensions of two names are two axes, even if they are as long,
    so that a program means the same whatever the values of its constants; where only lengths tell, these do."""
    if _alike(axes, among):
        return list(range(len(axes)))
    told = _told(axes, among)
    if None not in told:
        return told
    return list(range(len(axes))) if _bare(axes) == _bare(among) else [_place_of(axis, among) for axis in axes]


def _told(axes: Axes, among: Axes) -> list[int | None]:
    """The same where no axis goes along a dimension of another name."""
    return [_place_of(axis, among, lambda other, axis=axis: not _differ_in_name(axis, other)) for axis in axes]


def _place_of(axis: Axis, axes: Axes, may: Callable[[Axis], bool] = lambda _: True) -> int | None:
    """Which of `axes`, of those that it may, an axis goes along: of a block, or a dimension, that is there twice the
    rows, or, as columns, the columns; of whole dimensions that are as long the one of its name."""
    named = _of_its_name(axis, axes)
    if len(named) == 1:
        return named[0]
    allowed = [number for number, other in enumerate(axes) if base(other) == base(axis) and may(other)]
    equal = [number for number in allowed if axes[number] == axis]
    if equal:
        return equal[0]
    return None if not allowed else allowed[-1] if isinstance(axis, Columns) else allowed[0]


def _differ_in_name(axis: Axis, other: Axis) -> bool:
    return bool(_name(axis) and _name(other) and _name(axis) != _name(other))


def same(axes: Axes, wanted: Axes) -> bool:
    """Whether a tile has these axes as it is. Of two that go through the same the first has the rows."""
    alike = axes == wanted or (len(axes) > 1 and _alike(axes, wanted))
    return alike and places_of(axes, wanted) == list(range(len(axes)))


def _alike(left: Axes, right: Axes) -> bool:
    """Whether axes are the same one by one, and no name says otherwise."""
    return _bare(left) == _bare(right) and not any(map(_differ_in_name, left, right))


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
    places = places_of(value.axes, axes)
    if places == list(range(len(axes))):
        return True
    if any(is_ambiguous(axis, axes) for axis in value.axes):
        return False
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


def told_by_name(axes: Axes, wanted: Axes) -> str:
    """What to say if a tile has an axis too many, whose name alone tells it from another; else nothing."""
    if len(axes) <= len(wanted):
        return ""
    for axis in axes:
        for other in axes:
            if isinstance(axis, int) and axis == other and _differ_in_name(axis, other) and other in wanted:
                mine, its = sorted((_name(axis), _name(other)))
                return f"`{mine}` and `{its}` are two axes, although both are {int(axis)}: write one name for both"
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
    if _alike(left[0], right[0]) and (left[0] == right[0] or len(left[0]) > 1):
        return left[0], left[1] and right[1]
    (wide, loose), (narrow, other) = (left, right) if len(left[0]) >= len(right[0]) else (right, left)
    if len(wide) == 1 or not any(place is not None for place in _told(narrow, wide)):
        return _apart(left[0], right[0]), bool(loose or narrow)
    places = places_of(narrow, wide)
    for axis in narrow:
        if is_ambiguous(axis, wide):
            raise PkcError(AmbiguousAxes(span, axes_text(wide), axis_text(axis)))
    if None not in places and ascends(places):
        return wide, loose and (other or len(narrow) < 2)
    if None not in places and other and len(narrow) == 2:
        return wide, loose
    if None not in places and loose and len(wide) == 2:
        return narrow, False
    hint = _turned(left, right) or _all_of_it(left[0], right[0]) or _one_by_one(left[0], right[0])
    raise PkcError(AxesDiffer(span, op, axes_text(left[0]), axes_text(right[0]), hint))


def _turned(left: tuple[Axes, bool], right: tuple[Axes, bool]) -> str:
    """What to write if tiles have the same axes in another order; else nothing."""
    if set(left[0]) != set(right[0]):
        return ""
    if len(left[0]) == 2:
        return "one of them is the transpose of the other: `.T`"
    exchanged = (
        "operands that share no axis give those of the left one first: exchange them, as in `b == a` for `a == b`"
    )
    return exchanged if left[1] or right[1] else ""


def _all_of_it(left: Axes, right: Axes) -> str:
    """What to write if tiles differ in one axis, a whole dimension here and a block of as many there; else nothing."""
    differ = [(mine, other) for mine, other in zip(left, right, strict=False) if base(mine) != base(other)]
    if len(left) != len(right) or len(differ) != 1:
        return ""
    block, whole = differ[0] if isinstance(differ[0][0], BlockAxis) else reversed(differ[0])
    if not isinstance(block, BlockAxis) or not isinstance(whole, int) or block.size != whole:
        return ""
    return f"`{block.name}` is a block, and `{_name(whole) or whole}` a whole dimension: write one of them for both"


def _one_by_one(left: Axes, right: Axes) -> str:
    """What to write if tiles share a whole dimension, beside which each has a block of its own; else nothing."""
    shared = [axis for axis in left if isinstance(axis, int) and axis in right]
    others = [axis for axis in (*left, *right) if isinstance(axis, BlockAxis)]
    if len(shared) != 1 or len(left) + len(right) != 4 or len(set(others)) != 2:
        return ""
    size = _name(shared[0]) or shared[0]
    return f"take one element of each at a time: `for i in range({size}):`, with `i` in place of `:`"


def _bare(axes: Axes) -> Axes:
    return tuple(map(base, axes))


def _apart(left: Axes, right: Axes) -> Axes:
    """The axes of operands that share none: of one block those of rows come before those of columns."""
    turned = len(left) == len(right) == 1 and isinstance(left[0], Columns) and left[0].of == right[0]
    return right + left if turned else left + right
