"""What the lengths of rows and of shards are multiples of, at the sizes of a launch: rows that TMA moves begin at
multiples of 16 bytes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from xdsl.dialects import arith
from xdsl.ir import Operation

from pkc.dialect.access import LoadOp, StoreOp
from pkc.dialect.arrays import array_type
from pkc.dialect.coordinates import BlockOp, DimOp, RankOp
from pkc.dialect.program import KernelOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import block_type
from pkc.dialect.types import PGLType, PrivateType, dtype_bytes, ends_with_shards, row_of
from pkc.driver.lengths import Lengths
from pkc.passes.analysis.dependence import sources
from pkc.targets.layout import CHUNK


def divisors_of(kernels: Iterable[Operation], dims: Mapping[str, int], ranks: int) -> dict[str, int]:
    """By `row_of`, the greatest power of two that divides the lengths of rows, if rows of some array do not begin at
    multiples of 16 bytes. Of an array that ends with shards there may be a copy with whole rows. By `every_shard`, the
    same of shards, if they are equal, and an access follows those of several dimensions or reads those of other ranks
    that rows end with. By `begin_of`, the same of sizes at which blocks of rows begin, as far as it matters."""
    return lengths_of(kernels).divisors(dims, ranks)


def lengths_of(kernels: Iterable[Operation]) -> Lengths:
    """The lengths that `divisors_of` looks at, of kernels at the tile level: before, shifted blocks are tables."""
    rows: dict[tuple[str, str | None, int], None] = {}
    crossed, staged, begins = set[str](), set[str](), set[tuple[str, int]]()
    for kernel in kernels:
        assert isinstance(kernel, KernelOp)
        crossed |= _crossed(kernel)
        staged |= _staged(kernel)
        begins.update(_begins(kernel))
        for kind in (argument.type for argument in kernel.body.block.args):
            if not isinstance(kind, PrivateType | PGLType) or len(kind.dimensions) < 2:
                continue
            last, shards = kind.dimensions[-1], row_of(kind) if ends_with_shards(kind) else None
            if isinstance(last, str):
                rows[last, shards, dtype_bytes(kind.element_type)] = None
    return Lengths(tuple(rows), tuple(sorted(crossed)), tuple(sorted(staged)), tuple(sorted(begins)))


def _begins(kernel: KernelOp) -> Iterator[tuple[str, int]]:
    """The sizes from which blocks of rows are counted, as `Lengths.begins` has them."""
    for op in kernel.walk():
        if not isinstance(op, LoadOp | StoreOp) or not op.indices:
            continue
        block, size = op.indices[-1].owner, dtype_bytes(array_type(op.array).element_type)
        if not isinstance(block, BlockOp) or block.start is None:
            continue
        found = [value.owner for value in sources([block.start])]
        quotients = (constant_of(op.rhs) for op in found if isinstance(op, arith.FloorDivSIOp))
        most = CHUNK // size * math.prod(by for by in quotients if by)
        yield from ((op.dim.data, most) for op in found if isinstance(op, DimOp))


def _crossed(kernel: KernelOp) -> set[str]:
    """The dimensions of which one access follows the shards of several: a box of TMA can only follow one."""
    found: set[str] = set()
    for op in kernel.walk():
        if not isinstance(op, LoadOp | StoreOp):
            continue
        kind = array_type(op.array)
        blocks = (index.owner for index in op.indices)
        dims = {block_type(block.result).of for block in blocks if isinstance(block, BlockOp) and block.in_shard}
        if isinstance(kind, PGLType) and kind.shard_dim is not None:
            dims.add(kind.dimensions[kind.shard_dim])
        if len(dims) > 1:
            found.update(dim for dim in dims if isinstance(dim, str))
    return found


def _staged(kernel: KernelOp) -> set[str]:
    """The dimensions of rows of which blocks in shards are read or written: in shards of other ranks, and of arrays
    that have all of a row."""
    found: set[str] = set()
    for op in kernel.walk():
        if not isinstance(op, LoadOp | StoreOp) or not op.indices:
            continue
        block, kind = op.indices[-1].owner, array_type(op.array)
        dim = kind.dimensions[-1]
        if not isinstance(block, BlockOp) or not block.in_shard or not isinstance(dim, str):
            continue
        of_others = isinstance(op, LoadOp) and (block.shard is None or not isinstance(block.shard.owner, RankOp))
        if of_others or not isinstance(kind, PGLType) or not ends_with_shards(kind):
            found.add(dim)
    return found
