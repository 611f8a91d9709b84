"""Whether the roles level of a kernel computes what the tile level does: the program against its derived protocol.

Both levels get the same inputs. At the roles level every role of every CTA of every rank is a coroutine, seeds choose
the order in which they run, and the kernel is launched several times in a row without synchronisation, with other
inputs each time. Every output must be equal to the bit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from pkc.diagnostics import Diagnostic, PkcError
from pkc.dialect.program import KernelOp
from pkc.driver.compiler import Compiled
from pkc.location import span_of
from pkc.sim.draw import draw_inputs
from pkc.sim.explore import Chosen, Explored, Run, explore
from pkc.sim.happens import Path
from pkc.sim.launches import Launches, Memory, Outcome, launches_of
from pkc.sim.orders import Delay, order_of
from pkc.sim.run import simulate
from pkc.sim.schedule import Order
from pkc.sim.terms import Cuts, NeedsElements, with_cuts, with_terms
from pkc.sim.trace import Trace
from pkc.sim.work import TooLongError

Outputs = Mapping[str, np.ndarray[Any, Any]]


class ResultDiffers(Diagnostic):
    """Raised by `pkc check` when the roles level computes something else than the tile level."""

    code = "PK720"
    title = "`{array}` differs from the result of the tile level at {element} in launch {launch}"
    label = "with {ranks} ranks, {ctas} CTAs for each role, {order}"
    help = "this is a mistake in a pass, or in IR that was changed by hand"
    array: str
    element: str
    launch: int
    ranks: int
    ctas: int
    order: str


@dataclass(frozen=True)
class Trial:
    """One simulation of the roles level: how many CTAs run each role, and the seed of the order."""

    ctas: int
    seed: int
    delays: tuple[Delay, ...] = ()

    def order(self) -> Order:
        """A new order, at its beginning."""
        return order_of(self.seed, self.delays)

    def __str__(self) -> str:
        return f"seed {self.seed}"


def wide_trials(tile: KernelOp, spread: int, seeds: int) -> list[Trial]:
    """Behind so many seeds one more, on as many CTAs as have tasks on the target, where roles are an author's: a CTA
    that has tasks of one list and none of the next one does not announce there what it has stored."""
    return [Trial(spread, seeds)] if tile.roles and spread > 2 else []


@dataclass(frozen=True)
class Replay:
    """A simulation in a given order."""

    ctas: int
    choices: tuple[Path, ...]

    def order(self) -> Order:
        """A new order, at its beginning."""
        return Chosen(self.choices)

    def __str__(self) -> str:
        return "in the order below"


_EXPLAINING = 3
"""As many more trials are made for what explains a result that differs."""

TRIALS = tuple(Trial(1 + seed % 2, seed) for seed in range(24))
"""What `check_roles` simulates by default."""


@dataclass(frozen=True)
class Baseline:
    """Inputs of some launches, and the outputs that the tile level gives for them."""

    ranks: int
    dims: Mapping[str, int]
    inputs: Sequence[Mapping[str, Any]]
    outputs: Sequence[Outputs]
    seed: int = 0
    """Of the first inputs."""


def launches_until_reuse(kernel: KernelOp) -> int:
    """How many launches it takes until one uses scratch memory of an earlier one: those with packets take turns."""
    return 3 if any(map(kernel.has_packets, kernel.body.block.args)) else 2


def baseline_of(tile: Compiled, *, ranks: int, dims: Mapping[str, int], launches: int = 2, seed: int = 0) -> Baseline:
    """Draw inputs for some launches and run the tile level on each. Raises `PkcError`."""
    drawn = partial(draw_inputs, tile.module, ranks=ranks, dims=dims, both_sides=True)
    inputs = [drawn(seed=seed + number) for number in range(launches)]
    outputs = [simulate(tile.module, ranks=ranks, dims=dims, inputs=one, seed=seed) for one in inputs]
    return Baseline(ranks, dims, inputs, outputs, seed)


def baseline_until_reuse(
    tile: Compiled, roles: Compiled, *, ranks: int, dims: Mapping[str, int], seed: int
) -> Baseline:
    """The same for as many launches as it takes until one uses scratch memory of an earlier one."""
    return baseline_of(tile, ranks=ranks, dims=dims, launches=launches_until_reuse(roles.kernel), seed=seed)


def check_roles(roles: Compiled, baseline: Baseline, trials: Iterable[Trial] = TRIALS) -> list[Diagnostic]:
    """The findings of the first trial that has any; none if all give the outputs of the tile level."""
    tried = Trials(roles.kernel, baseline)
    for trial in trials:
        found = tried.check(trial)
        if found:
            return found
    return []


def explained(tried: Trials, others: Sequence[Trial], found: list[Diagnostic]) -> tuple[Trial | None, list[Diagnostic]]:
    """What was found or, of a result that differs, the accesses that nothing orders, and the trial that shows them: on
    one CTA all are in some order."""
    for trial in others[:_EXPLAINING] if isinstance(found[0], ResultDiffers) else ():
        also = tried.check(trial)
        if also and not isinstance(also[0], ResultDiffers):
            return trial, also
    return None, found


class Trials:
    """Simulations of one kernel: the first with elements, later ones with terms where these are enough."""

    def __init__(self, kernel: KernelOp, baseline: Baseline, like: Trials | None = None) -> None:
        """`like` are simulations of a kernel that computes the same, and is known to be right."""
        self._kernel = kernel
        self._meaning = baseline
        self._known: tuple[Cuts, list[Memory]] | None = None if like is None else like._known

    def check(self, trial: Trial | Replay) -> list[Diagnostic]:
        """What one simulation finds."""
        try:
            if self._known is None or not self._same_terms(trial):
                self._run_with_elements(trial)
        except TooLongError:
            raise
        except PkcError as error:
            return list(error.diagnostics)
        return []

    def explore(self, ctas: int, most: int, most_steps: int | None = None) -> Explored:
        """Simulate every order, up to steps that do not depend on each other; at most so many, of so many steps."""
        first = self.check(Replay(ctas, ()))
        if first:
            return Explored(1, 0, complete=False, found=tuple(first))
        if self._known is not None:
            with contextlib.suppress(NeedsElements):
                return explore(self._run_with_terms(ctas, *self._known), most, most_steps)
        launches = self._launches(ctas)
        return explore(
            lambda order, trace: self._compare(launches.run(order, trace=trace), Replay(ctas, trace.choices)),
            most,
            most_steps,
        )

    def _run_with_terms(self, ctas: int, cuts: Cuts, wanted: list[Memory]) -> Run:
        launches = self._launches(ctas)

        def run(order: Order, trace: Trace) -> None:
            if not _equal(launches.run(order, with_terms(cuts), trace).memories, wanted):
                self._run_with_elements(Replay(ctas, trace.choices))

        return run

    def replay(self, trial: Trial | Replay) -> tuple[list[Diagnostic], Trace]:
        """What one simulation finds, and what happened in it: with elements, and if these find nothing with terms.

        A store that changes no element is no race; terms tell whether it changes none whatever the inputs are.
        """
        trace, cuts, launches = Trace(in_words=True), Cuts(), self._launches(trial.ctas)
        try:
            self._compare(launches.run(trial.order(), with_cuts(cuts), trace), trial, trace)
            trace = Trace(in_words=True)
            with contextlib.suppress(NeedsElements):
                launches.run(trial.order(), with_terms(cuts), trace)
        except TooLongError:
            raise
        except PkcError as error:
            return list(error.diagnostics), trace
        return [], trace

    def _run_with_elements(self, trial: Trial | Replay) -> None:
        cuts = Cuts()
        launches = self._launches(trial.ctas)
        self._compare(launches.run(trial.order(), with_cuts(cuts)), trial)
        if self._known is None:
            with contextlib.suppress(NeedsElements):
                self._known = cuts, launches.run(trial.order(), with_terms(cuts)).memories

    def _same_terms(self, trial: Trial | Replay) -> bool:
        """Whether every output is computed as it was in the first simulation."""
        assert self._known is not None
        cuts, wanted = self._known
        try:
            return _equal(self._launches(trial.ctas).run(trial.order(), with_terms(cuts)).memories, wanted)
        except (NeedsElements, PkcError):
            return False

    def _compare(self, found: Outcome, trial: Trial | Replay, trace: Trace | None = None) -> None:
        baseline = self._meaning
        for number, (got, want) in enumerate(zip(found.outputs(), baseline.outputs, strict=False), start=1):
            for array, value in want.items():
                different = _bits(got[array]) != _bits(value)
                if different.any():
                    element = tuple(int(i) for i in np.argwhere(different)[0])
                    if trace is not None:
                        trace.differs = found.arrays[array].address(element)
                    where = (array, str(list(element)), number, baseline.ranks, trial.ctas, str(trial))
                    raise PkcError(ResultDiffers(span_of(self._kernel.location), *where))

    def _launches(self, ctas: int) -> Launches:
        module, baseline = self._kernel.parent_op(), self._meaning
        assert isinstance(module, ModuleOp)
        return launches_of(module, ranks=baseline.ranks, dims=baseline.dims, launches=baseline.inputs, ctas=ctas)


def _equal(found: list[Memory], wanted: list[Memory]) -> bool:
    pairs = zip(found, wanted, strict=True)
    return all(np.array_equal(memory[name], want[name]) for memory, want in pairs for name in want)


def _bits(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")
