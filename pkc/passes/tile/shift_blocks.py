"""The pass `pk-shift-blocks`: positions of a block and a number more are a block of another list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from pkc.dialect.access import LoadOp, StoreOp
from pkc.dialect.arrays import array_type, is_pgl
from pkc.dialect.by_table import ByTable, GatherOp, ScatterStoreOp
from pkc.dialect.coordinates import SHIFTED, BlockOp, written_type
from pkc.dialect.elementwise import AddOp, SubOp
from pkc.dialect.program import KernelOp
from pkc.dialect.tile import FullOp, PositionsOp, SplatOp, block_type
from pkc.dialect.types import BlockType, Dim, Layout, PrivateType
from pkc.passes.analysis.local_shards import is_local
from pkc.passes.analysis.named_positions import named
from pkc.passes.analysis.signs import is_not_negative
from pkc.passes.dce import drop_dead
from pkc.passes.integers import Integers
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.program_slices import can_copy
from pkc.remarks import missed

_ALONG_ROWS = "it goes along rows, which begin with the array"


class ShiftBlocks(KernelPass):
    """Read and write at `A[m, k + s]` as at a block: what the positions of a block, each `s` more, name lies side by
    side. So it moves as other tiles do, and not row by row or element by element.

    `s` is a sum of constants, sizes and other integers, and the table names nothing past the end of the array or of the
    block, as the frontend writes it. Where one of these may be negative, for all that is known, the block may begin in
    front of the array (`outside`), where nothing is: rows of an array in memory of this rank are read so, which TMA
    fills with zeros, and threads leave out.

    Before:

        %p = pk.positions %n : !pk.block<N by 128> -> !pk.tile<128xi32>
        %q = pk.add %p, %s : !pk.tile<128xi32>                                // s = splat of N
        %inside = pk.compare lt, %q, %length : ...                            // of L
        %t = pk.select %inside, %q, %none : ...                               // -1
        %rows = pk.clip %t axis 0 to %n fill -1 : ...
        %w = pk.gather %W rows %rows dim 1 axes [0, 1][%k : ...] : ...

    After:

        %end = min(N + N, L)
        %shifted = pk.block[%j] from %N to %end {shifted = !pk.block<N by 128>} : !pk.block<L by 128>
        %w = pk.load %W[%k, %shifted : ...] : ...
    """

    name = "pk-shift-blocks"

    def run(self, kernel: KernelOp) -> None:
        replaced = [_replace(op) for op in list(kernel.walk()) if isinstance(op, ByTable)]
        if any(replaced):
            drop_dead(kernel.body)  # the tables: estimates count what threads compute


@dataclass(frozen=True)
class _Shift:
    """Positions of a block, and the numbers that are added to each."""

    block: BlockOp
    terms: tuple[tuple[int, SSAValue | int], ...]
    """Each with 1, or with -1 if it is taken away."""

    @property
    def outside(self) -> bool:
        """Whether it may begin at a negative position, for all that is known."""
        known = sum(sign * term for sign, term in self.terms if isinstance(term, int))
        others = [sign > 0 and is_not_negative(term) for sign, term in self.terms if not isinstance(term, int)]
        return known < 0 or not all(others)


def _replace(op: ByTable) -> bool:
    """Make a load or a store of it, if all its tables are shifted blocks, in the order of its axes. Whether it did."""
    dims = array_type(op.array).dimensions
    shifts = [_shift(place, dim) if place in op.tables else place for place, dim in zip(op.places, dims, strict=True)]
    if not any(isinstance(shift, _Shift | str) for shift in shifts):
        return False
    if reason := _why_not(op, shifts):
        if not reason.endswith(_ALONG_ROWS):  # `pk-load-windows` loads these, or says why not
            missed(ShiftBlocks.name, op, f"a shifted block goes by a table, not as other blocks do: {reason}")
        return False
    places = [
        _block(shift, dim, op) if isinstance(shift, _Shift) else place
        for shift, place, dim in zip(shifts, op.places, dims, strict=True)
    ]
    assert isinstance(op, GatherOp | ScatterStoreOp) and op.parent is not None
    other = LoadOp(op.array, places) if isinstance(op, GatherOp) else StoreOp(op.tile, op.array, places, op.rank)
    other.location = op.location
    op.parent.insert_op_before(other, op)
    if isinstance(other, LoadOp):
        other.result.name_hint = op.results[0].name_hint
        op.results[0].replace_all_uses_with(other.result)
    op.detach()
    op.erase()
    return True


def _why_not(op: ByTable, shifts: Sequence[_Shift | SSAValue | str | None]) -> str:
    """Why an access with shifted blocks goes by tables; empty if it need not."""
    if not isinstance(op, GatherOp | ScatterStoreOp):
        return "what is added goes element by element"
    if op.names_ranks or (is_pgl(op.array, Layout.Shard) and not is_local(op.array, op.places)):
        return "its rows may lie on several ranks"
    if None in shifts:
        return "another index is a table"
    if reason := next((shift for shift in shifts if isinstance(shift, str)), ""):
        return reason
    if any(isinstance(shift, _Shift) and shift.outside for shift in shifts) and (reason := _only_inside(op, shifts)):
        return f"what is added to its positions may be negative, and {reason}"
    axes = [] if op.axes is None else list(op.axes.get_values())
    return "" if axes == list(range(len(axes))) else "another index goes along its axis"


def _only_inside(op: GatherOp | ScatterStoreOp, shifts: Sequence[_Shift | SSAValue | str | None]) -> str:
    """Why the blocks of an access are not to begin in front of an array; empty if they may."""
    if not isinstance(op, GatherOp):
        return "nothing is stored there"
    if not isinstance(op.array.type, PrivateType):
        return "other ranks have copies of it, or shards"
    last = shifts[-1]
    if isinstance(last, _Shift) and last.outside:
        return _ALONG_ROWS
    few = any(isinstance(one, _Shift) and block_type(one.block.result).extent == 1 for one in shifts)
    return "each block is one row" if few or not isinstance(op.places[-1].type, BlockType) else ""


def _shift(table: SSAValue, dim: Dim) -> _Shift | str | None:
    """The block that a table has the positions of, each some more, if it names nothing past the ends; if it is one that
    goes by a table, why; None of other tables."""
    found, terms = named(table, dim), list[tuple[int, SSAValue | int]]()
    positions = _positions(found.numbers, terms)
    if positions is None:
        return None
    if found.numbers is table:
        return "`positions(n)` is to be inside of the array, and only a block in arithmetic may go on past the end"
    block = positions.block.owner
    if not found.below or positions.block is not found.block or not isinstance(block, BlockOp):
        return None
    if block.in_shard or positions.zigzag:
        return "it ends where a shard does"
    return _Shift(block, tuple(terms))


def _positions(tile: SSAValue, terms: list[tuple[int, SSAValue | int]]) -> PositionsOp | None:
    """The positions of a block to which `terms` are added in a tile, each with its sign."""
    op = tile.owner
    if isinstance(op, PositionsOp):
        return op
    if not isinstance(op, AddOp | SubOp):
        return None
    found = _positions(op.lhs, terms)
    by = op.lhs if found is None else op.rhs
    if found is None and isinstance(op, AddOp):
        found = _positions(op.rhs, terms)
    sign = -1 if isinstance(op, SubOp) else 1
    if isinstance(by.owner, FullOp):
        terms.append((1, sign * int(by.owner.constant)))
    elif isinstance(by.owner, SplatOp) and isinstance(by.owner.scalar.type, IndexType):
        terms.append((sign, by.owner.scalar))
    else:
        return None
    return found


def _block(shift: _Shift, dim: Dim, op: Operation) -> SSAValue:
    """The shifted block, which ends where the block does, or the dimension: behind the block, or in front of `op` if it
    depends on more than sizes."""
    block, known = shift.block, block_type(shift.block.result)
    anchor = block.next_op if can_copy([term for _, term in shift.terms if not isinstance(term, int)], []) else op
    assert anchor is not None
    numbers = Integers(anchor)

    def number(term: SSAValue | int) -> SSAValue:
        if isinstance(term, int):
            return numbers.number(term)
        return term if anchor is op else numbers.copied(term, {})

    (sign, first), *others = shift.terms or ((1, 0),)
    by = number(first) if sign > 0 else numbers.minus(numbers.number(0), number(first))
    for sign, term in others:
        by = (numbers.plus if sign > 0 else numbers.minus)(by, number(term))
    start = by if block.start is None else numbers.plus(block.start, by)
    stop = numbers.length(known.of) if block.stop is None else block.stop
    end = numbers.least(numbers.plus(stop, by), numbers.length(dim))
    made = BlockOp(block.index, BlockType(dim, known.extent), start=start, stop=end, outside=shift.outside)
    made.attributes[SHIFTED] = written_type(block.result) or known
    return numbers.made(made)
