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


def zigzag(n, ranks):
    """The positions of each rank's shard, in order."""
    return [positions(blocks.zigzag_halves(n, ranks, rank)) for rank in range(ranks)]


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
def test_zigzag_has_each_position_once_in_shards_of_the_usual_length(ranks):
    for n in range(1, 60):
        shards = zigzag(n, ranks)
        assert sorted(itertools.chain(*shards)) == list(range(n))
        bounds = [blocks.shard_bounds(n, ranks, rank) for rank in range(ranks)]
        assert [len(shard) for shard in shards] == [last - first for first, last in bounds]
        assert all(shard == sorted(shard) for shard in shards)
        assert shards == [[blocks.zigzag(n, ranks, r, i) for i in range(len(shard))] for r, shard in enumerate(shards)]


@pytest.mark.parametrize(("ranks", "size"), [(1, 4), (2, 1), (3, 5), (4, 8)])
def test_zigzag_goes_there_and_back(ranks, size):
    """Of 2W pieces, rank r has those of numbers r and 2W - 1 - r."""
    for rank, shard in enumerate(zigzag(2 * ranks * size, ranks)):
        pieces = [rank, 2 * ranks - 1 - rank]
        assert shard == [piece * size + i for piece in pieces for i in range(size)]


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_zigzag_is_even(ranks):
    """Each position sees those up to itself: no rank has more than its share of that, but for a row in each half."""
    n = 64 * ranks - 5
    work = [sum(position + 1 for position in shard) for shard in zigzag(n, ranks)]
    assert max(work) <= n * (n + 1) / 2 / ranks + 2 * n
    assert max(sum(i + 1 for i in range(*blocks.shard_bounds(n, ranks, r))) for r in range(ranks)) > 1.4 * max(work)


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_zigzag_blocks_before_a_position(ranks):
    for n, size in itertools.product(range(1, 30), range(1, 6)):
        for shard, positions in enumerate(zigzag(n, ranks)):
            starts = range(0, len(positions), size)
            for inside, limit in itertools.product((0, size - 1), range(-2, n + 3)):
                before = [blocks.zigzag(n, ranks, shard, start + inside) < limit for start in starts]
                found = blocks.zigzag_count(n, ranks, size, shard, inside, limit)
                assert min(found, len(starts)) == sum(before)
                assert before == sorted(before, reverse=True)


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_blocks_before_a_position_shard_after_shard(ranks):
    for n, size in itertools.product(range(1, 30), range(1, 6)):
        count = blocks.sharded_count(n, ranks, size)
        starts = [blocks.sharded_block(n, ranks, size, index).start for index in range(count)]
        for limit in range(-size - 2, n + 3):
            found = blocks.sharded_before(n, ranks, size, limit)
            assert min(found, count) == sum(start < limit for start in starts)
