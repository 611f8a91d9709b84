"""The greatest and the smallest elements of rows of 16-bit floats, two in each register at a time."""

from __future__ import annotations

from xdsl.ir import SSAValue

from pkc.dialect.machine import b32
from pkc.dialect.reductions import RowMaxOp, RowMinOp, RowReduction
from pkc.dialect.types import bf16, f16
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering.context import WarpRole
from pkc.passes.machine.lowering.elements import apply
from pkc.passes.machine.lowering.fragments import PACKED, RegisterTile
from pkc.passes.machine.lowering.spread import column

_WORDS: dict[type[RowReduction], str] = {RowMaxOp: "max_nan", RowMinOp: "min_nan"}


def has(tile: RegisterTile) -> bool:
    """Whether a tile has pairs of 16-bit floats in its registers."""
    return tile.packed and tile.element_type in (bf16, f16) and bool(tile.fragment.lanes)


def reduced(role: WarpRole, op: RowReduction, tile: RegisterTile, repeat: SSAValue) -> SSAValue | None:
    """What a thread has of a row, reduced, in f32: which of them is greatest does not depend on their type. Nothing
    where there is no such instruction, or where a thread has too little of a row."""
    emit, fragment = role.emit, tile.fragment
    kind = PACKED[tile.element_type]
    name = f"{_WORDS.get(type(op), '')}_{kind}x2"
    each, surely, chains = fragment.per_row // 2, fragment.surely // 2, emit.target.threads.chains
    if type(op) not in _WORDS or emit.target.instruction(name) is None or surely < chains or each % chains:
        return None
    first, parts = emit.times(repeat, each), emit.registers(chains, b32)
    for chain in range(chains):
        emit.set(emit.get(tile.registers, emit.plus(first, chain)), parts, chain)
    ranges = ((1, surely // chains, True), (surely // chains, each // chains, False))
    for begin, end, inside in ranges:
        if begin == end:
            continue
        with emit.loop(begin, end, unroll=True) as step:
            for chain in range(chains):
                at, known = emit.plus(emit.times(step, chains), chain), emit.get(parts, chain)
                found = emit.get(tile.registers, emit.plus(first, at))
                if not inside:
                    index = emit.times(emit.plus(first, at), 2)
                    place = column(role, fragment, index)
                    if fragment.columns % 2:
                        alone = emit.compare("eq", place, fragment.columns - 1)
                        found = emit.select(alone, _twice(emit, found), found)
                    found = emit.select(emit.compare("slt", place, fragment.columns), found, known)
                emit.set(emit.value(name, known, found), parts, chain)
    pair = emit.get(parts, 0)
    for chain in range(1, chains):
        pair = emit.value(name, pair, emit.get(parts, chain))
    return apply(emit, op, op.COMBINE, [emit.value(f"low_{kind}", pair), emit.value(f"high_{kind}", pair)])


def _twice(emit: Emitter, pair: SSAValue) -> SSAValue:
    """The first of two neighbours, in the place of both: the second is behind the end of its row."""
    half = emit.const(16)
    first = emit.value("shift_pair", emit.value("bits_f32", emit.real(0.0)), pair, half)
    return emit.value("shift_pair", first, pair, half)
