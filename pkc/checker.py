"""Whether the roles level of a kernel does what the tile level means: the program against its derived protocol.

The same inputs go through both levels. At the roles level every role of every CTA of every rank is a coroutine, seeds
choose the order in which they run, and the kernel is launched several times in a row without synchronisation, with
other inputs each time. Every output must be equal to the bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pkc.compiler import Compiled
from pkc.diagnostics import Diagnostic, PkcError
from pkc.dialect.program import KernelOp
from pkc.location import span_of
from pkc.sim.draw import draw_inputs
from pkc.sim.launches import simulate_launches
from pkc.sim.run import simulate

Outputs = Mapping[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class ResultDiffers(Diagnostic):
    """Raised by `pkc check` when the protocol computes something else than the program means."""

    code = "PK720"
    title = "`{array}` differs from what the program means, at {element}, in launch {launch}"
    label = "with {ranks} ranks, {ctas} CTAs for each role, seed {seed}"
    help = "this is a mistake in a pass, or in IR that was changed by hand"
    array: str
    element: str
    launch: int
    ranks: int
    ctas: int
    seed: int


@dataclass(frozen=True)
class Trial:
    """One simulation of the roles level: how many CTAs run each role, and the seed of the order."""

    ctas: int
    seed: int


TRIALS = tuple(Trial(1 + seed % 2, seed) for seed in range(24))
"""What `pkc check` simulates by default."""


@dataclass(frozen=True)
class Meaning:
    """Inputs of some launches, and the outputs that the tile level gives for them."""

    ranks: int
    dims: Mapping[str, int]
    inputs: Sequence[Mapping[str, Any]]
    outputs: Sequence[Outputs]


def meaning_of(tile: Compiled, *, ranks: int, dims: Mapping[str, int], launches: int = 2, seed: int = 0) -> Meaning:
    """Draw inputs for some launches and run the tile level on each. Raises `PkcError`."""
    inputs = [draw_inputs(tile.module, ranks=ranks, dims=dims, seed=seed + number) for number in range(launches)]
    outputs = [simulate(tile.module, ranks=ranks, dims=dims, inputs=one, seed=seed) for one in inputs]
    return Meaning(ranks, dims, inputs, outputs)


def check_trial(kernel: KernelOp, meaning: Meaning, trial: Trial) -> list[Diagnostic]:
    """What one simulation of the roles level finds."""
    try:
        found = _launch(kernel, meaning, trial)
    except PkcError as error:
        return list(error.diagnostics)
    for number, (got, want) in enumerate(zip(found, meaning.outputs, strict=False), start=1):
        for array, value in want.items():
            different = _bits(got[array]) != _bits(value)
            if different.any():
                element = str([int(i) for i in np.argwhere(different)[0]])
                span = span_of(kernel.location)
                where = (array, element, number, meaning.ranks, trial.ctas, trial.seed)
                return [ResultDiffers(span, *where)]
    return []


def check_roles(roles: Compiled, meaning: Meaning, trials: Iterable[Trial] = TRIALS) -> list[Diagnostic]:
    """What the first trial finds that finds anything; nothing if all give what the program means."""
    for trial in trials:
        findings = check_trial(roles.kernel, meaning, trial)
        if findings:
            return findings
    return []


def _launch(kernel: KernelOp, meaning: Meaning, trial: Trial) -> Sequence[Outputs]:
    module = kernel.parent_op()
    assert module is not None
    common: dict[str, Any] = {"ranks": meaning.ranks, "dims": meaning.dims, "ctas": trial.ctas, "seed": trial.seed}
    return simulate_launches(module, launches=meaning.inputs, **common)  # pyright: ignore[reportArgumentType]


def _bits(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")
