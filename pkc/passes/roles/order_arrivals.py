"""The pass `pk-order-arrivals`: lists of tasks whose rows tables name begin with tasks for rows of their rank."""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, ModuleOp, StringAttr
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.traits import is_side_effect_free

from pkc.dialect.access import LOADS, LoadOp, ReadOp
from pkc.dialect.arrays import array_type
from pkc.dialect.attributes import Role
from pkc.dialect.by_table import GatherOp
from pkc.dialect.coordinates import BlockCountOp, BlockOp, BlockPositionOp, DimOp, RankOp, RotateOp
from pkc.dialect.counters import RaiseOp, SignalOp, WaitOp
from pkc.dialect.program import COMM_SMS, KernelOp, TasksOp
from pkc.dialect.tile import AnyMmaOp, block_type, tile_type
from pkc.dialect.types import BlockType
from pkc.location import describe
from pkc.passes.analysis.dependence import role_around, sources
from pkc.passes.build import before, computes
from pkc.passes.integers import Integers
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.program_slices import can_copy
from pkc.passes.roles.fetches import await_before
from pkc.passes.roles.order_tasks import OrderExplanation
from pkc.passes.roles.plan_overlap import ORDER
from pkc.remarks import missed
from pkc.targets.target import target_of


class OrderArrivals(KernelPass):
    """Let the first lists of tasks do their tasks for rows of this rank in a round before all others, while the rows of
    other ranks come.

    Tables name rows in their order as a rule, so that those of this rank are its share of a list: of the blocks of rank
    1 of 2, the second half. A list leads if some rows of that share, the first and the last among them, are this
    rank's. As many lead as are computed while the other rows are fetched: for each row that takes as long as a matmul
    of one row and `arrival_columns` columns. More would load what all blocks of a list share, such as an expert's
    weights, once more than they save; so would lists with few blocks (`leading_blocks`).

    What a table names decides only about the time: a task of the first round waits if it names a row of another rank,
    and before the last round all wait, once. Such a task is one too many, though: its CTA is late from then on, and
    loads what it shares with others by itself. A dispatch of 32,768 tokens to 256 experts on 2 GPUs took 8.4 ms with
    shares that had a row of the other rank here and there, 6.2 with waits for none, and 6.5 without a first round.

    Before:

        pk.wait %X_ready[%zero] for %all : !pk.signal<[1]>
        pk.tasks (%e) in (%experts) {
          %n = pk.read %count[%e] : ...
          %blocks = pk.block_count <P by 128> to %n
          pk.tasks (%i, %j) in (%blocks, %columns) {
            %p = pk.block[%i] to %n : !pk.block<P by 128>
            %rows = pk.load %table[%e, %p : ...]
            ... pk.gather %X_fetched local %X rows %rows[...]

    After:

        %lists = arith.addi %leaders, %experts : index
        pk.tasks (%list) in (%lists) {
          %in_first_round = arith.cmpi slt, %list, %leaders : index
          %e = arith.select %in_first_round, %list, %list_minus_leaders : index
          %n = pk.read %count[%e] : ...
          %blocks = pk.block_count <P by 128> to %n
          %leading = scf.if %early -> (index) { ... pk.read %table[%e, %first] ... } else { ... }
          scf.if %begins_last_round {
            pk.wait %X_ready[%zero] for %all : !pk.signal<[1]>
          }
          %some = arith.subi %end, %begin : index
          pk.tasks (%i, %j) in (%some, %columns) {
            %0 = arith.addi %i, %begin : index
            %1 = pk.rotate %0 by %share of %blocks
            %p = pk.block[%1] to %n : !pk.block<P by 128>
            %rows = pk.load %table[%e, %p : ...]
            scf.if %in_first_round {
              pk.wait %X_ready[%zero] rows %rows : !pk.tile<128xi32> of <T by 128> for %all : !pk.signal<[1]>
            }
            ...
    """

    name = "pk-order-arrivals"

    def run(self, kernel: KernelOp) -> None:
        order = kernel.attributes.get(ORDER)
        if not isinstance(order, StringAttr) or order.data == "natural":
            return
        for tasks in list(kernel.walk()):
            if not isinstance(tasks, TasksOp) or tasks.outermost is not tasks or not computes(tasks, kernel):
                continue
            gathers = [op for op in tasks.walk() if isinstance(op, GatherOp) and op.local is not None]
            if not gathers:
                continue
            obstacle = _obstacle(kernel, tasks, gathers)
            if obstacle:
                missed(self.name, tasks, f"all tasks wait for the rows of other ranks: {obstacle}")
            else:
                _Lists(tasks, gathers).order()


