"""The operations that touch memory, as steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import Operation, SSAValue

from pkc.dialect import access, coordinates, copies, program
from pkc.dialect.blocks import Block
from pkc.dialect.numeric import Values
from pkc.dialect.ranges import Bounded
from pkc.dialect.tile import tile_type
from pkc.dialect.types import Layout, PGLType
from pkc.sim.array import Array, Where
from pkc.sim.machine import EPOCH, RANK, TASK, Machine, Registers, Step
from pkc.sim.ordering import Note, note_addition, note_read, note_store
from pkc.sim.signals import signal_step

Located: TypeAlias = Callable[[Registers], Where]
Pieces: TypeAlias = Callable[[Registers, Any], Iterator[tuple[Where, Any]]]


def access_step(op: Operation, machine: Machine) -> Step | None:
    """The step of an operation that touches memory or asks for the rank; None for any other."""
    match op:
        case coordinates.RankOp() | coordinates.RingPeerOp() | coordinates.EpochOp():
            return _rank(op, machine)
        case access.ReadOp() | access.LoadOp():
            return _load(op, machine)
        case access.GatherOp():
            return _gather(op, machine)
        case access.ReduceOp():
            return _reduce(op, machine)
        case access.StoreOp():
            return _store(op, machine)
        case access.StoreAddOp():
            return _store_add(op, machine)
        case access.AccumulateOp() | access.AtomicAddOp():
            return _accumulate(op, machine)
        case access.ScatterAccumulateOp() | access.ScatterAddOp():
            return _scatter(op, machine)
        case access.AllReduceOp():
            return _all_reduce(op, machine)
        case copies.CopyOp():
            return _copy(op, machine)
        case _:
            return signal_step(op, machine)


def _rank(op: coordinates.RankOp | coordinates.RingPeerOp | coordinates.EpochOp, machine: Machine) -> Step:
    result, ranks = machine.slots[op.result], machine.ranks
    if not isinstance(op, coordinates.RingPeerOp):
        known = RANK if isinstance(op, coordinates.RankOp) else EPOCH

        def own(registers: Registers) -> None:
            registers[result] = registers[known]

        return own
    after = machine.slots[op.step]

    def peer(registers: Registers) -> None:
        registers[result] = (registers[RANK] + registers[after]) % ranks

    return peer


def _locator(op: Any, array: Array, machine: Machine) -> Located:
    """What finds the elements that an access addresses, after letting others run."""
    slots = [machine.slots[index] for index in op.indices]
    rank = getattr(op, "rank", None)
    at = None if rank is None else machine.slots[rank]
    pause = machine.pause if isinstance(op.array.type, PGLType) else None

    def locate(registers: Registers) -> Where:
        if pause is not None:
            pause()
        indices = [registers[slot] for slot in slots]
        return array.locate(op, registers[RANK], indices, None if at is None else registers[at])

    return locate


def _pieces(op: Any, array: Array, machine: Machine) -> Pieces:
    """What finds where a tile goes, piece by piece if several ranks own its rows, after letting others run."""
    slots = [machine.slots[index] for index in op.indices]
    rank = getattr(op, "rank", None)
    at = None if rank is None else machine.slots[rank]
    pause = machine.pause if isinstance(op.array.type, PGLType) else None

    def pieces(registers: Registers, tile: Any) -> Iterator[tuple[Where, Any]]:
        for indices, cut in array.parts([registers[slot] for slot in slots]):
            if pause is not None:
                pause()
            where = array.locate(op, registers[RANK], indices, None if at is None else registers[at])
            yield where, tile if cut is None else array.cut_of(tile, cut)

    return pieces


# Reading


def _load(op: access.ReadOp | access.LoadOp, machine: Machine) -> Step:
    array, world, result = machine.array(op.array), machine.world, machine.slots[op.result]
    locate, note = _locator(op, array, machine), note_read(op, op.array, machine)
    if isinstance(op, access.ReadOp):

        def read(registers: Registers) -> None:
            where = locate(registers)
            world.check_load(array, where, registers[TASK], op)
            note(registers, where)
            registers[result] = int(array.value[where])

        return read
    shape = tile_type(op.result).shape

    def load(registers: Registers) -> None:
        where = locate(registers)
        world.check_load(array, where, registers[TASK], op)
        note(registers, where)
        registers[result] = array.load(where, shape)

    return load if op.own is None else _own_or(load, op, op.own, machine)


def _own_or(other: Step, op: access.LoadOp, source: SSAValue, machine: Machine) -> Step:
    """A load of this rank's part from the array that it owns, and of what is in another part by `other`."""
    array, result, shape = machine.array(source), machine.slots[op.result], tile_type(op.result).shape
    slots, note = [machine.slots[index] for index in op.indices], note_read(op, source, machine)

    def load(registers: Registers) -> None:
        where = array.locate(op, registers[RANK], [registers[slot] for slot in slots])
        if where[0] != registers[RANK]:
            other(registers)
            return
        machine.world.check_load(array, where, registers[TASK], op)
        note(registers, where)
        registers[result] = array.load(where, shape)

    return load


def _gather(op: access.GatherOp, machine: Machine) -> Step:
    array, world, result = machine.array(op.array), machine.world, machine.slots[op.result]
    table, rest = machine.slots[op.rows], [machine.slots[index] for index in op.indices]
    shape, note = tile_type(op.result).shape, note_read(op, op.array, machine)
    pairs = array.place.layout is Layout.Symmetric

    def gather(registers: Registers) -> None:
        machine.pause()
        made = array.empty(shape)
        indices = [registers[slot] for slot in rest]
        for position, entry in enumerate(_plain(registers[table]).tolist()):
            at, row = entry if pairs else (None, entry)
            if row < 0:
                continue
            where = array.locate(op, registers[RANK], (row, *indices), at)
            world.check_load(array, where, registers[TASK], op)
            note(registers, where)
            array.put_row(made, position, where)
        registers[result] = made

    return gather


