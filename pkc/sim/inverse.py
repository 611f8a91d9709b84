"""The inverse of a table, and sums of the rows that it lists, as functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import Operation

from pkc.dialect.blocks import Block
from pkc.dialect.inverse import InvertOp, SumRowsOp
from pkc.dialect.numeric import Values
from pkc.semantics.evaluate import Call
from pkc.sim.array import Array, Where
from pkc.sim.machine import Calls, Frame, Machine
from pkc.sim.ordering import Note, NoteStore, note_read, note_store


def _whole(array: Array, op: Operation, rank: int) -> Where:
    return array.locate(op, rank, [Block(0, size) for size in array.place.sizes])


def _entry(array: Array, op: Operation, rank: int, number: int) -> Where:
    """The element of this rank's array that has a number in memory."""
    return array.locate(op, rank, [int(index) for index in np.unravel_index(number, array.place.sizes)])


class _Access:
    """One array of an operation: what is read of it and stored to it is checked first."""

    def __init__(self, op: Operation, array: Array, machine: Machine, note: Note, note_change: NoteStore) -> None:
        self._op, self.array, self._memory = op, array, machine.memory
        self._note, self._note_change = note, note_change

    def read(self, frame: Frame, where: Where) -> Values:
        self._memory.check_load(self.array, where, frame.task, self._op)
        self._note(frame, where)
        return self.array.value[where]

    def store(self, frame: Frame, where: Where, values: Values) -> None:
        self.put(frame, where, self.array.exactly(values))

    def put(self, frame: Frame, where: Where, tile: Any) -> None:
        """Store a tile of this array, in all copies of a replicated one."""
        self._memory.check_store(self.array, where, self.array.everywhere(where), frame.task, self._op)
        place = self.array.everywhere(where)
        self._note_change(frame, place, tile)
        self.array.store(place, tile)


def _access(op: InvertOp | SumRowsOp, name: str, machine: Machine) -> _Access:
    value = getattr(op, name)
    return _Access(op, machine.array(value), machine, note_read(op, value, machine), note_store(op, value, machine))


def _invert(op: InvertOp, machine: Machine) -> Call:
    target = machine.array(op.array)
    table, bounds, order = (_access(op, name, machine) for name in ("table", "bounds", "order"))
    rows = target.place.sizes[0]

    def invert(frame: Frame, block: Block) -> None:
        machine.pause()
        named = table.read(frame, _whole(table.array, op, frame.rank)).astype(np.int64).reshape(-1)
        beyond = np.flatnonzero(named >= rows)
        if beyond.size:
            first = int(beyond[0])
            rank = int(np.unravel_index(first, table.array.place.sizes)[0])
            raise target.out_of_range(op, rank, int(named[first]), 0)
        where = bounds.array.locate(op, frame.rank, (block, Block(0, 2)))
        first = 0 if bounds.array.place.shard is None else block.start - _inside(where)
        begin = int(((named >= first) & (named < block.start)).sum())
        found = np.zeros((block.length, 2), np.int64)
        for number in range(block.length):
            entries = np.flatnonzero(named == block.start + number)
            found[number] = begin, begin + len(entries)
            for place, entry in enumerate(entries.tolist(), begin):
                order.store(frame, _entry(order.array, op, frame.rank, place), np.asarray(entry))
            begin += len(entries)
        bounds.store(frame, where, found)

    return Call(invert, op.rows)


def _inside(where: Where) -> int:
    """Where a block of rows begins in the shard of its owner."""
    return where[1].start


def _sum_rows(op: SumRowsOp, machine: Machine) -> Call:
    slots, bounds, order, target = (_access(op, name, machine) for name in ("slots", "bounds", "order", "array"))

    def sum_rows(frame: Frame, indices: tuple[Any, ...]) -> None:
        machine.pause()
        block, *columns = indices
        limits = bounds.read(frame, bounds.array.locate(op, frame.rank, (block, Block(0, 2)))).astype(np.int64)
        for row, (begin, end) in enumerate(limits.tolist(), block.start):
            listed: list[Any] = []
            for place in range(begin, end):
                entry = int(order.read(frame, _entry(order.array, op, frame.rank, place)))
                rank, *keys = map(int, np.unravel_index(entry, order.array.place.sizes))
                where = slots.array.locate(op, frame.rank, (*keys, *columns), rank)
                slots.read(frame, where)
                listed.append(slots.array.load(where, slots.array.value[where].shape))
            where = target.array.locate(op, frame.rank, (row, *columns))
            target.put(frame, where, target.array.sum_of(listed, target.array.value[where].shape))

    return Call(sum_rows, op.indices)


SUMS_OF_ROWS: Calls = {InvertOp: _invert, SumRowsOp: _sum_rows}
