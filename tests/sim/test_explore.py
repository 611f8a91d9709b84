"""Exploration: as many outcomes as in every order, one by one, and few runs where the order makes no difference."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from pkc.diagnostics import PkcError
from pkc.sim.explore import Chosen, Explored, explore
from pkc.sim.happens import Happened
from pkc.sim.schedule import Coroutine, Counter, Order, Scheduler
from pkc.sim.trace import Access, Trace

SOMEWHERE: Operation = ModuleOp([])
"""The operation of every wait, for the report of a deadlock."""


class Do(NamedTuple):
    """One operation: `signal` or `await` a counter, `raise` or `reset` it, `read`, `write` or `add` to an address."""

    what: str
    name: str
    number: int = 1


Program = list[list[Do]]


class Toy:
    """Coroutines that do one operation after another; `outcomes` are what their reads have found in each run."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.outcomes: set[object] = set()

    def run(self, order: Order, trace: Trace) -> None:
        scheduler = Scheduler(order)
        scheduler.trace = trace
        counters: dict[Counter, int] = {}
        memory: dict[str, list[object]] = {}
        found: list[list[object]] = [[] for _ in self.program]

        def act(number: int, place: int, do: Do) -> None:
            counter = Counter(0, do.name, ())
            if do.what == "await":
                scheduler.wait(SOMEWHERE, counter, do.number, lambda: counters.get(counter, 0))
                return
            scheduler.pause()
            before = counters.get(counter, 0)
            if do.what == "signal":
                counters[counter] = before + do.number
                trace.added(SOMEWHERE, counter, do.number, 0)
                scheduler.let_go(counter)
            elif do.what in ("raise", "reset"):
                counters[counter] = max(before, do.number) if do.what == "raise" else 0
                trace.set(SOMEWHERE, counter, counters[counter] - before, 0)
                scheduler.let_go(counter)
            elif do.what == "read":
                trace.steps[-1].touch(((do.name, 0),), Access.Read)
                found[number].append(sorted(map(str, memory.get(do.name, ()))))
            elif do.what == "write":
                trace.steps[-1].touch(((do.name, 0),), Access.Write)
                memory[do.name] = [(number, place)]
            else:
                trace.steps[-1].touch(((do.name, 0),), Access.Add)
                memory[do.name] = [*memory.get(do.name, ()), (number, place)]

        def coroutine(number: int) -> None:
            for place, do in enumerate(self.program[number]):
                act(number, place, do)

        for number in range(len(self.program)):
            scheduler.spawn(number, "", lambda number=number: coroutine(number))
        try:
            scheduler.run(lambda: None)
        except PkcError:
            self.outcomes.add(("deadlock", str(found)))
            return
        self.outcomes.add(str(found))

    def explore(self, most: int = 10_000) -> Explored:
        return explore(self.run, most)


class EveryOrder:
    """All orders, one after the other, without any reduction."""

    def __init__(self) -> None:
        self._choices: list[list[int]] = []
        self._place = 0

    def choose(self, ready: list[Coroutine]) -> int:
        if self._place == len(self._choices):
            self._choices.append([0, len(ready)])
        chosen = self._choices[self._place][0]
        self._place += 1
        return chosen

    def next(self) -> bool:
        self._place = 0
        while self._choices:
            self._choices[-1][0] += 1
            if self._choices[-1][0] < self._choices[-1][1]:
                return True
            self._choices.pop()
        return False


def every_outcome(program: Program) -> set[object]:
    toy, order = Toy(program), EveryOrder()
    toy.run(order, Trace())
    while order.next():
        toy.run(order, Trace())
    return toy.outcomes


KINDS = ("signal", "signal", "raise", "await", "await", "read", "write", "write", "add")


def drawn(seed: int, kinds: tuple[str, ...]) -> Program:
    """Two or three coroutines of a few operations on two counters and two addresses."""
    source = random.Random(seed)
    count = source.choice((2, 2, 3))

    def do() -> Do:
        what = source.choice(kinds)
        name = source.choice("xy" if what in ("read", "write", "add") else "st")
        return Do(what, name, source.choice((1, 1, 2)) if what in ("raise", "await") else 1)

    return [[do() for _ in range(source.randint(1, 4 if count == 2 else 2))] for _ in range(count)]


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_every_outcome_is_found(first: int) -> None:
    for seed in range(first, first + 20):
        program = drawn(seed, KINDS)
        toy = Toy(program)
        assert toy.explore().complete
        assert toy.outcomes == every_outcome(program), program


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_resets(first: int) -> None:
    """A counter that is reset may leave a wait without what it waited for: then exploration ends, with that."""
    for seed in range(first, first + 20):
        program = drawn(seed, ("reset", *KINDS))
        toy, every = Toy(program), every_outcome(program)
        assert toy.explore().complete
        if any(isinstance(outcome, tuple) for outcome in every):
            assert any(isinstance(outcome, tuple) for outcome in toy.outcomes), program
        else:
            assert toy.outcomes == every, program


