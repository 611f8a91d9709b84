"""Which entries of a table say where a sum into rows that it names goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.arith import AddiOp, ConstantOp, MinSIOp, MuliOp, SubiOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from pkc.dialect.access import READING
from pkc.dialect.arrays import array_type
from pkc.dialect.by_table import ScatterAccumulateOp
from pkc.dialect.coordinates import BlockCountOp, BlockOp, BlockPositionOp, DimOp, RankOp
from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import block_type
from pkc.dialect.types import Dim, PGLType
from pkc.passes.analysis.axes import block_of_axis
from pkc.passes.analysis.covering import covers, is_only
from pkc.passes.analysis.dependence import ancestors, sources, task_count
from pkc.passes.build import is_constant
from pkc.passes.program_slices import can_copy
from pkc.passes.splits import split_of


@dataclass(frozen=True)
class Parts:
    """Parts of a table that cannot overlap, of `length` positions each, in whole blocks; `number` says which one."""

    number: SSAValue
    length: int


Bounds = tuple[SSAValue | None, SSAValue | None]
"""From where and up to where a key goes; from the beginning of its dimension, and to its end."""


@dataclass(frozen=True)
class Entries:
    """Which entry of the table a row of a tile is: the numbers of tasks and iterations, the block of the tile's rows,
    and the dimensions of both; what must hold, or must not, for it to be added; `partial` are the keys that do not go
    through all of their dimension, and `bounds` say from where and up to where others go, which memory tells. `parts`
    of the table have no key: a block is of one of them. `split` is the dimension by which ranks share the array, `top`
    the tasks of the phase."""

    keys: list[SSAValue]
    dims: list[Dim]
    block: BlockOp
    conditions: list[tuple[SSAValue, bool]]
    partial: list[SSAValue]
    bounds: dict[SSAValue, Bounds]
    parts: Parts | None
    split: int
    top: TasksOp

    @property
    def indices(self) -> list[SSAValue]:
        return [*self.keys, self.block.result]


def entries_of(kernel: KernelOp, ops: Sequence[ScatterAccumulateOp]) -> list[Entries] | str:
    """What says which entry of its table a row of each statement is that adds to one array; or why pkc cannot tell."""
    found: list[Entries] = []
    for op in ops:
        entries = _read(kernel, op)
        if isinstance(entries, str):
            return entries
        found.append(entries)
    if any(_comes_before(use.operation, found[-1].top) for use in ops[0].array.uses if use.operation not in ops):
        return "the array is used by another statement, too"
    if any(entries.dims != found[0].dims for entries in found):
        return "other statements add to the array, by tables of other dimensions"
    return found


def _read(kernel: KernelOp, op: ScatterAccumulateOp) -> Entries | str:
    """What says which entry of its table a row of one statement is; or why pkc cannot tell."""
    if kernel.roles:
        return "an author says when a role adds"
    if not op.of_rows:
        return "tables name more than whole rows, by the first dimension"
    around = [*ancestors(op)]
    if not around or not isinstance(top := around[-1], TasksOp):
        return "its tasks stand in a loop or branch"
    block = block_of_axis(op.rows, 0)
    if block is None or not isinstance(block.owner, BlockOp):
        return "the blocks of the table are not known"
    made = block.owner
    if made.shard is not None and not isinstance(made.shard.owner, RankOp):
        return "the blocks of the table are not known to be all"
    conditions = _conditions(op)
    bounds = [bound for bound in (made.start, made.stop) if bound is not None]
    named = [op.rows, *bounds, *(condition for condition, _ in conditions)]
    columns, table = sources(op.indices), sources(named)
    if any(_is_written(value.owner.array, top) for value in table if isinstance(value.owner, READING)):
        return "the same tasks write what names the rows"
    indices = _indices(around)
    parts = next((parts for parts in _parts(made) if parts.number in indices and times(parts.number)), None)
    known = (made.index, parts and parts.number)
    keys, dims, bounds = _keys([index for index in indices if index not in columns and index not in known], table)
    of_columns = zip(op.indices, array_type(op.array).dimensions[1:], strict=True)
    if not all(covers(index, dim, times) for index, dim in of_columns):
        return "some columns of a row may get no contribution"
    if any(index in columns and index in table for index in indices):
        return "which rows are added to differs from column to column"
    if not can_copy(named, [*indices, *keys, block]):
        return "the table comes out of a loop or branch"
    if not _all_blocks(made):
        return "the blocks of the table are not known to be all"
    sizes = [dim for dim in dims if dim is not None]
    if len(sizes) < len(dims):
        return "the number of tasks is not that of a dimension"
    limits = [bound for pair in bounds.values() for bound in pair if bound is not None]
    if not can_copy([*named, *limits], [*keys, *(index for index in known if index), block]):
        return "positions in the table are computed from a number that memory bounds"
    partial = [key for key in keys if key not in bounds and isinstance(count_of(key).owner, SubiOp)]
    return Entries(keys, [*sizes, block_type(block).of], made, conditions, partial, bounds, parts, _split(op), top)


def _keys(
    indices: Sequence[SSAValue], table: set[SSAValue]
) -> tuple[list[SSAValue], list[Dim | None], dict[SSAValue, Bounds]]:
    """What numbers the entries of a table by tasks and iterations, the dimension of each or None, and the bounds of
    those that memory bounds: these are positions in a dimension, of which every one has a place."""
    keys: list[SSAValue] = []
    dims: list[Dim | None] = []
    bounds: dict[SSAValue, Bounds] = {}
    for index in indices:
        key, dim, within = index, _extent(index), None
        if dim is None:
            key, dim, within = _bounded(index, table)
        keys.append(key)
        dims.append(dim)
        if within is not None:
            bounds[key] = within
    return keys, dims, bounds


def _bounded(index: SSAValue, table: set[SSAValue]) -> tuple[SSAValue, Dim | None, Bounds | None]:
    """The position that a task or iteration looks up, its dimension, and the bounds of both; no dimension if nothing
    is looked up by it as it is."""
    key, dim, within = _position(index, table)
    read = [value.owner for value in table if isinstance(value.owner, READING)]
    places = [(at, dim) for op in read for at, dim in zip(op.indices, array_type(op.array).dimensions, strict=False)]
    dims: set[Dim] = {of for at, of in places if at is key}
    if dim is not None:
        dims.add(dim)
    return (key, None, None) if len(dims) != 1 or within is None else (key, dims.pop(), within)


def _position(index: SSAValue, table: set[SSAValue]) -> tuple[SSAValue, Dim | None, Bounds | None]:
    """The position of a block of one, with its dimension, or the number of a task or iteration; with its bounds."""
    for position in table:
        made = position.owner.block.owner if isinstance(position.owner, BlockPositionOp) else None
        if isinstance(made, BlockOp) and made.index is index and made.shard is None and made.sharded is None:
            kind = block_type(made.result)
            return position, kind.of, (made.start, made.stop) if kind.extent == 1 else None
    return index, None, _range(index)


def _range(index: SSAValue) -> Bounds | None:
    """From where and up to where tasks or a loop in steps of 1 go."""
    loop = index.owner.parent_op() if isinstance(index, BlockArgument) else None
    if not isinstance(loop, scf.ForOp):
        return None, task_count(index)
    return (loop.lb, loop.ub) if split_of(loop) is None and is_constant(loop.step, 1) else None


def _indices(around: Sequence[Operation]) -> list[SSAValue]:
    """The numbers of tasks and iterations that operations have, of which each is in the next."""
    found: list[SSAValue] = []
    for op in reversed(around):
        if isinstance(op, TasksOp):
            found += op.body.block.args
        elif isinstance(op, scf.ForOp):
            found.append(op.body.block.args[0])
    return found


def _conditions(op: Operation) -> list[tuple[SSAValue, bool]]:
    """What must hold, or must not, for an operation to be reached by the tasks and loops around it."""
    inside = zip([op, *ancestors(op)], ancestors(op), strict=False)
    return [
        (around.cond, inner.parent is around.true_region.block)
        for inner, around in inside
        if isinstance(around, scf.IfOp)
    ]


def times(index: SSAValue) -> SSAValue | None:
    """How many values the number of a task takes, or of an iteration, from 0 up; None if that is not known."""
    loop = index.owner.parent_op() if isinstance(index, BlockArgument) else None
    if not isinstance(index, BlockArgument) or not isinstance(loop, scf.ForOp):
        return task_count(index)
    whole = index.index == 0 and split_of(loop) is None
    return loop.ub if whole and is_constant(loop.lb, 0) and is_constant(loop.step, 1) else None


def count_of(key: SSAValue) -> SSAValue:
    """How many values a key takes."""
    count = times(key)
    assert count is not None
    return count


def _all_blocks(made: BlockOp) -> bool:
    """Whether tasks or a loop have a block for each number of its list."""
    kind, listed = block_type(made.result), times(made.index)
    count = None if listed is None else listed.owner
    if not isinstance(count, BlockCountOp):
        return is_only(kind) and made.shard is None
    return count.block == kind and (count.shard is None) == (made.shard is None)


def _comes_before(op: Operation, top: TasksOp) -> bool:
    """Whether an operation belongs to the phase of some tasks, or to an earlier one."""
    around: Operation = op
    while around.parent is not top.parent:
        parent = around.parent_op()
        if parent is None:
            return True
        around = parent
    return around is top or around.is_before_in_block(top)


def _is_written(array: SSAValue, top: TasksOp) -> bool:
    """Whether tasks do more with an array than read it."""
    return any(top.is_ancestor(use.operation) and not isinstance(use.operation, READING) for use in array.uses)


def _parts(made: BlockOp) -> Iterator[Parts]:
    """Parts that begin at multiples of a length and are at most as long."""
    if made.start is None or made.stop is None or not isinstance(made.start.owner, MuliOp):
        return
    factors = made.start.owner.operands
    for number, factor in zip(factors, reversed(factors), strict=True):
        length = constant_of(factor)
        if length and length % block_type(made.result).extent == 0 and _ends_by(made.stop, made.start, length):
            yield Parts(number, length)


def _ends_by(stop: SSAValue, start: SSAValue, length: int) -> bool:
    """Whether a list ends at most so many positions behind its start."""
    if isinstance(stop.owner, MinSIOp):
        return any(_ends_by(operand, start, length) for operand in stop.owner.operands)
    if not isinstance(stop.owner, AddiOp) or start not in stop.owner.operands:
        return False
    more = stop.owner.rhs if stop.owner.lhs is start else stop.owner.lhs
    bounds = more.owner.operands if isinstance(more.owner, MinSIOp) else [more]
    return any((constant_of(bound) or length + 1) <= length for bound in bounds)


def _split(op: ScatterAccumulateOp) -> int:
    """The dimension by which ranks share the sums: the sharded one, else the first that is no constant, else rows."""
    kind = array_type(op.array)
    if isinstance(kind, PGLType) and kind.shard_dim is not None:
        return kind.shard_dim
    return next((place for place, dim in enumerate(kind.dimensions) if isinstance(dim, str)), 0)


def _extent(index: SSAValue) -> Dim | None:
    """The dimension, or the constant, that a task index goes through, or all but some of; None if it is neither."""
    count = times(index)
    made = None if count is None else count.owner
    if isinstance(made, SubiOp) and (constant_of(made.rhs) or 0) > 0 and isinstance(made.lhs.owner, DimOp):
        made = made.lhs.owner
    if isinstance(made, DimOp):
        return made.dim.data
    if isinstance(made, ConstantOp):
        return constant_of(made.result)
    if isinstance(made, BlockCountOp) and not made.operands and made.sharded is None and made.block.extent == 1:
        return made.block.of
    return None
