"""The pass `pk-pad-axes`: tiles with all of a constant dimension get the axes that MMAs, and sums over ranks, need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue, Use
from xdsl.rewriter import Rewriter

from pkc.dialect.access import AccumulateOp, LoadOp, ReduceOp, StoreOp
from pkc.dialect.by_table import ByTable
from pkc.dialect.coordinates import BlockOp
from pkc.dialect.elementwise import Binary, CompareOp, SelectOp, Unary
from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.reductions import RowReduction
from pkc.dialect.scans import CumSumOp
from pkc.dialect.tile import (
    AnyMmaOp,
    BroadcastOp,
    CastOp,
    ClipOp,
    FullOp,
    PositionsOp,
    SplatOp,
    TransposeOp,
    tile_type,
)
from pkc.dialect.types import BlockType, PGLType, TileType, dtype_bytes
from pkc.passes.analysis.dependence import role_around
from pkc.passes.analysis.joined import Groups, passed_on
from pkc.passes.build import before, constant, is_constant
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed

Axis = tuple[SSAValue, int]
"""An axis of a tile; of a block its only one, 0."""

_BY_ELEMENT = (Unary, Binary, CompareOp, SelectOp, CastOp, CumSumOp)
_ACCESSES = (LoadOp, ReduceOp, StoreOp, AccumulateOp)
_MAKES = (FullOp, SplatOp)

_CHUNK = 8
"""Elements of a row that threads add up at once."""

_ROWS, _COLUMNS, _BYTES = 8, 16, 32
"""Rows and columns of an MMA, and bytes of what it sums over, of which every target takes multiples."""


class PadAxes(KernelPass):
    """Let tiles with all of a constant dimension go on past its end, to what an MMA takes: multiples of 8 rows, of 16
    columns, and of 32 bytes to sum over. So LoRA may have rank 8, and attention heads of 40. Threads add up sums over
    ranks by 8 elements of a row where tiles have several; single rows stay as they are.

    What is loaded there is zero, and stores leave it out, as at the end of any other dimension. MMAs that sum over such
    an axis, and reductions of rows, clip it. Axes stay as they are if an operation goes along with them that needs all
    their elements in another way, as `fold` and `repeat` do; then the MMA is refused where it is lowered.

    Before:

        %r = pk.block[%zero] : !pk.block<8 by 8>
        %b = pk.load %B[%r, %n : !pk.block<8 by 8>, ...] : ... -> !pk.tile<8x128xbf16>
        %y = pk.mma %x, %b, %acc : !pk.tile<128x8xbf16>, !pk.tile<8x128xbf16> -> !pk.tile<128x128xf32>

    After:

        %r = pk.block[%zero] : !pk.block<8 by 16>
        %b = pk.load %B[%r, %n : !pk.block<8 by 16>, ...] : ... -> !pk.tile<16x128xbf16>
        %p = pk.clip %x axis 1 to %r fill 0.0 : ...
        %q = pk.clip %b axis 0 to %r fill 0.0 : ...
        %y = pk.mma %p, %q, %acc : !pk.tile<128x16xbf16>, !pk.tile<16x128xbf16> -> !pk.tile<128x128xf32>
    """

    name = "pk-pad-axes"

    def run(self, kernel: KernelOp) -> None:
        needs = [(op, axis, step) for op in kernel.walk() for axis, step in _needs(op)]
        if not needs:
            return
        groups = _Groups()
        for op in kernel.walk():
            groups.add(op)
        members = groups.members(dict.fromkeys(axis for op in kernel.walk() for axis in _axes(op)))
        steps: dict[Axis, int] = {}
        for op, axis, step in needs:
            root = groups.root(axis)
            if reason := _obstacle(members[root], groups.fixed):
                what = "an MMA" if isinstance(op, AnyMmaOp) else "a sum over ranks"
                missed(PadAxes.name, op, f"an axis of {_extent(axis)} elements is not padded for {what}: {reason}")
            else:
                steps[root] = max(step, steps.get(root, 1))
        _pad(kernel, [_Padded(members[root], -(-_extent(root) // step) * step) for root, step in steps.items()])


def _needs(op: Operation) -> Iterator[tuple[Axis, int]]:
    """The axes of MMAs, and of rows of sums over ranks, whose lengths are no multiple of what these take, and that."""
    if isinstance(op, AccumulateOp) and isinstance(op.array.type, PGLType) and tile_type(op.tile).rank > 1:
        last = op.tile, tile_type(op.tile).rank - 1
        if _extent(last) % _CHUNK:
            yield last, _CHUNK
    if not isinstance(op, AnyMmaOp):
        return
    depth = _BYTES // dtype_bytes(tile_type(op.a).element_type)
    rows = 1 if _extent((op.a, 0)) < _ROWS else _ROWS  # of fewer than that any number is taken
    for axis, step in (((op.a, 0), rows), ((op.a, 1), depth), ((op.b, 1), _COLUMNS)):
        if _extent(axis) % step:
            yield axis, step


def _extent(axis: Axis) -> int:
    kind = axis[0].type
    return kind.extent if isinstance(kind, BlockType) else tile_type(axis[0]).shape[axis[1]]


def _axes(op: Operation) -> Iterator[Axis]:
    """The axes of all tiles and blocks that an operation uses, makes, or has in its loop."""
    inside = [value for region in op.regions for block in region.blocks for value in block.args]
    for value in (*op.operands, *op.results, *inside):
        if isinstance(value.type, TileType | BlockType):
            yield from ((value, number) for number in range(value.type.rank if isinstance(value.type, TileType) else 1))


class _Groups(Groups[Axis]):
    """Axes that have the same elements."""

    def __init__(self) -> None:
        super().__init__()
        self.fixed: dict[Axis, Operation] = {}
        """Axes that an operation needs as they are."""

    def members(self, axes: Iterable[Axis]) -> dict[Axis, list[Axis]]:
        """By root, all axes of its group."""
        found: dict[Axis, list[Axis]] = {}
        for axis in axes:
            found.setdefault(self.root(axis), []).append(axis)
        return found

    def _join(self, *axes: Axis) -> None:
        for one, other in pairwise(axes):
            self.join(one, other)

    def _join_all(self, tiles: Iterable[SSAValue]) -> None:
        same = [tile for tile in tiles if isinstance(tile.type, TileType)]
        for number in range(tile_type(same[0]).rank if same else 0):
            self._join(*((tile, number) for tile in same))

    def add(self, op: Operation) -> None:
        """Join the axes that an operation has in common; what it says nothing of stays as it is."""
        match op:
            case AnyMmaOp():
                self._join((op.a, 1), (op.b, 0))
                self._join((op.a, 0), (op.acc, 0), (op.result, 0))
                self._join((op.b, 1), (op.acc, 1), (op.result, 1))
            case TransposeOp():
                for number in range(2):
                    self._join((op.tile, number), (op.result, 1 - number))
            case BroadcastOp():
                for number, position in enumerate(op.positions):
                    self._join((op.tile, number), (op.result, position))
            case RowReduction():
                for number in range(tile_type(op.result).rank):
                    self._join((op.tile, number), (op.result, number))
            case ClipOp():
                self._join_all([op.tile, op.result])
                self._join((op.block, 0), (op.tile, op.axis.value.data))
            case PositionsOp():
                self._join((op.block, 0), (op.result, 0))
            case ByTable():
                self._by_table(op)
            case scf.ForOp() | scf.IfOp():
                for same in passed_on(op):
                    self._join_all(same)
            case _ if isinstance(op, _ACCESSES):
                self._access(op)
            case _ if isinstance(op, _BY_ELEMENT):
                self._join_all([*op.operands, *op.results])
            case _ if not isinstance(op, (*_MAKES, scf.YieldOp, TasksOp, BlockOp)):
                for axis in _axes(op):
                    self.fixed.setdefault(axis, op)
            case _:
                pass

    def _access(self, op: Operation) -> None:
        tile = next(value for value in (*op.operands, *op.results) if isinstance(value.type, TileType))
        blocks = [value for value in op.operands if isinstance(value.type, BlockType)]
        for number, block in enumerate(blocks):
            self._join((block, 0), (tile, number))

    def _by_table(self, op: ByTable) -> None:
        tiles = [value for value in (*op.operands, *op.results) if isinstance(value.type, TileType)]
        tile = op.results[0] if op.results else next(value for value in tiles if value not in op.tables)
        for place, along in zip(op.places, op.axes_of_places, strict=True):
            for number, axis in enumerate(along):
                self._join((place, number), (tile, axis))
                if isinstance(place.type, TileType):
                    self.fixed.setdefault((place, number), op)


def _obstacle(group: Iterable[Axis], fixed: Mapping[Axis, Operation]) -> str:
    """Why the axes of a group have to stay as they are; empty if they need not."""
    for value, number in group:
        if (value, number) in fixed:
            return f"`{fixed[value, number].name}` needs it as it is"
        if isinstance(value.type, BlockType) and not _is_whole(value, value.type):
            return "blocks along it do not have all of a constant dimension"
    return ""


def _is_whole(block: SSAValue, kind: BlockType) -> bool:
    op = block.owner
    return isinstance(op, BlockOp) and is_constant(op.index, 0) and kind.of == kind.extent and len(op.operands) == 1


@dataclass(frozen=True)
class _Padded:
    """Axes that get another length."""

    axes: list[Axis]
    length: int

    @property
    def extent(self) -> int:
        return _extent(self.axes[0])


class _Wholes:
    """The one block of a dimension, in front of all that a kernel does, or of what a role does that its author wrote:
    patterns know by it that clips and loads end at the same place."""

    def __init__(self, kernel: KernelOp, kind: BlockType) -> None:
        self._kernel, self._kind = kernel, kind
        self._made: dict[Operation, SSAValue] = {}

    def of(self, op: Operation) -> SSAValue:
        around = role_around(op) or self._kernel
        if around not in self._made:
            first = around.body.block.first_op
            assert first is not None
            zero = constant(0)
            whole = BlockOp(zero, self._kind)
            before(first, [zero, whole])
            self._made[around] = whole.result
        return self._made[around]


def _pad(kernel: KernelOp, groups: Iterable[_Padded]) -> None:
    lengths: dict[SSAValue, dict[int, int]] = {}
    clips: list[tuple[Operation, int, int, SSAValue]] = []
    for group in groups:
        wholes = _Wholes(kernel, BlockType(group.extent, group.length))
        for value, number in group.axes:
            uses = list(value.uses)
            if isinstance(value.type, BlockType):
                for use in uses:
                    use.operation.operands[use.index] = wholes.of(use.operation)
                continue
            lengths.setdefault(value, {})[number] = group.length
            along = (use for use in uses if _goes_along(use, number))
            clips += ((use.operation, use.index, number, wholes.of(use.operation)) for use in along)
    for value, longer in lengths.items():
        kind = tile_type(value)
        shape = [longer.get(axis, size) for axis, size in enumerate(kind.shape)]
        Rewriter.replace_value_with_new_type(value, TileType(shape, kind.element_type))
    for op, operand, axis, block in clips:
        tile = op.operands[operand]
        fill = op.NEUTRAL[tile_type(tile).element_type] if isinstance(op, RowReduction) else 0.0
        clip = ClipOp(tile, block, axis, fill)
        before(op, [clip])
        op.operands[operand] = clip.result


def _goes_along(use: Use, axis: int) -> bool:
    """Whether an operation adds up, or compares, what lies along an axis of its operand."""
    op = use.operation
    if isinstance(op, RowReduction):
        return axis == tile_type(op.tile).rank - 1
    return isinstance(op, AnyMmaOp) and (use.index, axis) in ((0, 1), (1, 0))
