"""Orders: what seeds stand for, and parts that are delayed."""

from __future__ import annotations

import itertools
from collections import Counter as Counts

import pytest

from pkc.sim.orders import Delay, order_of
from pkc.sim.schedule import Scheduler

STEPS = 40
ROLES = ("loader", "consumer of CTA 1", "storer")


def ran(seed: int, *delays: Delay) -> list[tuple[int, str]]:
    """Who took each step, of two ranks with three parts each that never wait."""
    scheduler = Scheduler(order_of(seed, delays))
    steps: list[tuple[int, str]] = []

    def part(rank: int, role: str) -> None:
        for _ in range(STEPS):
            steps.append((rank, role))
            scheduler.pause()

    for rank in range(2):
        for role in ROLES:
            scheduler.spawn(rank, role, lambda rank=rank, role=role: part(rank, role))
    scheduler.run(lambda: None)
    assert Counts(steps) == {(rank, role): STEPS for rank in range(2) for role in ROLES}
    return steps


@pytest.mark.parametrize("seed", range(10))
def test_a_seed_is_one_order(seed: int) -> None:
    assert ran(seed) == ran(seed)
    assert ran(seed) != ran(seed + 5)


def late(steps: list[tuple[int, str]], who: object) -> float:
    """Which part of the steps of somebody are among the last that there are as many of."""
    own = steps.count(who)  # pyright: ignore[reportArgumentType]
    return steps[-own:].count(who) / own  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("seed", [1, 6, 11])
def test_rank_by_rank(seed: int) -> None:
    ranks = [rank for rank, _ in ran(seed)]
    assert ranks[: len(ranks) // 2].count(ranks[0]) > 0.9 * len(ranks) / 2


@pytest.mark.parametrize("seed", [3, 8, 13])
def test_one_part_is_last(seed: int) -> None:
    steps = ran(seed)
    assert late(steps, steps[-1]) > 0.9


@pytest.mark.parametrize("seed", [4, 9, 14])
def test_single_operations_are_late(seed: int) -> None:
    steps = ran(seed)
    waited = {part: max(b - a for a, b in _between(steps, part)) for part in set(steps)}
    assert max(waited.values()) > 60  # among six parts, evenly, that would happen once in 50,000 times


def _between(steps: list[tuple[int, str]], part: tuple[int, str]) -> list[tuple[int, int]]:
    places = [place for place, who in enumerate(steps) if who == part]
    return list(itertools.pairwise(places))


@pytest.mark.parametrize(
    ("delay", "parts"),
    [
        (Delay(rank=1, role="storer"), {(1, "storer")}),
        (Delay(role="consumer"), {(0, "consumer of CTA 1"), (1, "consumer of CTA 1")}),
        (Delay(rank=0), {(0, role) for role in ROLES}),
    ],
)
def test_delays(delay: Delay, parts: set[tuple[int, str]]) -> None:
    steps = ran(0, delay)
    last = steps[-STEPS * len(parts) :]
    assert sum(who in parts for who in last) > 0.9 * len(last)
