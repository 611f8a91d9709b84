"""Where variables get their values, and how one could begin so as to keep its type in a loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pkc.diagnostics import Label
from pkc.dialect.types import NARROW, dtype_name, i1, widened
from pkc.frontend.kinds import Axis, Block, BlockAxis, Tile, Value, axis_text, base, family, told_apart
from pkc.location import Span

if TYPE_CHECKING:
    from pkc.frontend.frame import Frame


@dataclass(frozen=True)
class Beginning:
    """The last assignment of a variable."""

    span: Span
    """What is assigned, or the statement if that computes with the variable."""
    computed: bool
    """Whether the statement computes with the variable: `s += x`."""
    blocks: int
    """How many blocks there were before it."""


@dataclass(frozen=True)
class Before:
    """What is known before a loop or branch that carries variables."""

    names: Mapping[str, Value] = field(default_factory=dict[str, Value])
    began: dict[str, Beginning] = field(default_factory=dict[str, Beginning])
    """Also of variables that the first of two branches begins."""
    blocks: int = 0

    @staticmethod
    def of(frame: Frame) -> Before:
        return Before(dict(frame.names), dict(frame.began), len(frame.blocks))


def changed_at(frame: Frame, name: str, after: Value) -> tuple[Label, ...]:
    """The statement after which a variable is something else than before."""
    last = frame.began.get(name)
    return (Label(last.span, f"`{name}` becomes {after} here"),) if last is not None else ()


def first_value_hint(frame: Frame, name: str, first: Value, after: Value, known: Before) -> str:
    """How a variable could begin so as to keep its type, from what is known where it begins."""
    if not isinstance(after, Tile) or after.dtype == i1:
        return ""
    if isinstance(first, Tile) and first.axes == after.axes:
        wide = dtype_name(after.dtype)
        narrow = first.dtype in NARROW and after.dtype == widened(first.dtype)
        return f"arithmetic is in {wide}: begin with an {wide} tile and `cast` at the end" if narrow else ""
    began = known.began.get(name)
    there = list(frame.blocks)[: began.blocks if began else known.blocks]
    names = {value.axis: word for word, value in known.names.items() if isinstance(value, Block)}
    own = [axis for axis in map(base, after.axes) if isinstance(axis, BlockAxis) and axis not in there]
    if own:
        return _without(own[0], after.axes)
    axes = [names.get(axis, "") if isinstance(axis, BlockAxis) else str(axis) for axis in map(base, after.axes)]
    if all(axes) and told_apart(map(base, after.axes)) == after.axes:
        arguments = ", ".join([dtype_name(after.dtype), *axes])
        return _begin(name, began, first, after, lambda value: _filled(value, first, arguments))
    like = _like(name, began, after, known)
    if not like:
        return ""
    finite = f", where `{like}` is finite" if family(after) == "float" else ""
    hint = _begin(name, began, first, after, lambda value: _computed(value, like, after))
    return hint and hint + finite


def _without(axis: BlockAxis, axes: tuple[Axis, ...]) -> str:
    """What to do about an axis that each iteration has anew."""
    along = "the last axis, `rowsum(x.T)` along the first" if len(axes) == 2 else "the last axis"
    text = f"`{axis.name}` is another block in each iteration, so what is kept has no axis {axis_text(axis)}"
    return f"{text}: `rowsum(x)` sums along {along}"


def _begin(name: str, began: Beginning | None, first: Value, after: Tile, begin: Callable[[str], str]) -> str:
    """The first value, made a tile; what is there already is kept."""
    written = "" if began is None or began.computed else began.span.text
    if written and "\n" not in written and (family(first) == family(after) or _is_zero(written)):
        return f"begin with a tile: `{begin(written)}`"
    if family(first) != family(after):
        return ""
    return f"first make it a tile: `{name} = {name} + {begin('0')}`"


def _filled(value: str, first: Value, arguments: str) -> str:
    zeros = f"zeros({arguments})"
    if _is_zero(value) or value.startswith("zeros("):
        return zeros
    if isinstance(first, Tile) and first.axes:
        return f"{value} + {zeros}"
    dtype, comma, axes = arguments.partition(", ")
    return f"full({dtype}, {value}{comma}{axes})"


def _computed(value: str, like: str, after: Tile) -> str:
    zeros = f"{like} * {'0.0' if family(after) == 'float' else '0'}"
    return zeros if _is_zero(value) else f"{zeros} + {value}"


def _is_zero(text: str) -> bool:
    return text in ("0", "0.0", "0.", ".0")


def _like(name: str, began: Beginning | None, after: Tile, known: Before) -> str:
    """A variable with the axes of a tile, known where another one begins."""
    for word, value in known.names.items():
        if word == name or not isinstance(value, Tile) or value.axes != after.axes:
            continue
        mine = known.began.get(word)
        earlier = mine is None or (began is not None and mine.span.start < began.span.start)
        if earlier and family(value) == family(after) and value.dtype in (after.dtype, *NARROW):
            return word
    return ""
