"""What the lengths of rows and of shards are multiples of, at the sizes of a launch: rows that TMA moves begin at
multiples of 16 bytes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from xdsl.ir import Operation

from pkc.dialect.access import LoadOp, StoreOp, array_type
from pkc.dialect.blocks import shard_length
from pkc.dialect.coordinates import BlockOp
from pkc.dialect.program import KernelOp
from pkc.dialect.tile import block_type
from pkc.dialect.types import PGLType, PrivateType, dtype_bytes, ends_with_shards, row_of
from pkc.dialect.words import every_shard
from pkc.targets.layout import CHUNK


def divisors_of(kernels: Iterable[Operation], dims: Mapping[str, int], ranks: int) -> dict[str, int]:
    """By `row_of`, the greatest power of two that divides the lengths of rows, if rows of some array do not begin at
    multiples of 16 bytes. Of an array that ends with shards there may be a copy with whole rows. By `every_shard`, the
    same of shards, if they are equal and an access follows those of several dimensions."""
    return Divisors(kernels).at(dims, ranks)


class Divisors:
    """What of kernels depends on what lengths are multiples of."""

    def __init__(self, kernels: Iterable[Operation]) -> None:
        self._rows: list[tuple[str, str | None, int]] = []
        """Dimensions of rows, the name of those of their shards, and the bytes of an element."""
        self._crossed: set[str] = set()
        for kernel in kernels:
            assert isinstance(kernel, KernelOp)
            self._crossed |= _crossed(kernel)
            for kind in (argument.type for argument in kernel.body.block.args):
                if not isinstance(kind, PrivateType | PGLType) or len(kind.dimensions) < 2:
                    continue
                last, shards = kind.dimensions[-1], row_of(kind) if ends_with_shards(kind) else None
                if isinstance(last, str):
                    self._rows.append((last, shards, dtype_bytes(kind.element_type)))

    def at(self, dims: Mapping[str, int], ranks: int) -> dict[str, int]:
        """What they are multiples of, as `divisors_of` says."""
        found: dict[str, int] = {}
        for last, shards, size in self._rows:
            if last not in dims:
                continue
            lengths = {last: dims[last]}
            if shards is not None:
                lengths[shards] = shard_length(dims[last], ranks)
            for row, length in lengths.items():
                divisor = math.gcd(length, CHUNK)
                if divisor * size % CHUNK:
                    found[row] = min(divisor, found.get(row, divisor))
        for dim in self._crossed & dims.keys():
            if dims[dim] % ranks == 0:
                found[every_shard(dim)] = math.gcd(dims[dim] // ranks, _LONGEST_BLOCK)
        return found


_LONGEST_BLOCK = 1 << 16
"""What the lengths of shards are multiples of matters up to the size of a block."""


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
