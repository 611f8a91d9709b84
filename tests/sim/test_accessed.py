"""Which boxes of an array meet: as if all were looked at, without a look at all."""

from __future__ import annotations

import random

import pytest

from pkc.sim import accessed
from pkc.sim.accessed import Box, Boxes, Grid, Places


def _drawn(draw: random.Random) -> Box:
    begin = [draw.randrange(40) for _ in range(2)]
    return tuple((first, first + draw.choice((1, 2, 3, 8, 30))) for first in begin)


def _in_common(a: Box, b: Box) -> bool:
    return all(set(range(*one)) & set(range(*other)) for one, other in zip(a, b, strict=True))


@pytest.mark.parametrize("seed", range(3))
def test_boxes_that_meet_another_are_found_in_their_order(seed: int) -> None:
    draw, places, there = random.Random(seed), Places(), []
    for _ in range(60):
        box = _drawn(draw)
        assert places.meeting(box) == [other for other in there if _in_common(box, other)]
        if box not in there:
            there.append(box)
            places.add(box)
        if draw.random() < 0.2:
            places.remove(gone := there.pop(draw.randrange(len(there))))
            assert gone not in places.meeting(gone)


def test_few_of_many_boxes_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of rows of one array that many tasks store one by one, and one task reads by blocks: 2048 rows have 2 million
    pairs."""
    looks = 0
    meet = accessed._meet

    def counted(a: Box, b: Box) -> bool:
        nonlocal looks
        looks += 1
        return meet(a, b)

    monkeypatch.setattr(accessed, "_meet", counted)
    boxes, block = Boxes[str](Grid()), ((0, 1), (0, 1024))
    assert boxes.meeting(block) == []
    boxes.put(block, "block")
    for row in range(2048):
        one = ((0, 1), (row, row + 1))
        assert boxes.meeting(one) == ([(block, "block")] if row < 1024 else [])
        boxes.put(one, "row")
    assert len(boxes.meeting(((0, 1), (1000, 1030)))) == 31  # rows, and the block
    assert looks < 4 * 2048
