"""Orders: what seeds stand for, and roles that are delayed."""

from __future__ import annotations

import itertools
from collections import Counter as Counts

import pytest

from pkc.sim.orders import Delay, order_of
from pkc.sim.schedule import Scheduler

STEPS = 40
ROLES = ("loader", "consumer of CTA 1", "storer")


def ran(seed: int, *delays: Delay) -> list[tuple[int, str]]:
    """Who took each step, of two ranks with three roles each that never wait."""
    scheduler = Scheduler(order_of(seed, delays))
    steps: list[tuple[int, str]] = []

    def coroutine(rank: int, role: str) -> None:
        for _ in range(STEPS):
            steps.append((rank, role))
            scheduler.pause()

    for rank in range(2):
        for role in ROLES:
            scheduler.spawn(rank, role, lambda rank=rank, role=role: coroutine(rank, role))
    scheduler.run(lambda: None)
    assert Counts(steps) == {(rank, role): STEPS for rank in range(2) for role in ROLES}
    return steps


@pytest.mark.parametrize("seed", range(10))
def test_a_seed_is_one_order(seed: int) -> None:
    assert ran(seed) == ran(seed)
    assert ran(seed) != ran(seed + 5)


def late(steps: list[tuple[int, str]], who: object) -> float:
    """Of the n steps of a role, the share that is among the last n of the run."""
    count = steps.count(who)  # pyright: ignore[reportArgumentType]
    return steps[-count:].count(who) / count  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("seed", [1, 6, 11])
def test_rank_by_rank(seed: int) -> None:
    ranks = [rank for rank, _ in ran(seed)]
    assert ranks[: len(ranks) // 2].count(ranks[0]) > 0.9 * len(ranks) / 2


@pytest.mark.parametrize("seed", [3, 8, 13])
def test_one_role_is_last(seed: int) -> None:
    steps = ran(seed)
    assert late(steps, steps[-1]) > 0.9


@pytest.mark.parametrize("seed", [4, 9, 14])
def test_single_operations_are_late(seed: int) -> None:
    steps = ran(seed)
    waited = {coroutine: max(b - a for a, b in _between(steps, coroutine)) for coroutine in set(steps)}
    assert max(waited.values()) > 60  # among six roles, evenly, that would happen once in 50,000 times


def _between(steps: list[tuple[int, str]], coroutine: tuple[int, str]) -> list[tuple[int, int]]:
    places = [place for place, who in enumerate(steps) if who == coroutine]
    return list(itertools.pairwise(places))


@pytest.mark.parametrize(
    ("delay", "delayed"),
    [
        (Delay(rank=1, role="storer"), {(1, "storer")}),
        (Delay(role="consumer"), {(0, "consumer of CTA 1"), (1, "consumer of CTA 1")}),
        (Delay(rank=0), {(0, role) for role in ROLES}),
    ],
)
def test_delays(delay: Delay, delayed: set[tuple[int, str]]) -> None:
    steps = ran(0, delay)
    last = steps[-STEPS * len(delayed) :]
    assert sum(who in delayed for who in last) > 0.9 * len(last)
