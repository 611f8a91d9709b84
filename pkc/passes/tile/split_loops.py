"""The pass `pk-split-loops`: sums over a dimension are divided among several tasks, and added up by others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.arith import ConstantOp, MinSIOp
from xdsl.dialects.builtin import IndexType, IntegerAttr, StringAttr
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.traits import MemoryEffectKind, only_has_effect

from pkc.diagnostics import PkcError
from pkc.dialect.access import LoadOp, StoreOp
from pkc.dialect.coordinates import OVER, BlockCountOp, BlockOp, DimOp
from pkc.dialect.elementwise import AddOp
from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.tile import FullOp, block_type, tile_type
from pkc.dialect.types import Dim, PrivateType, TileType, i32
from pkc.location import span_of
from pkc.passes import plan_errors as errors
from pkc.passes.analysis.axes import block_of_axis
from pkc.passes.analysis.dependence import maker
from pkc.passes.analysis.merging import Merge, merges, yielded
from pkc.passes.build import add_parameter, append, append_copy, before, constant, is_constant
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.shorter_blocks import shorten
from pkc.passes.splits import split_of, split_ops
from pkc.passes.tile.merge_splits import MergingLoop, guard, unbounded
from pkc.remarks import missed

_SPLIT = "split_"

_FEWEST_ROWS = 8
"""Fewer rows of a tile are not worth a task of their own."""

_MANY, _EACH = 32, 8
"""From so many splits on tasks merge so many of them first: 0.3 to 0.5 us each, where another phase takes 3."""


class SplitLoops(KernelPass):
    """Divide each sum over a dimension K among as many tasks as the schedule's `split_K` says.

    A kernel of few tiles leaves SMs idle, however long its loops are. This pass adds a phase before the tasks. Each of
    its tasks runs one split of the iterations and stores its sum in f32 in memory of its rank, `acc.partial`. The tasks
    of the next phase add up the splits in order, and go on with what stood behind the loop. So results are bit-equal
    from run to run, but another number of splits rounds otherwise.

    Maxima, minima and online sums (`pkc/passes/analysis/merging.py`) are shared out as well. Splits of sums begin at
    zero, those of others where the loop does, with what the loop begins with the tasks that merge them begin. While a
    maximum is -inf, whose blocks are all masked, exponents take zero in its place. From 32 splits on tasks of a phase
    between merge eight of them each.

    Before, with `split_K = 4` in the schedule:

        pk.tasks (%i, %j) in (%rows, %columns) {
          %acc = scf.for %t = %zero to %iterations step %one iter_args(%a = %zeros) -> (...) { ... pk.mma ... }
          ... pk.store %c, %C[%m, %n : ...] : ...

    After:

        pk.tasks (%i, %j, %s) in (%rows, %columns, %four) {
          %acc = scf.for %t = %iterations * %s / 4 to %iterations * (%s + 1) / 4 ... { ... pk.mma ... }
          pk.store %acc, %acc_partial[%s, %m, %n : ...] : !pk.tile<64x64xf32>, !pk.private<[4, M, N], f32, padded>
        }
        pk.tasks (%i, %j) in (%rows, %columns) {
          %acc = scf.for %s = %zero to %four step %one iter_args(%a = %zeros) -> (...) {
            %share = pk.load %acc_partial[%s, %m, %n : ...] : ...
            %sum = pk.add %a, %share : !pk.tile<64x64xf32>
            scf.yield %sum : !pk.tile<64x64xf32>
          }
          ... pk.store %c, %C[%m, %n : ...] : ...
    """

    name = "pk-split-loops"

    def run(self, kernel: KernelOp) -> None:
        for dim, splits in _splits(kernel).items():
            if splits > 1:
                _Split(kernel, dim, splits).run()
        for op in kernel.walk():
            op.attributes.pop(OVER, None)


def _splits(kernel: KernelOp) -> Mapping[str, int]:
    found = ((key, value) for key, value in kernel.schedule.items() if key.startswith(_SPLIT))
    return {key.removeprefix(_SPLIT): value.value.data for key, value in found if isinstance(value, IntegerAttr)}


@dataclass(frozen=True)
class _Place:
    """Where a partial sum lies: the dimensions of its array and the indices there, without that of the split."""

    dims: tuple[Dim, ...]
    indices: tuple[SSAValue, ...]
    axes: tuple[SSAValue, ...]
    """Those of the indices that are the blocks of its tile."""


@dataclass(frozen=True)
class _Parts:
    """Tasks that run parts of a loop, the copy of it in them, and the block of their rows."""

    tasks: TasksOp
    loop: scf.ForOp
    rows: SSAValue | None


@dataclass(frozen=True)
class _Split:
    """The loops of a kernel over blocks of `dim`, each divided into `splits`."""

    kernel: KernelOp
    dim: str
    splits: int

    def run(self) -> None:
        loops = list(_loops(self.kernel, self.dim))
        if not loops:
            raise self._refused(self.kernel, f"no loop of this kernel goes through blocks of `{self.dim}`")
        whole = [loop for loop in loops if split_of(loop) is None]
        for loop in loops:
            if loop not in whole:
                missed(
                    SplitLoops.name,
                    loop,
                    f"`{_SPLIT}{self.dim}` leaves this loop as it is: tasks share its iterations already",
                )
        loops = whole
        for loop in loops:
            self._check(loop)
        tasks = [_tasks_of(loop) for loop in loops]
        for loop, around in zip(loops, tasks, strict=True):
            if tasks.count(around) > 1:
                raise self._refused(loop, "these tasks have several such loops")
        for loop in loops:
            self._divide(loop)

    def _refused(self, op: Operation, reason: str) -> PkcError:
        key = f"{_SPLIT}{self.dim}={self.splits}"
        return PkcError(errors.CannotSplit(span_of(op.location), key, self.kernel.sym_name.data, reason))

    def _check(self, loop: scf.ForOp) -> None:
        tasks = loop.parent_op()
        if not isinstance(tasks, TasksOp):
            raise self._refused(loop, "this loop stands in another one, or in a branch")
        if tasks.parent_op() is not self.kernel:
            raise self._refused(loop, "this loop stands in tasks within tasks, or in a role")
        if not is_constant(loop.lb, 0) or not is_constant(loop.step, 1) or not loop.iter_args:
            raise self._refused(loop, "this loop does not begin at the first block, or carries nothing")
        if not all(only_has_effect(op, MemoryEffectKind.READ) for op in _until(loop)):
            raise self._refused(loop, "something is written before this loop, or in it")
        for carried, merge in enumerate(merges(loop)):
            if merge is None or not isinstance(loop.results[carried].type, TileType):
                name = loop.results[carried].name_hint or "something"
                raise self._refused(loop, f"`{name}` is no sum, maximum, minimum or sum that grows with a maximum")
            self._place(loop, carried)

    def _place(self, loop: scf.ForOp, carried: int) -> _Place:
        """Where the partial sums of a loop lie."""
        tasks = _tasks_of(loop)
        result = loop.results[carried]
        name = result.name_hint or "the sum"
        dims: list[Dim] = []
        indices: list[SSAValue] = []
        found: set[SSAValue] = set()
        for axis in range(tile_type(result).rank):
            block = block_of_axis(yielded(loop, carried), axis)
            if block is not None and loop.is_ancestor(maker(block)):
                block = _whole(block, loop)
            if block is None:
                raise self._refused(loop, f"the blocks of axis {axis} of `{name}` are not known")
            dims.append(block_type(block).of)
            indices.append(block)
            if isinstance(block.owner, BlockOp):
                found.add(block.owner.index)
        rest = [index for index in tasks.body.block.args if index not in found]
        more = [most(tasks.counts[index.index]) for index in rest]
        if None in more:
            raise self._refused(loop, "the number of these tasks does not follow from dimensions")
        return _Place((*(dim for dim in more if dim is not None), *dims), (*rest, *indices), tuple(indices))

    def _divide(self, loop: scf.ForOp) -> None:
        tasks, groups = _tasks_of(loop), _groups(self.splits)
        places = [self._place(loop, carried) for carried in range(len(loop.results))]
        how = [one for one in merges(loop) if one is not None]
        partial = self._arrays(loop, places, self.splits, "partial")
        copy = self._in_parts(loop, self.splits, places, partial, how).loop
        for number in unbounded(loop, how):
            guard(copy.body.block, yielded(copy, number))
        if groups == 1:
            self._merge(loop, self.splits, places, partial, how)
        else:
            grouped = self._arrays(loop, places, groups, "group")
            merging = self._merge(loop, groups, places, grouped, how)
            found = self._in_parts(merging, groups, places, grouped, how, self.splits)
            for load in (op for op in found.loop.body.block.ops if isinstance(op, LoadOp)):
                load.operands[0] = partial[grouped.index(load.operands[0])]
            _share_out(found.tasks, found.rows, self.splits // groups)
        _share_out(tasks, _rows(places), self.splits if groups == 1 else groups)

    def _arrays(self, loop: scf.ForOp, places: list[_Place], count: int, name: str) -> list[SSAValue]:
        """An array for each value that a loop carries, with so many of it."""
        found: list[SSAValue] = []
        for place, result in zip(places, loop.results, strict=True):
            kind = PrivateType((count, *place.dims), tile_type(result).element_type, padded=True)
            found.append(add_parameter(self.kernel, f"{result.name_hint or 'sum'}.{name}", kind, loop.location))
        return found

    def _in_parts(
        self,
        loop: scf.ForOp,
        number: int,
        places: list[_Place],
        arrays: list[SSAValue],
        how: list[Merge],
        iterations: int | None = None,
    ) -> _Parts:
        """The tasks up to a loop once more, for each of so many parts of its iterations, or of as many as are given;
        what the loop carries then is stored."""
        whole, known = _tasks_of(loop), dict[SSAValue, SSAValue]()
        count = constant(number)
        before(whole, [count])
        body = Block(arg_types=[*(arg.type for arg in whole.body.block.args), IndexType()])
        for old, new in zip(whole.body.block.args, body.args, strict=False):
            known[old] = new
            new.name_hint = old.name_hint
        split = body.args[-1]
        split.name_hint = "split"
        for op in _until(loop):
            append_copy(body, op, known)
        copy = body.last_op
        assert isinstance(copy, scf.ForOp)
        starts = [_start(value, merge) for value, merge in zip(loop.iter_args, how, strict=True)]
        before(copy, [made for made in starts if made is not None])
        begins = [known.get(a, a) if b is None else b.result for a, b in zip(loop.iter_args, starts, strict=True)]
        last = copy.ub
        if iterations is not None:
            all_of_them = constant(iterations)
            before(copy, [all_of_them])
            last = all_of_them.result
        ops, first, last = split_ops(last, split, count.result)
        before(copy, ops)
        copy.operands = [first, last, copy.step, *begins]
        for place, array, result in zip(places, arrays, copy.results, strict=True):
            append(body, StoreOp(result, array, [split, *(known.get(i, i) for i in place.indices)]), loop.location)
        tasks = TasksOp([*whole.counts, count.result], Region(body))
        before(whole, [tasks])
        rows = _rows(places)
        return _Parts(tasks, copy, rows and known.get(rows))

    def _merge(
        self, loop: scf.ForOp, number: int, places: list[_Place], arrays: list[SSAValue], how: list[Merge]
    ) -> scf.ForOp:
        """In place of the loop: one that merges so many of what it carries, in order."""

        def share(carried: int, split: SSAValue) -> LoadOp:
            return LoadOp(arrays[carried], [split, *places[carried].indices])

        body = MergingLoop(loop, how, share).body
        zero, one, count = constant(0), constant(1), constant(number)
        merging = scf.ForOp(zero.result, count.result, one.result, list(loop.iter_args), body)
        before(loop, [zero, one, count, merging])
        for old, new in zip(loop.results, merging.results, strict=True):
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        loop.detach()
        loop.erase()
        return merging


def _groups(splits: int) -> int:
    """How many tasks merge some of the splits each, for one that merges what these found: each takes its time."""
    return 1 if splits < _MANY else splits // _EACH


def _rows(places: list[_Place]) -> SSAValue | None:
    """The block of the rows of the tiles that a loop carries, if it has one."""
    return next(iter(max((place.axes for place in places), key=len)), None)


def _share_out(tasks: TasksOp, rows: SSAValue | None, times: int) -> None:
    """Let so many times more tasks merge, each some of the rows: one SM loads slowly."""
    block = None if rows is None else rows.owner
    if rows is None or not isinstance(block, BlockOp) or not isinstance(block.index, BlockArgument):
        return
    if block.index.owner is tasks.body.block:
        shorten(tasks, block.index, max(_FEWEST_ROWS, block_type(rows).extent // times))


def _loops(kernel: KernelOp, dim: str) -> Iterator[scf.ForOp]:
    """The loops whose variable numbers blocks of a dimension or constant."""
    return (op for op in kernel.walk() if isinstance(op, scf.ForOp) and dim in goes_through(op))


def goes_through(loop: scf.ForOp) -> list[str]:
    """The names of the dimensions, or of the constant, whose blocks the variable of a loop numbers."""
    users = (use.operation for use in loop.body.block.args[0].uses)
    found = [block_type(op.result).of for op in users if isinstance(op, BlockOp)]
    constant = loop.attributes.get(OVER)
    named = [constant.data] if isinstance(constant, StringAttr) and any(isinstance(dim, int) for dim in found) else []
    return [*(dim for dim in found if isinstance(dim, str)), *named]


def _tasks_of(loop: scf.ForOp) -> TasksOp:
    tasks = loop.parent_op()
    assert isinstance(tasks, TasksOp)
    return tasks


def _until(loop: scf.ForOp) -> Iterator[Operation]:
    """The operations of its tasks from the first one to a loop."""
    for op in _tasks_of(loop).body.block.ops:
        yield op
        if op is loop:
            return


def _whole(block: SSAValue, loop: scf.ForOp) -> SSAValue | None:
    """The only block of a dimension in front of a loop, for one that the loop makes; None if it is not the only one."""
    kind = block_type(block)
    if kind.of != kind.extent:
        return None
    zero = constant(0)
    made = BlockOp(zero.result, kind)
    before(loop, [zero, made])
    return made.result


def _start(value: SSAValue, merge: Merge) -> FullOp | None:
    """With what the splits begin in place of the loop's own value, which is added once."""
    if merge.combine is not AddOp or (isinstance(value.owner, FullOp) and value.owner.constant == 0):
        return None
    kind = tile_type(value)
    return FullOp(0 if kind.element_type == i32 else 0.0, kind)


def most(count: SSAValue) -> Dim | None:
    """A dimension that is at least as long as one index of tasks has values."""
    made = count.owner
    if isinstance(made, DimOp):
        return made.dim.data
    if isinstance(made, MinSIOp):
        found = [dim for dim in map(most, made.operands) if dim is not None]
        return min(found, key=lambda dim: (isinstance(dim, str), dim), default=None)
    if isinstance(made, ConstantOp) and isinstance(made.value, IntegerAttr):
        return made.value.value.data
    return made.block.of if isinstance(made, BlockCountOp) else None
