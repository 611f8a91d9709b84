"""Places in arrays and lists of blocks: `A[m, k]`, `C.at(r)[m, n]`, `blocks(M, 128, of=r)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.ir import SSAValue

from pkc.diagnostics import PkcError
from pkc.dialect.access import LoadOp, ReadOp
from pkc.dialect.coordinates import BlockCountOp, BlockOp, BlockPositionOp, ZigzagPositionOp
from pkc.dialect.program import whole
from pkc.dialect.types import BlockType, Dim, Layout, PGLType, SignalType, i8, i32
from pkc.frontend import functions, tree
from pkc.frontend.check_errors import NotAValue, NotConstant, UnknownName
from pkc.frontend.frame import Frame
from pkc.frontend.kinds import (
    ArrayRef,
    Axis,
    Block,
    BlockAxis,
    BlockList,
    Broken,
    Constant,
    Dimension,
    Integer,
    Place,
    SignalRef,
    Tile,
    Value,
    Whole,
    is_scalar_integer,
    told_apart,
)
from pkc.frontend.tile_errors import (
    AtOnNonSymmetric,
    BadBlocks,
    BadIndex,
    BadOperand,
    BadRows,
    BlockOfOtherDimension,
    IndexCount,
    NotAPlace,
    WholeRunTimeDimension,
)
from pkc.location import Span

Evaluate = Callable[[Frame, tree.Expr], Value]
"""How to evaluate an expression; given by `expressions.py`, which needs this module itself."""


def check_sums(array: ArrayRef, op: str, span: Span) -> None:
    """That an array can be combined over ranks, or added to: sums of i8 are none."""
    if array.type.element_type == i8:
        hint = "declare it i32, and `cast` the result to i8"
        raise PkcError(BadOperand(span, op, f"`{array.name}` of i8", "an array of i32 or floats", hint))


def place(frame: Frame, node: tree.Index, evaluate: Evaluate) -> Place:
    """The place that `node` addresses in an array, by blocks and integers."""
    array = base_array(frame, node)
    rank = rank_of(frame, node, array, evaluate)
    indices, axes = indices_of(frame, array, list(node.indices), evaluate, node.span)
    return Place(array, rank, indices, axes)


def base_array(frame: Frame, node: tree.Index) -> ArrayRef:
    """The array in which `node` addresses a place."""
    array = _base(frame, node)
    if not isinstance(array, ArrayRef):
        raise PkcError(NotAValue(node.span, str(array), "only `signal`, `signal_all`, `wait` and `barrier` use it"))
    return array


def counter(
    frame: Frame, node: tree.Expr, evaluate: Evaluate, name: str, usage: str
) -> tuple[SignalRef, tuple[SSAValue, ...], SSAValue | None]:
    """The counter that `node` addresses in a signal array: the array, the indices, the rank if one is given."""
    if not isinstance(node, tree.Index):
        raise PkcError(NotAPlace(node.span, name, "a place in a signal array", f"`{node.span.text}`", usage))
    signal = _base(frame, node)
    if not isinstance(signal, SignalRef):
        raise PkcError(NotAPlace(node.span, name, "a place in a signal array", f"in {signal}", usage))
    rank = rank_of(frame, node, signal, evaluate)
    _check_count(signal, signal.name, len(node.indices), signal.type.dimensions, node.span, declared="signal")
    indices: list[SSAValue] = []
    for index, dim in zip(node.indices, signal.type.dimensions, strict=True):
        value = None if isinstance(index, tree.FullSlice) else evaluate(frame, index)
        if value is None or not is_scalar_integer(value):
            got = "`:`" if value is None else str(value)
            raise PkcError(BadIndex(index.span, signal.name, got, problem="expected an integer"))
        _check_position(signal.name, value, dim, index.span)
        indices.append(frame.integer(value, index.span))
    return signal, tuple(indices), rank


def load(frame: Frame, where: Place, span: Span) -> Value:
    """The tile or scalar at a place."""
    if not where.axes and where.array.type.element_type == i32:
        return Integer(frame.value(ReadOp(where.array.ssa, where.indices, where.rank), span))
    op = LoadOp(where.array.ssa, where.indices, where.rank)
    return Tile(frame.value(op, span), where.array.type.element_type, where.axes)


def row_table(frame: Frame, rows: Value, array: ArrayRef, span: Span, *, pairs: bool) -> Tile:
    """Check a table of rows: it has one axis, or axes (p, 2), of rank and row, for a symmetric array."""
    axes = rows.axes if isinstance(rows, Tile) and rows.dtype == i32 else None
    fits = axes is not None and ((len(axes) == 2 and axes[1] == 2) if pairs else len(axes) == 1)
    if not fits:
        expected = "an i32 tile of axes (p, 2), of rank and row" if pairs else "an i32 tile with one axis"
        raise PkcError(BadRows(span, f"`{array.name}`", str(rows), expected))
    assert isinstance(rows, Tile)
    return rows


def indices_of(
    frame: Frame,
    array: ArrayRef,
    given: list[tree.Expr | tree.FullSlice],
    evaluate: Evaluate,
    span: Span,
    *,
    first: int = 0,
) -> tuple[tuple[SSAValue, ...], tuple[Axis, ...]]:
    """One IR index for each dimension from `first` on, and the axes that they leave."""
    if first and (dim := array.type.dimensions[0]) in frame.zigzag:
        raise PkcError(not_a_block(span, array, "a table of rows", dim))
    dims = array.type.dimensions[first:]
    check_dimensions(array, len(given) + first, span)
    indices: list[SSAValue] = []
    axes: list[Axis] = []
    for position in range(len(dims)):
        node = given[position] if position < len(given) else None
        if position == 0:
            _check_order(frame, array, given, first)
        found, axis = index(frame, array, first + position, node, evaluate, span)
        indices.append(found)
        axes += [] if axis is None else [axis]
    return tuple(indices), told_apart(axes)


def check_dimensions(array: ArrayRef, given: int, span: Span) -> None:
    """That an array has so many dimensions, or more of constants."""
    dims = array.type.dimensions
    if given > len(dims) or any(not isinstance(dim, int) for dim in dims[given:]):
        hint = "only trailing dimensions that are constants may be left out" if given < len(dims) else ""
        _check_count(array, array.name, given, dims, span, declared=array.declared, hint=hint)


def block_list(frame: Frame, node: tree.Call, evaluate: Evaluate) -> BlockList:
    """`blocks(dim, size, of=, start=, stop=)`; the call's shape has been checked."""
    dim = dimension(frame, node.args[0], evaluate)
    size = constant_integer(evaluate(frame, node.args[1]), "the size of a block", node.args[1].span)
    if not 1 <= size <= 65536:
        raise PkcError(BadBlocks(node.args[1].span, f"the size is {size}", "a block has between 1 and 65536 positions"))
    name = dim if isinstance(dim, str) else _constant_named(frame, node.args[0])
    if name and size > 1:
        # Blocks of one position are integers: with another size the program would mean something else.
        frame.tiled.add(name)
        size = frame.tiles.get(name, size)
    options = {keyword.name: keyword.value for keyword in node.keywords}
    bounds = {name: _bound(frame, value, evaluate) for name, value in options.items()}
    explicit = "start" in bounds or "stop" in bounds
    if explicit and "of" in bounds:
        raise PkcError(BadBlocks(node.span, "`of` cannot be combined with `start` or `stop`"))
    sharded = isinstance(dim, str) and dim in frame.sharded
    if explicit and sharded:
        hint = f"the blocks of {dim} follow the shards, of which `of=` chooses one; in a task, `if {_inside(options)}:`"
        raise PkcError(BadBlocks(node.span, f"{dim} is sharded, so its blocks cannot have bounds", hint))
    return BlockList(dim, size, bounds.get("of"), bounds.get("start"), bounds.get("stop"), sharded)


