"""Expressions to values: names, operators, and the functions of the language that return something."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.ir import SSAValue

from pkc.diagnostics import PkcError
from pkc.dialect.access import COMBINED, LoadOp, ReduceOp
from pkc.dialect.by_table import GatherOp
from pkc.dialect.coordinates import RankOp, ZigzagGapOp, ZigzagPositionOp
from pkc.dialect.tile import PositionsOp
from pkc.dialect.types import DTYPES, FLOATS, RANKS, Layout, PGLType, f32, i32
from pkc.frontend import elsewhere, functions, indexing, operators, picking, tree
from pkc.frontend.check_errors import (
    MisplacedCall,
    NotAValue,
    UnknownFunction,
    UnknownName,
    UnknownType,
    WrongArguments,
)
from pkc.frontend.frame import Frame
from pkc.frontend.kinds import (
    ArrayRef,
    Axis,
    Block,
    Broken,
    Constant,
    Dimension,
    Integer,
    Tile,
    Value,
    Whole,
    family,
    told_apart,
)
from pkc.frontend.tile_errors import BadOperand, NotAPlace, NotSymmetric, TypesDiffer


@dataclass(frozen=True)
class Signature:
    """How a function is called: how many positional arguments, which keywords, and an example."""

    least: int
    most: int
    usage: str
    keywords: tuple[str, ...] = ()

    @property
    def count(self) -> str:
        """How many positional arguments, in words."""
        return str(self.least) if self.least == self.most else f"{self.least} to {self.most}"


SIGNATURES: dict[str, Signature] = {
    **{name: Signature(1, 1, f"{name}(x)") for name in (*operators.FUNCTIONS, *operators.ROW_REDUCTIONS)},
    "max": Signature(2, 2, "max(a, b)"),
    "min": Signature(2, 2, "min(a, b)"),
    "where": Signature(3, 3, "where(condition, a, b)"),
    "cumsum": Signature(1, 1, "cumsum(x)"),
    "cast": Signature(2, 2, "cast(x, bf16)"),
    "zeros": Signature(1, 8, "zeros(f32, m, n)"),
    "full": Signature(2, 9, "full(f32, -inf, m, n)"),
    "positions": Signature(1, 1, "positions(m)` or `positions(64)"),
    "start": Signature(1, 1, "start(m)"),
    "len": Signature(1, 1, "len(blocks(N, 128))"),
    "gather": Signature(2, 9, "gather(X, rows[p], k)"),
    "reduce": Signature(1, 2, "reduce(C[m, n])` or `reduce(C[m, n], max)"),
    "blocks": Signature(2, 2, "blocks(N, 128, of=rank)", ("of", "start", "stop")),
    "tasks": Signature(1, 8, "tasks(blocks(M, 128), blocks(N, 256))"),
    "range": Signature(1, 2, "range(n)` or `range(first, end)"),
    "ring": Signature(0, 0, "ring()"),
    "role": Signature(1, 1, "role(communicator, sms=16)", ("sms", "warps")),
    "schedule": Signature(0, 0, "schedule(overlap=intra_sm)"),
    "store": Signature(2, 2, "store(C.at(r)[m, n], t)"),
    "store_add": Signature(2, 2, "store_add(C.at(r)[m, n], t)"),
    "all_reduce": Signature(1, 2, "all_reduce(C[m, n])` or `all_reduce(C[m, n], max)"),
    "signal": Signature(2, 2, "signal(ready.at(r)[i], 1)"),
    "signal_all": Signature(2, 2, "signal_all(ready[i], 1)"),
    "wait": Signature(2, 2, "wait(ready[i], n)"),
    "barrier": Signature(1, 1, "barrier(done[i])"),
    "print": Signature(1, 1, "print(x)"),
}
"""Every function of the language."""

LISTS = frozenset(("blocks", "tasks", "range", "ring"))
STATEMENTS = frozenset(
    ("store", "store_add", "all_reduce", "signal", "signal_all", "wait", "barrier", "print", "schedule")
)


def check_call(frame: Frame, node: tree.Call) -> None:
    """That the function of the language exists and is called with the right number of arguments and known keywords."""
    signature = SIGNATURES.get(node.func)
    if functions.function_of(frame, node, SIGNATURES) is not None:
        raise PkcError(MisplacedCall(node.span, node.func, "a function of the program, which gives a value"))
    if signature is None:
        raise PkcError(UnknownFunction(node.func_span, node.func, _function_hint(frame, node.func)))
    for keyword in node.keywords:
        if keyword.name not in signature.keywords and node.func != "schedule":
            problem = f"there is no keyword `{keyword.name}`"
            raise PkcError(WrongArguments(keyword.span, node.func, problem, signature.usage))
    if not signature.least <= len(node.args) <= signature.most:
        problem = f"{len(node.args)} given, it takes {signature.count}"
        raise PkcError(WrongArguments(node.span, node.func, problem, signature.usage))


def _function_hint(frame: Frame, name: str) -> str:
    if name in DTYPES:
        return f"convert with `cast(x, {name})`"
    if isinstance(frame.names.get(name), ArrayRef):
        return f"an array is indexed: `{name}[...]`"
    if name in elsewhere.FUNCTIONS and name not in frame.functions:
        return elsewhere.FUNCTIONS[name]
    return frame.hint(name, (*frame.functions, *SIGNATURES))


def evaluate(frame: Frame, node: tree.Expr) -> Value:
    """The value of an expression; operations go to the frame's current block."""
    match node:
        case tree.Number():
            return Constant(node.value)
        case tree.Name():
            return _name(frame, node)
        case tree.Unary():
            return operators.unary(frame, node.op, _operand(frame, node.operand), node.span)
        case tree.Binary():
            left, right = _operand(frame, node.left), _operand(frame, node.right)
            if node.op == "@":
                return operators.matmul(frame, left, right, node.span)
            return operators.binary(frame, node.op, left, right, node.span)
        case tree.Transpose():
            return operators.transpose(frame, _operand(frame, node.operand), node.span)
        case tree.Index():
            return picking.read(frame, node, evaluate)
        case tree.Call():
            return _call(frame, node)


