"""What is fetched together: the fetches of one counter, the loops that fetch their tiles, what a counter stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects import arith, scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from pkc.dialect.access import LoadOp
from pkc.dialect.arrays import array_type
from pkc.dialect.by_table import GatherOp
from pkc.dialect.coordinates import BlockCountOp, BlockIndexOp, BlockOp, OwnerOp
from pkc.dialect.fetch import FetchOp
from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import ClipOp, block_type
from pkc.dialect.types import BlockType, PrivateType
from pkc.passes.analysis.dependence import ancestors, sources
from pkc.passes.analysis.multiples import multiple_of
from pkc.passes.build import constant, defined_in
from pkc.passes.program_slices import CannotCopyError, Known, copy_nest, copy_value, iterations_of, variables
from pkc.passes.roles.pushes import Push, ring_of
from pkc.passes.roles.remote_accesses import Read, address, array_name, planned, shard_of
from pkc.passes.roles.straddling import straddles
from pkc.passes.tile_groups import TileGroups, counter_ops, groups_along, repeats


@dataclass(frozen=True)
class Fetch:
    """The fetches of one counter: of arrays that are fetched side by side, or of one that is read at several places."""

    ops: Sequence[FetchOp]

    @property
    def first(self) -> FetchOp:
        return self.ops[0]

    @property
    def read(self) -> Read:
        """The first remote read: its loops are those that fetch the tiles."""
        return read_of(self.first)

    @property
    def by_buffer(self) -> list[FetchOp]:
        """One fetch for each receive buffer."""
        found: dict[SSAValue, FetchOp] = {}
        for op in self.ops:
            found.setdefault(op.buffer, op)
        return list(found.values())

    @property
    def sites(self) -> list[list[FetchOp]]:
        """The fetches by where they stand: those of one place are awaited together. Arrays of fewer dimensions lie at
        the first indices of the others."""
        found: dict[tuple[object, ...], list[FetchOp]] = {}
        few = min(len(op.places) for op in self.ops)
        for op in self.ops:
            found.setdefault((op.parent, *op.places[:few]), []).append(op)
        return list(found.values())

    @property
    def names(self) -> str:
        """The arrays, as a user is told."""
        return " and ".join(f"`{array_name(read_of(op).array)}`" for op in self.by_buffer)

    @property
    def whole(self) -> bool:
        """Whether nothing is announced before all has arrived."""
        return planned(self.read) == "none"

    @cached_property
    def loops(self) -> list[SSAValue]:
        """The variables of the loops and tasks on which the tiles depend, outermost first."""
        return variables(self.read, address(self.read))

    @cached_property
    def groups(self) -> TileGroups:
        return groups_of(self.read, self.first.places, self.loops)

    @property
    def again(self) -> list[SSAValue]:
        """The innermost loops, which fetch the tiles of one counter."""
        return [] if self.whole else comes_back(self.groups, self.first.places, self.loops)

    @property
    def inner(self) -> list[SSAValue]:
        """The variables of loops, outermost first."""
        return [variable for variable in self.loops if not is_task(variable)]

    @property
    def spread(self) -> list[SSAValue]:
        """The loops whose iterations are shared out among CTAs."""
        number = self.first.spread
        return [] if number is None else self.inner[: number.value.data]

    @property
    def group(self) -> int:
        """How many tiles of the innermost loop are announced at once; 0 for all of a counter."""
        number = self.first.group
        return 0 if number is None else number.value.data

    @property
    def by_group(self) -> bool:
        """Whether one CTA fetches all tiles of a group, and others those of other groups."""
        return bool(self.group and self.again) and self.again[-1] not in self.spread

    @cached_property
    def ring(self) -> Push | None:
        """One loop over all blocks, if tiles are read in a loop over ranks and one over each rank's blocks."""
        return ring_of(self.read, self.loops)

    @property
    def listed_ring(self) -> Push | None:
        """The same, if CTAs share out that one loop."""
        return self.ring if self.ring is not None and self.ring.over in self.spread else None

    @property
    def straddling(self) -> SSAValue | None:
        """The reader's block of the sharded dimension, if it may straddle shards."""
        index = split_index(self.first)
        return index if index is not None and straddles(index) else None

    @property
    def along_shards(self) -> int | None:
        """The place of the blocks of shards that the innermost loop goes through, if a group is of some of these; None
        if a counter is for all tiles of that loop, or if blocks straddle shards."""
        index = split_index(self.first)
        block = index.owner if index is not None else None
        if not isinstance(block, BlockOp) or block.sharded is None or self.again or not self.inner or self.whole:
            return None
        place = list(self.first.places).index(block.result)
        return place if block.index is self.inner[-1] and place in self.groups.places else None

    def counter(self, op: FetchOp) -> list[SSAValue]:
        """The indices that say which counter a fetch waits for."""
        return [op.places[place] for place in self.groups.places]

    def counter_ops(self, counter: Sequence[SSAValue]) -> tuple[list[Operation], list[SSAValue]]:
        """Operations that find the counter of these indices, and its indices; blocks of a shard that are a group are
        one longer block."""
        place = self.along_shards if self.group else None
        if place is None:
            return counter_ops(counter)
        ops: list[Operation] = []
        values: list[SSAValue] = []
        for index in counter:
            longer = counter.index(index) == self.groups.places.index(place)
            found = (
                [BlockIndexOp(index, self.longer(block_type(index)), sharded=True)]
                if longer
                else counter_ops([index])[0]
            )
            ops += found
            values.append(found[-1].results[0] if found else index)
        return ops, values

    def longer(self, block: BlockType) -> BlockType:
        """The block that a group of blocks is."""
        return BlockType(block.of, block.extent * self.group)


