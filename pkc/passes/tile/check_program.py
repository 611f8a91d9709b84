"""The pass `pk-check-program`: rules that no operation can check by itself."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import chain
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.arith import IndexCastOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import is_side_effect_free

from pkc.diagnostics import Diagnostic, Label, PkcError
from pkc.dialect.access import (
    READING,
    AccumulateOp,
    AllReduceOp,
    LoadOp,
    ReadOp,
    ReduceOp,
    StoreAddOp,
    StoreOp,
    places_of,
)
from pkc.dialect.arrays import is_pgl
from pkc.dialect.by_table import ScatterAccumulateOp, ScatterStoreAddOp, ScatterStoreOp
from pkc.dialect.coordinates import RankOp
from pkc.dialect.counters import BarrierOp, RaiseOp, SignalAllOp, SignalOp, WaitOp
from pkc.dialect.names import task_variable
from pkc.dialect.program import KernelOp, RoleOp, TasksOp
from pkc.dialect.tile import SplatOp
from pkc.dialect.types import Layout
from pkc.location import NOWHERE, Span, span_of
from pkc.passes import errors
from pkc.passes.analysis.apart import are_apart
from pkc.passes.analysis.dependence import (
    differs_by_rank,
    enclosing_tasks,
    guards,
    is_one,
    role_around,
    sources,
)
from pkc.passes.analysis.value_numbers import ValueNumbers

_STORES = (StoreOp, StoreAddOp, ScatterStoreOp, ScatterStoreAddOp)
_SUMS = (AccumulateOp, ScatterAccumulateOp)
_WRITES = (*_STORES, *_SUMS, AllReduceOp)
_SENDS = (SignalOp, SignalAllOp, RaiseOp, BarrierOp)
_COUNTERS = (*_SENDS, WaitOp)

_Op = TypeVar("_Op", bound=Operation)


class CheckProgram(ModulePass):
    """Refuse programs that break a rule of the whole; every finding at its line.

    Refused, since the tasks (%i, 0), (%i, 1), ... all write row block %m of C:

        pk.tasks (%i, %j) in (%rows, %columns) {
          %m = pk.block[%i] : !pk.block<M by 128>
          %t = pk.full 0.0 : f32 : !pk.tile<128xf32>
          pk.store %t, %C[%m : !pk.block<M by 128>] : !pk.tile<128xf32>, !pk.private<[M], f32>
        }

        error[PK401]: two tasks write the same elements of `C`

    Accepted with `in (%rows)`; the IR is never changed.
    """

    name = "pk-check-program"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        found = [finding for finding in check(op) if finding.severity == "error"]
        if found:
            raise PkcError(*found)


def check(module: ModuleOp) -> list[Diagnostic]:
    """All findings in a module, in the order of the source: errors and warnings."""
    kernels = [op for op in module.body.block.ops if isinstance(op, KernelOp)]
    found = chain.from_iterable(rule(kernel) for kernel in kernels for rule in _RULES)
    return sorted(found, key=lambda finding: finding.span.start)


# Writing


def _overlapping_tasks(kernel: KernelOp) -> Iterator[Diagnostic]:
    for store in _all(kernel, StoreOp, ScatterStoreOp):
        known = sources((*places_of(store), *_given(store.rank), *guards(store)))
        for tasks in enclosing_tasks(store):
            free = [
                (number, index)
                for number, (index, count) in enumerate(zip(tasks.body.block.args, tasks.counts, strict=True))
                if index not in known and not is_one(count)
            ]
            if not free:
                continue
            also = (Label(_span(tasks), "these tasks"),)
            yield errors.TasksOverlap(_span(store), _name(kernel, store.array), _index_name(*free[0]), also=also)
            break


def _overlapping_ranks(kernel: KernelOp) -> Iterator[Diagnostic]:
    for store in _all(kernel, StoreOp, ScatterStoreOp):
        if role_around(store) is not None or not (
            is_pgl(store.array, Layout.Shard) or is_pgl(store.array, Layout.Replicate)
        ):
            continue
        counts = chain.from_iterable(tasks.counts for tasks in enclosing_tasks(store))
        if not any(map(differs_by_rank, sources((*places_of(store), *guards(store), *counts)))):
            copies = is_pgl(store.array, Layout.Replicate)
            own = "leave `.replicate()` out where each rank stores the same to an array of its own; " * copies
            yield errors.RanksOverlap(_span(store), _name(kernel, store.array), own)


def _nothing_written(kernel: KernelOp) -> Iterator[Diagnostic]:
    written = (op.array for op in _all(kernel, *_WRITES))
    if not any(isinstance(array, BlockArgument) and not kernel.is_scratch(array) for array in written):
        yield errors.WritesNothing(_span(kernel), kernel.sym_name.data)


# Phases


def _phases(kernel: KernelOp) -> Iterator[Diagnostic]:
    places = _Places(kernel)
    for tasks in _all(kernel, TasksOp):
        if not enclosing_tasks(tasks) and role_around(tasks) is None:
            yield from _phase(kernel, tasks, places)


def _phase(kernel: KernelOp, tasks: TasksOp, places: _Places) -> Iterator[Diagnostic]:
    sums = {op.array: op for op in reversed(_all(tasks, *_SUMS))}
    for store in _all(tasks, *_STORES):
        if store.array in sums:
            also = (Label(_span(sums[store.array]), "summed here"),)
            yield errors.StoredAndSummed(_span(store), _name(kernel, store.array), also=also)
    writes = _first_at_places(tasks, places)
    for read in _all(tasks, *READING):
        if read.array in sums:
            also = (Label(_span(sums[read.array]), "summed here"),)
            yield errors.SumReadInPhase(_span(read), _name(kernel, read.array), also=also)
            continue
        at = places.of(read)
        # A task surely reads only what it writes itself if all writes are at the place of the read, or never there.
        found = (op for op, place in writes.get(read.array, ()) if at is None or place != at)
        clash = next((op for op in found if not are_apart(read, op)), None)
        if clash is not None:
            also = (Label(_span(clash), "written here"),)
            yield errors.ReadAndWritten(_span(read), _name(kernel, read.array), _hint(kernel, read, clash), also=also)


def _hint(kernel: KernelOp, read: Operation, write: Operation) -> str:
    """What else can be done than to write elsewhere, or to read later."""
    if isinstance(read, ReduceOp):
        return f"; a statement `all_reduce({_name(kernel, read.array)}[...])` sums all copies in place" * _is_sum(read)
    if not _is_of_task(read, write):
        return ""
    return errors.PICKED if _stands_before(read, write) else errors.COLLECTED


def _is_sum(read: ReduceOp) -> bool:
    return read.by is None


def _is_of_task(read: Operation, write: Operation) -> bool:
    """Whether a read and a write are in places of their task alone, as far as their indices say."""
    if not isinstance(read, LoadOp | ReadOp) or not isinstance(write, StoreOp | StoreAddOp):
        return False
    if read.rank is not None or write.rank is not None:
        return False
    numbers = ValueNumbers(enclosing_tasks(write)[-1])
    dims = zip(read.indices, write.indices, strict=True)
    both = sources([one for one, other in dims if numbers[one] == numbers[other]])
    return all(index in both or is_one(n) for t in enclosing_tasks(write) for index, n in _counted(t))


def _counted(tasks: TasksOp) -> Iterator[tuple[SSAValue, SSAValue]]:
    """The indices of tasks, each with how many there are."""
    return zip(tasks.body.block.args, tasks.counts, strict=True)


def _stands_before(read: Operation, write: Operation) -> bool:
    """Whether a read stands before a write in the text."""
    return _span(read).start < _span(write).start


class _Places:
    """Where reads and stores of a kernel are: equal only if a task surely meets the same elements."""

    def __init__(self, kernel: KernelOp) -> None:
        self._numbers = ValueNumbers(kernel)

    def of(self, op: Operation) -> Hashable | None:
        """The place of an operation that has one: not of sums, of gathers and of reductions."""
        if not isinstance(op, ReadOp | LoadOp | StoreOp | StoreAddOp):
            return None
        # Without a rank an access is to this rank's copy.
        here = op.rank is None or isinstance(op.rank.owner, RankOp)
        return self._numbers.all(op.indices), None if here or op.rank is None else self._numbers[op.rank]


def _first_at_places(tasks: TasksOp, places: _Places) -> dict[SSAValue, list[tuple[Operation, Hashable | None]]]:
    """For each array its first write at each place."""
    found: dict[SSAValue, dict[Hashable | None, Operation]] = {}
    for op in _all(tasks, *_WRITES):
        found.setdefault(op.array, {}).setdefault(places.of(op), op)
    return {array: [(op, place) for place, op in known.items()] for array, known in found.items()}


# Tasks, roles and signals


def _misplaced_tasks(kernel: KernelOp) -> Iterator[Diagnostic]:
    for tasks in _all(kernel, TasksOp):
        outer = enclosing_tasks(tasks)
        if outer and outer[0] is not tasks.parent_op():
            what = "branch" if isinstance(tasks.parent_op(), scf.IfOp) else "loop"
            hint = "put the `if` into the inner `tasks`; " if what == "branch" else ""
            yield errors.MisplacedTasks(_span(tasks), what, hint, also=(Label(_span(outer[0]), "the outer `tasks`"),))


def _beside_roles(kernel: KernelOp) -> Iterator[Diagnostic]:
    role = next(iter(_all(kernel, RoleOp)), None)
    if role is None:
        return
    for op in kernel.body.block.ops:
        if isinstance(op, (RoleOp, *_COUNTERS)) or (is_side_effect_free(op) and not _all(op, TasksOp)):
            continue
        yield errors.BesideRoles(_span(op), also=(Label(_span(role), "a role of this kernel"),))


def _signals(kernel: KernelOp) -> Iterator[Diagnostic]:
    sent = {op.signal for op in _all(kernel, *_SENDS)}
    for op in _all(kernel, *_COUNTERS):
        if role_around(op) is None:
            yield errors.OutsideRole(_span(op), op.name.removeprefix("pk."))
        elif isinstance(op, WaitOp) and op.signal not in sent:
            yield errors.WaitNeverSignalled(_span(op), _name(kernel, op.signal))


# Parameters


def _undefined_scratch(kernel: KernelOp) -> Iterator[Diagnostic]:
    written = {op.array for op in _all(kernel, *_STORES, *_SUMS)}
    first_reads = {op.array: op for op in reversed(_all(kernel, *READING, AllReduceOp))}
    for array in kernel.body.block.args:
        if not kernel.is_scratch(array) or array in written:
            continue
        read = first_reads.get(array)
        if read is not None:
            also = (Label(_argument_span(kernel, array), "declared here"),)
            yield errors.UndefinedScratch(_span(read), kernel.argument_name(array), also=also)


def _unused_parameters(kernel: KernelOp) -> Iterator[Diagnostic]:
    for arg in kernel.body.block.args:
        if not _is_used(arg):
            name = kernel.argument_name(arg)
            yield errors.UnusedParameter(_argument_span(kernel, arg), name, kernel.sym_name.data)


_RULES = (
    _overlapping_tasks,
    _overlapping_ranks,
    _nothing_written,
    _phases,
    _misplaced_tasks,
    _beside_roles,
    _signals,
    _undefined_scratch,
    _unused_parameters,
)


def _all(op: Operation, *kinds: type[_Op]) -> list[_Op]:
    return [inner for inner in op.walk() if isinstance(inner, kinds)]


def _is_used(value: SSAValue) -> bool:
    """Whether anything uses a parameter, its conversion by the frontend aside, which comes before any use."""
    users = [use.operation for use in value.uses]
    return any(not isinstance(op, SplatOp | IndexCastOp) or bool(op.results[0].uses) for op in users)


def _given(value: SSAValue | None) -> tuple[SSAValue, ...]:
    return () if value is None else (value,)


def _span(op: Operation) -> Span:
    return span_of(op.location)


def _argument_span(kernel: KernelOp, arg: BlockArgument) -> Span:
    span = span_of(arg.location)
    return span if span is not NOWHERE else _span(kernel)


def _name(kernel: KernelOp, value: SSAValue) -> str:
    """The name in the source of an array or signal."""
    if isinstance(value, BlockArgument) and value.owner is kernel.body.block:
        return kernel.argument_name(value)
    return value.name_hint or "?"


def _index_name(number: int, index: SSAValue) -> str:
    name, _ = task_variable(index)
    return f"`{name}`" if name else f"index {number + 1} of the tasks"