def _name(frame: Frame, node: tree.Name) -> Value:
    name = node.id
    value = frame.names.get(name)
    if isinstance(value, Broken):
        raise PkcError()
    if value is not None:
        return value
    if name == "rank":
        return Integer(frame.value(RankOp(), node.span))
    if name == RANKS:
        return Dimension(RANKS)
    if name in SIGNATURES or name in DTYPES:
        what = "the function" if name in SIGNATURES else "the type"
        hint = f"write `{SIGNATURES[name].usage}`" if name in SIGNATURES else f"convert with `cast(x, {name})`"
        raise PkcError(NotAValue(node.span, f"{what} `{name}`", hint))
    if name in frame.functions:
        raise PkcError(NotAValue(node.span, f"the function `{name}`", f"call it: `{name}(...)`"))
    hint = frame.expired.get(name) or frame.hint(name, (*frame.names, "rank", RANKS)) or functions.hint(frame)
    raise PkcError(UnknownName(node.span, name, hint))


def _call(frame: Frame, node: tree.Call) -> Value:
    function = functions.function_of(frame, node, SIGNATURES)
    if function is not None:
        return functions.call(frame, node, function, evaluate)
    check_call(frame, node)
    name = node.func
    if name in operators.FUNCTIONS:
        return operators.unary(frame, name, _operand(frame, node.args[0]), node.span)
    if name in ("max", "min"):
        return operators.binary(frame, name, _operand(frame, node.args[0]), _operand(frame, node.args[1]), node.span)
    if name in operators.ROW_REDUCTIONS:
        return operators.row_reduction(frame, name, _operand(frame, node.args[0]), node.span)
    if name in _FUNCTIONS:
        return _FUNCTIONS[name](frame, node)
    raise misplaced(node) or PkcError(MisplacedCall(node.span, name, "a statement, without a value"))


def misplaced(node: tree.Call) -> PkcError | None:
    """The error for a list or role outside of its statement."""
    if node.func in LISTS:
        hint = "write a list after `for ... in`; `len` takes `blocks(...)` too"
        return PkcError(MisplacedCall(node.span, node.func, "a list for loops", hint))
    if node.func == "role":
        return PkcError(MisplacedCall(node.span, node.func, "opens a role", "write `with role(...):`"))
    return None


