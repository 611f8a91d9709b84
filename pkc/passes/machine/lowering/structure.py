"""The body of a role, operation by operation: loops, branches and integers; other modules lower the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect import access, by_table, coordinates, counters, deferred, fences, inverse, program, roles
from pkc.dialect.tile import MmaIssueOp, MmaOp, MmaWaitOp, TransposeOp
from pkc.dialect.types import TileType
from pkc.passes.analysis.tables import is_table
from pkc.passes.machine.lowering import (
    accesses,
    chain,
    channels,
    computed,
    flat,
    fragments,
    indices,
    inverses,
    listed,
    loops,
    memory,
    mma,
    rounding,
    signals,
    spread,
    staging,
    tasks,
    unstaging,
)
from pkc.passes.machine.lowering.context import Staged, WarpRole
from pkc.passes.machine.lowering.fragments import RegisterTile
from pkc.passes.machine.lowering.missing import CannotLowerError


def lower_block(role: WarpRole, block: Block) -> None:
    """Every operation of a block, in order."""
    if not role.threads.flat or role.chunk is not None:
        lower_ops(role, list(block.ops))
        return
    for before, inside, after in flat.chunked(block):
        lower_ops(role, before)
        if inside:
            flat.lower(role, inside, lower_ops)
        lower_ops(role, after)


def lower_ops(role: WarpRole, ops: Sequence[Operation]) -> None:
    for op in ops:
        role.emit.location = op.location
        _lower(role, op)
        chain.finish(role, op)


def _lower(role: WarpRole, op: Operation) -> None:
    if is_table(op):
        unstaging.load_table(role, op)
        return  # else evaluated where an element is needed
    indices.check(role, op)
    handler = _HANDLERS.get(type(op))
    if handler is not None:
        handler(role, op)
        return
    if op.regions or not (op.results and all(isinstance(r.type, TileType) for r in op.results)):
        _integer(role, op)
        return
    if not (chain.compute(role, op) or computed.make_lazy(role, op) or computed.compute(role, op)):
        raise CannotLowerError(op)


def _integer(role: WarpRole, op: Operation) -> None:
    """Arithmetic on integers and scalars is copied as it is, except for divisions that round down, and shifts."""
    if isinstance(op, arith.FloorDivSIOp):
        a, b = (role.known[operand] for operand in op.operands)
        role.known[op.result] = rounding.divide_down(role.emit, a, b)
        return
    if isinstance(op, arith.ShLIOp):  # by a number modulo 32, as of tiles
        a, b = (role.known[operand] for operand in op.operands)
        role.known[op.result] = role.emit.left(a, role.emit.bit_and(b, 31))
        return
    if not isinstance(op, _KEPT):
        raise CannotLowerError(op)
    copy = op.clone(value_mapper=dict(role.known))
    role.emit.add(copy)
    for old, new in zip(op.results, copy.results, strict=True):
        new.name_hint = old.name_hint
        role.known[old] = new


_KEPT = (
    arith.ConstantOp,
    arith.AddiOp,
    arith.SubiOp,
    arith.MuliOp,
    arith.DivSIOp,
    arith.RemSIOp,
    arith.MinSIOp,
    arith.MaxSIOp,
    arith.AndIOp,
    arith.OrIOp,
    arith.XOrIOp,
    arith.CmpiOp,
    arith.SelectOp,
    arith.IndexCastOp,
)
"""Operations that the machine level has too."""


def _know(make: Callable[[WarpRole, Any], SSAValue]) -> Callable[[WarpRole, Any], None]:
    def handler(role: WarpRole, op: Any) -> None:
        value = make(role, op)
        if op.results[0].name_hint and value.name_hint is None:
            value.name_hint = op.results[0].name_hint
        role.known[op.results[0]] = value

    return handler


def _block(role: WarpRole, op: coordinates.BlockOp) -> None:
    role.blocks[op.result] = role.dims.place(op, role.known)


def _rotate(role: WarpRole, op: coordinates.RotateOp) -> SSAValue:
    emit = role.emit
    index, shift, count = (role.known[x] for x in (op.index, op.shift, op.count))
    return emit.modulo(emit.plus(index, shift), emit.most(count, 1))


def _peer(role: WarpRole, op: coordinates.RingPeerOp) -> SSAValue:
    emit = role.emit
    return emit.modulo(emit.plus(role.rank, role.known[op.step]), role.dims.extent("ranks"))


def _part(role: WarpRole, op: coordinates.PartOp) -> SSAValue:
    assert role.launch.part is not None
    return role.launch.part


def _if(role: WarpRole, op: scf.IfOp) -> None:
    emit = role.emit
    condition = role.known[op.cond]
    targets: list[RegisterTile | SSAValue] = []
    for result in op.results:
        if (place := _in_place(role, op, result.index)) is not None:
            targets.append(place)
        elif isinstance(result.type, TileType):
            fragment = spread.fragment_of(role, result)
            targets.append(fragments.allocate(role, fragment, result.type.element_type, result.name_hint))
        else:
            targets.append(emit.registers(1, result.type, result.name_hint))
    if not _is_done(role, op.true_region.block, targets):
        with emit.when(condition):
            _branch(role, op.true_region.block, targets)
    if op.false_region.blocks and not _is_done(role, op.false_region.block, targets):
        with emit.when(emit.negated(condition)):
            _branch(role, op.false_region.block, targets)
    for result, target in zip(op.results, targets, strict=True):
        loops.bind(role, result, target)


def _in_place(role: WarpRole, op: scf.IfOp, index: int) -> RegisterTile | None:
    """The registers of a tile that one branch gives as it is, and that nothing uses behind the branches.

    The other branch changes it element by element: what it gives depends on the same elements alone, or is in registers
    before the first of them is written.
    """
    for region in (op.true_region, op.false_region):
        last = region.block.last_op if region.blocks else None
        if last is None:
            continue
        value = last.operands[index]
        found = role.tiles.get(value)
        around = value.owner if isinstance(value.owner, Block) else value.owner.parent
        dies = around is op.parent and all(op.is_ancestor(use.operation) for use in value.uses)
        if dies and isinstance(found, RegisterTile) and list(last.operands).count(value) == 1:
            return found
    return None


def _is_done(role: WarpRole, body: Block, targets: list[RegisterTile | SSAValue]) -> bool:
    """Whether a branch gives only what is in its place already."""
    last = body.last_op
    return (
        last is not None
        and last is body.first_op
        and all(
            isinstance(target, RegisterTile) and role.tiles.get(value) == target
            for value, target in zip(last.operands, targets, strict=True)
        )
    )


def _branch(role: WarpRole, body: Block, targets: list[RegisterTile | SSAValue]) -> None:
    outside = dict(role.tiles)  # a tile of outside that gets registers here has them here alone
    lower_block(role, body)
    last = body.last_op
    for value, target in zip(last.operands if last is not None else (), targets, strict=False):
        if isinstance(target, RegisterTile):
            fragments.copy(role, fragments.as_elements(role, value), target)
        else:
            role.emit.set(role.known[value], target, 0)
    role.tiles = outside


def _transpose(role: WarpRole, op: TransposeOp) -> None:
    tile = role.tiles[op.tile]
    if not isinstance(tile, Staged):
        if not all(isinstance(use.operation, roles.CommitOp) for use in op.result.uses):
            raise CannotLowerError(op, "`.T` of a tile that is computed", "load its transpose, or store it first")
        role.tiles[op.result] = tile  # written the other way round
        return
    role.tiles[op.result] = Staged(tile.address, tile.type, tile.layout, tile.ring, not tile.transposed)


def _commit(role: WarpRole, op: roles.CommitOp) -> None:
    staging.write(role, op)
    for fence in role.pending_fences:
        role.emit.do(fence)
    role.pending_fences.clear()
    channels.commit(role, op)


def _fence(role: WarpRole, op: fences.FenceOp) -> None:
    """Generic writes to a stage are emitted at its commit, so the fence in front of one comes behind those. Any other
    orders what is there already: reads of a stage before its release, what has arrived in one that was consumed."""
    following = op.next_op
    while isinstance(following, fences.FenceOp | fences.DrainOp):
        following = following.next_op
    name = f"fence_{op.kind.data}"
    if op.kind.data is fences.Fence.AsyncShared and isinstance(following, roles.CommitOp):
        role.pending_fences.append(name)
    else:
        role.emit.do(name)


def _drain(role: WarpRole, op: fences.DrainOp) -> None:
    if op.kind.data is fences.Drain.Loads:
        channels.drain_loads(role)
    else:
        left = f"_{op.may_remain}" if op.may_remain else ""
        role.emit.do(f"bulk_wait_{op.kind.data}{left}")


def _index(role: WarpRole, op: coordinates.BlockIndexOp) -> SSAValue:
    return role.dims.index(role.blocks[op.block], op.of, sharded=op.sharded is not None, last=op.last is not None)


def _zigzag_position(role: WarpRole, op: coordinates.ZigzagPositionOp) -> SSAValue:
    block = role.blocks[op.block]
    return role.dims.zigzag_position(block, block.extent - 1 if op.last is not None else 0)


def _zigzag_count(role: WarpRole, op: coordinates.ZigzagCountOp) -> SSAValue:
    inside = op.block.extent - 1 if op.last is not None else 0
    return role.dims.zigzag_count(op.block, role.known[op.shard], inside, role.known[op.limit])


_HANDLERS: dict[type[Operation], Callable[[WarpRole, Any], None]] = {
    scf.ForOp: lambda role, op: loops.lower(role, op, lower_block, lower_ops),
    scf.IfOp: _if,
    scf.YieldOp: lambda role, op: None,
    program.TasksOp: lambda role, op: tasks.lower(role, op, lower_block),
    coordinates.BlockOp: _block,
    coordinates.BlockCountOp: _know(lambda w, op: w.dims.count(op.block, op, w.known)),
    coordinates.BlockPositionOp: _know(lambda w, op: w.dims.position(w.blocks[op.block])),
    coordinates.ZigzagPositionOp: _know(_zigzag_position),
    coordinates.ZigzagCountOp: _know(_zigzag_count),
    coordinates.ShardedCountOp: _know(lambda w, op: w.dims.sharded_before(op.block, w.known[op.limit])),
    coordinates.ZigzagGapOp: _know(lambda w, op: w.dims.zigzag_gap(w.blocks[op.block])),
    coordinates.IsWholeOp: _know(lambda w, op: w.dims.is_whole(w.blocks[op.block])),
    coordinates.BlockNumberOp: _know(lambda w, op: w.dims.number(w.blocks[op.block])),
    coordinates.OwnerOp: _know(lambda w, op: w.dims.owner(w.blocks[op.block], last=op.last is not None)),
    coordinates.BlockIndexOp: _know(_index),
    coordinates.RotateOp: _know(_rotate),
    coordinates.InterleaveOp: _know(lambda w, op: w.dims.interleave(op.block, w.known[op.index], w.known[op.first])),
    coordinates.RingPeerOp: _know(_peer),
    coordinates.VisitedOp: _know(lambda w, op: w.emit.most(w.emit.least(w.known[op.needed], w.known[op.count]), 0)),
    coordinates.FirstVisitedOp: _know(lambda w, op: w.emit.most(w.known[op.needed], w.known[op.first])),
    coordinates.RankOp: _know(lambda w, op: w.rank),
    coordinates.PartOp: _know(_part),
    coordinates.DimOp: _know(lambda w, op: w.dims.extent(op.dim.data)),
    coordinates.EpochOp: _know(lambda w, op: w.launch.epoch),
    coordinates.CtasOp: _know(lambda w, op: w.launch.ctas[w.launch.group_of[str(op.role.data)]]),
    roles.AcquireOp: channels.acquire,
    roles.CommitOp: _commit,
    roles.ConsumeOp: channels.consume,
    roles.ReleaseOp: channels.release,
    roles.ReleaseDeferredOp: channels.release_deferred,
    access.ReadOp: _know(memory.read),
    access.LoadOp: accesses.load,
    by_table.GatherOp: accesses.gather,
    by_table.ScatterStoreOp: accesses.scatter,
    by_table.ScatterStoreAddOp: accesses.scatter_add,
    by_table.ScatterAddOp: accesses.scatter_add,
    inverse.InvertOp: inverses.invert,
    inverse.SumRowsOp: listed.sum_rows,
    access.StoreOp: accesses.store,
    access.StoreAddOp: accesses.add,
    access.AtomicAddOp: accesses.add,
    counters.SignalOp: signals.send,
    counters.RaiseOp: signals.send,
    counters.SignalAllOp: signals.send_all,
    counters.WaitOp: signals.await_,
    counters.ResetOp: signals.reset,
    fences.FenceOp: _fence,
    fences.DrainOp: _drain,
    deferred.SendDeferredOp: signals.send_deferred,
    MmaOp: mma.multiply,
    MmaIssueOp: mma.issue,
    MmaWaitOp: mma.wait,
    TransposeOp: _transpose,
}
