"""What the lengths of rows and of shards are multiples of, at the sizes of a launch: rows that TMA moves begin at
multiples of 16 bytes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from xdsl.dialects import arith
from xdsl.ir import Operation

from pkc.dialect.access import AccumulateOp, LoadOp, StoreOp
from pkc.dialect.arrays import array_type, is_pgl
from pkc.dialect.coordinates import BlockOp, DimOp, RankOp
from pkc.dialect.program import KernelOp
from pkc.dialect.scalars import constant_of
from pkc.dialect.tile import block_type
from pkc.dialect.types import Layout, PGLType, PrivateType, dtype_bytes, ends_with_shards, row_of
from pkc.driver.lengths import Lengths
from pkc.passes.analysis.dependence import sources
from pkc.passes.roles.remote_accesses import divided_along, divided_dim, sums
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
    crossed, in_shards, begins = set[str](), set[str](), set[tuple[str, int]]()
    for kernel in kernels:
        assert isinstance(kernel, KernelOp)
        crossed.update(_crossed(kernel))
        in_shards.update(_in_shards(kernel))
        begins.update(_begins(kernel))
        for kind in (argument.type for argument in kernel.body.block.args):
            if not isinstance(kind, PrivateType | PGLType) or len(kind.dimensions) < 2:
                continue
            last, shards = kind.dimensions[-1], row_of(kind) if ends_with_shards(kind) else None
            if isinstance(last, str):
                rows[last, shards, dtype_bytes(kind.element_type)] = None
    return Lengths(tuple(rows), tuple(sorted(crossed)), tuple(sorted(in_shards)), tuple(sorted(begins)))


def _accesses(kernel: KernelOp) -> Iterator[LoadOp | StoreOp]:
    yield from (op for op in kernel.walk() if isinstance(op, LoadOp | StoreOp) and op.indices)


def _blocks_of_rows(kernel: KernelOp) -> Iterator[tuple[LoadOp | StoreOp, BlockOp]]:
    """Accesses, and the blocks of rows that they are to."""
    for op in _accesses(kernel):
        if isinstance(block := op.indices[-1].owner, BlockOp):
            yield op, block


def _begins(kernel: KernelOp) -> Iterator[tuple[str, int]]:
    """The sizes from which blocks of rows are counted, as `Lengths.begins` has them."""
    for op, block in _blocks_of_rows(kernel):
        if block.start is None:
            continue
        found = [value.owner for value in sources([block.start])]
        quotients = (constant_of(op.rhs) for op in found if isinstance(op, arith.FloorDivSIOp))
        most = CHUNK // dtype_bytes(array_type(op.array).element_type) * math.prod(by for by in quotients if by)
        yield from ((op.dim.data, most) for op in found if isinstance(op, DimOp))


def _crossed(kernel: KernelOp) -> Iterator[str]:
    """The dimensions of which one access follows the shards of several: a box of TMA can only follow one."""
    for op in _accesses(kernel):
        kind = array_type(op.array)
        blocks = (index.owner for index in op.indices)
        dims = {block_type(block.result).of for block in blocks if isinstance(block, BlockOp) and block.in_shard}
        if isinstance(kind, PGLType) and kind.shard_dim is not None:
            dims.add(kind.dimensions[kind.shard_dim])
        if len(dims) > 1:
            yield from (dim for dim in dims if isinstance(dim, str))


def _in_shards(kernel: KernelOp) -> Iterator[str]:
    """The dimensions of rows of which blocks in shards are read or written: in shards of other ranks, and of arrays
    that have all of a row. Blocks follow the shards, too, by which a sum that all ranks get is divided among owners."""
    everywhere = (op for op in sums(kernel) if isinstance(op, AccumulateOp) and is_pgl(op.array, Layout.Replicate))
    divided = {divided_dim(op) for op in everywhere if divided_along(op) is not None}
    for op, block in _blocks_of_rows(kernel):
        kind = array_type(op.array)
        dim = kind.dimensions[-1]
        if not isinstance(dim, str) or not (block.in_shard or dim in divided):
            continue
        of_others = isinstance(op, LoadOp) and (block.shard is None or not isinstance(block.shard.owner, RankOp))
        if of_others or not isinstance(kind, PGLType) or not ends_with_shards(kind):
            yield dim