def _constant_named(frame: Frame, node: tree.Expr) -> str:
    """The constant of the kernel that an expression names; empty for any other."""
    return node.id if isinstance(node, tree.Name) and frame.fixed.get(node.id) == "a constant" else ""


def _inside(bounds: Mapping[str, tree.Expr]) -> str:
    """The condition for a block m that has positions within bounds."""
    sides = {"start": "start(m) >= {}", "stop": "start(m) < {}"}
    return " and ".join(text.format(bounds[name].span.text) for name, text in sides.items() if name in bounds)


def dimension(frame: Frame, node: tree.Expr, evaluate: Evaluate) -> Dim:
    """The dimension that a list runs over: a name or a constant."""
    value = evaluate(frame, node)
    if isinstance(value, Dimension):
        return value.name
    if isinstance(value, Constant):
        size = constant_integer(value, "a dimension", node.span)
        if not 1 <= size < 2**31:
            raise PkcError(BadBlocks(node.span, f"the dimension is {size}", "a dimension is positive"))
        return size
    if isinstance(value, Broken):
        raise PkcError()
    hint = (
        f"name one of its dimensions: {', '.join(map(str, value.type.dimensions))}"
        if isinstance(value, ArrayRef)
        else ""
    )
    raise PkcError(BadOperand(node.span, "blocks", str(value), "a dimension of an array", hint))


def count(frame: Frame, blocks: BlockList, span: Span) -> SSAValue:
    """How many blocks a list has."""
    op = BlockCountOp(
        BlockType(blocks.dim, blocks.size),
        shard=blocks.shard,
        start=blocks.start,
        stop=blocks.stop,
        sharded=blocks.sharded,
    )
    return frame.value(op, span)