def _operand(frame: Frame, node: tree.Expr) -> Value:
    """The value of an operand of arithmetic."""
    return frame.arithmetic(evaluate(frame, node), node.span)


def _where(frame: Frame, node: tree.Call) -> Value:
    condition, left, right = (_operand(frame, arg) for arg in node.args)
    return operators.select(frame, condition, left, right, node.span)


def _cast(frame: Frame, node: tree.Call) -> Value:
    return operators.cast(frame, _operand(frame, node.args[0]), _dtype(node.args[1]), node.span)


def _zeros(frame: Frame, node: tree.Call) -> Value:
    return _filled(frame, node, Constant(0), node.args[1:])


def _full(frame: Frame, node: tree.Call) -> Value:
    return _filled(frame, node, _operand(frame, node.args[1]), node.args[2:])


def _filled(frame: Frame, node: tree.Call, value: Value, dims: tuple[tree.Expr, ...]) -> Value:
    dtype = _dtype(node.args[0])
    kind = "float" if dtype in FLOATS else "integer"
    if isinstance(value, Tile) and value.axes:
        raise PkcError(BadOperand(node.args[1].span, node.func, str(value), "a scalar"))
    if family(value) != kind and not (kind == "float" and isinstance(value, Constant) and family(value) == "integer"):
        raise PkcError(TypesDiffer(node.span, node.func, str(value), f"{node.args[0].span.text} elements"))
    axes = told_apart(_axis(frame, node.func, arg) for arg in dims)
    base = f32 if kind == "float" else i32
    tile = Tile(frame.tile(value, base, axes, node.span), base, axes)
    return tile if dtype == base else operators.cast(frame, tile, dtype, node.span)


def _axis(frame: Frame, func: str, node: tree.Expr) -> Axis:
    value = evaluate(frame, node)
    if isinstance(value, Block):
        return value.axis
    return Whole(_length(value, func, node), value.name if isinstance(value, Constant) else "")


def _length(value: Value, func: str, node: tree.Expr) -> int:
    """How many elements a whole axis has."""
    if isinstance(value, Constant) and family(value) == "integer" and 0 < int(value.value) < 2**31:
        return int(value.value)
    if isinstance(value, Broken):
        raise PkcError()
    hint = "a run-time dimension has no constant size; use a block of it" if isinstance(value, Dimension) else ""
    raise PkcError(BadOperand(node.span, func, f"`{node.span.text}`", "a block or a positive constant", hint))


def _block(node: tree.Call, value: Value) -> Block:
    """The value of its argument, which is a block."""
    if isinstance(value, Broken):
        raise PkcError()
    if not isinstance(value, Block):
        hints: dict[type[Value], str] = {
            Integer: "an index of blocks(..., 1) or of a dimension is a position already",
            Dimension: f"name a block of it: `for i in blocks({node.args[0].span.text}, 128): {node.func}(i)`",
        }
        hint = hints.get(type(value), "")
        raise PkcError(BadOperand(node.args[0].span, node.func, str(value), "a block", hint))
    return value


def _positions(frame: Frame, node: tree.Call) -> Value:
    value = evaluate(frame, node.args[0])
    if isinstance(value, Constant):
        length = _length(value, node.func, node.args[0])
        whole = indexing.whole_block(frame, length, node.span)
        axis = _axis(frame, node.func, node.args[0])
        return Tile(frame.value(PositionsOp(whole), node.span), i32, (axis,))
    block = _block(node, value)
    if frame.as_positions is not None and (found := frame.as_positions(block, node.span)) is not None:
        return found
    ends: list[SSAValue] = []
    if block.axis.dim in frame.zigzag:
        numbers = ZigzagPositionOp(block.ssa), ZigzagPositionOp(block.ssa, last=True), ZigzagGapOp(block.ssa)
        ends = [frame.value(op, node.span) for op in numbers]
    return Tile(frame.value(PositionsOp(block.ssa, ends), node.span), i32, (block.axis,))


def _start(frame: Frame, node: tree.Call) -> Value:
    block = _block(node, evaluate(frame, node.args[0]))
    return Integer(frame.value(indexing.first_position(frame, block.ssa, block.axis.dim), node.span))


