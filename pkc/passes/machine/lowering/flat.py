"""Roles without a warpgroup: they go over a tile in chunks of neighbouring elements, each through all operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from math import prod

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from pkc.dialect import access, arrays, by_table, counters
from pkc.dialect.program import TasksOp, packed
from pkc.dialect.tile import tile_type
from pkc.dialect.types import PrivateType, TileType, dtype_bytes, row_of
from pkc.passes.analysis.dependence import sources
from pkc.passes.analysis.effects import is_side_effect_free
from pkc.passes.analysis.pointwise import WHOLE, is_pointwise
from pkc.passes.analysis.tables import is_table
from pkc.passes.machine.lowering.context import WarpRole
from pkc.passes.machine.lowering.missing import CannotLowerError, slow
from pkc.targets.layout import CHUNK, NEIGHBOURS

_AROUND = (scf.ForOp, scf.IfOp)
_LOADS = (access.LoadOp, by_table.GatherOp)
_ORDERING = (counters.SignalOp, counters.SignalAllOp, counters.RaiseOp, counters.WaitOp)


def goes_in_chunks(tasks: TasksOp) -> bool:
    """Whether a role goes over the tiles of its tasks in chunks: all are computed element by element, and none passes
    an operation that orders memory, before and behind which threads have other chunks."""
    return is_pointwise(tasks) and not any(map(_passes_tiles, tasks.walk()))


def _passes_tiles(op: Operation) -> bool:
    """Whether tiles go into, out of or past an operation that orders memory, or a loop or branch around such ones."""
    if isinstance(op, TasksOp) or not any(isinstance(inner, _ORDERING) for inner in op.walk()):
        return False
    block = op.parent
    assert block is not None
    earlier = takewhile(lambda other: other is not op, block.ops)
    before = [*block.args, *(result for other in earlier for result in other.results)]
    behind = (use.operation for value in filter(_is_tile, before) for use in value.uses)
    return any(map(_is_tile, op.results)) or any(not _precedes(user, op) for user in behind)


def _precedes(user: Operation, op: Operation) -> bool:
    """Whether an operation stands, with all around it in the block of `op`, before that."""
    assert op.parent is not None
    inner = op.parent.find_ancestor_op_in_block(user)
    return inner is not None and inner.is_before_in_block(op)


def _is_tile(value: SSAValue) -> bool:
    """Whether a value is a tile, and no table, which is evaluated where an access needs an element."""
    made = value.owner
    return isinstance(value.type, TileType) and not (isinstance(made, Operation) and is_table(made))


def chunked(block: Block) -> list[tuple[list[Operation], list[Operation], list[Operation]]]:
    """The operations of a block in parts, each from one that orders memory to the next: those before, from and after
    the ones that compute with tiles. Where tables pass from part to part the block is one, and no such operation in it
    computes in chunks."""
    parts: list[list[Operation]] = [[]]
    for op in block.ops:
        if isinstance(op, _ORDERING):
            parts.append([])
        parts[-1].append(op)
    if any(_leaves(op, part) for part in parts for op in part if _gives_tiles(op)):
        return [_chunked(list(block.ops))]
    return [_chunked(part) for part in parts]


def _chunked(ops: list[Operation]) -> tuple[list[Operation], list[Operation], list[Operation]]:
    on_tiles = [number for number, op in enumerate(ops) if _on_tiles(op)]
    if not on_tiles:
        return ops, [], []
    first, last = on_tiles[0], on_tiles[-1] + 1
    inside = ops[first:last]
    # A loop or branch around such operations that also orders memory runs iteration by iteration.
    if any(isinstance(inner, _ORDERING) for op in inside for inner in op.walk()):
        return ops, [], []
    needed = _needed_outside(inside)
    return [*ops[:first], *needed], [op for op in inside if op not in needed], ops[last:]


def _needed_outside(inside: Sequence[Operation]) -> list[Operation]:
    """What computes integers that are also used elsewhere, and what these are computed from."""
    later = [op for op in inside if not _on_tiles(op) and _leaves(op, inside)]
    made = sources([result for op in later for result in op.results])
    return [op for op in inside if is_side_effect_free(op) and not _on_tiles(op) and not made.isdisjoint(op.results)]


def _leaves(op: Operation, ops: Sequence[Operation]) -> bool:
    """Whether a result is used elsewhere than in some operations of its block."""
    uses = [use.operation for result in op.results for use in result.uses]
    return any(not any(inner.is_ancestor(use) for inner in ops) for use in uses)


def _gives_tiles(op: Operation) -> bool:
    return any(isinstance(result.type, TileType) for result in op.results)


def _on_tiles(op: Operation) -> bool:
    values: list[SSAValue] = [*op.operands, *op.results]
    if any(isinstance(value.type, TileType) for value in values):
        return True
    return isinstance(op, _AROUND) and any(_on_tiles(inner) for inner in op.walk() if inner is not op)


def lower(role: WarpRole, ops: Sequence[Operation], lower_ops: Callable[[WarpRole, Sequence[Operation]], None]) -> None:
    """Loops over the chunks: by 16 bytes at once where each chunk exists wholly or not at all, else by elements."""
    emit = role.emit
    if not _has_tiles(ops):
        role.threads.flat = False
        with emit.when(emit.compare("eq", role.threads.thread, role.threads.start)):
            lower_ops(role, ops)
        role.threads.flat = True
        return
    shape = _shape(role, ops)
    whole = _whole_chunks(role, ops)
    for vectors, condition in ((True, whole), (False, emit.negated(whole))):
        role.vectors, role.anywhere = vectors, not vectors and _moves_from_anywhere(role, ops)
        with emit.when(condition):
            start = emit.minus(role.threads.thread, role.threads.start)
            total, threads = prod(shape) // NEIGHBOURS, role.threads.count
            room = _room(role, ops) if vectors else _in_halves(role, ops) if role.anywhere else 1
            role.chunks = _chunks_at_once(emit.target.threads.chunks, room, total, threads)
            role.together = (
                _together(emit.target.threads.iterations, total // (role.chunks * threads)) if vectors else ()
            )
            with emit.loop(start, total, role.chunks * threads) as chunk:
                role.chunk, role.chunked = chunk, tuple(shape)
                lower_ops(role, ops)
        role.chunk, role.together = None, ()
    role.vectors = role.anywhere = False


def _moves_from_anywhere(role: WarpRole, ops: Sequence[Operation]) -> bool:
    """Whether chunks are loaded from rows that may begin anywhere, and stored to rows that have room for whole ones."""
    inner = [inner for op in ops for inner in op.walk() if not is_table(inner)]
    writes = [op for op in inner if isinstance(op, (access.StoreOp, access.AddToArrayOp, access.Scatter))]
    loads = [op for op in inner if isinstance(op, _LOADS)]
    return bool(writes) and all(map(_stores_whole, writes)) and all(_loads_anywhere(role, op) for op in loads)


def _in_halves(role: WarpRole, ops: Sequence[Operation]) -> int:
    """How many chunks that begin anywhere are loaded at once: of more, compilers let some wait for others."""
    loads = [tile_type(inner.result) for op in ops for inner in op.walk() if isinstance(inner, access.LoadOp)]
    halves = max((dtype_bytes(load.element_type) * NEIGHBOURS // CHUNK for load in loads), default=1)
    return max(1, role.emit.target.threads.loads // halves)


def _loads_anywhere(role: WarpRole, op: Operation) -> bool:
    """Whether the neighbours of a load are those of a row, of elements that are single registers or pairs."""
    if not isinstance(op, access.LoadOp) or op.local is not None or packed(op):
        return False
    along_rows = op.indices[-1] in role.blocks and role.axes[op.result] not in ((), (0,))
    return along_rows and dtype_bytes(tile_type(op.result).element_type) > 1


def _stores_whole(op: Operation) -> bool:
    return isinstance(op, access.StoreOp) and isinstance(op.array.type, PrivateType) and op.array.type.padded


def _has_tiles(ops: Sequence[Operation]) -> bool:
    """Whether a tile has more than one element; single ones are one thread's."""
    kinds = [result.type for op in ops for inner in op.walk() for result in inner.results]
    return any(isinstance(kind, TileType) and kind.rank for kind in kinds)


