"""Statements to operations: assignments, writes, loops, branches, roles, primitives."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation, Region, SSAValue

from pkc.diagnostics import PkcError
from pkc.dialect import access, by_table, counters
from pkc.dialect.attributes import ON_SMS, Role, RoleAttr
from pkc.dialect.prints import PrintOp
from pkc.dialect.program import RoleOp, TasksOp
from pkc.dialect.tile import CastOp
from pkc.dialect.types import FLOATS, Layout, PGLType, dtype_name, f32, i32
from pkc.frontend import indexing, operators, peers, picking, tree
from pkc.frontend.alignment import fits, fitting, same, told_by_name
from pkc.frontend.beginnings import Beginning
from pkc.frontend.check_errors import MisplacedCall, MisplacedSchedule, UnknownName
from pkc.frontend.control import branch, loop, refuse_reserved
from pkc.frontend.expressions import (
    SIGNATURES,
    STATEMENTS,
    check_call,
    combined_by,
    evaluate,
    misplaced,
    symmetric_place,
)
from pkc.frontend.frame import Frame, guarded
from pkc.frontend.functions import misplaced_return
from pkc.frontend.indexing import constant_integer
from pkc.frontend.kinds import (
    ArrayRef,
    BlockAxis,
    Boolean,
    Broken,
    Constant,
    Integer,
    Place,
    SignalRef,
    Tile,
    Value,
    axes_text,
    axis_text,
    base,
    family,
    is_scalar_integer,
)
from pkc.frontend.tile_errors import (
    AssignedInTasks,
    BadOperand,
    BadRole,
    BadUpdate,
    NotAPlace,
    StoredAxesDiffer,
    StoredTypeDiffers,
    SumIntoPrivate,
)
from pkc.location import Span


def run(frame: Frame, body: Iterable[tree.Stmt]) -> None:
    """Build statements in order; an error in one does not hide errors in the next."""
    for statement in body:
        guarded(frame, assigned((statement,)), lambda statement=statement: _statement(frame, statement))


def assigned(body: Iterable[tree.Stmt]) -> list[str]:
    """The names that statements assign, without loop variables, in order of appearance."""
    found: dict[str, None] = {}
    for statement in body:
        match statement:
            case tree.Assign(target=tree.Name(id=name)) | tree.AugAssign(target=tree.Name(id=name)):
                found[name] = None
            case tree.For() | tree.With():
                found |= dict.fromkeys(assigned(statement.body))
            case tree.If():
                found |= dict.fromkeys(assigned((*statement.body, *statement.orelse)))
            case _:
                pass
    return list(found)


def _statement(frame: Frame, node: tree.Stmt) -> None:
    match node:
        case tree.Assign():
            _assignment(frame, node)
        case tree.AugAssign():
            _augmented(frame, node)
        case tree.For():
            loop(frame, node, assigned(node.body), lambda: run(frame, node.body))
        case tree.If():
            branch(frame, node, run, assigned)
        case tree.With():
            _role(frame, node)
        case tree.Do():
            _do(frame, node.call)
        case tree.Return():
            raise misplaced_return(frame, node)


def _assignment(frame: Frame, node: tree.Assign) -> None:
    if isinstance(node.target, tree.Name):
        name = node.target.id
        if name not in frame.names:
            frame.expired.setdefault(name, f"`{name}` needs a first value before this")
        _assign(frame, node.target, evaluate(frame, node.value), node.value.span)
    else:
        _write(frame, node.target, node.value, lambda place, value: _store(frame, place, value, node.span))


def _augmented(frame: Frame, node: tree.AugAssign) -> None:
    if isinstance(node.target, tree.Name):
        _update(frame, node, node.target)
        return
    if node.op != "+":
        raise PkcError(BadUpdate(node.span, node.op, node.target.span.text))
    _write(frame, node.target, node.value, lambda place, value: _sum(frame, node, place, value))


# Variables


def check_assignable(frame: Frame, name: tree.Name) -> None:
    """That `name` is a variable, and one of this task or role."""
    refuse_reserved(frame, name)
    if name.id in frame.outer:
        raise PkcError(AssignedInTasks(name.span, name.id, frame.outer[name.id]))


def _assign(frame: Frame, target: tree.Name, value: Value, span: Span, *, computed: bool = False) -> None:
    check_assignable(frame, target)
    if isinstance(value, ArrayRef | SignalRef | Broken):
        value = frame.arithmetic(value, span)
    if isinstance(value, Integer | Boolean | Tile) and value.ssa.name_hint is None:
        value.ssa.name_hint = target.id
    frame.names[target.id] = value
    frame.began[target.id] = Beginning(span, computed, len(frame.blocks))


def _update(frame: Frame, node: tree.AugAssign, target: tree.Name) -> None:
    if target.id not in frame.names:
        raise PkcError(UnknownName(target.span, target.id, f"`{target.id}` needs a first value before `{node.op}=`"))
    check_assignable(frame, target)
    value = tree.Binary(node.span, node.op, target, node.value)
    _assign(frame, target, evaluate(frame, value), node.span, computed=True)


# Writes


def _store(frame: Frame, place: Place, node: tree.Expr, span: Span) -> None:
    tile, array = _stored(frame, place, node), place.array.ssa
    if place.has_tables:
        frame.emit(by_table.ScatterStoreOp(tile, array, place.indices, place.along, place.rank), span)
    else:
        frame.emit(access.StoreOp(tile, array, place.indices, place.rank), span)


def _sum(frame: Frame, node: tree.AugAssign, place: Place, value: tree.Expr) -> None:
    """`place += value`, which no array that is private to each rank takes."""
    array = place.array
    indexing.check_sums(array, "+=", node.span)
    if not isinstance(array.type, PGLType):
        named = isinstance(array.type.dimensions[0], str)
        shared = f"`{array.declared}.shard(0)` to give each owner its shard of the sum, or " if named else ""
        added = node.value.span.text if "\n" not in node.value.span.text else "..."
        binds_less = isinstance(node.value, tree.Binary) and node.value.op in ("&", "|", "^", "<<", ">>")
        operand = f"({added})" if binds_less else added
        written = node.target.span.text
        instead = f"write `{written} = {written} + {operand}`"
        if _of_several_tasks(frame, place):
            instead = (
                f"where several tasks add to it, write `store_add({written}, ...)` and `schedule(deterministic=False)`"
            )
        raise PkcError(SumIntoPrivate(node.span, array.name, array.declared, instead, shared))
    _add(frame, place, "+=", value, node.span)


def _of_several_tasks(frame: Frame, place: Place) -> bool:
    """Whether tasks around here differ in an index that has no part in a place."""
    found, todo = set[SSAValue](), list(place.indices)
    while todo:
        value = todo.pop()
        found.add(value)
        todo += value.owner.operands if isinstance(value.owner, Operation) else ()
    op = frame.block.parent_op()
    while op is not None:
        if isinstance(op, TasksOp) and not found.issuperset(op.body.block.args):
            return True
        op = op.parent_op()
    return False


def _add(frame: Frame, place: Place, op: str, node: tree.Expr, span: Span) -> None:
    array = place.array
    indexing.check_sums(array, op, span)
    layout = array.type.layout if isinstance(array.type, PGLType) else None
    tile, local = _stored(frame, place, node), layout in (None, Layout.Symmetric)
    if place.has_tables:
        kind = by_table.ScatterStoreAddOp if local else by_table.ScatterAccumulateOp
        frame.emit(kind(tile, array.ssa, place.indices, place.along, place.rank), span)
    elif local:
        frame.emit(access.StoreAddOp(tile, array.ssa, place.indices, place.rank), span)
    else:
        frame.emit(access.AccumulateOp(tile, array.ssa, place.indices), span)


def _write(frame: Frame, target: tree.Index, value: tree.Expr, write: Callable[[Place, tree.Expr], None]) -> None:
    """Write to a place, or to one on each rank that a table names."""

    def write_to(one: tree.Index, made: tree.Expr) -> None:
        write(picking.written(frame, one, evaluate), made)

    if not peers.to_named(frame, target, value, evaluate, write_to):
        write_to(target, value)


def _axes_hint(value: Tile, place: Place, span: Span) -> str:
    if not place.axes:
        return "one element is a scalar: `rowsum(x)` of a row, `zeros(f32)` to begin a sum"
    more = [axis_text(axis) for axis in value.axes if axis not in place.axes]
    if more and set(more) == {"1"}:
        return "one number is `zeros(f32)` or `full(f32, -inf)`, without `1`"
    if two := told_by_name(value.axes, place.axes):
        return two
    if set(value.axes) != set(place.axes):
        return fitting(value.axes, place.axes)
    return "store it without `.T`" if span.text.endswith(".T") else "store the transpose: `.T`"


def _other_axis(frame: Frame, node: tree.Expr, place: Place) -> str:
    """What to write if a place has the axis that a reduction goes along, and not the other one."""
    if not isinstance(node, tree.Call) or node.func not in operators.ROW_REDUCTIONS:
        return ""
    operand = evaluate(frame, node.args[0])
    if not isinstance(operand, Tile) or len(operand.axes) != 2 or operand.axes[1:] != place.axes:
        return ""
    return f"`{node.func}(x.T)` goes along the other axis of `x` with axes {axes_text(operand.axes)}"


def _stored(frame: Frame, place: Place, node: tree.Expr) -> SSAValue:
    """The value of `node` as a tile of the array's type and the place's axes."""
    span = node.span
    value = frame.arithmetic(evaluate(frame, node), span)
    dtype = place.array.type.element_type
    wanted = "float" if dtype in FLOATS else "integer"
    literal = isinstance(value, Constant) and family(value) == "integer"
    if family(value) != wanted and not literal:
        name = dtype_name(dtype)
        hint = operators.FROM_BOOLEAN if family(value) == "boolean" else f"convert it: `cast(x, {name})`"
        raise PkcError(StoredTypeDiffers(span, place.array.name, str(value), name, hint))
    if isinstance(value, Tile):
        if same(value.axes, place.axes) and value.dtype == dtype:
            return value.ssa
        if not fits(value, place.axes):
            hint = _other_axis(frame, node, place) or _axes_hint(value, place, span)
            raise PkcError(StoredAxesDiffer(span, axes_text(value.axes), axes_text(place.axes), hint))
    base = f32 if wanted == "float" else i32
    tile = frame.tile(value, base, place.axes, span)
    return tile if dtype == base else frame.value(CastOp(tile, dtype), span)


# Roles


def _role(frame: Frame, node: tree.With) -> None:
    call = node.context
    if call.func != "role":
        raise PkcError(MisplacedCall(call.span, call.func, "`with` opens a role", "write `with role(...):`"))
    check_call(frame, call)
    if not frame.at_top:
        raise PkcError(
            BadRole(call.span, "a role is only allowed directly in a kernel", "move it out of loops and other roles")
        )
    name = call.args[0]
    known = [str(role) for role in ON_SMS]
    if not isinstance(name, tree.Name) or name.id not in known:
        raise PkcError(BadRole(name.span, f"unknown role `{name.span.text}`", f"roles are {', '.join(known)}"))
    options = {k.name: _positive(frame, k, 1024) for k in call.keywords}
    body = Region(IRBlock())
    frame.emit(RoleOp(RoleAttr(Role(name.id)), body, options.get("sms"), options.get("warps")), node.span)
    with frame.into(body.block, "a role"):
        frame.forbid_outer("roles")
        run(frame, node.body)


def _positive(frame: Frame, keyword: tree.Keyword, most: int) -> int:
    value = constant_integer(evaluate(frame, keyword.value), f"`{keyword.name}`", keyword.value.span)
    if not 1 <= value <= most:
        raise PkcError(BadRole(keyword.span, f"`{keyword.name}` is {value}", f"it is between 1 and {most}"))
    return value


# Primitives


def _do(frame: Frame, call: tree.Call) -> None:
    if call.func == "schedule":
        raise PkcError(MisplacedSchedule(call.span))
    check_call(frame, call)
    if call.func not in STATEMENTS:
        raise misplaced(call) or PkcError(MisplacedCall(call.span, call.func, "its value is not used"))
    _PRIMITIVES[call.func](frame, call)


def _store_call(frame: Frame, call: tree.Call) -> None:
    node = call.args[0]
    if not isinstance(node, tree.Index):
        usage = SIGNATURES[call.func].usage
        raise PkcError(NotAPlace(node.span, call.func, "a place in an array", f"`{node.span.text}`", usage))

    def write(place: Place, value: tree.Expr) -> None:
        if call.func == "store":
            _store(frame, place, value, call.span)
        else:
            _add(frame, place, "store_add", value, call.span)

    _write(frame, node, call.args[1], write)


def _all_reduce(frame: Frame, call: tree.Call) -> None:
    place = symmetric_place(frame, call)
    frame.emit(access.AllReduceOp(place.array.ssa, place.indices, combined_by(call)), call.span)


def _counter(frame: Frame, call: tree.Call) -> tuple[SSAValue, tuple[SSAValue, ...], SSAValue | None]:
    usage = SIGNATURES[call.func].usage
    signal, indices, rank = indexing.counter(frame, call.args[0], evaluate, call.func, usage)
    if rank is not None and call.func != "signal":
        raise PkcError(NotAPlace(call.args[0].span, call.func, "this rank's signals", "another rank's", usage))
    return signal.ssa, indices, rank


def _amount(frame: Frame, node: tree.Expr, name: str) -> SSAValue:
    value = frame.arithmetic(evaluate(frame, node), node.span)
    if not is_scalar_integer(value):
        raise PkcError(BadOperand(node.span, name, str(value), "an integer"))
    return frame.integer(value, node.span)


def _signal(frame: Frame, call: tree.Call) -> None:
    signal, indices, rank = _counter(frame, call)
    if rank is None:
        rank = frame.integer(evaluate(frame, tree.Name(call.args[0].span, "rank")), call.span)
    frame.emit(counters.SignalOp(signal, indices, rank, _amount(frame, call.args[1], "signal")), call.span)


def _signal_all(frame: Frame, call: tree.Call) -> None:
    signal, indices, _ = _counter(frame, call)
    frame.emit(counters.SignalAllOp(signal, indices, _amount(frame, call.args[1], "signal_all")), call.span)


def _wait(frame: Frame, call: tree.Call) -> None:
    signal, indices, _ = _counter(frame, call)
    frame.emit(counters.WaitOp(signal, indices, _amount(frame, call.args[1], "wait")), call.span)


def _barrier(frame: Frame, call: tree.Call) -> None:
    signal, indices, _ = _counter(frame, call)
    frame.emit(counters.BarrierOp(signal, indices), call.span)


def _print(frame: Frame, call: tree.Call) -> None:
    node = call.args[0]
    value = frame.arithmetic(evaluate(frame, node), node.span)
    blocks: dict[int, SSAValue] = {}
    if isinstance(value, Tile):
        ssa = value.ssa
        along = enumerate(map(base, value.axes))
        blocks = {at: frame.block_of(axis) for at, axis in along if isinstance(axis, BlockAxis)}
    elif family(value) == "boolean":
        ssa = frame.boolean(value, node.span)
    elif family(value) == "float":
        ssa = frame.tile(value, f32, (), node.span)
    else:
        ssa = frame.integer(value, node.span)
    frame.emit(PrintOp(node.span.text, ssa, blocks), call.span)


_PRIMITIVES: dict[str, Callable[[Frame, tree.Call], None]] = {
    "store": _store_call,
    "store_add": _store_call,
    "all_reduce": _all_reduce,
    "signal": _signal,
    "signal_all": _signal_all,
    "wait": _wait,
    "barrier": _barrier,
    "print": _print,
}