def fetches(kernel: KernelOp) -> list[Fetch]:
    """All that is fetched in a kernel."""
    found: dict[SSAValue, list[FetchOp]] = {}
    for op in kernel.walk():
        if isinstance(op, FetchOp):
            found.setdefault(op.ready, []).append(op)
    return [Fetch(ops) for ops in found.values()]


def read_of(op: FetchOp) -> Read:
    read = op.tile.owner
    assert isinstance(read, Read)
    return read


def split_index(op: FetchOp) -> SSAValue | None:
    """The index of the sharded dimension; none for a gather, whose rows a table names."""
    read = read_of(op)
    return None if isinstance(read, GatherOp) else read.indices[shard_of(read.array)]


def can_fetch(read: Read, *, whole: bool = False) -> bool:
    """Whether somebody else can know the address of a read, and when a counter's tiles are complete."""
    scratch, known = Block(), Known()
    try:
        _, places = buffer_of(read)
        loops = variables(read, address(read))
        if has_shared_tiles(read):
            return False
        if not whole:
            comes_back(groups_of(read, places, loops), places, loops)
        body = copy_nest(scratch, read, loops, known)
        for value in (*address(read), *places):
            copy_value(body, value, known)
    except CannotCopyError:
        return False
    finally:
        for op in list(scratch.ops):
            scratch.erase_op(op, safe_erase=False)
    return True


def has_shared_tiles(read: Read) -> bool:
    """Whether several tasks or iterations have the same tile, as heads of queries that share a head of keys do: each
    would fetch it."""
    return any(_repeats(address(read), variable) for variable in variables(read, address(read)))


def _repeats(values: Sequence[SSAValue], variable: SSAValue) -> bool:
    """Whether values are the same for several values of a variable, each of which would fetch the same tiles: they
    depend on quotients or remainders of it alone, and not on both."""
    divided: set[tuple[bool, SSAValue, SSAValue]] = set()
    todo, seen = list(values), set[SSAValue]()
    while todo:
        value = todo.pop()
        if value is variable:
            return False
        if value in seen:
            continue
        seen.add(value)
        match value.owner:
            case arith.RemSIOp() | arith.DivSIOp() | arith.FloorDivSIOp() as op if not _is_exact(op):
                if variable in sources([op.lhs]):
                    divided.add((isinstance(op, arith.RemSIOp), op.lhs, op.rhs))
            case Operation() as op:
                todo += op.operands
            case _:
                pass
    return bool(divided) and not any((not rest, of, by) in divided for rest, of, by in divided)


def _is_exact(op: arith.RemSIOp | arith.DivSIOp | arith.FloorDivSIOp) -> bool:
    """Whether an operation divides by what its dividend is a multiple of, so that no two of these give the same."""
    by = constant_of(op.rhs)
    return bool(by) and not isinstance(op, arith.RemSIOp) and multiple_of(op.lhs) % by == 0


