"""Sixteen bytes that begin anywhere, made of two chunks that do not."""

from __future__ import annotations

from itertools import pairwise

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue

from pkc.dialect.machine import SubviewOp, b32
from pkc.passes.machine.emit import Emitter
from pkc.targets.layout import CHUNK, SharedLayout

WORD = 4
WORDS = CHUNK // WORD


def inside(emit: Emitter, address: SSAValue) -> SSAValue:
    """How many bytes behind a multiple of 16 an address of global memory is."""
    cast = arith.IndexCastOp(emit.bit_and(address, CHUNK - 1), IndexType())
    emit.add(cast)
    return cast.result


def pair(emit: Emitter) -> tuple[SSAValue, list[SSAValue]]:
    """Registers for two chunks, and those for each of them."""
    words = emit.registers(2 * WORDS, b32)
    halves = [SubviewOp(words, half * WORDS, WORDS) for half in range(2)]
    for half in halves:
        emit.add(half)
    return words, [half.result for half in halves]


def shifted(emit: Emitter, words: SSAValue, shift: SSAValue, size: int) -> list[SSAValue]:
    """The 16 bytes, of elements of `size` bytes, that begin fewer than 16 bytes behind the first of two chunks."""
    found = [emit.get(words, i) for i in range(2 * WORDS)]
    for by in (2, 1):
        far = emit.compare("ne", emit.bit_and(shift, by * WORD), 0)
        found = [emit.select(far, b, a) for a, b in zip(found[:-by], found[by:], strict=True)]
    if size == WORD:
        return found[:WORDS]
    bits = emit.times(emit.bit_and(shift, WORD - 1), 8)
    return [emit.value("shift_pair", a, b, bits) for a, b in pairwise(found)]


def read(emit: Emitter, address: SSAValue, size: int, to: SSAValue) -> None:
    """The 16 bytes of shared memory at an address, which may be any of an element, into four registers."""
    words, halves = pair(emit)
    down = emit.bit_and(address, -CHUNK)
    for number, half in enumerate(halves):
        emit.do("load_shared_v4_around", half, emit.plus(down, number * CHUNK))
    for i, word in enumerate(shifted(emit, words, emit.bit_and(address, CHUNK - 1), size)):
        emit.set(word, to, i)


def read_one(emit: Emitter, address: SSAValue, size: int) -> SSAValue:
    """The element at an address of shared memory, in the low bits of a register."""
    word = emit.value("load_shared_b32_around", emit.bit_and(address, -WORD))
    if size == WORD:
        return word
    return emit.value("shift_pair", word, word, emit.times(emit.bit_and(address, WORD - 1), 8))


# Where rows begin in a stage that came with what lies around them


def of_row(emit: Emitter, shifts: tuple[SSAValue, SSAValue], row: SSAValue) -> SSAValue:
    """Bytes from where a row has its place to where it begins."""
    first, more = shifts
    return emit.bit_and(emit.plus(first, emit.times(row, more)), CHUNK - 1)


def _note(emit: Emitter, address: SSAValue, layout: SharedLayout) -> SSAValue:
    """Where a stage says that, behind its rows."""
    return emit.plus(address, layout.bytes - layout.spare)


def note(emit: Emitter, address: SSAValue, layout: SharedLayout, first: SSAValue, more: SSAValue) -> None:
    """Say at what shift the first row begins, and how much more each further one has."""
    said = emit.plus(first, emit.times(more, CHUNK))
    emit.do("store_shared_b32", _note(emit, address, layout), emit.value("bits_i32", emit.i32(said)))


def noted(emit: Emitter, address: SSAValue, layout: SharedLayout) -> tuple[SSAValue, SSAValue]:
    """What `note` has said."""
    word = emit.value("int_bits", emit.value("load_shared_b32", _note(emit, address, layout)))
    cast = arith.IndexCastOp(word, IndexType())
    emit.add(cast)
    return emit.bit_and(cast.result, CHUNK - 1), emit.right(cast.result, CHUNK.bit_length() - 1)
