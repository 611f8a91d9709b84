"""The pass `pk-load-windows`: what several loads at shifted places bring comes as one tile, of which each is a part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from xdsl.dialects import scf
from xdsl.ir import Block, BlockArgument, SSAValue

from pkc.dialect.access import LoadOp, StoreOp
from pkc.dialect.arrays import array_type
from pkc.dialect.by_table import GatherOp, tables_of
from pkc.dialect.coordinates import SHIFTED, BlockOp, written_type
from pkc.dialect.machine import MAX_BOX
from pkc.dialect.program import KernelOp, kernel_of
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import AnyMmaOp, CastOp, ClipOp, EnlargeOp, TransposeOp, block_type, tile_type
from pkc.dialect.types import BlockType, PrivateType, dtype_bytes
from pkc.dialect.windows import WindowOp
from pkc.dialect.words import begin_of
from pkc.passes.analysis.dependence import enclosing_tasks, role_around, writes
from pkc.passes.analysis.list_ends import ends_with_array
from pkc.passes.analysis.multiples import multiple_of
from pkc.passes.analysis.pointwise import is_spread
from pkc.passes.analysis.row_lengths import between_rows, divisor
from pkc.passes.analysis.spans import Span, Spans, Sum
from pkc.passes.analysis.unread import Padding
from pkc.passes.analysis.value_numbers import ValueNumbers
from pkc.passes.dce import drop_dead
from pkc.passes.integers import Integers
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed
from pkc.targets.layout import CHUNK

_MOST = 64 * 1024
"""Bytes of a tile with windows: two of them, and what is computed, have room."""

_MARGIN = 4
"""What goes element by element may come with a fourth more: TMA brings it in much less time."""

_ROWS = 2
"""Axes of an array that has more than one row."""


class LoadWindows(KernelPass):
    """Load what several loads bring of an array, at places that differ by constants, as one tile, of which each has its
    window (`pk.window`): as the neighbours of a stencil, the taps of a convolution, what is pooled.

    The tile goes from the least of the places to the greatest, along rows to multiples of 16 bytes, so that TMA moves
    it, which finds none of the others and brings zeros for what lies outside of the array. What lies past the end of a
    block is clipped, where something reads it that leaves the kernel. The loads stand in one block of operations, and
    their phase does not write the array, which is private. They are not joined where their tile would be larger than
    all of theirs together, or larger than shared memory has room for; nor is what an MMA or a transposition reads as it
    is loaded, what tables are made of, and what is stored as TMA loads it. A single load whose places TMA does not find
    is a window, too.

    Before:

        %b = pk.block[%j] : !pk.block<N by 64>
        %c = pk.block[%j] from %1 to %end {shifted = ...} : !pk.block<N by 64>
        %x = pk.load %X[%m, %b : ...] : ... -> !pk.tile<32x64xf32>
        %y = pk.load %X[%m, %c : ...] : ... -> !pk.tile<32x64xf32>

    After:

        %begin = arith.muli %j, %64 : index
        %both = pk.block[%0] from %begin : !pk.block<N by 68>
        %t = pk.load %X[%m, %both : ...] : ... -> !pk.tile<32x68xf32>
        %x = pk.window %t at [0, 0] : !pk.tile<32x68xf32> -> !pk.tile<32x64xf32>
        %y = pk.window %t at [0, 1] : !pk.tile<32x68xf32> -> !pk.tile<32x64xf32>
    """

    name = "pk-load-windows"

    def run(self, kernel: KernelOp) -> None:
        joined, groups = set[Block](), _groups(kernel)
        for group in sorted(groups, key=_are_rows):
            block = group[0].op.parent
            assert block is not None
            if (not _are_rows(group) or block in joined) and _replace(group):
                joined.add(block)
        if joined:
            drop_dead(kernel.body)  # the tables: estimates count what threads compute


_Load = LoadOp | GatherOp


@dataclass(frozen=True)
class _One:
    """A load, and the span of each dimension of its array."""

    op: _Load
    spans: tuple[Span, ...]

    @property
    def size(self) -> int:
        return prod(span.count for span in self.spans)

    @property
    def goes_by_threads(self) -> bool:
        """Whether TMA cannot move its tile: its elements are apart, or begin where TMA finds none."""
        return isinstance(self.op, GatherOp) or self.spans[-1].begin.constant % _unit(self.op) != 0


def _groups(kernel: KernelOp) -> list[list[_One]]:
    """Loads that differ by constants: those of one block of operations, in their order."""
    spans, found = Spans(ValueNumbers(kernel)), dict[tuple[object, ...], list[_One]]()
    for op in kernel.walk():
        if not isinstance(op, LoadOp | GatherOp) or not isinstance(op.array.type, PrivateType):
            continue
        known = spans.of(op)
        if known is None or known[-1].block is None:
            continue
        if reason := why_not(op):
            if known[-1].computed and known[-1].step == 1:
                _remark(op, reason)
        else:
            keys = [(span.begin.key, span.count, span.step, _fixed(span)) for span in known]
            found.setdefault((op.array, op.parent, *keys), []).append(_One(op, tuple(known)))
    return list(found.values())


def _places(one: _One) -> tuple[int, ...]:
    return tuple(span.begin.constant for span in one.spans)


def _fixed(span: Span) -> int | None:
    """The constant in which loads of one tile do not differ: a single position has to be one of the array, and of one
    that may not be, or beside blocks, somebody finds out."""
    inside = isinstance(span.dim, int) and not span.begin.terms and 0 <= span.begin.constant < span.dim
    return None if span.block is not None or inside else span.begin.constant


def why_not(op: LoadOp | GatherOp) -> str:
    """Why a load stays as it is, whatever others there are; empty if it need not."""
    tasks = enclosing_tasks(op)
    if role_around(op) is not None or not tasks:
        return "roles that are written out load what they say"
    if any(writes(use) and tasks[-1].is_ancestor(use.operation) for use in op.array.uses):
        return "this phase writes it"
    if array_type(op.array).rank < _ROWS:
        return "it is one row"
    axes = op.axes_of_places if isinstance(op, GatherOp) else ()
    if [axis for along in axes for axis in along] != list(range(sum(map(len, axes)))):
        return "another index goes along its axis"
    if _stays(op.result):
        return "an MMA, a transposition or a table reads it as it is loaded, or a loop carries it"
    stored = any(isinstance(use.operation, StoreOp) for use in op.result.uses)
    return "it is stored as it is" if stored and isinstance(op, LoadOp) else ""


def _stays(tile: SSAValue) -> bool:
    """Whether something needs a tile as it lies in its stage, makes a table of it, or takes it along."""
    for op in {use.operation for use in tile.uses}:
        taken = isinstance(op, AnyMmaOp | TransposeOp | EnlargeOp | scf.YieldOp) or bool(op.regions)
        if taken or tile in tables_of(op):
            return True
        if isinstance(op, ClipOp | CastOp) and _stays(op.result):
            return True
    return False


def _unit(op: _Load) -> int:
    """Elements of what TMA moves."""
    return CHUNK // dtype_bytes(array_type(op.array).element_type)


@dataclass(frozen=True)
class _Tile:
    """What some loads bring together: along each dimension of the array, from where on, and how many positions."""

    begins: tuple[int, ...]
    lengths: tuple[int, ...]

    @property
    def size(self) -> int:
        return prod(self.lengths)

    def meets(self, other: _Tile) -> bool:
        """Whether two tiles share elements."""
        mine, others = zip(self.begins, self.lengths, strict=True), zip(other.begins, other.lengths, strict=True)
        return all(a < b + m and b < a + n for (a, n), (b, m) in zip(mine, others, strict=True))


def _tile(loads: Sequence[_One]) -> _Tile:
    first, unit = loads[0], _unit(loads[0].op)
    begins, lengths = list[int](), list[int]()
    for dim, span in enumerate(first.spans):
        places = [one.spans[dim].begin.constant for one in loads]
        begin, end = min(places), max(places) + span.reach
        if dim == len(first.spans) - 1:
            begin, end = begin // unit * unit, begin // unit * unit - (begin // unit * unit - end) // unit * unit
        begins.append(begin)
        lengths.append(end - begin)
    return _Tile(tuple(begins), tuple(lengths))


def _replace(group: Sequence[_One]) -> bool:
    """Join the loads of a group, as far as it is worth it. Whether any were."""
    first = group[0].op
    joined = list(_joined(group))
    worth = [loads for loads in joined if len({_places(one) for one in loads}) > 1 or _is_worth(loads)]
    why = why_none(first, group[0].spans[-1]) if worth else ""
    several = len(joined) > 1 or any(len({_places(one) for one in loads}) > 1 for loads in worth)
    reason = why or _why_apart(joined)
    if reason and (several or isinstance(first, GatherOp)):
        _remark(first, reason)
    for loads in worth if not why else ():
        _join(loads, _tile(loads))
    return bool(worth) and not why


def _remark(op: _Load, reason: str) -> None:
    kernel = kernel_of(op)
    assert isinstance(op.array, BlockArgument) and kernel is not None
    name = kernel.argument_name(op.array)
    missed(LoadWindows.name, op, f"what is loaded of `{name}` is no part of a tile that TMA loads: {reason}")


def why_none(op: LoadOp | GatherOp, last: Span) -> str:
    """Why TMA would not move a tile with what a load brings, by the span of its rows; empty if it does."""
    if between_rows(op) % CHUNK:
        return f"rows of the array begin at no multiple of {CHUNK} bytes, and TMA moves such alone"
    of_size = partial(_size_multiple, op)
    if any(factor * multiple_of(value, of_size) % _unit(op) for value, factor in last.begin.terms.values()):
        return f"their blocks may begin where no multiple of {CHUNK} bytes is, which TMA needs"
    return ""


def _size_multiple(op: _Load, dim: str) -> int:
    return divisor(op, begin_of(dim)) or 1


def _joined(group: Sequence[_One]) -> Iterator[list[_One]]:
    """The loads of a group, those together that are to be one. Those at one place are, whatever else is."""
    left = sorted(group, key=_places)
    while left:
        together, rest = left[:1], list[_One]()
        for one in left[1:]:
            (together if _places(one) == _places(together[0]) or _is_worth([*together, one]) else rest).append(one)
        yield together
        left = rest


def _is_worth(loads: Sequence[_One]) -> bool:
    """Whether the tile of some loads has room, and is smaller than theirs are together, or as large and that of single
    rows, or hardly larger and the only one that TMA moves."""
    sizes = {_places(one): one.size for one in loads}
    tile, apart = _tile(loads), sum(sizes.values())
    most = apart + apart // _MARGIN if all(one.goes_by_threads for one in loads) else apart
    gains = any(one.goes_by_threads for one in loads) or (len(sizes) > 1 and _are_rows(loads))
    return (tile.size < apart or (tile.size <= most and gains)) and not _too_large(tile, loads[0].op)


def _are_rows(loads: Sequence[_One]) -> bool:
    """Whether loads are of single rows, one below the other, as of the weights of taps, in a kernel whose threads go
    through rows: one copy is shorter than several."""
    first, kernel = loads[0], kernel_of(loads[0].op)
    below = {tuple(span.begin.constant for span in one.spans if span.block is not None) for one in loads}
    rows = tile_type(first.op.result).rank == 1 and len(below) == 1 and not first.goes_by_threads
    return rows and kernel is not None and is_spread(kernel)


def _too_large(tile: _Tile, op: _Load) -> str:
    size = tile.size * dtype_bytes(array_type(op.array).element_type)
    if size > _MOST:
        return f"a tile with all of them has {size} bytes, and stages have room for {_MOST}"
    if prod(tile.lengths[:-1]) == 1 and tile.lengths[-1] > MAX_BOX:
        return "long rows move as they lie in memory, where nothing brings zeros for what lies outside"
    return f"a box of TMA has {MAX_BOX} rows" if max(tile.lengths[:-1]) > MAX_BOX else ""


def _why_apart(joined: Sequence[Sequence[_One]]) -> str:
    """Why loads are left apart that share elements with others, or go element by element along rows; empty if there are
    none such."""
    for number, loads in enumerate(joined):
        if isinstance(loads[0].op, GatherOp) and loads[0].spans[-1].step == 1 and not _is_worth(loads):
            return _too_large(_tile(loads), loads[0].op) or "TMA would bring more than a fourth too much"
        for others in joined[number + 1 :]:
            both = [*loads, *others]
            if _tile(loads).meets(_tile(others)):
                why = _too_large(_tile(both), loads[0].op)
                return why or "a tile with all of them is larger than theirs are together"
    return ""


def _join(loads: Sequence[_One], tile: _Tile) -> None:
    """One load where the first one stands, and a window of it where each stood."""
    block = loads[0].op.parent
    assert block is not None
    first = min(loads, key=lambda one: block.get_operation_index(one.op))
    numbers, places = Integers(first.op), list[SSAValue]()
    for dim, span in enumerate(first.spans):
        if _is_same(loads, dim, tile):
            assert span.block is not None
            places.append(span.block.result)
            continue
        outside = any(_begins_outside(one, dim) for one in loads) or tile.begins[dim] < 0
        axis = span.block is not None or tile.lengths[dim] > 1
        begin = _integer(numbers, Sum(span.begin.terms, tile.begins[dim]))
        places.append(_block(numbers, span, begin, tile.lengths[dim], outside) if axis else begin)
    load = LoadOp(loads[0].op.array, places)
    numbers.made(load)
    for one in loads:
        _window(one, load, tile)


def _is_same(loads: Sequence[_One], dim: int, tile: _Tile) -> bool:
    """Whether all go through the same block of a dimension, and their tile does."""
    blocks = {one.spans[dim].block for one in loads}
    computed = any(one.spans[dim].computed for one in loads)
    return None not in blocks and len(blocks) == 1 and not computed and tile.lengths[dim] == loads[0].spans[dim].count


def _begins_outside(one: _One, dim: int) -> bool:
    """Whether a span may begin in front of its array."""
    span = one.spans[dim]
    return span.block is not None and (span.block.outside is not None or not span.begin.surely_inside)


def _integer(numbers: Integers, of: Sum) -> SSAValue:
    """A sum as a value."""
    found: SSAValue | None = None
    for value, factor in of.terms.values():
        term = value if factor == 1 else numbers.times(value, numbers.number(factor))
        found = term if found is None else numbers.plus(found, term)
    if found is None:
        return numbers.number(of.constant)
    return numbers.plus(found, numbers.number(of.constant)) if of.constant else found


def _block(numbers: Integers, span: Span, begin: SSAValue, length: int, outside: bool) -> SSAValue:
    """Positions from one on, as the only block of a list that goes on to the end of the dimension."""
    start = None if constant_of(begin) == 0 else begin
    made = BlockOp(numbers.number(0), BlockType(span.dim, length), start=start, outside=outside)
    written = None if span.block is None else written_type(span.block.result) or block_type(span.block.result)
    if written is not None:
        made.attributes[SHIFTED] = written
    return numbers.made(made)


def _window(one: _One, load: LoadOp, tile: _Tile) -> None:
    """Let a window of what is loaded take the place of a load: zero, where something reads it, past the end of the
    blocks."""
    axes = [dim for dim, index in enumerate(load.indices) if isinstance(index.type, BlockType)]
    offsets = [one.spans[dim].begin.constant - tile.begins[dim] for dim in axes]
    steps = [0 if one.spans[dim].block is None else one.spans[dim].step for dim in axes]
    kind, numbers = tile_type(one.op.result), Integers(one.op)
    made: WindowOp | ClipOp = WindowOp(load, offsets, kind.shape, steps)
    numbers.made(made)
    for axis, span in enumerate(span for span in one.spans if span.block is not None):
        block = span.block
        assert block is not None
        ends = block.result in load.indices or (ends_with_array(block) and not span.computed)
        if not ends and not Padding(block.result).is_unread(one.op.result, axis):
            made = ClipOp(made, block.result, axis, 0)
            numbers.made(made)
    made.result.name_hint = one.op.result.name_hint
    one.op.result.replace_all_uses_with(made.result)
    one.op.detach()
    one.op.erase()
