"""The pass `pk-piece-tiles`: tiles of an author's role whose stages a CTA has no room for go through it in pieces."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from pkc.dialect.access import LoadOp, StoreOp
from pkc.dialect.attributes import Role
from pkc.dialect.coordinates import BlockOp, BlockPositionOp
from pkc.dialect.counters import CounterOp
from pkc.dialect.program import DERIVED, KernelOp, TasksOp
from pkc.dialect.tile import ClipOp, tile_type
from pkc.dialect.types import BlockType, TileType, dtype_bytes
from pkc.passes.analysis.pointwise import is_pointwise
from pkc.passes.build import append, before, constant
from pkc.passes.kernel_pass import KernelPass
from pkc.remarks import missed
from pkc.targets.layout import CHUNK
from pkc.targets.target import Target, target_of


class PieceTiles(KernelPass):
    """Let a task of an author's role go through its tiles by blocks of columns, if one stage of each, and of what it
    stores, takes more shared memory than a CTA has; as few blocks as there is room for.

    What a role computes element by element alone is the same in pieces. Signals and waits stay around all of them. A
    communicator has no stages.

    Before:

        pk.tasks (%i, %j) in (...) {
          %n = pk.block[%j] : !pk.block<N by 256>
          %x = pk.load %X[%m, %n : ...] : ... -> !pk.tile<128x256xf32>
          %y = pk.mul %x, %x : !pk.tile<128x256xf32>
          pk.store %y, %Y[%m, %n : ...] : ...
        }

    After:

        pk.tasks (%i, %j) in (...) {
          %n = pk.block[%j] : !pk.block<N by 256>
          %first = pk.block_position %n : !pk.block<N by 256>
          scf.for %piece = %0 to %2 step %1 {
            %part = pk.block[%piece] from %first : !pk.block<N by 128>
            %x = pk.load %X[%m, %part : ...] : ... -> !pk.tile<128x128xf32>
            ...
          }
        }
    """

    name = "pk-piece-tiles"

    def run(self, kernel: KernelOp) -> None:
        if DERIVED in kernel.attributes:
            return
        for role in kernel.roles:
            for op in list(role.walk()) if role.role.data is not Role.Communicator else ():
                if isinstance(op, TasksOp):
                    _split(op.body.block, target_of(kernel))


def _split(body: Block, target: Target) -> None:
    with_tiles = [op for op in body.ops if any(map(_has_tile, op.walk()))]
    ops = _from_to(with_tiles[0], with_tiles[-1]) if with_tiles else []
    whole = _columns(ops)
    if whole is None:
        return
    kind, needed = whole.result.type, _stages(ops, target)
    assert isinstance(kind, BlockType)
    pieces = 1
    while needed > pieces * target.stage_memory and kind.extent % (2 * pieces) == 0:
        pieces *= 2
    size = min(dtype_bytes(tile_type(value).element_type) for op in ops for value in _tiles(op))
    if pieces == 1 or needed > pieces * target.stage_memory or kind.extent // pieces * size % CHUNK:
        return
    _loop(ops, whole, BlockType(kind.of, kind.extent // pieces), pieces)


def _from_to(first: Operation, last: Operation) -> list[Operation]:
    found = [first]
    while found[-1] is not last and (following := found[-1].next_op) is not None:
        found.append(following)
    return found


def _columns(ops: Sequence[Operation]) -> BlockOp | None:
    """The block that is the last index of all accesses to tiles and nothing else, if tiles may go through by parts of
    it."""
    inner = [each for op in ops for each in op.walk()]
    accesses = [op for op in inner if isinstance(op, LoadOp | StoreOp)]
    blocks = {op.indices[-1] for op in accesses if len(op.indices) > 1}
    if len(blocks) != 1 or any(len(op.indices) == 1 for op in accesses):
        return None
    if not all(is_pointwise(op) for op in ops) or any(isinstance(op, CounterOp) for op in inner):
        return None
    (block,) = blocks
    made, kind = block.owner, block.type
    if not isinstance(made, BlockOp) or not isinstance(kind, BlockType) or made in inner or made.in_shard:
        return None
    if made.start is not None or made.stop is not None:
        return None
    shapes = {tile_type(value).shape for op in ops for value in _tiles(op)}
    if len(shapes) != 1 or len(next(iter(shapes))) != 2 or not all(_is_an_index(op, block) for op in inner):
        return None
    used = (use.operation for op in ops for result in op.results for use in result.uses)
    return made if all(use in inner for use in used) else None


def _is_an_index(op: Operation, block: SSAValue) -> bool:
    """Whether an operation uses the block of the columns for nothing but these."""
    if block not in op.operands:
        return True
    if isinstance(op, ClipOp):
        return op.axis.value.data == 1
    return isinstance(op, LoadOp | StoreOp) and block not in op.indices[:-1]


def _stages(ops: Sequence[Operation], target: Target) -> int:
    """Bytes of a stage of each tile that is loaded, and of each computed one that is stored."""
    inner = [each for op in ops for each in op.walk()]
    tiles: list[SSAValue] = [op.result for op in inner if isinstance(op, LoadOp)]
    tiles += {op.tile for op in inner if isinstance(op, StoreOp) and not isinstance(op.tile.owner, LoadOp)}
    return sum(target.stage_layout([tile_type(tile)])[1] + target.alignment for tile in tiles)


def _loop(ops: Sequence[Operation], whole: BlockOp, part: BlockType, pieces: int) -> None:
    first = ops[0]
    reason = f"tiles go through it in {pieces} pieces of {part.extent} columns: shared memory has no room for the whole"
    missed(PieceTiles.name, first, reason)
    position, zero, one, count = BlockPositionOp(whole), constant(0), constant(1), constant(pieces)
    body = Block(arg_types=[IndexType()])
    loop = scf.ForOp(zero.result, count.result, one.result, [], body)
    before(first, [position, zero, one, count, loop])
    block = append(body, BlockOp(body.args[0], part, start=position.result), first.location)
    for op in ops:
        op.detach()
        body.add_op(op)
        for inner in op.walk():
            for number, operand in enumerate(inner.operands):
                if operand is whole.result:
                    inner.operands[number] = block.result
            for value in _tiles(inner, nested=False):
                shape = (*tile_type(value).shape[:-1], part.extent)
                Rewriter.replace_value_with_new_type(value, TileType(shape, tile_type(value).element_type))
    append(body, scf.YieldOp(), first.location)


def _tiles(op: Operation, *, nested: bool = True) -> list[SSAValue]:
    """Tiles of several elements that an operation makes, or passes to its body."""
    found: list[SSAValue] = []
    for inner in op.walk() if nested else (op,):
        passed = [value for region in inner.regions for block in region.blocks for value in block.args]
        found += [value for value in (*inner.results, *passed) if _is_tile(value)]
    return found


def _has_tile(op: Operation) -> bool:
    return any(map(_is_tile, (*op.results, *op.operands)))


def _is_tile(value: SSAValue) -> bool:
    return isinstance(value.type, TileType) and bool(value.type.shape)
