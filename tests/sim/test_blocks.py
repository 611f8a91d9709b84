"""Block lists against a plain enumeration of positions."""

import itertools

import pytest

from pkc.dialect import blocks


def positions(found):
    return [i for start, length in found for i in range(start, start + length)]


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8, 16])
def test_sharded_blocks_cover_the_dimension_and_keep_to_one_shard(ranks):
    for n, size in itertools.product(range(1, 40), range(1, 9)):
        length = -(-n // ranks)
        found = [blocks.sharded_block(n, ranks, size, i) for i in range(blocks.sharded_count(n, ranks, size))]
        assert positions(found) == list(range(n))
        assert all(b.start // length == (b.start + b.length - 1) // length and 0 < b.length <= size for b in found)


@pytest.mark.parametrize("ranks", [1, 3, 8])
def test_shards_cover_the_dimension(ranks):
    for n in range(1, 40):
        shards = [blocks.shard_bounds(n, ranks, rank) for rank in range(ranks)]
        assert [i for first, last in shards for i in range(first, last)] == list(range(n))


def test_bounded_blocks():
    for n, size in itertools.product(range(1, 12), range(1, 5)):
        for start, stop in itertools.product(range(-3, 15), repeat=2):
            first, last = blocks.clamp(n, start, stop)
            found = [blocks.block(first, last, size, i) for i in range(blocks.count(first, last, size))]
            assert positions(found) == [i for i in range(n) if start <= i < stop]


def test_a_block_that_does_not_exist_is_empty():
    assert blocks.block(0, 10, 4, 3).length == 0
    assert blocks.block(0, 10, 4, -1).length == 0
    assert blocks.sharded_block(10, 3, 4, 99).length == 0
    assert blocks.clamp(10, None, None) == (0, 10)


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8, 16])
def test_shards_alternate(ranks):
    """Each block once; in rounds of the shards that have a block left, from the first shard on, round about."""
    for n, size in itertools.product(range(1, 40), range(1, 9)):
        count = blocks.sharded_count(n, ranks, size)
        length = -(-n // ranks)
        left = [blocks.count(*blocks.shard_bounds(n, ranks, rank), size) for rank in range(ranks)]
        for first in range(ranks + 1):
            order = [blocks.interleaved(n, ranks, size, i, first) for i in range(count)]
            assert sorted(order) == list(range(count))
            expected = []
            for round_ in range(max(left)):
                having = [shard for shard in range(ranks) if left[shard] > round_]
                begin = first % len(having)
                expected += [(shard, round_) for shard in having[begin:] + having[:begin]]
            found = [blocks.sharded_block(n, ranks, size, i).start for i in order]
            assert [(start // length, start % length // size) for start in found] == expected


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
def test_the_index_of_the_block_that_has_a_position(ranks):
    for n, size in itertools.product(range(1, 40), range(1, 9)):
        along = [blocks.sharded_block(n, ranks, size, i) for i in range(blocks.sharded_count(n, ranks, size))]
        across = [blocks.block(0, n, size, i) for i in range(blocks.count(0, n, size))]
        for found, sharded in ((along, True), (across, False)):
            having = [i for i, block in enumerate(found) for _ in range(block.length)]
            assert [blocks.index_of(n, ranks, size, p, sharded=sharded) for p in range(n)] == having
