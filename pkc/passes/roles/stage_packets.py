"""The pass `pk-stage-packets`: what is stored on other ranks arrives in packets, which they unpack."""

from __future__ import annotations

from xdsl.ir import Region, SSAValue

from pkc.dialect.access import LoadOp, StoreOp
from pkc.dialect.arrays import array_type
from pkc.dialect.attributes import Role
from pkc.dialect.coordinates import BlockOp, RankOp
from pkc.dialect.counters import SignalAllOp, WaitOp
from pkc.dialect.program import PACKETS, KernelOp, TasksOp
from pkc.dialect.types import Layout, PGLType, SignalType
from pkc.passes.analysis.covering import block_of
from pkc.passes.build import add_parameter, add_role, append, before, constant, mark, turn_ops, wrap_in_role
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.program_slices import copy_value
from pkc.passes.roles.remote_accesses import array_name, in_packets, remote_stores
from pkc.passes.roles.stage_sums import tasks_of_owner
from pkc.passes.tile_groups import counter_ops, groups_along


class StagePackets(KernelPass):
    """Let each rank store its tiles of a replicated array in packets, and unpack those of all ranks itself.

    The array is the caller's, so that a store to another rank waits until that has entered, and the kernel ends when
    all stores are complete everywhere. Scratch memory for packets needs neither: two halves, which launches take in
    turn.

    Before:

        pk.store %t, %Y[%m, %n : ...] {remote = {..., packets}} : ..., !pk.pgl<[M, N], bf16, replicate>

    After:

        pk.role communicator {
          pk.tasks (%i, %j) in (%rows, %columns) {
            pk.wait %Y_arrived[%turn, %i, %j] for %one : !pk.signal<[2, M by 128, N by 256]>
            %t = pk.load %Y_packets[%turn, %m, %n : ...] : !pk.pgl<[2, M, N], bf16, replicate> -> ...
            pk.store %t, %Y at %rank[%m, %n : ...] : ...
        pk.role consumer { ...
            pk.store %t, %Y_packets[%turn, %m, %n : ...] : ...
            pk.signal_all %Y_arrived[%turn, %i, %j] by %one : ...
    """

    name = "pk-stage-packets"

    def run(self, kernel: KernelOp) -> None:
        staged = [op for op in remote_stores(kernel) if in_packets(op)]
        for op in staged:
            _stage(kernel, op)
        if staged:
            wrap_in_role(kernel, Role.Consumer)


def _stage(kernel: KernelOp, op: StoreOp) -> None:
    name, kind, indices = array_name(op.array), array_type(op.array), tuple(op.indices)
    groups = groups_along(kind.dimensions, indices, range(len(indices)))
    packets_type = PGLType((2, *kind.dimensions), kind.element_type, Layout.Replicate)
    packets = add_parameter(kernel, f"{name}.packets", packets_type, op.location)
    arrived = add_parameter(kernel, f"{name}.arrived", SignalType((2, *groups.type.extents)), op.location)
    for parameter in (packets, arrived):
        mark(kernel, parameter, PACKETS)
    _unpack(kernel, op, packets, arrived)
    turn, one = turn_ops(), constant(1)
    half = turn[-1].results[0]
    address, counter = counter_ops(indices)
    store = StoreOp(op.tile, packets, (half, *indices))
    before(op, [*turn, one, *address, store, SignalAllOp(arrived, (half, *counter), one)])
    op.detach()
    op.erase()


def _unpack(kernel: KernelOp, op: StoreOp, packets: SSAValue, arrived: SSAValue) -> None:
    """The communicator: wait for each tile of every rank, and store it."""
    role_body = add_role(kernel, Role.Communicator, op)
    rank, one, turn = RankOp(), constant(1), turn_ops()
    half = turn[-1].results[0]
    for made in (rank, one, *turn):
        append(role_body, made, op.location)
    body, known, counts = tasks_of_owner(role_body, op, split_of(op), None)
    append(role_body, TasksOp(list(counts.values()), Region(body)), op.location)
    indices = [copy_value(body, index, known) for index in op.indices]
    address, counter = counter_ops(indices)
    for made in (*address, WaitOp(arrived, (half, *counter), one)):
        append(body, made, op.location)
    tile = append(body, LoadOp(packets, (half, *indices)), op.location)
    append(body, StoreOp(tile.result, op.array, indices, rank.result), op.location)


def split_of(op: StoreOp) -> int:
    """The dimension of which a rank stores the blocks of its shard; -1 if there is not just one."""
    of_rank = [place for place, index in enumerate(op.indices) if _is_of_rank(index)]
    return of_rank[0] if len(of_rank) == 1 else -1


def _is_of_rank(index: SSAValue) -> bool:
    made = block_of(index).owner
    return isinstance(made, BlockOp) and made.shard is not None and isinstance(made.shard.owner, RankOp)
