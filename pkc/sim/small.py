"""The smallest instance of a kernel in which roles and ranks can go wrong with each other."""

from __future__ import annotations

from xdsl.dialects import arith

from pkc.dialect.coordinates import DimOp
from pkc.dialect.program import KernelOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.types import BlockType, PGLType
from pkc.sim.program import Program


def small_dims(kernel: KernelOp, ranks: int) -> dict[str, int]:
    """A size for each run-time dimension: two blocks, the second of one position; two for each rank of a sharded
    dimension, the last one short; 1 for a dimension that has neither blocks nor shards. As many more as are taken off:
    of offsets, of which sequences have one less."""
    program = Program(kernel)
    blocks: dict[str, int] = {}
    taken: dict[str, int] = {}
    for op in kernel.walk():
        if isinstance(op, arith.SubiOp) and isinstance(op.lhs.owner, DimOp):
            taken[op.lhs.owner.dim.data] = constant_of(op.rhs) or 0
        for value in (*op.operands, *op.results):
            kind = value.type
            if isinstance(kind, BlockType) and isinstance(kind.of, str):
                blocks[kind.of] = max(blocks.get(kind.of, 1), kind.extent)
    sharded = {
        kind.dimensions[kind.shard_dim]
        for kind in program.arrays.values()
        if isinstance(kind, PGLType) and kind.shard_dim is not None
    }
    sizes = {dim: _size(blocks.get(dim, 0), ranks if dim in sharded else 0) for dim in program.dims}
    return {dim: size + max(taken.get(dim, 0), 0) for dim, size in sizes.items()}


def _size(block: int, ranks: int) -> int:
    if ranks:
        return max(ranks, 2 * block * ranks - 1)
    return block + 1 if block else 1
