"""Loops and branches: task sets, sequential loops with carried variables, `if`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, StringAttr
from xdsl.ir import Block as IRBlock
from xdsl.ir import Region, SSAValue

from pkc.diagnostics import PkcError
from pkc.dialect.coordinates import OVER, DimOp, RingPeerOp
from pkc.dialect.program import TasksOp
from pkc.dialect.types import DTYPES, RANKS, f32, i1, i32
from pkc.frontend import indexing, tree
from pkc.frontend.alignment import same
from pkc.frontend.beginnings import Before, changed_at, first_value_hint
from pkc.frontend.check_errors import DuplicateName, MisplacedCall, ReservedName
from pkc.frontend.expressions import LISTS, check_call, evaluate
from pkc.frontend.frame import Frame
from pkc.frontend.kinds import (
    Block,
    BlockList,
    Boolean,
    Broken,
    Constant,
    Dimension,
    Integer,
    Tile,
    Value,
    family,
    is_scalar_integer,
)
from pkc.frontend.tile_errors import BadCondition, BadIterable, BadOperand, NotCarried, TargetCount, VariableChangesType
from pkc.location import Span

Body = Callable[[], None]


def loop(frame: Frame, node: tree.For, assigned: list[str], body: Body) -> None:
    """`for targets in list:`; `body` builds the statements inside."""
    call = node.iterable
    if call.func not in LISTS:
        raise PkcError(BadIterable(call.span, call.func))
    check_call(frame, call)
    if call.func == "tasks" and frame.inside:
        hint = "a function computes a value; write the tasks in the kernel"
        raise PkcError(MisplacedCall(call.span, "tasks", "in a function", hint))
    lists = len(call.args) if call.func == "tasks" else 1
    if len(node.targets) != lists:
        what = f"{lists} list{'s' if lists != 1 else ''}"
        many = f"{len(node.targets)} variable{'s' if len(node.targets) != 1 else ''}"
        raise PkcError(TargetCount(node.span, what, many))
    _check_targets(frame, node.targets)
    if call.func == "tasks":
        _tasks(frame, node, body)
    else:
        _sequential(frame, node, assigned, body)


def refuse_reserved(frame: Frame, name: tree.Name) -> None:
    """Raise `PkcError` if no variable may have a name."""
    if name.id in ("rank", RANKS) or name.id in DTYPES:
        raise PkcError(ReservedName(name.span, name.id, "a word of the language"))
    if name.id in frame.fixed:
        raise PkcError(ReservedName(name.span, name.id, frame.fixed[name.id]))


def _check_targets(frame: Frame, targets: tuple[tree.Name, ...]) -> None:
    seen: set[str] = set()
    for target in targets:
        refuse_reserved(frame, target)
        if target.id in seen or frame.taken(target.id):
            raise PkcError(DuplicateName(target.span, target.id, "variable of this name"))
        seen.add(target.id)


def _tasks(frame: Frame, node: tree.For, body: Body) -> None:
    lists = [_task_list(frame, arg) for arg in node.iterable.args]
    counts = [indexing.count(frame, item, node.span) if isinstance(item, BlockList) else item for item in lists]
    block = IRBlock(arg_types=[IndexType()] * len(counts))
    frame.emit(TasksOp(counts, Region(block)), node.span)
    with frame.into(block, "a task"):
        frame.forbid_outer("tasks")
        for target, item, index in zip(node.targets, lists, block.args, strict=True):
            _bind(frame, target, item, index)
        body()


def _task_list(frame: Frame, node: tree.Expr) -> BlockList | SSAValue:
    if isinstance(node, tree.Call) and node.func == "blocks":
        check_call(frame, node)
        return indexing.block_list(frame, node, evaluate)
    value = frame.arithmetic(evaluate(frame, node), node.span)
    if not is_scalar_integer(value):
        raise PkcError(BadOperand(node.span, "tasks", str(value), "blocks(...) or an integer"))
    return frame.integer(value, node.span)


def _bind(frame: Frame, target: tree.Name, item: BlockList | SSAValue, index: SSAValue) -> None:
    if isinstance(item, BlockList):
        frame.names[target.id] = indexing.pick(frame, item, index, target.id, target.span)
        return
    index.name_hint = target.id
    frame.names[target.id] = Integer(index)


def _sequential(frame: Frame, node: tree.For, assigned: list[str], body: Body) -> None:
    first, last, take = _bounds(frame, node)
    known = Before.of(frame)
    carried = _carried(frame, assigned, "the loop", node.span)
    step = frame.integer(Constant(1), node.span)
    block = IRBlock(arg_types=[IndexType(), *(_ssa(value).type for value in carried.values())])
    op = scf.ForOp(first, last, step, [_ssa(value) for value in carried.values()], block)
    op.location = node.span.location()
    constant = _constant(frame, node.iterable)
    if constant:
        op.attributes[OVER] = StringAttr(constant)
    with frame.into(block, "a loop"):
        for (name, value), argument in zip(carried.items(), block.args[1:], strict=True):
            argument.name_hint = name
            frame.names[name] = replace(value, ssa=argument)
        frame.names[node.targets[0].id] = take(block.args[0])
        body()
        results = [_carry_on(frame, name, value, known, "the loop", node.span) for name, value in carried.items()]
        frame.emit(scf.YieldOp(*results), node.span)
    frame.block.add_op(op)
    for (name, value), result in zip(carried.items(), op.results, strict=True):
        result.name_hint = name
        frame.names[name] = replace(value, ssa=result)


def _constant(frame: Frame, call: tree.Call) -> str:
    """The constant of whose blocks a loop goes through all or some; empty if it goes through something else."""
    first = call.args[0] if call.func == "blocks" and call.args else None
    return first.id if isinstance(first, tree.Name) and frame.fixed.get(first.id) == "a constant" else ""


def _bounds(frame: Frame, node: tree.For) -> tuple[SSAValue, SSAValue, Callable[[SSAValue], Value]]:
    """First and end index of a sequential loop, and what the loop variable is for each."""
    call, target = node.iterable, node.targets[0]
    if call.func == "blocks":
        blocks = indexing.block_list(frame, call, evaluate)
        end = indexing.count(frame, blocks, node.span)
        return (
            frame.integer(Constant(0), node.span),
            end,
            lambda index: indexing.pick(frame, blocks, index, target.id, target.span),
        )
    if call.func == "ring":
        end = frame.value(DimOp(RANKS), node.span)
        return (
            frame.integer(Constant(0), node.span),
            end,
            lambda index: Integer(frame.value(RingPeerOp(index), target.span)),
        )
    values = [frame.arithmetic(evaluate(frame, arg), arg.span) for arg in call.args]
    for value, arg in zip(values, call.args, strict=True):
        if not is_scalar_integer(value):
            raise PkcError(BadOperand(arg.span, "range", str(value), "an integer"))
    bounds = [frame.integer(value, arg.span) for value, arg in zip(values, call.args, strict=True)]
    first = frame.integer(Constant(0), node.span) if len(bounds) == 1 else bounds[0]
    return first, bounds[-1], Integer


def _carried(frame: Frame, assigned: Iterable[str], where: str, span: Span) -> dict[str, Integer | Boolean | Tile]:
    """The variables that a loop or branch assigns and that exist before it, as run-time values."""
    found: dict[str, Integer | Boolean | Tile] = {}
    for name in assigned:
        if name not in frame.names or name in frame.fixed:
            continue
        if name in frame.outer:
            # The assignment itself is refused, at its place.
            continue
        found[name] = _run_time(frame, name, frame.names[name], where, span)
    return found


def _run_time(frame: Frame, name: str, value: Value, where: str, span: Span) -> Integer | Boolean | Tile:
    """The value of variable `name` as a block argument or result."""
    if isinstance(value, Block):
        raise PkcError(NotCarried(span, name, str(value), where))
    if isinstance(value, Integer | Boolean | Tile):
        return value
    value = frame.arithmetic(value, span)
    kind = family(value)
    if isinstance(value, Dimension) or kind == "integer":
        return Integer(frame.integer(value, span))
    if kind == "boolean":
        return Boolean(frame.boolean(value, span))
    return Tile(frame.tile(value, f32, (), span), f32, ())


def _carry_on(
    frame: Frame, name: str, before: Integer | Boolean | Tile, known: Before, where: str, span: Span
) -> SSAValue:
    """The value of a variable at the end of a loop or branch, which must have the type it began with; `known` was
    there before."""
    after = frame.names[name]
    if isinstance(after, Broken):
        raise PkcError()
    if isinstance(after, Constant) and isinstance(before, Tile) and before.dtype in (f32, i32):
        literal = family(after) == "integer" and before.dtype == f32
        if family(after) == family(before) or literal:
            return frame.tile(after, before.dtype, before.axes, span)
    after = _run_time(frame, name, after, where, span)
    kept = isinstance(after, Tile) and isinstance(before, Tile) and same(after.axes, before.axes)
    kept = kept and isinstance(after, Tile) and isinstance(before, Tile) and after.dtype == before.dtype
    if not kept and (isinstance(after, Tile) or type(after) is not type(before)):
        hint = first_value_hint(frame, name, before, after, known)
        also = changed_at(frame, name, after)
        raise PkcError(VariableChangesType(span, name, where, f"first {before}", f"then {after}", hint, also=also))
    return after.ssa


def _ssa(value: Integer | Boolean | Tile) -> SSAValue:
    return value.ssa


Run = Callable[[Frame, Iterable[tree.Stmt]], None]
Assigned = Callable[[Iterable[tree.Stmt]], list[str]]


def branch(frame: Frame, node: tree.If, run: Run, assigned: Assigned) -> None:
    """`if`: a constant condition is decided now, a run-time one becomes `scf.if`."""
    condition = evaluate(frame, node.condition)
    if isinstance(condition, Constant):
        run(frame, node.body if condition.value else node.orelse)
        return
    if not isinstance(condition, Boolean):
        value = frame.arithmetic(condition, node.condition.span)
        raise PkcError(BadCondition(node.condition.span, *_condition_problem(value, node.condition.span.text)))
    _run_time_branch(frame, node, condition, run, assigned)


def _condition_problem(value: Value, text: str) -> tuple[str, str]:
    """What is wrong with a condition that is not a boolean scalar of integers, and what to do instead."""
    if isinstance(value, Tile) and value.dtype == i1:
        what = "a tile" if value.axes else "a float"
        return f"depends on {what}", "choose element by element with `where(condition, a, b)`"
    return f"is {value}", f"write `{text} != 0`" if family(value) == "integer" else "compare it"


def _run_time_branch(frame: Frame, node: tree.If, condition: Boolean, run: Run, assigned: Assigned) -> None:
    both = [name for name in assigned(node.body) if name in set(assigned(node.orelse))]
    known = Before.of(frame)
    existing = _carried(frame, assigned((*node.body, *node.orelse)), "the branch", node.span)
    fresh = [name for name in both if name not in frame.names]
    kinds: dict[str, Integer | Boolean | Tile] = dict(existing)
    for name, value in existing.items():
        frame.names[name] = value
    regions: list[Region] = []
    for body in (node.body, node.orelse):
        block = IRBlock()
        with frame.into(block, "a branch"):
            run(frame, body)
            for name in fresh:
                if name not in kinds:
                    kinds[name] = _run_time(frame, name, frame.names.get(name, Broken()), "the branch", node.span)
                    known.began.update({name: frame.began[name]} if name in frame.began else {})
            results = [_carry_on(frame, name, kinds[name], known, "the branch", node.span) for name in kinds]
            frame.emit(scf.YieldOp(*results), node.span)
        regions.append(Region(block))
    then, orelse = regions
    op = scf.IfOp(condition.ssa, [value.ssa.type for value in kinds.values()], then, orelse)
    frame.emit(op, node.span)
    for (name, value), result in zip(kinds.items(), op.results, strict=True):
        result.name_hint = name
        frame.names[name] = replace(value, ssa=result)
