"""`print`, as a function: a line for each value, with the rank, the task and the place in the source."""

from __future__ import annotations

from typing import Any

import numpy as np

from pkc.dialect.blocks import Block
from pkc.dialect.prints import PrintOp
from pkc.dialect.types import TileType, dtype_name
from pkc.location import describe
from pkc.semantics.evaluate import Call
from pkc.sim.machine import Calls, Frame, Machine

_SHOWN = 64
"""Tiles with more elements are shown by the first and last three along each axis."""


def _print(op: PrintOp, machine: Machine) -> Call:
    place, kind, text = describe(op.location), op.value.type, op.text.data
    axes = op.positions

    def show(frame: Frame, value: Any, blocks: tuple[Block, ...]) -> None:
        if machine.say is None:
            return
        head = f"{place}: {frame.task}: {text} = "
        if not isinstance(kind, TileType):
            machine.say(f"{head}{value}")
            return
        lengths = dict(zip(axes, (block.length for block in blocks), strict=True))
        tile = np.asarray(value)[tuple(slice(lengths.get(axis)) for axis in range(len(kind.shape)))]
        machine.say(f"{head}{_shown(tile, dtype_name(kind.element_type))}")

    return Call(show, op.value, tuple(op.blocks))


def _shown(tile: np.ndarray[Any, Any], name: str) -> str:
    numbers = tile.astype(np.float32) if tile.dtype.kind == "f" else tile
    text = np.array2string(numbers, threshold=_SHOWN, max_line_width=100)
    separator = "\n" if "\n" in text else " "
    if not tile.shape:
        return f"{text} ({name})"
    return f"{name} {' x '.join(map(str, tile.shape))}{separator}{text}"


PRINTS: Calls = {PrintOp: _print}
