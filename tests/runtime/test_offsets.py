"""Offsets in the symmetric heap."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pkc.runtime.offsets import ALIGNMENT, Offsets

SIZES = st.integers(0, 5 * ALIGNMENT)


def take(offsets: Offsets, size: int) -> int:
    lacking = offsets.lacking(size)
    if lacking:
        offsets.extend(lacking)
    return offsets.take(size)


def test_one_after_the_other() -> None:
    offsets = Offsets()
    assert [take(offsets, size) for size in (1, 1024, 1025, 0)] == [0, 1024, 2048, 4096]
    assert offsets.size == 5120


def test_a_gap_is_filled_and_gaps_join() -> None:
    offsets = Offsets()
    a, b, c, _ = (take(offsets, 1024) for _ in range(4))
    offsets.give(b)
    assert offsets.lacking(2048) == 2048
    assert take(offsets, 1000) == b
    offsets.give(b)
    offsets.give(a)
    offsets.give(c)
    assert offsets.lacking(3072) == 0
    assert take(offsets, 3072) == a


def test_a_gap_at_the_end_is_made_longer() -> None:
    offsets = Offsets()
    offsets.extend(4096)
    assert take(offsets, 1024) == 0
    assert offsets.lacking(8192) == 8192 - 3072
    assert take(offsets, 8192) == 1024


def test_what_is_in_use_behind_a_gap_is_not_given_back() -> None:
    offsets = Offsets()
    offsets.extend(4096)
    first, behind = take(offsets, 1024), take(offsets, 3072)
    offsets.give(first)
    assert not offsets.shrink(0)
    assert (offsets.size, offsets.lacking(1024)) == (4096, 0)
    offsets.give(behind)
    assert offsets.shrink(0)
    assert offsets.size == 0


@given(st.lists(SIZES | st.none(), max_size=40), st.randoms(use_true_random=False))
def test_ranges_do_not_overlap_and_all_come_back(steps: list[int | None], random: object) -> None:
    offsets, used = Offsets(), dict[int, int]()
    for size in steps:
        if size is None and used:
            start = random.choice(sorted(used))  # pyright: ignore
            offsets.give(start)
            del used[start]
        elif size is not None:
            start = take(offsets, size)
            assert start % ALIGNMENT == 0
            assert all(start + size <= other or other + length <= start for other, length in used.items())
            assert start + size <= offsets.size
            used[start] = max(size, 1)
    for start in used:
        offsets.give(start)
    assert offsets.lacking(offsets.size) == 0 or offsets.size == 0