def _reduce(op: access.ReduceOp, machine: Machine) -> Step:
    array, result, shape = machine.array(op.array), machine.slots[op.result], tile_type(op.result).shape
    locate, check = _locator(op, array, machine), _check_copies(op, array, machine)

    def reduce(registers: Registers) -> None:
        where = locate(registers)
        check(registers, where)
        registers[result] = array.as_float(array.reduce(where, shape))

    return reduce


def _check_copies(op: access.ReduceOp | access.AllReduceOp, array: Array, machine: Machine) -> Note:
    note = note_read(op, op.array, machine)

    def check(registers: Registers, where: Where) -> None:
        for copy in range(array.place.copies):
            machine.world.check_load(array, (copy, *where[1:]), registers[TASK], op)
            note(registers, (copy, *where[1:]))

    return check


# Writing


def _store(op: access.StoreOp, machine: Machine) -> Step:
    array, world, tile = machine.array(op.array), machine.world, machine.slots[op.tile]
    pieces, note = _pieces(op, array, machine), note_store(op, op.array, machine)

    def store(registers: Registers) -> None:
        for where, piece in pieces(registers, registers[tile]):
            world.check_store(array, where, registers[TASK], op)
            note(registers, array.everywhere(where), piece)
            array.store(array.everywhere(where), piece)

    return store


def _store_add(op: access.StoreAddOp, machine: Machine) -> Step:
    array, tile = machine.array(op.array), machine.slots[op.tile]
    locate, note = _locator(op, array, machine), note_addition(op, op.array, machine)

    def store_add(registers: Registers) -> None:
        where = locate(registers)
        machine.world.check_load(array, where, registers[TASK], op)
        note(registers, where)
        machine.world.note_change(array, where, op)
        array.add_rounded(where, registers[tile])

    return store_add


def _accumulate(op: access.AccumulateOp | access.AtomicAddOp, machine: Machine) -> Step:
    array, tile = machine.array(op.array), machine.slots[op.tile]
    add = machine.world.add_later if isinstance(op, access.AtomicAddOp) else machine.world.contribute
    pieces, note = _pieces(op, array, machine), note_addition(op, op.array, machine)

    def accumulate(registers: Registers) -> None:
        for where, piece in pieces(registers, registers[tile]):
            note(registers, array.everywhere(where))
            add(array, array.everywhere(where), piece, registers[TASK], op)

    return accumulate


def _scatter(op: access.ScatterAccumulateOp | access.ScatterAddOp, machine: Machine) -> Step:
    array, tile = machine.array(op.array), machine.slots[op.tile]
    add = machine.world.add_later if isinstance(op, access.ScatterAddOp) else machine.world.contribute
    table, rest = machine.slots[op.rows], [machine.slots[index] for index in op.indices]
    note = note_addition(op, op.array, machine)

    def scatter(registers: Registers) -> None:
        machine.pause()
        indices = [registers[slot] for slot in rest]
        for position, row in enumerate(_plain(registers[table]).tolist()):
            if row < 0:
                continue
            where = array.everywhere(array.locate(op, registers[RANK], (row, *indices)))
            note(registers, where)
            add(array, where, array.row_of(registers[tile], position), registers[TASK], op)

    return scatter


def _all_reduce(op: access.AllReduceOp, machine: Machine) -> Step:
    array, shape = machine.array(op.array), program.index_shape([index.type for index in op.indices])
    locate, check = _locator(op, array, machine), _check_copies(op, array, machine)
    note = note_store(op, op.array, machine)

    def all_reduce(registers: Registers) -> None:
        where = locate(registers)
        check(registers, where)
        total = array.reduce(where, shape)
        note(registers, (slice(None), *where[1:]), total)
        machine.world.note_change(array, (slice(None), *where[1:]), op)
        array.store_everywhere(where, total)

    return all_reduce


# Copying


def _copy(op: copies.CopyOp, machine: Machine) -> Step:
    source, target, world = machine.array(op.source), machine.array(op.target), machine.world
    there, here = _box(op.source_box, source, machine), _box(op.target_box, target, machine)
    read, written = note_read(op, op.source, machine), note_store(op, op.target, machine)

    def copy(registers: Registers) -> None:
        machine.pause()
        where = source.locate(op, registers[RANK], there(registers))
        world.check_load(source, where, registers[TASK], op)
        read(registers, where)
        values = source.load(where, source.value[where].shape)
        machine.pause()
        where = target.locate(op, registers[RANK], here(registers))
        world.check_store(target, where, registers[TASK], op)
        written(registers, target.everywhere(where), values)
        target.store(target.everywhere(where), values)

    return copy


def _box(indices: dict[int, SSAValue], array: Array, machine: Machine) -> Callable[[Registers], list[Block | int]]:
    """What finds the index of each dimension, the whole of it where a box has none."""
    slots = {number: machine.slots[index] for number, index in indices.items()}
    whole = [Block(0, size) for size in array.place.sizes]
    return lambda registers: [registers[slots[n]] if n in slots else everything for n, everything in enumerate(whole)]


def _plain(tile: Values | Bounded) -> Values:
    return np.asarray(tile.value if isinstance(tile, Bounded) else tile)
