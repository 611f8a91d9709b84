"""The semantics of block lists: which positions of a dimension each block covers. Plain integer functions."""

from __future__ import annotations

from typing import NamedTuple

PITCH = 32
"""Bytes that padded rows begin at multiples of: TMA needs 16 (PTX ISA: tensor-map strides), and a thread stores eight
elements at once."""


class Block(NamedTuple):
    """`length` positions from `start` on; a block at an edge is shorter than its list's size, or empty."""

    start: int
    length: int


def padded_length(n: int, size: int) -> int:
    """The length of rows of `n` elements of `size` bytes that begin at multiples of 32 bytes."""
    each = PITCH // size
    return -(-n // each) * each


def shard_length(n: int, ranks: int) -> int:
    """The length of one rank's shard of a dimension of `n` positions; the last shards may be shorter or empty."""
    return -(-n // ranks)


def shard_bounds(n: int, ranks: int, rank: int) -> tuple[int, int]:
    """The first position of a rank's shard of a dimension, and the one after its last."""
    length = shard_length(n, ranks)
    return min(rank * length, n), min((rank + 1) * length, n)


def owner(n: int, ranks: int, position: int) -> int:
    """The rank whose shard of a dimension has a position; the last rank for one past the end."""
    return min(position // shard_length(n, ranks), ranks - 1)


def half(n: int, ranks: int) -> int:
    """The length of the first half of a shard of a dimension in zigzag order."""
    return -(-shard_length(n, ranks) // 2)


def zigzag(n: int, ranks: int, shard: int, within: int) -> int:
    """The position of what lies `within` a shard of a dimension in zigzag order; past the shard's end they go on.

    A shard has two halves, the first one rounded up. The first halves have the first positions, from rank to rank;
    the second halves have the others, from the last rank to the first. So within a shard positions ascend.
    """
    first = half(n, ranks)
    behind = max(n - (shard + 1) * shard_length(n, ranks), 0)  # in the shards of higher ranks
    return shard * first + within + (behind if within >= first else 0)


def zigzag_count(n: int, ranks: int, size: int, shard: int, inside: int, limit: int) -> int:
    """How many blocks of a shard in zigzag order have their element `inside` at a position before `limit`.

    They are the first ones, as positions ascend; if all blocks of the shard are, the number may be larger.
    """
    early = max(count(inside, half(n, ranks), size), 0)
    begin, gap = zigzag(n, ranks, shard, 0) + inside, max(n - (shard + 1) * shard_length(n, ranks), 0)
    return max(min(count(begin, limit, size), early), count(begin + gap, limit, size))


def zigzag_halves(n: int, ranks: int, rank: int) -> list[Block]:
    """The positions of the two halves of a rank's shard of a dimension in zigzag order; they may be empty."""
    first, stop = shard_bounds(n, ranks, rank)
    length, before = stop - first, half(n, ranks)
    early = min(before, length)
    late = length - early
    return [Block(zigzag(n, ranks, rank, 0), early), Block(zigzag(n, ranks, rank, before), late)]


def index_of(n: int, ranks: int, size: int, position: int, *, sharded: bool) -> int:
    """The index of the block that has a position, in the list of all blocks of a dimension."""
    if not sharded:
        return position // size
    of, within = divmod(position, shard_length(n, ranks))
    return of * count(0, shard_length(n, ranks), size) + within // size


def number(n: int, ranks: int, size: int, position: int) -> int:
    """A number for the block that starts at `position`, the same whether or not the list follows the shards.

    Within a shard the first term counts blocks. From one shard to the next it may stay the same, but the owner grows.
    """
    return position // size + owner(n, ranks, position)


def numbers(n: int, ranks: int, size: int) -> int:
    """An upper bound of `number`: how many counters a dimension has if each block has its counter."""
    return count(0, n, size) + ranks


def interleaved(n: int, ranks: int, size: int, index: int, first: int) -> int:
    """The number, in the list that follows the shards, of block `index` of the interleaved order.

    The interleaved order has rounds: the first block of every shard, then the second, and so on. In each round the
    shards follow each other from `first` on. All shards but the last that has any positions are of one length.
    """
    length = shard_length(n, ranks)
    each = count(0, length, size)
    whole, rest = divmod(n, length) if length else (0, 0)
    common = count(0, rest, size) * (whole + 1)
    if index < common:
        round_, place, shards = index // (whole + 1), index % (whole + 1), whole + 1
    else:
        round_, place, shards = count(0, rest, size) + (index - common) // whole, (index - common) % whole, whole
    return (place + first) % shards * each + round_


def clamp(n: int, start: int | None, stop: int | None) -> tuple[int, int]:
    """Explicit bounds, clamped to the dimension."""
    first = 0 if start is None else min(max(start, 0), n)
    last = n if stop is None else min(max(stop, 0), n)
    return first, last


def count(start: int, stop: int, size: int) -> int:
    """How many blocks of `size` cover the positions from `start` to `stop`."""
    return max(0, -(-(stop - start) // size))


def block(start: int, stop: int, size: int, index: int) -> Block:
    """Block `index` of the positions from `start` to `stop`; empty if there is no such block."""
    first = start + index * size
    if index < 0 or first >= stop:
        return Block(stop, 0)
    return Block(first, min(size, stop - first))


def sharded_count(n: int, ranks: int, size: int) -> int:
    """How many blocks cover a dimension when none may straddle two shards."""
    length = shard_length(n, ranks)
    full, rest = divmod(n, length)
    return full * count(0, length, size) + count(0, rest, size)


def sharded_before(n: int, ranks: int, size: int, limit: int) -> int:
    """How many blocks of a dimension, counted shard after shard, begin before a position; more, if all do."""
    length = shard_length(n, ranks)
    whole, rest = divmod(max(limit, 0), length)
    return whole * count(0, length, size) + count(0, rest, size)


def sharded_block(n: int, ranks: int, size: int, index: int) -> Block:
    """Block `index` of a dimension, counted shard after shard."""
    owner, within = divmod(index, count(0, shard_length(n, ranks), size))
    if not 0 <= owner < ranks:
        return Block(n, 0)
    return block(*shard_bounds(n, ranks, owner), size, within)