def pick(frame: Frame, blocks: BlockList, index: SSAValue, name: str, span: Span) -> Value:
    """Block number `index` of a list, as the value of loop variable `name`; a block of one position is an integer."""
    op = BlockOp(
        index,
        BlockType(blocks.dim, blocks.size),
        shard=blocks.shard,
        start=blocks.start,
        stop=blocks.stop,
        sharded=blocks.sharded,
    )
    ssa = frame.value(op, span)
    ssa.name_hint = name
    if blocks.size == 1:
        return Integer(frame.value(first_position(frame, ssa, blocks.dim), span))
    axis = BlockAxis(name, blocks.dim, blocks.size)
    frame.blocks[axis] = ssa
    return Block(ssa, axis)


def first_position(frame: Frame, block: SSAValue, dim: Dim) -> BlockPositionOp | ZigzagPositionOp:
    """The operation that gives the first position of a block of a dimension."""
    return ZigzagPositionOp(block) if dim in frame.zigzag else BlockPositionOp(block)


def constant_integer(value: Value, what: str, span: Span) -> int:
    """The value of an integer constant."""
    if isinstance(value, Broken):
        raise PkcError()
    if not isinstance(value, Constant):
        raise PkcError(NotConstant(span, what, "known only at run time"))
    if isinstance(value.value, bool) or not isinstance(value.value, int):
        raise PkcError(NotConstant(span, what, str(value)))
    return value.value


def _base(frame: Frame, node: tree.Index) -> Value:
    name = node.base.array if isinstance(node.base, tree.At) else node.base
    value = frame.names.get(name.id)
    if value is None:
        hint = frame.expired.get(name.id) or frame.hint(name.id, frame.names) or functions.hint(frame)
        raise PkcError(UnknownName(name.span, name.id, hint))
    if isinstance(value, Broken):
        raise PkcError()
    if not isinstance(value, ArrayRef | SignalRef):
        raise PkcError(NotAPlace(name.span, "[...]", "an array", str(value), "A[m, n]"))
    return value


def rank_of(frame: Frame, node: tree.Index, array: ArrayRef | SignalRef, evaluate: Evaluate) -> SSAValue | None:
    """The rank that `node` names by `.at`, if it does."""
    if not isinstance(node.base, tree.At):
        return None
    symmetric = isinstance(array.type, PGLType) and array.type.layout is Layout.Symmetric
    if isinstance(array, ArrayRef) and not symmetric:
        private = not isinstance(array.type, PGLType)
        hint = (
            "declare it `.symmetric()` to reach another rank's copy"
            if private
            else "index it with a block: pkc finds the owner"
        )
        raise PkcError(AtOnNonSymmetric(node.base.span, array.name, array.declared, hint))
    value = frame.arithmetic(evaluate(frame, node.base.rank), node.base.rank.span)
    if isinstance(value, Constant) and value.value < 0:
        hint = "the rank before this one is `(rank + ranks - 1) % ranks`"
        raise PkcError(BadOperand(node.base.rank.span, ".at", f"`{value.value}`", "the number of a rank, from 0", hint))
    if not is_scalar_integer(value):
        raise PkcError(BadOperand(node.base.rank.span, ".at", str(value), "an integer, the number of a rank"))
    return frame.integer(value, node.base.rank.span)


def index(
    frame: Frame, array: ArrayRef, number: int, node: tree.Expr | tree.FullSlice | None, evaluate: Evaluate, span: Span
) -> tuple[SSAValue, Axis | None]:
    """What addresses one dimension, a block or an integer, and the axis that it leaves."""
    dim = array.type.dimensions[number]
    if node is None or isinstance(node, tree.FullSlice):
        if not isinstance(dim, int):
            raise PkcError(WholeRunTimeDimension(node.span if node else span, array.name, dim))
        return whole_block(frame, dim, span), Whole(dim, array.names[number] if array.names else "")
    value = evaluate(frame, node)
    if isinstance(value, Block):
        if value.axis.dim != dim:
            text = node.id if isinstance(node, tree.Name) else node.span.text
            hint = _other_index(frame, array, number, text, value.axis)
            raise PkcError(
                BlockOfOtherDimension(node.span, array.name, text, str(value.axis.dim), value.axis.size, str(dim), hint)
            )
        return value.ssa, value.axis
    if is_scalar_integer(value):
        if dim in frame.zigzag:
            raise PkcError(not_a_block(node.span, array, str(value), dim))
        _check_position(array.name, value, dim, node.span)
        return frame.integer(value, node.span), None
    if isinstance(value, Broken):
        raise PkcError()
    hint = "what tables name are integers: `cast(t, i32)`" if isinstance(value, Tile) else ""
    if isinstance(value, Tile) and not value.axes:
        hint = "a number that is computed is stored to an array of i32 first, and read from it in other `tasks`"
    raise PkcError(BadIndex(node.span, array.name, str(value), hint))


