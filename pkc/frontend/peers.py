"""Writes to the ranks that a table names: `Y.at(rank_of[t])[slot[t], h] = x`."""

from __future__ import annotations

from collections.abc import Callable

from pkc.diagnostics import PkcError
from pkc.dialect.types import RANKS, i32
from pkc.frontend import tree
from pkc.frontend.control import loop
from pkc.frontend.frame import Frame
from pkc.frontend.indexing import Evaluate
from pkc.frontend.kinds import Block, Tile, Value
from pkc.frontend.tile_errors import BadOperand

_PEER, _NAMED, _WRITTEN = "(rank)", "(named)", "(written)"
"""Variables that stand for a rank, for the table that names ranks, and for what is written."""


def to_named(
    frame: Frame,
    target: tree.Index,
    value: tree.Expr,
    evaluate: Evaluate,
    write: Callable[[tree.Index, tree.Expr], None],
) -> bool:
    """Write to the ranks that a table names, if one does: to each rank in turn what the table names it for."""
    if not isinstance(target.base, tree.At):
        return False
    named = evaluate(frame, target.base.rank)
    if not isinstance(named, Tile) or not named.axes or named.dtype != i32:
        return False
    number, span = _along(frame, target, named, evaluate), target.base.rank.span
    peer = tree.Name(span, _PEER)
    hidden: dict[str, Value] = {_NAMED: named, _WRITTEN: evaluate(frame, value)}
    is_named = tree.Binary(span, "==", tree.Name(span, _NAMED), peer)
    indices, index = list(target.indices), target.indices[number]
    assert not isinstance(index, tree.FullSlice)
    indices[number] = tree.Call(index.span, "where", (is_named, index, tree.Number(span, -1)), (), index.span)
    place = tree.Index(target.span, tree.At(target.base.span, target.base.array, peer), tuple(indices))
    before, frame.names = frame.names, frame.names | hidden
    every = tree.Call(span, "range", (tree.Name(span, RANKS),), (), span)
    loop(frame, tree.For(span, (peer,), every, ()), [], lambda: write(place, tree.Name(value.span, _WRITTEN)))
    frame.names = before
    return True


def _along(frame: Frame, target: tree.Index, named: Tile, evaluate: Evaluate) -> int:
    """The first index that goes along with a table of ranks."""
    assert isinstance(target.base, tree.At)
    for number, index in enumerate(target.indices):
        value = None if isinstance(index, tree.FullSlice) else evaluate(frame, index)
        axes = value.axes if isinstance(value, Tile) else (value.axis,) if isinstance(value, Block) else ()
        if set(named.axes) <= set(axes):
            return number
    hint = "each rank takes rows that an index goes along with: `Y.at(to[t])[slot[t], h] = x`"
    raise PkcError(BadOperand(target.base.rank.span, ".at", str(named), "an integer, the number of a rank", hint))