OWN_FIRST = "own_rows_first"
"""The order of lists that begin with rows of their rank."""


def explain_arrivals(module: ModuleOp) -> list[OrderExplanation]:
    """The lists of tasks that the pass has ordered."""
    waits = [op for op in module.walk() if isinstance(op, WaitOp) and op.rows is not None]
    why = "as many lists begin with rows of this rank as are computed while those of others come"
    return [OrderExplanation(place, OWN_FIRST, why) for place in dict.fromkeys(describe(op.location) for op in waits)]


_PARTS = 3
"""Parts of this rank's share of a list whose first rows are looked at."""


def _obstacle(kernel: KernelOp, tasks: TasksOp, gathers: list[GatherOp]) -> str:
    """Why no list of a set of tasks can lead; empty if some can."""
    if not kernel.scheduled_number(COMM_SMS) and not any(role.role.data is Role.CopyEngine for role in kernel.roles):
        return "threads of the same SMs fetch them (`comm_sms`), and leave no registers for more"
    inner = [op for op in tasks.walk() if isinstance(op, TasksOp) and op is not tasks]
    if len(inner) != 1 or inner[0].parent_op() is not tasks:
        return "their tasks are no lists" if not inner else "each list has several sets of tasks"
    if not all(op in inner or isinstance(op, LOADS) or is_side_effect_free(op) for op in tasks.body.block.ops):
        return "lists have statements beside their tasks"
    index, *others = {_row_index(inner[0], op) for op in gathers}
    if others or index is None:
        return "no index of theirs alone says which rows their tables name"
    if not all(_can_be_read_ahead(inner[0], op) for op in gathers):
        return "their tables are computed, or written by tasks"
    if not can_copy(_other_counts(inner[0], index), ()):
        return "lists differ in their columns"
    if not any(isinstance(op, AnyMmaOp) for op in inner[0].walk()):
        return "without a matmul they take no longer than the link"
    return ""


def _row_index(inner: TasksOp, op: GatherOp) -> BlockArgument | None:
    """The one index of tasks that says which entries of a table name the rows."""
    needed = sources([op.rows])
    found = [index for index in inner.body.block.args if index in needed]
    return found[0] if len(found) == 1 else None


def _other_counts(inner: TasksOp, index: BlockArgument | None) -> list[SSAValue]:
    return [count for at, count in zip(inner.body.block.args, inner.counts, strict=True) if at is not index]


def _can_be_read_ahead(inner: TasksOp, op: GatherOp) -> bool:
    """Whether rows that a table names can be looked at before the tasks of a list."""
    table = op.rows.owner
    if not isinstance(table, LoadOp) or table.rank is not None:
        return False
    if not all(isinstance(use.operation, LOADS) for use in table.array.uses):
        return False
    bounds = [operand for place in table.indices for operand in _bounds(place)]
    return not any(argument in sources(bounds) for argument in inner.body.block.args)


def _bounds(place: SSAValue) -> list[SSAValue]:
    block = place.owner
    return [place] if not isinstance(block, BlockOp) else [at for at in (block.start, block.stop) if at is not None]