def _check_order(frame: Frame, array: ArrayRef, given: list[tree.Expr | tree.FullSlice], first: int) -> None:
    """That the blocks which index an array are not those of its dimensions in another order."""
    found = [(node, frame.names.get(node.id)) for node in given if isinstance(node, tree.Name)]
    blocks = [(node, value.axis) for node, value in found if isinstance(value, Block)]
    dims = array.type.dimensions[first:]
    if len(blocks) != len(dims) or sorted(str(axis.dim) for _, axis in blocks) != sorted(map(str, dims)):
        return
    for (node, axis), dim in zip(blocks, dims, strict=True):
        if axis.dim != dim:
            ordered = sorted(blocks, key=lambda block: dims.index(block[1].dim))
            hint = f"in the order of its dimensions the indices are {', '.join(name.id for name, _ in ordered)}"
            raise PkcError(
                BlockOfOtherDimension(node.span, array.name, node.id, str(axis.dim), axis.size, str(dim), hint)
            )


def _other_index(frame: Frame, array: ArrayRef, number: int, text: str, axis: BlockAxis) -> str:
    """What to index a dimension with, in place of a block of another one."""
    dim = array.type.dimensions[number]
    known = [name for name, value in frame.names.items() if isinstance(value, Block) and value.axis.dim == dim]
    if known:
        return f"`{known[-1]}` is a block of {dim}: index it with `{known[-1]}` in place of `{text}`"
    name = array.names[number] if array.names and array.names[number] else str(dim)
    shorter = isinstance(axis.dim, int) and isinstance(dim, int) and axis.dim < dim
    is_other = axis.dim not in array.type.dimensions and (isinstance(axis.dim, str) or shorter)
    first = f"`{text} + 0` for its first {axis.dim} positions" if is_other else ""
    if isinstance(dim, int):
        either = f"{first}, or" if first else "or"
        return f"write `:` for all of {name}, {either} loop over blocks({name}, {min(axis.size, dim)}) for this index"
    loop = f"loop over blocks({name}, {axis.size}) for this index"
    if not isinstance(axis.dim, str):
        return loop
    dims = [axis.dim if place == number else each for place, each in enumerate(array.type.dimensions)]
    shape = ", ".join(map(str, dims))
    start = f", or write {first}" if first else ""
    return f"if {dim} is as long as {axis.dim}, declare `{array.name}` of shape [{shape}]; otherwise {loop}{start}"


def whole_block(frame: Frame, dim: int, span: Span) -> SSAValue:
    """All of a dimension that is a constant, as one block."""
    return frame.value(BlockOp(frame.integer(Constant(0), span), whole(dim)), span)


def not_a_block(span: Span, array: ArrayRef, got: str, dim: Dim) -> BadIndex:
    """The error for what indexes a dimension in zigzag order."""
    hint = f"index it with a block of {dim}, or leave `zigzag` out"
    return BadIndex(span, array.name, got, hint, problem=f"{dim} is in zigzag order: expected a block")


def _check_position(name: str, value: Value, dim: Dim, span: Span) -> None:
    """That a constant index lies in its dimension, as far as that is known."""
    if not isinstance(value, Constant) or 0 <= value.value < (dim if isinstance(dim, int) else 2**31):
        return
    problem = f"positions are 0 to {dim - 1}" if isinstance(dim, int) else "positions are 0 and up"
    hint = f"write `{dim} - {-value.value}` to count from the end" if value.value < 0 else ""
    raise PkcError(BadIndex(span, name, f"position {value.value}", hint, problem))


def _bound(frame: Frame, node: tree.Expr, evaluate: Evaluate) -> SSAValue:
    value = frame.arithmetic(evaluate(frame, node), node.span)
    if not is_scalar_integer(value):
        raise PkcError(BadOperand(node.span, "blocks", str(value), "an integer"))
    return frame.integer(value, node.span)


def _check_count(
    array: ArrayRef | SignalRef,
    name: str,
    given: int,
    dims: tuple[Dim, ...],
    span: Span,
    *,
    declared: str,
    hint: str = "",
) -> None:
    if given == len(dims):
        return
    text = f"{declared}[{', '.join(map(str, dims))}]" if isinstance(array.type, SignalType) else declared
    many = "1 dimension" if len(dims) == 1 else f"{len(dims)} dimensions"
    indices = "1 index is" if given == 1 else f"{given} indices are"
    raise PkcError(IndexCount(span, name, many, indices, text, hint))
