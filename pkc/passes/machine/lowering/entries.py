"""Entries of tables and of lists: i32 in memory, as numbers of the program."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue

from pkc.dialect.types import Dim, PGLType
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering.context import WarpRole
from pkc.targets.layout import CHUNK

WORD = 4
"""Bytes of an entry."""

AT_ONCE = CHUNK // WORD
"""Entries that a thread loads at once."""


def local(role: WarpRole, array: SSAValue) -> SSAValue:
    """Where this rank's copy or shard of an array begins."""
    address = role.emit.address(array)
    return role.emit.on_rank(address, role.rank) if isinstance(array.type, PGLType) else address


def elements(role: WarpRole, dims: Sequence[Dim]) -> SSAValue:
    """How many elements an array of these dimensions has."""
    total = role.emit.const(1)
    for dim in dims:
        total = role.emit.times(total, role.dims.extent(dim))
    return total


def index(emit: Emitter, bits: SSAValue) -> SSAValue:
    """The number that a register has."""
    cast = arith.IndexCastOp(emit.value("int_bits", bits), IndexType())
    emit.add(cast)
    return cast.result


def word(emit: Emitter, value: SSAValue) -> SSAValue:
    """A number as a register."""
    return emit.value("bits_i32", emit.i32(value))


def nothing(emit: Emitter) -> SSAValue:
    """A register of zero, whatever it has."""
    return emit.value("bits_f32", emit.real(0.0))


def at(emit: Emitter, base: SSAValue, number: SSAValue) -> SSAValue:
    """The address of an entry."""
    return emit.plus(base, emit.times(emit.wide(number), WORD))
