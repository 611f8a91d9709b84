"""Every order of a run, up to the order of steps that do not depend on each other.

Runs are repeated from the start, each with a prefix of choices (stateless model checking, Godefroid 1997). From each
run follow those in which two dependent steps come in the opposite order (dynamic partial order reduction, Flanagan and
Godefroid 2005, with the source sets and sleep sets of Abdulla et al. 2014).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pkc.diagnostics import Diagnostic, PkcError
from pkc.sim.happens import Happened, Path
from pkc.sim.schedule import Coroutine, Order
from pkc.sim.trace import Access, Step, Trace
from pkc.sim.work import TooLongError

Run = Callable[[Order, Trace], None]
"""Carries out one run in an order. Raises `PkcError` for what it finds."""


class _Asleep(Exception):
    """Raised in a run that would only repeat another one."""


@dataclass
class _Choice:
    """One point of a run: the coroutine that runs, those to be tried there, those tried or known to be redundant."""

    chosen: Path
    wanted: set[Path]
    asleep: dict[Path, Step]
    step: Step | None = None
    done: dict[Path, Step] = field(default_factory=dict[Path, Step])


@dataclass(frozen=True)
class Explored:
    """How many runs were made, the steps of the first, whether they cover all orders, and what the last one found."""

    runs: int
    steps: int
    complete: bool
    found: tuple[Diagnostic, ...] = ()
    choices: tuple[Path, ...] = ()
    """The coroutine of each step of the last run."""
    in_all: int = 0
    """The steps of all runs together."""


class Chosen:
    """A given order: the coroutine of each step; after the last, the same coroutine as long as it can run."""

    def __init__(self, choices: tuple[Path, ...] = ()) -> None:
        self._choices = iter(choices)
        self._last: Path = ()

    def choose(self, ready: list[Coroutine]) -> int:
        paths = [coroutine.path for coroutine in ready]
        wanted = next(self._choices, self._last)
        self._last = wanted if wanted in paths else min(paths)
        return paths.index(self._last)


class _Explorer:
    """The order of one run after another."""

    def __init__(self) -> None:
        self.choices: list[_Choice] = []
        self.trace = Trace()
        self._place = 0

    def begin(self) -> None:
        """Begin a run with the choices made so far."""
        self.trace = Trace()
        self._place = 0

    def choose(self, ready: list[Coroutine]) -> int:
        paths = [coroutine.path for coroutine in ready]
        if self._place:
            self.choices[self._place - 1].step = self.trace.steps[-1]
        if self._place == len(self.choices):
            asleep = self._still_asleep()
            awake = [path for path in paths if path not in asleep]
            if not awake:
                raise _Asleep
            last = self.choices[-1].chosen if self.choices else ()
            chosen = last if last in awake else min(awake)
            self.choices.append(_Choice(chosen, {chosen}, asleep))
        choice = self.choices[self._place]
        self._place += 1
        return paths.index(choice.chosen)

    def _still_asleep(self) -> dict[Path, Step]:
        if not self.choices:
            return {}
        before = self.choices[-1]
        assert before.step is not None
        asleep = before.asleep | before.done
        return {
            path: step for path, step in asleep.items() if path != before.chosen and _independent(step, before.step)
        }

    def end(self) -> None:
        """Note where, after this run, another coroutine has to be tried."""
        if self._place and self.trace.steps:
            self.choices[self._place - 1].step = self.trace.steps[-1]
        happened = Happened(self.trace.steps)
        for first, second in happened.races:
            choice = self.choices[first]
            instead = happened.instead(first, second)
            if not choice.wanted.intersection(instead):
                choice.wanted.add(instead[0])

    def next(self) -> bool:
        """Go back to the last point at which there is something else to try; whether there is any."""
        while self.choices:
            choice = self.choices[-1]
            if choice.step is not None:
                choice.done[choice.chosen] = choice.step
            left = [path for path in choice.wanted if path not in choice.done and path not in choice.asleep]
            if left:
                choice.chosen, choice.step = min(left), None
                return True
            self.choices.pop()
        return False


def explore(run: Run, most: int, most_steps: int | None = None) -> Explored:
    """Carry out runs until one finds something, all have been made, or their number has reached `most`, or that of
    their steps `most_steps`."""
    explorer = _Explorer()
    runs = steps = in_all = 0
    while runs < most and (most_steps is None or in_all < most_steps):
        explorer.begin()
        runs += 1
        try:
            run(explorer, explorer.trace)
        except _Asleep:
            pass
        except TooLongError:
            raise
        except PkcError as error:
            choices = explorer.trace.choices
            first, in_all = steps or len(choices), in_all + len(choices)
            return Explored(runs, first, complete=False, found=error.diagnostics, choices=choices, in_all=in_all)
        steps, in_all = steps or len(explorer.trace.steps), in_all + len(explorer.trace.steps)
        explorer.end()
        if not explorer.next():
            return Explored(runs, steps, complete=True, in_all=in_all)
    return Explored(runs, steps, complete=False, in_all=in_all)


def _independent(a: Step, b: Step) -> bool:
    """Whether two steps of different coroutines do the same in both orders."""
    if (b.guard is not None and b.guard.counter in a.amounts) or (a.guard is not None and a.guard.counter in b.amounts):
        return False
    common = a.accesses.keys() & b.accesses.keys()
    return all(a.accesses[address] == b.accesses[address] in ({Access.Read}, {Access.Add}) for address in common)
