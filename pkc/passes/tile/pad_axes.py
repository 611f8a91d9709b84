"""The pass `pk-pad-axes`: tiles with all of a constant dimension get the axes that MMAs, and sums over ranks, need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from pkc.dialect.access import AccumulateOp
from pkc.dialect.coordinates import BlockOp
from pkc.dialect.program import KernelOp
from pkc.dialect.reductions import RowReduction
from pkc.dialect.tile import AnyMmaOp, ClipOp, tile_type
from pkc.dialect.types import BlockType, PGLType, TileType, dtype_bytes
from pkc.passes.analysis.dependence import role_around
from pkc.passes.analysis.same_axes import Axis, SameAxes, axes_of, goes_along, length_of
from pkc.passes.build import before, constant, is_constant
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed

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
        groups = SameAxes()
        for op in kernel.walk():
            groups.add(op)
        members = groups.members(dict.fromkeys(axis for op in kernel.walk() for axis in axes_of(op)))
        steps: dict[Axis, int] = {}
        for op, axis, step in needs:
            root = groups.root(axis)
            if reason := _obstacle(members[root], groups.fixed):
                what = "an MMA" if isinstance(op, AnyMmaOp) else "a sum over ranks"
                missed(PadAxes.name, op, f"an axis of {length_of(axis)} elements is not padded for {what}: {reason}")
            else:
                steps[root] = max(step, steps.get(root, 1))
        _pad(kernel, [_Padded(members[root], -(-length_of(root) // step) * step) for root, step in steps.items()])


def _needs(op: Operation) -> Iterator[tuple[Axis, int]]:
    """The axes of MMAs, and of rows of sums over ranks, whose lengths are no multiple of what these take, and that."""
    if isinstance(op, AccumulateOp) and isinstance(op.array.type, PGLType) and tile_type(op.tile).rank > 1:
        last = op.tile, tile_type(op.tile).rank - 1
        if length_of(last) % _CHUNK:
            yield last, _CHUNK
    if not isinstance(op, AnyMmaOp):
        return
    depth = _BYTES // dtype_bytes(tile_type(op.a).element_type)
    rows = 1 if length_of((op.a, 0)) < _ROWS else _ROWS  # of fewer than that any number is taken
    for axis, step in (((op.a, 0), rows), ((op.a, 1), depth), ((op.b, 1), _COLUMNS)):
        if length_of(axis) % step:
            yield axis, step


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
        return length_of(self.axes[0])


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
            along = (use for use in uses if goes_along(use, number))
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
