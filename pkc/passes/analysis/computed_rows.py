"""Tables of rows that a kernel computes from positions, as an author would write them."""

from __future__ import annotations

import re

from xdsl.ir import SSAValue

from pkc.dialect.declaration import OPERATIONS
from pkc.dialect.elementwise import Binary, SelectOp
from pkc.dialect.tile import BroadcastOp, ClipOp, FullOp, PositionsOp, SplatOp, block_type

_TIGHT = frozenset({"*", "//", "%"})
"""What needs no parentheses on the left of anything."""

_LONGEST = 30


def computed(table: SSAValue) -> str:
    """The expression that gives the rows; empty if memory has part of them, or if there is no short way to write it."""
    text = _text(table)
    return text if any(map(str.isalpha, text)) and len(text) <= _LONGEST else ""


def _text(value: SSAValue) -> str:
    op = value.owner
    match op:
        case SelectOp():  # what is not there is left out
            return _text(op.lhs)
        case ClipOp() | BroadcastOp():
            return _text(op.tile)
        case FullOp():
            return f"{op.constant:g}"
        case PositionsOp():
            return _name(op.block) or f"positions({block_type(op.block).of})"
        case SplatOp():
            return _name(op.scalar)
        case Binary():
            return _operation(OPERATIONS[type(op)].word, op.lhs, op.rhs)
        case _:
            return ""


def _operation(word: str, lhs: SSAValue, rhs: SSAValue) -> str:
    left, right = _text(lhs), _text(rhs)
    if not left or not right:
        return ""
    if word.isalpha():
        return f"{word}({left}, {right})"
    if isinstance(lhs.owner, Binary) and OPERATIONS[type(lhs.owner)].word not in _TIGHT:
        left = f"({left})"
    return f"{left} {word} ({right})" if isinstance(rhs.owner, Binary) else f"{left} {word} {right}"


def _name(value: SSAValue) -> str:
    return re.sub(r"_\d+$", "", value.name_hint or "")
