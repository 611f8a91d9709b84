"""The smallest instances of a kernel in which roles and ranks can go wrong with each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from pkc.dialect import elementwise
from pkc.dialect.access import LOADS, LoadOp, ReadOp, StoreAddOp, StoreOp, places_of
from pkc.dialect.arrays import array_type, is_shared
from pkc.dialect.by_table import ByTable, GatherOp, ScatterStoreOp
from pkc.dialect.coordinates import BlockCountOp, BlockOp, BlockPositionOp, DimOp, RankOp
from pkc.dialect.counters import CounterOp
from pkc.dialect.elementwise import FloorDivOp, SelectOp
from pkc.dialect.program import KernelOp, TasksOp, is_scalar
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import BroadcastOp, ClipOp, PositionsOp, block_type
from pkc.dialect.types import RANKS, BlockType, Dim, PGLType, SignalType, TileType
from pkc.sim.numbers import end_of, met_by, most, number_in, passed_by
from pkc.sim.program import Program

MANY = 64
"""An instance with so many tasks along one dimension is too large for every order of it."""

MOST = 300
"""As many blocks, or elements of a dimension that has none, are worth looking at what happens behind a number."""

_MOST_ENTRIES = 4 * MANY
"""An array has no more places than these for the entries of a table."""

_IN_A_SHARE = 2
"""Blocks of a long list for each rank."""

_TALL = 4
"""The shortest blocks of a dimension of which another list of tasks has longer ones."""

_CUT = 3
"""Whole blocks of a list that a scalar ends or begins."""

SWEPT = range(1, 10)
"""Sizes in a row, of which none is looked at for long."""

_ARITHMETIC = (arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.FloorDivSIOp)
_OF_ELEMENTS = (elementwise.AddOp, elementwise.SubOp, elementwise.MulOp, FloorDivOp, elementwise.ModOp)

_FEWEST, _NUMBERS = 2, 4
"""How many blocks the dimensions of an instance have in which they differ: from 2 to 5, in turn."""


def small_dims(kernel: KernelOp, ranks: int, *, few_tasks: bool = False) -> dict[str, int]:
    """A size for each run-time dimension: two blocks, the second of one position; of a sharded one two for each rank,
    but one for the last, so that ranks have different numbers of blocks; 1 for a dimension that has neither blocks nor
    shards. As many more as are taken off: of offsets, of which sequences have one less. As many as there are parts of
    another dimension, of one with an element for each. At least as many as the numbers that the program names, and as
    there are ranks where their numbers are indices. With `few_tasks`, a dimension of which the largest
    blocks are as long as many tasks has two of these tasks, and one such block."""
    return _fitted(kernel, ranks, _sizes(kernel, ranks, few_tasks=few_tasks))


def other_dims(kernel: KernelOp, ranks: int) -> Iterator[dict[str, int]]:
    """Sizes of further instances: fewer positions of a sharded dimension than ranks, so that the last one has nothing.

    What an author wrote may be right by chance where dimensions are alike and the last of two blocks has one position.
    So where roles are written, all dimensions with blocks have fewer positions than ranks, and in a third instance each
    dimension has another number of blocks, all whole, or of elements, unless the program divides one by another. Where
    roles are derived, a dimension without blocks has one element as a rule, and in the third instance two or three: of
    tasks for each some show what one alone cannot.

    Where lists of tasks of one role have blocks of several lengths of a dimension, it has several of the shortest ones,
    and all others one: then a CTA has tasks of one list and none of another.

    Lists of blocks that memory ends, and whose rows tables name, are long in a fourth one: each rank has several blocks
    of such a list, which it may begin with.

    Dimensions whose lists of blocks end or begin at scalars have several blocks in a fifth one: launches with other
    scalars have other numbers of them.

    In the last ones dimensions are long enough for integers to pass the numbers that the program names, and for the
    rests of several numbers to be the last ones at once (`pkc/sim/numbers.py`), as far as that takes no more than
    `MOST` blocks.
    """
    blocks, sharded, sizes = _blocks(kernel), _sharded(kernel), _sizes(kernel, ranks)
    few = {dim: max(1, ranks - 1) for dim in sizes if dim in sharded or (kernel.roles and dim in blocks)}
    yield _fitted(kernel, ranks, sizes | few)
    if kernel.roles:
        shares = {dim: blocks.get(dim, 1) * (ranks if dim in sharded else 1) for dim in sizes}
        numbers = {dim: _FEWEST + place % _NUMBERS for place, dim in enumerate(sizes) if dim not in _divided(kernel)}
        yield _fitted(kernel, ranks, sizes | {dim: shares[dim] * number for dim, number in numbers.items()})
        least = _tasks(kernel)
        for dim in sorted(_unlike_lists(kernel)):
            several = _TALL * least[dim] * (ranks if dim in sharded else 1)
            yield _fitted(kernel, ranks, sizes | least | {dim: several})
    else:
        single = [dim for dim in sizes if dim not in blocks and dim not in sharded]
        if single:
            yield _fitted(kernel, ranks, sizes | {dim: _FEWEST + place % 2 for place, dim in enumerate(single)})
        lists = {dim: (_IN_A_SHARE * ranks + 1) * blocks[dim] for dim in _gathered_lists(kernel) if dim in blocks}
        if lists and ranks > 1:
            yield _fitted(kernel, ranks, sizes | lists)
    cut = {dim: _CUT * blocks[dim] + 1 for dim in _cut_by_scalars(kernel) if dim in blocks}
    if cut:
        yield _fitted(kernel, ranks, sizes | cut)
    for long in (passed_by(kernel, ranks), met_by(kernel, ranks, MOST)):
        passed = {dim: size for dim, size in long.items() if size <= MOST * blocks.get(dim, 1)}
        if any(size > sizes[dim] for dim, size in passed.items()):
            sizes |= {dim: max(sizes[dim], size) for dim, size in passed.items()}
            yield _fitted(kernel, ranks, sizes)


def swept_dims(kernel: KernelOp, ranks: int, steps: Sequence[int] = SWEPT) -> Iterator[dict[str, int]]:
    """Sizes in a row: each dimension has from 1 to 9 blocks, or elements if it has no blocks, all of them once, and in
    the end each of them is longer than all others. What is wrong for multiples of 3, for exactly six blocks, or
    where one dimension is longer than another one, is so for some of them. Only of roles that an author wrote, or where
    the places that are stored to are computed."""
    if not kernel.roles and not any(map(_is_computed, _places_stored_to(kernel))):
        return
    blocks, dims = _blocks(kernel), [dim for dim in _sizes(kernel, ranks) if dim not in _divided(kernel)]
    for step in steps:
        numbers = {dim: (step * (1, 2, 4, 5, 7, 8)[place % 6] - 1) % len(SWEPT) + 1 for place, dim in enumerate(dims)}
        sizes = _sizes(kernel, ranks) | {dim: blocks.get(dim, 1) * number for dim, number in numbers.items()}
        yield _fitted(kernel, ranks, sizes)
    for longest in dims if len(dims) > 1 and steps == SWEPT else ():
        sizes = _sizes(kernel, ranks) | {dim: len(SWEPT) * blocks.get(dim, 1) if dim == longest else 1 for dim in dims}
        yield _fitted(kernel, ranks, sizes)


def least_dims(kernel: KernelOp, ranks: int) -> Iterator[dict[str, int]]:
    """Sizes, of roles that an author wrote, below those that the numbers of the program need, or seem to: a loop over
    `T - 3` has no iterations then, and a branch may be for longer ones. The program may go past the end of an array
    there, as it may have only greater sizes in mind."""
    needed, sizes = _needed(kernel, ranks), small_dims(kernel, ranks)
    dims = [dim for dim in sizes if needed.get(dim, 0) > 1] if kernel.roles else []
    for number in range(1, min(max((needed[dim] for dim in dims), default=1), len(SWEPT))):
        least = {dim: number for dim in dims if number < needed[dim]}
        yield _fitted(kernel, ranks, sizes | least, whole=False)


def _places_stored_to(kernel: KernelOp) -> Iterator[SSAValue]:
    for op in kernel.walk():
        if isinstance(op, StoreOp | StoreAddOp):
            yield from op.indices
        elif isinstance(op, ScatterStoreOp):
            yield from op.places


def _is_computed(place: SSAValue) -> bool:
    """Whether arithmetic makes an index, or each entry of a table."""
    made = _without_edges(place)
    return isinstance(made, (*_ARITHMETIC, *_OF_ELEMENTS)) or isinstance(place.owner, _OF_ELEMENTS)


def _cut_by_scalars(kernel: KernelOp) -> set[str]:
    """The dimensions whose lists of blocks scalars of a launch end or begin."""
    counts = (op for op in kernel.walk() if isinstance(op, BlockCountOp))
    cut = (op.block.of for op in counts if any(map(_is_of_scalars, op.operands)))
    return {dim for dim in cut if isinstance(dim, str)}


def _is_of_scalars(value: SSAValue) -> bool:
    """Whether an integer is computed from a scalar that a launch gets."""
    made = value.owner
    if isinstance(made, Block):
        return is_scalar(value)
    return not made.regions and any(map(_is_of_scalars, made.operands))


def _sizes(kernel: KernelOp, ranks: int, *, few_tasks: bool = False) -> dict[str, int]:
    blocks, sharded = _blocks(kernel), _sharded(kernel)
    for dim, extent in _tasks(kernel).items() if few_tasks else ():
        blocks[dim] = extent if blocks.get(dim, 0) >= MANY * extent else blocks.get(dim, 0)
    return {dim: _size(blocks.get(dim, 0), ranks if dim in sharded else 0) for dim in Program(kernel).dims}


def _fitted(kernel: KernelOp, ranks: int, sizes: Mapping[str, int], *, whole: bool = True) -> dict[str, int]:
    """Sizes as large as the program's numbers need, if they are to be `whole`, and as they depend on each other."""
    taken, named = (_taken(kernel), _named(kernel, ranks)) if whole else ({}, {})
    fitted = {dim: max(size, named.get(dim, 0)) + max(taken.get(dim, 0), 0) for dim, size in sizes.items()}
    fitted |= {dim: (fitted[other] - 1) // by + 1 for dim, (other, by) in _parts(kernel).items()}
    for least in (_counted, _stored):
        found = least(kernel, fitted | {RANKS: ranks})
        fitted |= {dim: max(size, found.get(dim, 0)) for dim, size in fitted.items()}
    return fitted


def _counted(kernel: KernelOp, sizes: Mapping[str, int]) -> dict[str, int]:
    """How long dimensions must be that are indexed by the number of a task, or by one behind it, as offsets are: the
    tasks are as many as another dimension is long."""
    found: dict[str, int] = {}
    for _, dim, index in _addressed(kernel, ReadOp, LoadOp, StoreOp):
        number, more = index, 0
        if isinstance(made := index.owner, arith.AddiOp) and (behind := constant_of(made.rhs)) is not None:
            number, more = made.lhs, behind
        if length := _length(number, sizes):
            found[dim] = max(found.get(dim, 0), length + more)
    return found


def _length(number: SSAValue, sizes: Mapping[str, int]) -> int:
    """How many tasks or iterations there are along one dimension, if a dimension says so; else 0."""
    around = number.owner.parent_op() if isinstance(number.owner, Block) else None
    if isinstance(number.owner, RankOp):
        return sizes[RANKS]
    if not isinstance(number, BlockArgument) or not isinstance(around, TasksOp | scf.ForOp):
        return 0
    count = around.counts[number.index] if isinstance(around, TasksOp) else around.ub if number.index == 0 else None
    return sizes[count.owner.dim.data] if count is not None and isinstance(count.owner, DimOp) else 0


def _stored(kernel: KernelOp, sizes: Mapping[str, int]) -> dict[str, int]:
    """How long dimensions must be in which memory names the places that are stored to, each of them once."""
    found: dict[str, int] = {}
    for array, dim, place in _addressed(kernel, StoreOp, ScatterStoreOp):
        for dims in _named_by(place):
            entries = prod(sizes[of] if isinstance(of, str) else of for of in dims)
            entries *= sizes[RANKS] if is_shared(array) else 1
            found[dim] = max(found.get(dim, 0), min(entries, _MOST_ENTRIES))
    return found


def _addressed(kernel: KernelOp, *kinds: type[Operation]) -> Iterator[tuple[SSAValue, str, SSAValue]]:
    """The arrays that operations of some kinds access, their dimensions that have a name, and what addresses these."""
    for op in kernel.walk():
        if isinstance(op, kinds) and isinstance(op, ReadOp | LoadOp | StoreOp | ByTable):
            for dim, place in zip(array_type(op.array).dimensions, places_of(op), strict=True):
                if isinstance(dim, str):
                    yield op.array, dim, place


def _named_by(place: SSAValue) -> Iterator[Sequence[Dim]]:
    """The dimensions of what an index or a table is computed from: elements of arrays, and positions."""
    made = place.owner
    if isinstance(made, LOADS):
        yield array_type(made.array).dimensions
    elif isinstance(made, PositionsOp):
        yield [block_type(made.block).of]
    elif isinstance(made, Operation) and not made.regions:
        for operand in made.operands:
            if isinstance(operand.type, TileType | IndexType):
                yield from _named_by(operand)


def _blocks(kernel: KernelOp) -> dict[str, int]:
    """The positions of the largest blocks of each dimension that has some."""
    found: dict[str, int] = {}
    for op in kernel.walk():
        for value in (*op.operands, *op.results):
            kind = value.type
            if isinstance(kind, BlockType) and isinstance(kind.of, str):
                found[kind.of] = max(found.get(kind.of, 1), kind.extent)
    return found


def _tasks(kernel: KernelOp) -> dict[str, int]:
    """The positions of the smallest blocks of which each is a task; 1 where each element is."""
    found: dict[str, int] = {}
    for count in (count.owner for op in kernel.walk() if isinstance(op, TasksOp) for count in op.counts):
        if isinstance(count, DimOp):
            found[count.dim.data] = 1
        elif isinstance(count, BlockCountOp) and isinstance(count.block.of, str):
            found[count.block.of] = min(found.get(count.block.of, count.block.extent), count.block.extent)
    return found


def _unlike_lists(kernel: KernelOp) -> set[str]:
    """The dimensions of which tasks of one role have blocks of several lengths."""
    lengths: dict[tuple[Operation, str], set[int]] = {}
    for role in kernel.roles:
        for count in (count.owner for op in role.walk() if isinstance(op, TasksOp) for count in op.counts):
            if isinstance(count, BlockCountOp) and isinstance(count.block.of, str):
                lengths.setdefault((role, count.block.of), set()).add(count.block.extent)
    return {dim for (_, dim), found in lengths.items() if len(found) > 1}


def _gathered_lists(kernel: KernelOp) -> set[str]:
    """The dimensions of tables of rows that tasks go through as far as memory says."""
    counts = (op for op in kernel.walk() if isinstance(op, BlockCountOp) and op.stop is not None)
    ended = {op.block.of for op in counts if op.stop is not None and any(True for _ in _named_by(op.stop))}
    tables = (op.rows.owner for op in kernel.walk() if isinstance(op, GatherOp) and op.of_rows)
    named = {dim for op in tables if isinstance(op, LoadOp) for dim in array_type(op.array).dimensions}
    return {dim for dim in ended & named if isinstance(dim, str)}


def _taken(kernel: KernelOp) -> dict[str, int]:
    """What is taken off dimensions."""
    less = (op for op in kernel.walk() if isinstance(op, arith.SubiOp))
    return {op.lhs.owner.dim.data: constant_of(op.rhs) or 0 for op in less if isinstance(op.lhs.owner, DimOp)}


def _needed(kernel: KernelOp, ranks: int) -> dict[str, int]:
    """How long dimensions at least are made for the numbers that the program names."""
    taken, named = _taken(kernel), _named(kernel, ranks)
    return {dim: max(named.get(dim, 0), 1) + max(taken.get(dim, 0), 0) for dim in {*taken, *named}}


def _named(kernel: KernelOp, ranks: int) -> dict[str, int]:
    """How long dimensions must be for indices that are made of numbers, loops over them, and ranks."""
    found: dict[str, int] = {}
    for op in kernel.walk():
        for dim, index in _indices(op):
            last = most(index, ranks)
            if isinstance(dim, str) and last is not None:
                found[dim] = max(found.get(dim, 0), last + 1)
    return found


def _indices(op: Operation) -> Iterator[tuple[int | str | BlockType, SSAValue]]:
    """The dimensions of the array or the counters that an operation uses, and what it takes of each."""
    if isinstance(op, CounterOp):
        assert isinstance(op.signal.type, SignalType)
        yield from zip(op.signal.type.extents, op.indices, strict=False)
    elif isinstance(op, LoadOp | ReadOp | StoreOp | StoreAddOp):
        yield from zip(array_type(op.array).dimensions, op.indices, strict=True)


def _divided(kernel: KernelOp) -> set[str]:
    """Dimensions that the program divides by each other, so that one has to be a multiple of the other, unless the
    program does something with the rest: it multiplies the quotient with what it divides by."""
    found: set[str] = set()
    for op in kernel.walk():
        if not isinstance(op, arith.FloorDivSIOp):
            continue
        pair = [side.dim.data for side in (op.lhs.owner, op.rhs.owner) if isinstance(side, DimOp)]
        if len(pair) == 2 and RANKS not in pair and not _has_rest(op, pair[1]):
            found.update(pair)
    return found


def _has_rest(quotient: arith.FloorDivSIOp, by: str) -> bool:
    """Whether a quotient is multiplied with what a dimension has been divided by."""
    products = [use.operation for use in quotient.result.uses if isinstance(use.operation, arith.MuliOp)]
    sides = [side.owner for op in products for side in op.operands]
    return any(isinstance(side, DimOp) and side.dim.data == by for side in sides)


def _parts(kernel: KernelOp) -> dict[str, tuple[str, int]]:
    """Dimensions that are indexed by the number of a part of another one, or by a number below it, that other one, and
    how long a part is."""
    found: dict[str, tuple[str, int]] = {}
    for op in kernel.walk():
        if isinstance(op, BlockCountOp) and op.start is not None and isinstance(op.start.owner, arith.MuliOp):
            part, by = op.start.owner.operands
            dim = _ranging_over(part)
            if dim is not None and isinstance(op.block.of, str) and (constant_of(by) or 0) > 0:
                found[dim] = op.block.of, constant_of(by) or 1
    for _, dim, index in _addressed(kernel, LoadOp, ReadOp, ByTable):
        part = _without_edges(index)
        by, of = 1, _ranging_over(index, of_tables=False)
        if isinstance(part, arith.FloorDivSIOp | FloorDivOp):
            by, of = number_in(part.rhs), _ranging_over(part.lhs)
        if by and of not in (None, RANKS, dim):
            found[dim] = of, by
    return found


def _ranging_over(number: SSAValue, *, of_tables: bool = True) -> str | None:
    """The dimension of which an integer, or each of a table, is a position of a block, or below which it is."""
    if isinstance(number, BlockArgument):
        end = end_of(number)
        return end.owner.dim.data if end is not None and isinstance(end.owner, DimOp) else None
    made = _without_edges(number)
    if isinstance(made, BlockPositionOp) or (of_tables and isinstance(made, PositionsOp)):
        of = block_type(made.block).of
        return of if isinstance(of, str) else None
    return None


def _without_edges(index: SSAValue) -> Operation | Block:
    """What makes an index; of a table before it is told where blocks and dimensions end."""
    made = index.owner
    if isinstance(made, SelectOp):
        return _without_edges(made.lhs)
    return _without_edges(made.tile) if isinstance(made, ClipOp | BroadcastOp) else made


def _sharded(kernel: KernelOp) -> set[int | str]:
    """Dimensions that arrays shard, or of which the program takes the blocks of one rank."""
    arrays = (kind for kind in Program(kernel).arrays.values() if isinstance(kind, PGLType))
    parts = (op for op in kernel.walk() if isinstance(op, BlockCountOp | BlockOp) and op.shard is not None)
    owned = {kind.dimensions[kind.shard_dim] for kind in arrays if kind.shard_dim is not None}
    return owned | {(op.block if isinstance(op, BlockCountOp) else block_type(op.result)).of for op in parts}


def _size(block: int, ranks: int) -> int:
    if ranks > 1:
        return max(ranks, (block + 1) * ranks - 1)
    if ranks:
        return max(1, 2 * block - 1)
    return block + 1 if block else 1
