"""The pass `pk-fuse-phases`: who adds up a sum over ranks computes what the next phase makes of it."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from pkc.dialect.access import LoadOp, StoreOp
from pkc.dialect.arrays import is_pgl
from pkc.dialect.attributes import Role
from pkc.dialect.coordinates import BlockCountOp, BlockOp, RankOp
from pkc.dialect.program import AFTER_ALL, KernelOp, RoleOp, TasksOp
from pkc.dialect.reductions import RowReduction
from pkc.dialect.tile import BroadcastOp, PositionsOp, tile_type
from pkc.dialect.types import BlockType, Layout, TileType
from pkc.passes.analysis.dependence import sources
from pkc.passes.analysis.pointwise import BY_ELEMENT
from pkc.passes.build import drop_parameter, phase_of
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.program_slices import Known, can_copy, copy_value
from pkc.passes.roles.remote_accesses import array_name
from pkc.remarks import missed


class FusePhases(KernelPass):
    """Let the communicator that adds up a sum over ranks go on with what a later phase computes of it, element by
    element: an epilogue behind the sum begins as soon as its tile is complete, and the sum stays in registers.

    The later phase goes through the blocks of this rank's shard, in blocks of any size. Where nothing else reads the
    sum, and it is scratch memory, it is not stored, and takes no memory.

    Before:

        pk.role communicator attributes {after_all} {
          pk.tasks (%i, %j) in (%chunks, %columns) {
            ...
            pk.store %sum, %S[%m, %n : !pk.block<M by 32>, !pk.block<N by 256>] : ...
        pk.role consumer {
          ...
          pk.tasks (%i, %j) in (%local_rows, %columns) attributes {phase = 1} {
            %s = pk.load %S[%m, %n : !pk.block<M by 128>, !pk.block<N by 256>] : ... -> !pk.tile<128x256xbf16>
            %b = pk.load %b[%n : !pk.block<N by 256>] : ... -> !pk.tile<256xbf16>
            ...
            pk.store %t, %C[%m, %n : !pk.block<M by 128>, !pk.block<N by 256>] : ...

    After:

        pk.role communicator attributes {after_all} {
          pk.tasks (%i, %j) in (%chunks, %columns) {
            %b = pk.load %b[%n : !pk.block<N by 256>] : ... -> !pk.tile<256xbf16>
            ...
            pk.store %t, %C[%m, %n : !pk.block<M by 32>, !pk.block<N by 256>] : ...
        pk.role consumer { ... }
    """

    name = "pk-fuse-phases"

    def run(self, kernel: KernelOp) -> None:
        for role in kernel.roles:
            store = _sum(role)
            if store is None:
                continue
            readers = _readers(store)
            for tasks in readers:
                fusion = _Fusion(kernel, store, tasks)
                obstacle = "more than one phase reads it" if len(readers) > 1 else fusion.obstacle()
                if obstacle:
                    name = array_name(store.array)
                    missed(FusePhases.name, tasks, f"this phase begins when all of `{name}` is added up: {obstacle}")
                else:
                    fusion.fuse()


def _sum(role: RoleOp) -> StoreOp | None:
    """Where a communicator that adds up a sum over ranks stores a tile of it, to its own rank alone."""
    if role.role.data is not Role.Communicator or AFTER_ALL not in role.attributes:
        return None
    tasks = role.body.block.last_op
    store = tasks.body.block.last_op if isinstance(tasks, TasksOp) else None
    return store if isinstance(store, StoreOp) and is_pgl(store.array, Layout.Shard) else None


def _readers(store: StoreOp) -> list[TasksOp]:
    """The task sets of later phases that load what is stored, in their order."""
    found: dict[TasksOp, None] = {}
    for use in store.array.uses:
        op, tasks = use.operation, use.operation.parent_op()
        if not isinstance(op, LoadOp) or op.array is not store.array or not isinstance(tasks, TasksOp):
            continue
        if (phase_of(tasks) or 0) > (phase_of(store) or 0):
            found[tasks] = None
    return list(found)


@dataclass
class _Fusion:
    """The phase `tasks`, which reads the tiles that `store` stores."""

    kernel: KernelOp
    store: StoreOp
    tasks: TasksOp

    def __post_init__(self) -> None:
        self.body = self.tasks.body.block
        self.loads = [op for op in self.body.ops if isinstance(op, LoadOp) and op.array is self.store.array]
        self.blocks = dict(zip(self.loads[0].indices, self.store.indices, strict=True))
        """What stands for each block of the phase."""
        self.axes: dict[SSAValue, tuple[SSAValue, ...]] = {}
        """The blocks of the phase that the axes of a tile go through."""

    # Whether it can be done

    def obstacle(self) -> str:
        """Why the phase stays what it is; empty if it need not."""
        if any(list(load.indices) != list(self.loads[0].indices) for load in self.loads):
            return "it is read in blocks of more than one list"
        for op in self.body.ops:
            reason = self._whole(op)
            if reason:
                return reason
        reason = self._given_obstacle()
        if reason:
            return reason
        if not self._goes_through_all():
            return "the phase does not go once through all blocks of this rank's rows"
        self._infer_axes()
        tiles = (value for op in self.body.ops for value in (*op.operands, *op.results) if _rank(value))
        return "" if all(value in self.axes for value in tiles) else "the axes of a tile in it are not known"

    def _given(self) -> list[SSAValue]:
        """What the phase uses of what its role computes in front of it, for other than blocks."""
        used = [value for op in self.body.ops if not isinstance(op, BlockOp) for value in op.operands]
        made = [value for value in used if isinstance(value.owner, Operation)]
        return [value for value in dict.fromkeys(made) if value.owner.parent is not self.body]

    def _given_obstacle(self) -> str:
        """Why what the phase is given cannot be computed where the sum is added up; empty if it can."""
        given = self._given()
        if any(map(_rank, given)):
            return "it uses a tile from in front of it"
        if not can_copy(given, ()):
            return "what it uses is computed in a loop or branch in front of it"
        for op in (value.owner for value in sources(given)):
            if isinstance(op, LoadOp):
                reason = self._read(op)
                if reason:
                    return reason
            elif isinstance(op, Operation) and not is_side_effect_free(op):
                return f"`{op.name}` is in front of it"
        return ""

    def _read(self, op: LoadOp) -> str:
        """Why a load cannot stand where the sum is added up; empty if it can."""
        if op.local is not None:
            return "it reads other ranks' rows"
        written = any(not isinstance(use.operation, LoadOp) for use in op.array.uses)
        return f"it reads `{array_name(op.array)}`, which the kernel writes" if written else ""

    def _goes_through_all(self) -> bool:
        indices = [index for index in self.blocks if isinstance(index.type, BlockType)]
        numbers: list[int] = []
        for index in indices:
            made = index.owner
            if not isinstance(made, BlockOp) or made.start is not None or made.stop is not None:
                return False
            number = made.index
            if not isinstance(number, BlockArgument) or number.owner is not self.body:
                return False
            count = self.tasks.counts[number.index].owner
            if not isinstance(count, BlockCountOp) or count.block != made.result.type or count.stop is not None:
                return False
            if count.start is not None or not _same_list(made, count) or not _same_list(made, self._stored(index)):
                return False
            numbers.append(number.index)
        return len(indices) == len(self.blocks) and sorted(numbers) == list(range(len(self.tasks.counts)))

    def _stored(self, index: SSAValue) -> BlockOp | None:
        made = self.blocks[index].owner
        alone = isinstance(made, BlockOp) and made.start is None and made.stop is None
        return made if isinstance(made, BlockOp) and alone else None

    def _whole(self, op: Operation) -> str:
        """Why an operation of the phase cannot be carried out for other blocks than it is; empty if it can."""
        if op.regions:
            return "it has a loop or branch"
        if isinstance(op, RowReduction):
            return "a row of the sum is complete later than a tile of it"
        if isinstance(op, BlockOp):
            return "" if op.result in self.blocks else "it reads blocks of another list"
        if isinstance(op, LoadOp):
            reason = "" if op in self.loads else self._read(op)
            if reason:
                return reason
        elif isinstance(op, StoreOp):
            if any(use.operation.parent_op() is not self.tasks for use in op.array.uses):
                return f"it writes `{array_name(op.array)}`, which is used elsewhere in the kernel"
            if is_pgl(op.array, Layout.Replicate):
                return f"all ranks get `{array_name(op.array)}`"
        elif not isinstance(op, BY_ELEMENT):
            indices = sources(op.operands)
            if not is_side_effect_free(op) or not indices.isdisjoint((*self.blocks, *self.body.args)):
                return f"`{op.name}` is not computed element by element"
        blocks = [value for value in op.operands if isinstance(value.type, BlockType)]
        return "" if all(value in self.blocks for value in blocks) else "it reads blocks of another list"

    def _infer_axes(self) -> None:
        """What axes tiles have, from where they are loaded and stored, by what they are combined with."""
        ops = list(self.body.ops)
        known = -1
        while known != len(self.axes):
            known = len(self.axes)
            for op in (*ops, *reversed(ops)):
                self._infer(op)

    def _infer(self, op: Operation) -> None:
        if isinstance(op, LoadOp | StoreOp):
            tile = op.result if isinstance(op, LoadOp) else op.tile
            self.axes[tile] = tuple(index for index in op.indices if isinstance(index.type, BlockType))
        elif isinstance(op, PositionsOp):
            self.axes[op.result] = (op.block,)
        elif isinstance(op, BroadcastOp):
            whole = self.axes.get(op.result)
            if whole is not None:
                self.axes[op.tile] = tuple(whole[position] for position in op.positions)
        else:
            tiles = [value for value in (*op.operands, *op.results) if _rank(value)]
            found = next((self.axes[value] for value in tiles if value in self.axes), None)
            if found is not None:
                self.axes |= dict.fromkeys(tiles, found)

    # Doing it

    def fuse(self) -> None:
        """Move the phase to where the sum is stored. What else it loads comes first, beside what is added up."""
        around = self.store.parent_block()
        assert around is not None
        first = next(op for op in around.ops if _makes_tile(op))
        known: Known = dict(self.blocks)
        known |= {load.result: self.store.tile for load in self.loads}
        self._copy_given(known)
        for op in self.body.ops:
            if isinstance(op, BlockOp) or op in self.loads:
                continue
            early = isinstance(op, LoadOp) or not any(map(_rank, (*op.operands, *op.results)))
            self._copy(op, around, first if early else self.store, known)
        self.tasks.detach()
        self.tasks.erase()
        array = self.store.array
        assert isinstance(array, BlockArgument)
        if self.kernel.is_scratch(array) and all(use.operation is self.store for use in array.uses):
            self.store.detach()
            self.store.erase()
            drop_parameter(self.kernel, array)

    def _copy_given(self, known: Known) -> None:
        """Compute what the phase uses from in front of it in front of the tasks that add up, too."""
        tasks, copies = self.store.parent_op(), Block()
        assert tasks is not None and tasks.parent is not None
        for value in self._given():
            copy_value(copies, value, known)
        for op in list(copies.ops):
            op.detach()
            tasks.parent.insert_op_before(op, tasks)

    def _copy(self, op: Operation, around: Block, place: Operation, known: Known) -> None:
        copy = type(op).create(
            operands=[known.get(value, value) for value in op.operands],
            result_types=[self._narrowed(value) for value in op.results],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
        )
        copy.location = op.location
        around.insert_op_before(copy, place)
        for old, new in zip(op.results, copy.results, strict=True):
            new.name_hint = old.name_hint
            known[old] = new

    def _narrowed(self, value: SSAValue) -> Attribute:
        """The type of a tile in the blocks of the sum."""
        if not _rank(value):
            return value.type
        kinds = (self.blocks[block].type for block in self.axes[value])
        shape = [kind.extent for kind in kinds if isinstance(kind, BlockType)]
        return TileType(shape, tile_type(value).element_type)


def _rank(value: SSAValue) -> int:
    return value.type.rank if isinstance(value.type, TileType) else 0


def _makes_tile(op: Operation) -> bool:
    return any(isinstance(value.type, TileType) for value in op.results)


def _same_list(made: BlockOp, other: BlockOp | BlockCountOp | None) -> bool:
    """Whether two lists of blocks go through the same elements: a dimension, or this rank's shard of it."""
    if other is None:
        return False
    mine, theirs = (each.shard is not None and isinstance(each.shard.owner, RankOp) for each in (made, other))
    return (
        mine == theirs
        and (made.shard is None) == (other.shard is None)
        and (made.sharded is None) == (other.sharded is None)
    )
