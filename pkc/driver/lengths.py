"""Lengths of rows and shards, and what they are multiples of at given sizes. Imports no compiler."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from pkc.dialect.blocks import shard_length
from pkc.dialect.words import begin_of, every_shard
from pkc.targets.layout import CHUNK

_LONGEST_BLOCK = 1 << 16
"""What the lengths of shards are multiples of matters up to the size of a block."""


@dataclass(frozen=True)
class Lengths:
    """What machine code depends on of the sizes of its launches."""

    rows: tuple[tuple[str, str | None, int], ...]
    """Dimensions of rows, the name of those of their shards, and the bytes of an element."""
    crossed: tuple[str, ...]
    """Dimensions of which one access follows the shards of several."""
    in_shards: tuple[str, ...] = ()
    """Dimensions of rows of which blocks in shards are accessed, of other ranks or of arrays that have all of a row: in
    memory these lie in whole rows."""
    begins: tuple[tuple[str, int], ...] = ()
    """Sizes at which blocks of rows begin, and up to which number it matters what they are multiples of."""

    def divisors(self, dims: Mapping[str, int], ranks: int) -> dict[str, int]:
        """What they are multiples of, as `divisors_of` says."""
        found: dict[str, int] = {}
        for last, shards, size in self.rows:
            if last not in dims or (shards is None and dims[last] % CHUNK == 0):
                continue
            lengths = {last: dims[last]}
            if shards is not None:
                lengths[shards] = shard_length(dims[last], ranks)
            for row, length in lengths.items():
                divisor = math.gcd(length, CHUNK)
                if divisor * size % CHUNK:
                    found[row] = min(divisor, found.get(row, divisor))
        for named, most in ((self.in_shards, CHUNK), (self.crossed, _LONGEST_BLOCK)):
            for dim in named:
                if dim in dims and dims[dim] % ranks == 0:
                    found[every_shard(dim)] = math.gcd(dims[dim] // ranks, most)
        for dim, most in self.begins:
            if dim in dims:
                found[begin_of(dim)] = math.lcm(math.gcd(dims[dim], most), found.get(begin_of(dim), 1))
        return found