def _len(frame: Frame, node: tree.Call) -> Value:
    inner = node.args[0]
    if not isinstance(inner, tree.Call) or inner.func != "blocks":
        raise PkcError(BadOperand(inner.span, "len", f"`{inner.span.text}`", "blocks(...)"))
    check_call(frame, inner)
    return Integer(indexing.count(frame, indexing.block_list(frame, inner, evaluate), node.span))


def _gather(frame: Frame, node: tree.Call) -> Value:
    array = _array(frame, node.args[0], "gather")
    pairs = isinstance(array.type, PGLType) and array.type.layout is Layout.Symmetric
    rows = evaluate(frame, node.args[1])
    if isinstance(rows, Block):
        hint = "its first dimension is that of the table; along others: `X[m, t[k]]`"
        raise PkcError(NotAValue(node.args[1].span, str(rows), hint))
    rows = frame.arithmetic(rows, node.args[1].span)
    table = indexing.row_table(frame, rows, array, node.args[1].span, pairs=pairs)
    indices, axes = indexing.indices_of(frame, array, list(node.args[2:]), evaluate, node.span, first=1)
    # Past the edge of the blocks that a table is computed from it names no rows; one that is loaded names row 0 there.
    named = table.ssa if isinstance(table.ssa.owner, LoadOp) else operators.clipped(frame, table, 0, -1, node.span)
    op = GatherOp(array.ssa, named, indices)
    return Tile(frame.value(op, node.span), array.type.element_type, (table.axes[0], *axes))


def _array(frame: Frame, node: tree.Expr, name: str) -> ArrayRef:
    usage = SIGNATURES[name].usage
    if not isinstance(node, tree.Name):
        raise PkcError(NotAPlace(node.span, name, "a whole array, by its name", f"`{node.span.text}`", usage))
    value = evaluate(frame, node)
    if not isinstance(value, ArrayRef):
        raise PkcError(NotAPlace(node.span, name, "a whole array, by its name", str(value), usage))
    return value


def _reduce(frame: Frame, node: tree.Call) -> Value:
    where = symmetric_place(frame, node)
    return Tile(frame.value(ReduceOp(where.array.ssa, where.indices, combined_by(node)), node.span), f32, where.axes)


def combined_by(node: tree.Call) -> str | None:
    """How `reduce` and `all_reduce` combine the copies: nothing for a sum, or the second argument."""
    if len(node.args) == 1:
        return None
    by = node.args[1]
    if isinstance(by, tree.Name) and by.id in COMBINED:
        return by.id
    hint = "leave it out for the sum" if by.span.text in ("sum", "+") else ""
    raise PkcError(BadOperand(by.span, node.func, f"`{by.span.text}`", "`max` or `min`", hint))


def symmetric_place(frame: Frame, node: tree.Call) -> indexing.Place:
    """The place that `reduce` and `all_reduce` take: a tile of a symmetric array, without `.at`."""
    usage = SIGNATURES[node.func].usage
    target = node.args[0]
    if not isinstance(target, tree.Index) or isinstance(target.base, tree.At):
        got = "one rank's copy" if isinstance(target, tree.Index) else f"`{target.span.text}`"
        raise PkcError(NotAPlace(target.span, node.func, "a place in a symmetric array", got, usage))
    where = indexing.place(frame, target, evaluate)
    array = where.array
    indexing.check_sums(array, node.func, node.span)
    if not isinstance(array.type, PGLType) or array.type.layout is not Layout.Symmetric:
        raise PkcError(NotSymmetric(target.span, node.func, array.name, array.declared))
    return where


def _dtype(node: tree.Expr) -> object:
    if isinstance(node, tree.Name) and node.id in DTYPES:
        return DTYPES[node.id]
    name = node.span.text
    raise PkcError(UnknownType(node.span, name, elsewhere.of_type(name)))


_FUNCTIONS: dict[str, Callable[[Frame, tree.Call], Value]] = {
    "where": _where,
    "cumsum": lambda frame, node: operators.cum_sum(frame, _operand(frame, node.args[0]), node.span),
    "cast": _cast,
    "zeros": _zeros,
    "full": _full,
    "positions": _positions,
    "start": _start,
    "len": _len,
    "gather": _gather,
    "reduce": _reduce,
}
