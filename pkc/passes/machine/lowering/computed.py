"""Operations on tiles in registers: views of other values, element-wise operations, reductions of rows."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect import elementwise as ew
from pkc.dialect.declaration import OPERATIONS
from pkc.dialect.interleaved import PickOp, ZipOp
from pkc.dialect.reductions import ACROSS, FoldOp, RowReduction
from pkc.dialect.scans import CumSumOp
from pkc.dialect.tile import (
    AnyMmaOp,
    BroadcastOp,
    CastOp,
    ClipOp,
    EnlargeOp,
    FullOp,
    PositionsOp,
    RepeatOp,
    SplatOp,
    TransposeOp,
    tile_type,
)
from pkc.dialect.types import FLOATS, INTEGERS, f32, i32
from pkc.dialect.windows import WindowOp
from pkc.passes.analysis.chains import is_of_positions
from pkc.passes.analysis.register_axes import lies_across
from pkc.passes.machine.emit import Emitter
from pkc.passes.machine.lowering import exchange, fragments, in_pairs, interleaved, row_results, scans, staging, windows
from pkc.passes.machine.lowering.context import Staged, WarpRole
from pkc.passes.machine.lowering.elements import apply, constant
from pkc.passes.machine.lowering.fragments import (
    PACKED,
    LazyTile,
    RegisterTile,
    Value,
    allocate,
    as_elements,
    element,
    fill,
    fill_pairs,
    has_pairs,
    held,
)
from pkc.passes.machine.lowering.missing import CannotLowerError
from pkc.passes.machine.lowering.quotients import divided
from pkc.passes.machine.lowering.spread import along, column, column_number, fragment_of, per_chunk, row_number
from pkc.targets.layout import NEIGHBOURS, Fragment


def make_lazy(role: WarpRole, op: Operation) -> bool:
    """Lower an operation whose elements are computed where they are used; False if `op` is none."""
    if isinstance(op, FullOp):
        value = op.constant
        kind = tile_type(op.result).element_type
        _lazy(role, op.result, lambda emit, _: constant(emit, value, kind))
    elif isinstance(op, SplatOp):
        scalar = op.scalar
        _lazy(role, op.result, lambda emit, _: _scalar(emit, role.known.get(scalar, scalar)))
    elif isinstance(op, PositionsOp):
        _positions(role, op)
    elif isinstance(op, BroadcastOp):
        _broadcast(role, op)
    elif isinstance(op, RepeatOp):
        _repeat(role, op)
    elif isinstance(op, EnlargeOp):
        _enlarge(role, op)
    elif isinstance(op, PickOp):
        interleaved.pick(role, op)
    elif isinstance(op, WindowOp):
        windows.window(role, op)
    elif isinstance(op, ZipOp):
        interleaved.zip_tiles(role, op)
    elif isinstance(op, ClipOp):
        _clip(role, op)
    elif is_of_positions(op):
        _lazy(role, op.results[0], _once(of_elements(role, op)))
    else:
        return False
    return True


def _once(make: Callable[[Emitter, SSAValue], SSAValue]) -> Callable[[Emitter, SSAValue], SSAValue]:
    """Makes an element once for all of a block that ask for it one after the other."""
    last: tuple[Block, SSAValue, SSAValue] | None = None

    def at(emit: Emitter, index: SSAValue) -> SSAValue:
        nonlocal last
        if last is None or last[0] is not emit.block or last[1] is not index:
            last = emit.block, index, make(emit, index)
        return last[2]

    return at


def _lazy(role: WarpRole, value: SSAValue, element_of: Callable[[Emitter, SSAValue], SSAValue]) -> None:
    role.tiles[value] = LazyTile(fragment_of(role, value), tile_type(value).element_type, element_of)


def _positions(role: WarpRole, op: PositionsOp) -> None:
    if not op.zigzag:
        start = role.dims.position(role.blocks[op.block])
        _lazy(role, op.result, lambda emit, i: emit.i32(emit.plus(start, along(role, op.result, 0, i))))
        return
    first, last, before = (role.known[number] for number in op.zigzag)
    behind = role.emit.minus(last, tile_type(op.result).shape[0] - 1)

    def at(emit: Emitter, index: SSAValue) -> SSAValue:
        inside = along(role, op.result, 0, index)
        begun = emit.select(emit.compare("slt", inside, before), first, behind)
        return emit.i32(emit.plus(begun, inside))

    _lazy(role, op.result, at)


def _broadcast(role: WarpRole, op: BroadcastOp) -> None:
    _lazy(role, op.result, _spread(role, op, held(role, op.tile)))


def _spread(role: WarpRole, op: BroadcastOp, source: Value) -> Callable[[Emitter, SSAValue], SSAValue]:
    """Makes an element of a broadcast of what lies as its operand."""
    target = fragment_of(role, op.result)
    if role.chunk is not None:
        each = NEIGHBOURS // per_chunk(source.fragment.axes) if source.fragment.axes else target.count
        return lambda emit, i: element(role, source, emit.part(i, each))
    if lies_across(op, source.fragment.axes, target.axes):
        raise CannotLowerError(op, "a tile along the rows of one tile and along the columns of another")
    if len(target.axes) != 2 or not source.fragment.axes:
        return lambda emit, i: element(role, source, i if source.fragment.axes else emit.const(0))

    def at(emit: Emitter, index: SSAValue) -> SSAValue:
        by_row = source.fragment.axes == (0,)
        return element(role, source, (row_number if by_row else column_number)(emit, target, index))

    return at


def _clip(role: WarpRole, op: ClipOp) -> None:
    staged = role.tiles[op.tile]
    if isinstance(staged, Staged) and all(isinstance(use.operation, AnyMmaOp | TransposeOp) for use in op.result.uses):
        if (op.axis.value.data == 1) != staged.transposed:
            raise CannotLowerError(op, "an operand of an MMA that ends inside of its stage along columns")
        staging.clear(role, staged, role.dims.valid(role.blocks[op.block]))
        role.tiles[op.result] = staged
        return
    source = as_elements(role, op.tile)
    kind = tile_type(op.result).element_type
    valid = role.dims.valid(role.blocks[op.block])
    axis, fill_value = op.axis.value.data, op.constant

    def at(emit: Emitter, index: SSAValue) -> SSAValue:
        inside = emit.compare("slt", along(role, op.result, axis, index), valid)
        return emit.select(inside, element(role, source, index), constant(emit, fill_value, kind))

    _lazy(role, op.result, at)


def compute(role: WarpRole, op: Operation) -> bool:
    """Lower an element-wise operation, a cast or a reduction of rows; False if `op` is none."""
    if isinstance(op, CastOp):
        _cast(role, op)
    elif isinstance(op, RowReduction):
        _reduce(role, op)
    elif isinstance(op, FoldOp):
        _fold(role, op)
    elif isinstance(op, CumSumOp):
        scans.lower(role, op)
    elif type(op) in OPERATIONS or isinstance(op, ew.CompareOp):
        make = of_elements(role, op)
        staged = (role.tiles.get(operand) for operand in op.operands)
        target = fragment_of(role, op.results[0])
        pairs = any(_has_pairs(tile, target) for tile in staged)
        _compute(role, op.results[0], lambda i: make(role.emit, i), 1 + pairs)
    else:
        return False
    return True


def _has_pairs(tile: object, fragment: Fragment) -> bool:
    if isinstance(tile, LazyTile):
        return tile.pair is not None
    return isinstance(tile, Staged) and has_pairs(tile, fragment)


def of_elements(role: WarpRole, op: Operation) -> Callable[[Emitter, SSAValue], SSAValue]:
    """Makes an element of the result of an element-wise operation."""
    quotient = divided(role, op, lambda broadcast, source: _spread(role, broadcast, source))
    if quotient is not None:
        return quotient
    sources = [as_elements(role, operand) for operand in op.operands]
    return lambda emit, i: apply(emit, op, type(op), [element(role, source, i) for source in sources])


def _compute(role: WarpRole, value: SSAValue, make: Callable[[SSAValue], SSAValue], at_once: int = 1) -> None:
    target = allocate(role, fragment_of(role, value), tile_type(value).element_type, value.name_hint)
    fill(role, target, make, at_once)
    role.tiles[value] = target


def converted(role: WarpRole, op: CastOp, source: Value | None = None) -> Callable[[Emitter, SSAValue], SSAValue]:
    """Makes an element of the result of a cast, in f32 or i32: not yet rounded to a narrower type."""
    source = as_elements(role, op.tile) if source is None else source
    before, after = tile_type(op.tile).element_type, tile_type(op.result).element_type

    def convert(emit: Emitter, index: SSAValue) -> SSAValue:
        value = element(role, source, index)
        if before in INTEGERS and after in FLOATS:
            cast = arith.SIToFPOp(value, f32)
            emit.add(cast)
            return cast.result
        if after in INTEGERS and before in FLOATS:
            cast = arith.FPToSIOp(value, i32)
            emit.add(cast)
            return cast.result
        return value

    return convert


def _cast(role: WarpRole, op: CastOp) -> None:
    source, after = as_elements(role, op.tile), tile_type(op.result).element_type
    convert = converted(role, op, source)
    target = fragment_of(role, op.result)
    if after in PACKED and target.paired and (target.axes == (0, 1) or target.lanes):
        if not _cast_pairs(role, op, source):
            _compute(role, op.result, lambda i: convert(role.emit, i))
        return
    if after in PACKED:
        name = PACKED[after]
        zero = constant(role.emit, 0, after)

        def rounded(emit: Emitter, index: SSAValue) -> SSAValue:
            return emit.value(f"low_{name}", emit.value(f"pack_{name}", convert(emit, index), zero))

        _lazy(role, op.result, rounded)
        return
    pairs = source if isinstance(source, RegisterTile) and after == f32 and in_pairs.has(source) else None
    role.tiles[op.result] = LazyTile(target, after, convert, pairs=pairs)


def _cast_pairs(role: WarpRole, op: CastOp, source: Value) -> bool:
    """Convert two neighbours at once as they come out of their stage; false if there is no instruction for that."""
    kinds = (PACKED.get(tile_type(value).element_type) for value in (op.result, op.tile))
    name, pair = "{}_of_{}".format(*kinds), source.pair if isinstance(source, LazyTile) else None
    if pair is None or role.emit.target.instruction(name) is None:
        return False
    target = allocate(role, fragment_of(role, op.result), tile_type(op.result).element_type, op.result.name_hint)
    fill_pairs(role, target, lambda first: role.emit.value(name, pair(role.emit, first)))
    role.tiles[op.result] = target
    return True


def _reduce(role: WarpRole, op: RowReduction) -> None:
    """Over the registers of a thread, then over the four threads that share a row."""
    emit = role.emit
    source = as_elements(role, op.tile)
    fragment = fragment_of(role, op.result)

    shuffle = "shuffle_xor" if tile_type(op.result).element_type == f32 else "shuffle_xor_i32"

    def combine(emit: Emitter, a: SSAValue, b: SSAValue) -> SSAValue:
        return apply(emit, op, op.COMBINE, [a, b])

    target = allocate(role, fragment, tile_type(op.result).element_type, op.result.name_hint)
    if not source.fragment.columns and source.fragment.lanes:
        row_results.reduce(role, op, source, target)
        return
    if not source.fragment.columns:
        raise CannotLowerError(op, "a reduction of the result of a row reduction, or of a tile combined with one")
    if source.fragment.lanes:
        _reduce_lanes(role, op, source, target)
        return
    pairs = source.fragment.columns // 8
    halves = 2 if 0 in source.fragment.axes else 1
    for repeat in range(fragment.repeats):
        for half in range(halves):
            first = repeat * source.fragment.columns // 2 + half * 2
            at = emit.const(repeat * halves + half)
            emit.set(element(role, source, emit.const(first)), target.registers, at)
            emit.set(
                combine(emit, emit.get(target.registers, at), element(role, source, emit.const(first + 1))),
                target.registers,
                at,
            )
            with emit.loop(1, pairs, unroll=True) as j:
                place = emit.plus(emit.times(j, 2 * halves), first)
                both = combine(emit, element(role, source, place), element(role, source, emit.plus(place, 1)))
                emit.set(combine(emit, emit.get(target.registers, at), both), target.registers, at)
            for distance in (1, 2):
                mine = emit.get(target.registers, at)
                other = emit.value(shuffle, mine, emit.const(distance))
                emit.set(combine(emit, mine, other), target.registers, at)
    role.tiles[op.result] = target


def _repeat(role: WarpRole, op: RepeatOp) -> None:
    """Each thread repeats what it has."""
    source = as_elements(role, op.tile)
    few, many = _folds_in_lanes(role, op, op.tile, op.result)

    def at(emit: Emitter, index: SSAValue) -> SSAValue:
        row = emit.times(emit.part(index, many), few)
        return element(role, source, emit.plus(row, emit.rest(emit.rest(index, many), few)))

    _lazy(role, op.result, at)


def _enlarge(role: WarpRole, op: EnlargeOp) -> None:
    """Each thread reads from the stage what its elements are copies of, once for neighbours that are copies of one."""
    staged = role.tiles[op.tile]
    if not isinstance(staged, Staged) or role.chunk is not None:
        raise CannotLowerError(op, "several copies of elements that are not in a stage")
    role.tiles[op.result] = fragments.enlarged(role, staged, op)


def _fold(role: WarpRole, op: FoldOp) -> None:
    """Each thread reduces what it has."""
    emit, source = role.emit, as_elements(role, op.tile)
    few, many = _folds_in_lanes(role, op, op.result, op.tile)
    fragment, kind = fragment_of(role, op.result), tile_type(op.result).element_type
    target = allocate(role, fragment, kind, op.result.name_hint)
    with emit.loop(0, fragment.count, unroll=True) as number:
        first = emit.plus(emit.times(emit.part(number, few), many), emit.rest(number, few))
        emit.set(element(role, source, first), target.registers, number)
        with emit.loop(1, many // few, unroll=True) as step:
            found = element(role, source, emit.plus(first, emit.times(step, few)))
            both = apply(emit, op, op.reduction.COMBINE, [emit.get(target.registers, number), found])
            emit.set(both, target.registers, number)
    role.tiles[op.result] = target


def _folds_in_lanes(role: WarpRole, op: Operation, few: SSAValue, many: SSAValue) -> tuple[int, int]:
    """How many elements of a row each thread has of the shorter and of the longer tile."""
    short, long = fragment_of(role, few), fragment_of(role, many)
    if not short.lanes or short.ends_early or long.ends_early:
        raise CannotLowerError(op, "a fold of rows that threads have in other parts")
    return short.per_row, long.per_row


def _reduce_lanes(role: WarpRole, op: RowReduction, source: Value, target: RegisterTile) -> None:
    """Over the registers that a thread has of a row, then over the lanes that share it."""
    emit, fragment, kind = role.emit, source.fragment, tile_type(op.result).element_type
    shuffle = "shuffle_xor" if kind == f32 else "shuffle_xor_i32"
    pairs = source.pairs if isinstance(source, LazyTile) else None
    with emit.loop(0, target.fragment.count, unroll=True) as repeat:
        whole = in_pairs.reduced(role, op, pairs, repeat) if pairs is not None else None
        if whole is None:
            whole = _reduced_by_element(role, op, source, repeat)
        emit.set(whole, target.registers, repeat)
        distance = 1
        while distance < min(fragment.lanes, role.threads.arch.warp):
            mine = emit.get(target.registers, repeat)
            other = emit.value(shuffle, mine, emit.const(distance))
            emit.set(apply(emit, op, op.COMBINE, [mine, other]), target.registers, repeat)
            distance *= 2
        if ACROSS in op.attributes:
            exchange.combine(role, op, max(1, fragment.lanes // role.threads.arch.warp), target, repeat)
        elif fragment.lanes > role.threads.arch.warp:
            row_results.combine_warps(role, op, target, repeat, warps=fragment.lanes // role.threads.arch.warp)
    role.tiles[op.result] = target


def _reduced_by_element(role: WarpRole, op: RowReduction, source: Value, repeat: SSAValue) -> SSAValue:
    """What a thread has of a row, reduced."""
    emit, fragment, kind = role.emit, source.fragment, tile_type(op.result).element_type
    neutral = constant(emit, op.NEUTRAL[kind], kind)
    chains = gcd(emit.target.threads.chains, fragment.per_row)
    parts = emit.registers(chains, kind)
    for chain in range(chains):
        emit.set(neutral, parts, chain)
    surely = fragment.surely // chains
    for first, end in ((0, surely), (surely, fragment.per_row // chains)):
        if first == end:
            continue
        with emit.loop(first, end, unroll=True) as step:
            for chain in range(chains):
                j = emit.plus(emit.times(step, chains), chain)
                index = emit.plus(emit.times(repeat, fragment.per_row), j)
                found = element(role, source, index)
                if first == surely:
                    inside = emit.compare("slt", column(role, fragment, index), fragment.columns)
                    found = emit.select(inside, found, neutral)
                emit.set(apply(emit, op, op.COMBINE, [emit.get(parts, chain), found]), parts, chain)
    whole = emit.get(parts, 0)
    for chain in range(1, chains):
        whole = apply(emit, op, op.COMBINE, [whole, emit.get(parts, chain)])
    return whole


def _scalar(emit: Emitter, value: SSAValue) -> SSAValue:
    return emit.i32(value) if isinstance(value.type, IndexType) else value
