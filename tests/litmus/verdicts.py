"""Verdicts on litmus tests: every order of a test is run on the simulator."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from xdsl.parser import Parser

from pkc.diagnostics import Diagnostic, PkcError
from pkc.dialect.pk import context
from pkc.sim import order_errors
from pkc.sim.array import is_poison
from pkc.sim.errors import Deadlock
from pkc.sim.explore import explore
from pkc.sim.launches import Launches, Outcome, launches_of
from pkc.sim.program import Program, find_kernel
from pkc.sim.schedule import Order
from pkc.sim.trace import Trace
from tests.litmus.kernel import kernel_of, locations_of, ranks_of, registers_of, uses_mma, weakened
from tests.litmus.statements import HANG, Litmus

MOST = 5000
"""The most runs of one test. The tests here take fewer than a hundred."""

REFUSALS = tuple(found for found in vars(order_errors).values() if isinstance(found, type) and found is not Diagnostic)

Values = dict[str, float]


@dataclass(frozen=True)
class Verdict:
    """What pkc says: how it refuses the program; otherwise in which of the outcomes the condition holds."""

    forbidden: bool
    code: str | None
    outcomes: int
    runs: int

    def __str__(self) -> str:
        if self.code is not None:
            return f"refused {self.code}"
        return "forbidden" if self.forbidden else "allowed"


def verdict_of(test: Litmus) -> Verdict:
    """Run every order of a test, up to the order of independent steps.

    A program that is refused in any order has no promised outcome, so nothing is forbidden. Raises `PkcError` for what
    is no matter of memory order, such as a deadlock, and `RuntimeError` if there are too many orders.
    """
    weak = weakened(test)
    launches, outcomes = _launches(weak), dict[str, Values]()

    def run(order: Order, trace: Trace) -> None:
        values = _values(weak, launches.run(order, trace=trace))
        outcomes[str(sorted(values.items()))] = values

    explored = explore(run, MOST)
    if explored.found:
        (found,) = explored.found
        if isinstance(found, Deadlock) and _asks_for_hang(test):
            return Verdict(False, None, len(outcomes), explored.runs)
        if not isinstance(found, REFUSALS):
            raise PkcError(found)
        return Verdict(False, found.code, len(outcomes), explored.runs)
    if not explored.complete:
        raise RuntimeError(f"{test.name}: more than {MOST} runs")
    happens = any(all(atom.holds(values) for atom in every) for values in outcomes.values() for every in test.exists)
    return Verdict(not happens, None, len(outcomes), explored.runs)


def _asks_for_hang(test: Litmus) -> bool:
    return any(atom.what == HANG for every in test.exists for atom in every)


def _launches(test: Litmus) -> Launches:
    module = Parser(context(), kernel_of(test)).parse_module()
    module.verify()
    ranks, shape = ranks_of(test), (4, 4) if uses_mma(test) else (4,)
    program = Program(find_kernel(module, None))
    inputs = {name: np.zeros((ranks, *shape), np.float32) for name in program.inputs}
    launches = launches_of(module, ranks=ranks, dims={}, launches=[inputs], ctas=1)
    return replace(launches, guarded=test.launched)


def _values(test: Litmus, outcome: Outcome) -> Values:
    """The registers and the memory when all ranks have ended."""
    found: Values = {HANG: 0} if _asks_for_hang(test) else {}
    found |= {
        f"{thread.name}.{register}": _value(outcome.arrays[f"{thread.name}.{register}"].value[thread.rank])
        for thread in test.threads
        for register in registers_of(thread)
    }
    for name in locations_of(test):
        for rank in range(ranks_of(test)):
            found[f"{name}@{rank}"] = _value(outcome.arrays[name].value[rank])
    return found


def _value(tile: np.ndarray[Any, Any]) -> float:
    """What all elements hold; NaN if they differ. Where nothing was ever stored it is zero, as before the run."""
    if is_poison(tile).all():
        return 0
    return float(tile.flat[0]) if (tile == tile.flat[0]).all() else float("nan")