def comes_by_lists(op: Operation) -> bool:
    """Whether communicators fetch the rows that a table names, one list after the other as tasks use them."""
    return isinstance(op, GatherOp) and planned(op) == "inter_sm" and can_fetch(op)


def buffer_of(read: Read) -> tuple[PrivateType, tuple[SSAValue, ...]]:
    """The type of the receive buffer, and the indices at which the tile of `read` lies in it."""
    kind = array_type(read.array)
    if isinstance(read, LoadOp):
        return PrivateType(kind.dimensions, kind.element_type), tuple(read.indices)
    table = read.rows.owner
    while isinstance(table, ClipOp):
        table = table.tile.owner
    if not isinstance(table, LoadOp):
        raise CannotCopyError
    dims = (*array_type(table.array).dimensions, *kind.dimensions[1:])
    return PrivateType(dims, kind.element_type), (*table.indices, *read.indices)


def groups_of(read: Read, places: Sequence[SSAValue], loops: Sequence[SSAValue]) -> TileGroups:
    """The tile groups that are awaited one by one: of the dimensions of tasks, and of the sharded one."""
    if planned(read) == "none":
        return TileGroups((), ())
    tasks = set(filter(is_task, loops))
    sharded = shard_of(read.array) if isinstance(read, LoadOp) else None
    chosen: list[int] = []
    for place, index in enumerate(places):
        varies = sources([index]) & set(loops)
        if varies and (place == sharded or varies <= tasks):
            chosen.append(place)
    return groups_along(buffer_of(read)[0].dimensions, places, chosen)


def comes_back(groups: TileGroups, places: Sequence[SSAValue], loops: Sequence[SSAValue]) -> list[SSAValue]:
    """The innermost loops, which fetch all tiles of one counter: it is announced only after them."""
    again = repeats(groups, places, loops)
    if list(loops[len(loops) - len(again) :]) != again or any(map(is_task, again)):
        raise CannotCopyError
    return again


def is_task(variable: SSAValue) -> bool:
    owner = variable.owner
    return isinstance(owner, Block) and isinstance(owner.parent_op(), TasksOp)


def number_of(index: SSAValue) -> SSAValue | None:
    """The number of a block in the list of a whole dimension, or of a shard."""
    block = index.owner
    if not isinstance(block, BlockOp) or block.start is not None or block.stop is not None:
        return None
    return block.index


def loop_of(index: SSAValue) -> scf.ForOp | None:
    """The loop whose variable numbers a block."""
    number = number_of(index)
    loop = number.owner.parent_op() if isinstance(number, BlockArgument) and number.index == 0 else None
    return loop if isinstance(loop, scf.ForOp) else None


def grouped_place(fetch: Fetch) -> int | None:
    """The place of the index that the innermost loop numbers, if tiles of that loop can be counted in groups."""
    again = fetch.again
    if not again:
        return fetch.along_shards
    places = [place for place, index in enumerate(fetch.first.places) if number_of(index) is again[-1]]
    return places[0] if len(places) == len(again) == 1 else None


def await_before(op: Operation, awaited: Sequence[SSAValue]) -> Operation:
    """The outermost operation around `op`, inside its tasks, before which all that is awaited is known."""
    anchor: Operation = op
    for parent in ancestors(op):
        if isinstance(parent, TasksOp) or any(defined_in(value, parent) for value in awaited):
            return anchor
        anchor = parent
    return anchor


def in_shard(index: SSAValue) -> tuple[SSAValue, SSAValue, list[Operation]]:
    """The number of a block among those of its shard, how many these are, and the operations that find it out."""
    block = index.owner
    assert isinstance(block, BlockOp)
    if block.shard is not None:
        return block.index, iterations_of(block.index), []
    kind, zero, owner = block_type(index), constant(0), OwnerOp(index)
    # All shards but the last have one length.
    each, mine = (BlockCountOp(kind, shard=shard, sharded=True) for shard in (zero.result, owner.result))
    first, number = arith.MuliOp(owner.result, each.result), BlockIndexOp(index, kind, sharded=True)
    inside = arith.SubiOp(number.result, first.result)
    return inside.result, mine.result, [zero, owner, each, mine, first, number, inside]