@pytest.mark.parametrize(
    ("program", "outcomes"),
    [
        # A wait for one signal of two: what the other sender does before may be seen or not.
        (
            [
                [Do("write", "x"), Do("signal", "s")],
                [Do("write", "y"), Do("signal", "s")],
                [Do("await", "s"), Do("read", "x"), Do("read", "y")],
            ],
            3,
        ),
        # A wait for both orders everything.
        (
            [
                [Do("write", "x"), Do("signal", "s")],
                [Do("write", "y"), Do("signal", "s")],
                [Do("await", "s", 2), Do("read", "x"), Do("read", "y")],
            ],
            1,
        ),
        # A sender that goes on to its next launch does not touch what is waited for in this one.
        ([[Do("write", "x"), Do("raise", "s", 1), Do("raise", "s", 2)], [Do("await", "s"), Do("read", "x")]], 1),
        ([[Do("await", "s"), Do("signal", "t")], [Do("await", "t"), Do("signal", "s")]], 1),
    ],
)
def test_signals_order_what_they_count(program: Program, outcomes: int) -> None:
    toy = Toy(program)
    assert toy.explore().complete
    assert toy.outcomes == every_outcome(program)
    assert len(toy.outcomes) == outcomes


def test_what_signals_order_takes_one_run() -> None:
    pipe = [[Do("signal", "full") for _ in range(6)], [Do("await", "full", count + 1) for count in range(6)]]
    disjoint = [[Do("write", name)] * 6 for name in "abc"]
    for program in (pipe, disjoint):
        explored = Toy(program).explore()
        assert (explored.runs, explored.complete) == (1, True)


def test_the_bound_is_reported() -> None:
    program = [[Do("write", "x")] * 3, [Do("write", "x"), Do("read", "x")] * 2]
    assert not Toy(program).explore(2).complete
    assert Toy(program).explore(2).runs == 2
    assert Toy(program).explore().complete


def test_steps_are_bounded_too() -> None:
    program = [[Do("write", "x")] * 3, [Do("write", "x"), Do("read", "x")] * 2]
    one = Toy(program).explore(1)
    assert explore(Toy(program).run, 100, one.steps).runs == 1
    two = explore(Toy(program).run, 100, one.steps + 1)
    assert (two.runs, two.complete) == (2, False) and two.in_all > one.steps
    whole = Toy(program).explore()
    assert explore(Toy(program).run, 10**6, whole.in_all).runs == whole.runs


def test_a_given_order_is_followed() -> None:
    toy, trace = Toy([[Do("write", "x")] * 2, [Do("write", "x"), Do("read", "x")]]), Trace()
    choices = ((1,), (0,), (1,), (0,), (1,), (0,))
    toy.run(Chosen(choices), trace)
    assert trace.choices == choices
    assert toy.outcomes == {str([[], [["(0, 0)"]]])}


def _looks(rounds: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often it is asked whether a step knows another one, of two coroutines that await each other in turn."""
    looks, knows = 0, Happened._knows

    def counted(self: Happened, clock: dict[tuple[int, ...], int], step: int) -> bool:
        nonlocal looks
        looks += 1
        return knows(self, clock, step)

    one = [do for number in range(1, rounds + 1) for do in (Do("signal", "there"), Do("await", "back", number))]
    other = [do for number in range(1, rounds + 1) for do in (Do("await", "there", number), Do("signal", "back"))]
    with monkeypatch.context() as patch:
        patch.setattr(Happened, "_knows", counted)
        assert explore(Toy([one, other]).run, 5).complete
    return looks


def test_a_counter_that_grows_for_long_is_followed_in_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each signal and each wait before it: not once more for each signal that the wait had awaited."""
    few, many = (_looks(rounds, monkeypatch) for rounds in (15, 30))
    assert many < 4.5 * few