class _Lists:
    """A set of tasks in lists, and the gathers in these."""

    def __init__(self, tasks: TasksOp, gathers: list[GatherOp]) -> None:
        self._tasks, self._gathers = tasks, gathers
        (self._inner,) = (op for op in tasks.body.block.ops if isinstance(op, TasksOp))
        index = _row_index(self._inner, gathers[0])
        assert index is not None
        self._index, self._blocks = index, self._inner.counts[index.index]
        self._tuning = target_of(tasks).tuning

    def order(self) -> None:
        tasks, inner = self._tasks, self._inner
        numbers, outside = list(self._index.uses), Integers(tasks)
        ranks, rank, one = outside.made(DimOp("ranks")), outside.made(RankOp()), outside.number(1)
        columns = outside.most(self._columns(outside), one)
        wanted = outside.times(self._foreign_blocks(outside, ranks), outside.number(self._tuning.arrival_columns))
        total = outside.product(tasks.counts)
        enough = self._tuning.leading_blocks
        most = outside.over(wanted, outside.times(columns, outside.number(enough)))
        leaders = outside.least(total, most)

        number, in_first = self._number_lists(outside.plus(leaders, total), leaders)
        build = Integers(inner)
        zero = build.number(0)
        share, leading = self._share(build, ranks, rank, number, most)
        begin = build.chosen(in_first, zero, leading)
        end = build.chosen(in_first, leading, self._blocks)
        some = build.minus(end, begin)
        inner.operands = [some if at == self._index.index else count for at, count in enumerate(inner.counts)]

        first = inner.body.block.first_op
        assert first is not None
        inside = Integers(first)
        at = inside.made(RotateOp(inside.plus(self._index, begin), share, self._blocks))
        for use in numbers:
            use.operation.operands[use.index] = at
        begins = build.compare("eq", tasks.body.block.args[0], leaders)
        self._wait(begins, in_first)

    def _number_lists(self, rounds: SSAValue, leaders: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Number the lists of both rounds in one; the number of a list in its round, and whether that is the first."""
        tasks = self._tasks
        counts, indices = list(tasks.counts), list(tasks.body.block.args)
        tasks.operands = [rounds]
        every = tasks.body.block.insert_arg(IndexType(), 0)
        every.name_hint = "list"
        first = tasks.body.block.first_op
        assert first is not None
        build = Integers(first)
        in_first = build.compare("slt", every, leaders)
        number = build.chosen(in_first, every, build.minus(every, leaders))
        rest = number
        for at in reversed(range(len(indices))):
            value = rest
            if at:
                value = build.made(arith.RemSIOp(rest, counts[at]))
                rest = build.over(rest, counts[at])
            value.name_hint = indices[at].name_hint
            indices[at].replace_all_uses_with(value)
            tasks.body.block.erase_arg(indices[at])
        return number, in_first

    def _columns(self, build: Integers) -> SSAValue:
        """How many columns the matmuls of a row of a list have together."""
        matmuls = [op for op in self._inner.walk() if isinstance(op, AnyMmaOp)]
        columns = build.number(sum(tile_type(op.result).shape[-1] for op in matmuls))
        counts = (build.copied(count, {}) for count in _other_counts(self._inner, self._index))
        return build.product([columns, *counts])

    def _foreign_blocks(self, build: Integers, ranks: SSAValue) -> SSAValue:
        """How many rows come from other ranks, in blocks of a gathered tile."""
        kind = _rows_of(self._gathers[0])
        each = build.made(BlockCountOp(kind, shard=build.number(0), sharded=True))
        return build.times(build.minus(ranks, build.number(1)), each)

    def _share(
        self, build: Integers, ranks: SSAValue, rank: SSAValue, number: SSAValue, most: SSAValue
    ) -> tuple[SSAValue, SSAValue]:
        """The first block of a list that comes in the first round, and how many do: of lists as long as this one as
        many as `most` of the shortest have."""
        zero, one, least = build.number(0), build.number(1), build.number(self._tuning.leading_blocks)
        begin = build.over(build.plus(build.times(self._blocks, rank), build.minus(ranks, one)), ranks)
        end = build.over(build.times(self._blocks, build.plus(rank, one)), ranks)
        own = build.minus(end, begin)
        early = build.both(
            build.compare("sge", own, least),
            build.compare("slt", build.times(number, own), build.times(most, least)),
        )
        looked, others = scf.YieldOp(zero), scf.YieldOp(zero)
        branch = scf.IfOp(early, [IndexType()], Region(Block([looked])), Region(Block([others])))
        looked.location = others.location = self._inner.location
        looks = Integers(looked)
        beyond = looks.minus(own, one)
        leads = self._is_own(looks, ranks, rank, looks.plus(begin, beyond), of_end=True)
        for part in range(_PARTS):
            block = looks.plus(begin, looks.over(looks.times(beyond, looks.number(part)), looks.number(_PARTS)))
            leads = looks.both(leads, self._is_own(looks, ranks, rank, block, of_end=False))
        looked.operands = [looks.chosen(leads, own, zero)]
        return begin, build.made(branch)

    def _is_own(self, build: Integers, ranks: SSAValue, rank: SSAValue, number: SSAValue, *, of_end: bool) -> SSAValue:
        """Whether the first or the last row that a block of a table names is this rank's."""
        gather = self._gathers[0]
        table = gather.rows.owner
        assert isinstance(table, LoadOp)
        places: list[SSAValue] = []
        for place, dim in zip(table.indices, array_type(table.array).dimensions, strict=True):
            block = place.owner
            if isinstance(block, BlockOp):
                there = build.made(block.clone(value_mapper={self._index: number}))
                place = build.made(BlockPositionOp(there))
                if of_end:
                    stop = build.length(dim)
                    stop = stop if block.stop is None else build.least(stop, block.stop)
                    whole = build.plus(place, build.number(block_type(block.result).extent))
                    place = build.minus(build.least(whole, stop), build.number(1))
            places.append(place)
        row = build.made(ReadOp(table.array, places))
        extent = build.length(array_type(gather.array).dimensions[0])
        shard = build.over(build.plus(extent, build.minus(ranks, build.number(1))), ranks)
        first = build.times(shard, rank)
        return build.both(build.compare("sge", row, first), build.compare("slt", row, build.plus(first, shard)))

    def _wait(self, begins: SSAValue, in_first: SSAValue) -> None:
        """Wait before the last round, and before it in tasks that name rows of other ranks."""
        for wait, gathers in self._waits().items():
            for op in gathers:
                anchor, named = self._table_for_itself(op)
                before(anchor, [_wait_if(in_first, wait, named, _rows_of(op))])
            before(self._inner, [_wait_if(begins, wait)])
            wait.detach()
            wait.erase()

    def _table_for_itself(self, op: GatherOp) -> tuple[Operation, SSAValue]:
        """An operation before which the rows of a gather are not yet read, and the same rows there: addresses of rows,
        which take many registers, are not kept across a wait."""
        table = op.rows.owner
        if not isinstance(table, LoadOp) or table.parent is not self._inner.body.block:
            return await_before(op, [op.rows]), op.rows
        copy = table.clone()
        before(table, [copy])
        return table, copy.result

    def _waits(self) -> dict[WaitOp, list[GatherOp]]:
        """The waits for all rows before these tasks, and one gather for each table of each of them."""
        found: dict[WaitOp, dict[SSAValue, GatherOp]] = {}
        for op in self._gathers:
            fillers = [role_around(use.operation) for use in op.array.uses]
            signals = {
                sent.signal
                for role in fillers
                if role is not None
                for sent in role.walk()
                if isinstance(sent, RaiseOp | SignalOp)
            }
            assert self._tasks.parent is not None
            (wait,) = (w for w in self._tasks.parent.ops if isinstance(w, WaitOp) and w.signal in signals)
            found.setdefault(wait, {}).setdefault(op.rows, op)
        return {wait: list(tables.values()) for wait, tables in found.items()}


def _rows_of(op: GatherOp) -> BlockType:
    return BlockType(array_type(op.array).dimensions[0], tile_type(op.result).shape[0])


def _wait_if(condition: SSAValue, wait: WaitOp, rows: SSAValue | None = None, of: BlockType | None = None) -> scf.IfOp:
    op = WaitOp(wait.signal, list(wait.indices), wait.count, rows, of)
    end = scf.YieldOp()
    op.location = end.location = wait.location
    return scf.IfOp(condition, [], Region(Block([op, end])), Region())