def _together(most: int, rounds: int) -> tuple[int, ...]:
    """How many iterations of a loop load before the first of them computes. Fewer than the most, as on two ranks, are
    worth instructions of their own where a thread goes over chunks again and again: each is fetched before it first
    runs."""
    return (most, most // 2) if rounds > 1 else (most,)


def _chunks_at_once(most: int, room: int, total: int, threads: int) -> int:
    """How many chunks a thread works on at once: as many as fit into its registers and divide the tile evenly."""
    while most > 1 and (most > room or total % (most * threads)):
        most //= 2
    return most


def _room(role: WarpRole, ops: Sequence[Operation]) -> int:
    """For how many chunks a thread has registers: one for each element that is computed, and those of all loads in
    flight."""
    target, most, computes = role.emit.target, 0, False
    for op in ops:
        inside = [inner for inner in op.walk() if not is_table(inner)]
        computes |= any(
            _on_tiles(inner) and not isinstance(inner, (*_LOADS, *_AROUND, access.StoreOp)) for inner in inside
        )
        ahead = isinstance(op, scf.ForOp) and not any(isinstance(inner, access.StoreOp) for inner in inside)
        loads = [tile_type(inner.result) for inner in inside if isinstance(inner, _LOADS)]
        unroll = target.threads.iterations if ahead else 1
        rows = sum(isinstance(inner, by_table.GatherOp) for inner in inside)
        words = sum(NEIGHBOURS * dtype_bytes(load.element_type) // target.arch.register_bytes for load in loads)
        most = max(most, unroll * words + rows * target.registers.named_row)
    return (role.threads.registers - target.registers.chunked) // (computes * NEIGHBOURS + most)


def loads_ahead(body: Block) -> list[Operation]:
    """The loads of a loop's body and what their addresses are computed of, if several iterations can load first; else
    nothing. No load may need a value that the loop carries, and nothing may be written in between."""
    ops = list(body.ops)
    loads = [op for op in ops if isinstance(op, _LOADS) and not is_table(op)]
    needed = sources([operand for load in loads for operand in load.operands])
    obstacle = ""
    if any(op.regions or isinstance(op, access.StoreOp | access.AddToArrayOp) for op in ops):
        obstacle = "its loop branches or stores"
    elif not needed.isdisjoint(body.args[1:]):
        obstacle = "its address is computed in the iteration before"
    for load in loads if obstacle else ():
        slow(load, f"each iteration waits for its own load: {obstacle}")
    return [] if obstacle else [op for op in ops if op in loads or not needed.isdisjoint(op.results)]


def _shape(role: WarpRole, ops: Sequence[Operation]) -> list[int]:
    """The shape that all tiles have but those that go through one of its axes; scalars do not count."""
    shapes: list[tuple[list[int], tuple[int, ...]]] = []
    for op in ops:
        for inner in op.walk():
            if is_table(inner):
                continue
            if isinstance(inner, WHOLE):
                raise CannotLowerError(inner, "a matmul, a reduction of rows or `.T` in a role without a warpgroup")
            for result in inner.results:
                if isinstance(result.type, TileType) and result.type.rank:
                    shapes.append((list(result.type.shape), role.axes[result]))
    whole: list[int] = max((shape for shape, _ in shapes), key=len) if shapes else []
    fits = all(shape == whole or shape == [whole[-2:][axis] for axis in axes] for shape, axes in shapes)
    if not whole or not fits or len(whole) > 2 or whole[-1] % NEIGHBOURS:
        what = "computing with tiles that are not all of one shape of one or two axes in a role without a warpgroup"
        raise CannotLowerError(ops[0], what, f"rows of a multiple of {NEIGHBOURS} elements, without reductions of rows")
    return whole


def _whole_chunks(role: WarpRole, ops: Sequence[Operation]) -> SSAValue:
    """Whether every chunk lies within a row, and arrays and blocks end, and begin, at multiples of chunks."""
    emit = role.emit
    condition = emit.compare("eq", emit.const(0), 0)
    seen: set[object] = set()
    for op in ops:
        for inner in op.walk():
            if not isinstance(inner, (*_LOADS, access.StoreOp, access.AddToArrayOp)) or is_table(inner):
                continue
            if role.axes[inner.results[0] if isinstance(inner, _LOADS) else inner.tile] in ((), (0,)):
                continue
            gathered = isinstance(inner, by_table.GatherOp)
            index, array = (inner.places if gathered else inner.indices)[-1], arrays.array_type(inner.array)
            apart = gathered and not inner.ends_in_block
            if index not in role.blocks or apart or dtype_bytes(array.element_type) == 1:
                # Neighbours of the tile are none of the array, or fewer than a register has.
                return emit.compare("ne", emit.const(0), 0)
            block, row = role.blocks[index], (row_of(array), isinstance(array, PrivateType) and array.padded)
            extents: list[tuple[object, SSAValue]] = [
                (row, role.dims.row_length(array)),
                (index, role.dims.valid(block)),
            ]
            if block.stop is not None:  # else an aligned end implies an aligned begin
                extents.append(((index, "begin"), block.local))
            for key, extent in extents:
                if key not in seen:
                    seen.add(key)
                    condition = emit.both(condition, emit.compare("eq", emit.bit_and(extent, NEIGHBOURS - 1), 0))
    return condition
