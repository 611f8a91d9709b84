"""The pass `pk-zero-sums`: sums in no order begin at zero, on every rank before anybody adds."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from pkc.dialect.access import AccumulateOp, AtomicAddOp, StoreOp, places_of
from pkc.dialect.arrays import array_type, is_pgl
from pkc.dialect.attributes import Role, RoleAttr
from pkc.dialect.by_table import ScatterAccumulateOp, ScatterAddOp
from pkc.dialect.coordinates import BlockCountOp, BlockOp, BlockPositionOp, CtasOp, DimOp, RankOp
from pkc.dialect.counters import SignalAllOp, WaitOp
from pkc.dialect.program import UNORDERED, KernelOp, RoleOp, TasksOp
from pkc.dialect.tile import FullOp, tile_type
from pkc.dialect.types import RANKS, BlockType, Layout, SignalType, TileType
from pkc.passes.analysis.dependence import roles_around
from pkc.passes.build import (
    DERIVED,
    add_parameter,
    add_role,
    append,
    before,
    constant,
    mark_fresh,
    product_ops,
    wrap_in_role,
)
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.roles.assign_roles import ROLE
from pkc.passes.roles.remote_accesses import array_name, shard_of


class ZeroSums(KernelPass):
    """Add the contributions that `pk-stage-sums` has left to memory, which is set to zero first.

    A communicator of each rank stores zeros to its shard of the array, on every rank if the array is replicated, and
    signals all ranks. Whoever adds first waits for these signals of every rank.

    Before:

        pk.scatter_accumulate %t, %O rows %rows[%n : ...] : ..., !pk.pgl<[T, N], bf16, shard 0>, !pk.tile<128xi32>

    After:

        pk.role communicator {
          pk.tasks (%i, %j) in (%local_rows, %columns) {
            ... pk.store %zeros, %O[%t, %n : ...] : !pk.tile<128x256xbf16>, !pk.pgl<[T, N], bf16, shard 0>
          }
          pk.signal_all %O_zeroed[%zero] by %one : !pk.signal<[1]>
        pk.role consumer {
          pk.wait %O_zeroed[%zero] for %all {role = #pk<role_name storer>} : !pk.signal<[1]>
          ...
          pk.scatter_add %t, %O rows %rows[%n : ...] : ..., !pk.pgl<[T, N], bf16, shard 0>, !pk.tile<128xi32>
    """

    name = "pk-zero-sums"

    def run(self, kernel: KernelOp) -> None:
        left = [op for op in kernel.walk() if isinstance(op, AccumulateOp | ScatterAccumulateOp)]
        if not left:
            return
        wrap_in_role(kernel, Role.Consumer)
        for array in dict.fromkeys(op.array for op in left):
            assert isinstance(array, BlockArgument)
            mark_fresh(kernel, array)
            adding = [op for op in left if op.array is array]
            zeroed = add_parameter(kernel, f"{array_name(array)}.zeroed", SignalType((1,)), adding[0].location)
            roles = roles_around(adding)
            _zero(kernel, adding[0], zeroed)
            for role in roles:
                _await(role, zeroed)
        for op in left:
            _add(op)


def _zero(kernel: KernelOp, op: AccumulateOp | ScatterAccumulateOp, zeroed: BlockArgument) -> None:
    """The communicator: zeros to this rank's shard of the array, in blocks of the size of the contributions."""
    role_body = add_role(kernel, Role.Communicator, op)
    rank, zero, one = (append(role_body, made, op.location) for made in (RankOp(), constant(0), constant(1)))
    kinds, split = _blocks(op), _split(op)
    counts: list[SSAValue] = []
    sharded = is_pgl(op.array, Layout.Shard)
    for place, kind in enumerate(kinds):
        owner = rank.results[0] if place == split else None
        count = BlockCountOp(kind, shard=owner, sharded=sharded and place == split)
        counts.append(append(role_body, count, op.location).result)
    body = Block(arg_types=[IndexType()] * len(kinds))
    indices: list[SSAValue] = []
    numbers = _numbers(kinds, split)
    for place, kind in enumerate(kinds):
        owner = rank.results[0] if place == split else None
        block = BlockOp(body.args[place], kind, shard=owner, sharded=sharded and place == split)
        index = append(body, block, op.location).result
        indices.append(append(body, BlockPositionOp(index), op.location).result if place in numbers else index)
    shape = [kind.extent for place, kind in enumerate(kinds) if place not in numbers]
    zeros = TileType(shape, tile_type(op.tile).element_type)
    tile = append(body, FullOp(0, zeros), op.location)
    append(body, StoreOp(tile.result, op.array, indices), op.location)
    append(role_body, TasksOp(counts, Region(body)), op.location)
    append(role_body, SignalAllOp(zeroed, (zero.results[0],), one), op.location)


def _blocks(op: AccumulateOp | ScatterAccumulateOp) -> list[BlockType]:
    """The blocks in which an array is set to zero."""
    shape, found = list(tile_type(op.tile).shape), list[BlockType]()
    for dim, index in zip(array_type(op.array).dimensions, places_of(op), strict=True):
        extent = index.type.extent if isinstance(index.type, BlockType) else 1
        if isinstance(index.type, TileType) and index.type.shape[-1] in shape:  # as large as the blocks of the table
            extent = min(index.type.shape[-1], dim if isinstance(dim, int) else index.type.shape[-1])
        if extent in shape:
            shape.remove(extent)
        found.append(BlockType(dim, extent))
    return found


def _numbers(kinds: Sequence[BlockType], split: int) -> Sequence[int]:
    """The places at which blocks of one element are numbers, so that no more than two axes are left; that by which
    ranks share the array comes last."""
    single = sorted((place for place, kind in enumerate(kinds) if kind.extent == 1), key=lambda place: place == split)
    return single[: max(0, len(kinds) - 2)]


def _split(op: AccumulateOp | ScatterAccumulateOp) -> int:
    """The dimension by which ranks share the array: the sharded one, or the first that is not a constant."""
    if is_pgl(op.array, Layout.Shard):
        return shard_of(op.array)
    dims = array_type(op.array).dimensions
    return next((place for place, dim in enumerate(dims) if isinstance(dim, str)), 0)


def _await(role: RoleOp, zeroed: BlockArgument) -> None:
    """Let a role begin with a wait until every rank has set its shard to zero."""
    ctas, ranks, zero = CtasOp(RoleAttr(Role.Communicator)), DimOp(RANKS), constant(0)
    ops, count = product_ops([ctas.result, ranks.result])
    wait = WaitOp(zeroed, (zero.result,), count)
    if DERIVED in role.attributes:
        wait.attributes[ROLE] = RoleAttr(Role.Storer)
    first = role.body.block.first_op
    assert first is not None
    made: Sequence[Operation] = (ctas, ranks, zero, *ops, wait)
    for op in made:
        op.location = role.location
        role.body.block.insert_op_before(op, first)


def _add(op: AccumulateOp | ScatterAccumulateOp) -> None:
    if isinstance(op, ScatterAccumulateOp):
        added: Operation = op.like(ScatterAddOp, op.tile)
        added.attributes |= {name: reason for name, reason in op.attributes.items() if name == UNORDERED}
    else:
        added = AtomicAddOp(op.tile, op.array, list(op.indices))
    before(op, [added])
    op.detach()
    op.erase()
