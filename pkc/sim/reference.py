"""The float64 reference: what a kernel should give, by its semantics on global arrays, and how far off it may be.

Nothing is rounded, and no array is sharded: so rounding, sums and the arithmetic of owners in the simulator are checked
against something that has none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from pkc.dialect.numeric import Values
from pkc.semantics import tile_ops
from pkc.sim.array import POISON_INT
from pkc.sim.bounded import BoundedArray
from pkc.sim.inputs import Inputs, check_data
from pkc.sim.memory import MemoryState
from pkc.sim.program import Program, find_kernel
from pkc.sim.run import execute, make_arrays, make_machine


@dataclass(frozen=True)
class Expected:
    """An array as it should be: real values, the bound on a program's error, and which elements are written.

    At an infinity a bound of 0 asks for that infinity; another bound also allows any number that is at least as large.
    """

    value: Values
    bound: Values
    written: Values


@dataclass(frozen=True)
class Comparison:
    """How an array compares with what is expected.

    `max_error` is the largest error and `bound_there` the bound of that element; `worst_ratio` is the largest error in
    terms of its own bound, of the element at `where`. `problem` says what is wrong there.
    """

    array: str
    max_error: float
    bound_there: float
    worst_ratio: float
    where: tuple[int, ...]
    ok: bool
    problem: str = ""


def reference(
    module: ModuleOp, *, ranks: int, dims: Mapping[str, int], inputs: Inputs, kernel: str | None = None
) -> dict[str, Expected]:
    """What `simulate` should give for the same arguments, for every array that the kernel writes."""
    program = Program(find_kernel(module, kernel))
    data = check_data(program, dims, inputs, ranks)
    arrays: dict[str, BoundedArray] = make_arrays(program, data, BoundedArray, is_global=True)
    machine = make_machine(program, data, MemoryState(arrays, None), None)
    execute(program, data, machine, tile_ops.bounded)
    return {name: _expected(arrays[name]) for name in program.outputs}


def _expected(array: BoundedArray) -> Expected:
    error = np.zeros(array.value.shape) if array.error is None else array.error
    return Expected(array.gathered(array.value), array.gathered(error), array.gathered(array.written))


def compare(outputs: Mapping[str, Values], expected: Mapping[str, Expected]) -> list[Comparison]:
    """Each expected array against what a program gave: within the bound, and untouched where nothing is written."""
    return [_compare(name, outputs[name], wanted) for name, wanted in expected.items()]


def _compare(name: str, output: Values, wanted: Expected) -> Comparison:
    if output.shape != wanted.value.shape:
        problem = f"has shape {list(output.shape)} instead of {list(wanted.value.shape)}"
        return Comparison(name, np.inf, 0.0, np.inf, (), False, problem)
    found, value = output.astype(np.float64), wanted.value.astype(np.float64)
    both_nan = np.isnan(found) & np.isnan(value)
    with np.errstate(all="ignore"):
        may_be_finite = np.isinf(value) & np.isfinite(wanted.bound) & (wanted.bound > 0)
        large = may_be_finite & (np.copysign(1.0, value) * found >= wanted.bound)
        error = np.where((found == value) | both_nan | large, 0.0, np.abs(found - value))
        # NaN against a number is as wrong as can be.
        error = np.where(np.isnan(error), np.inf, error)
        bound = np.where(wanted.written & ~may_be_finite, wanted.bound, 0.0)
        ratio = np.where(error == 0, 0.0, error / np.where(bound > 0, bound, 0.0))
    unknown = wanted.written & (np.isnan(value) | ~np.isfinite(bound))
    ratio = np.where(unknown | np.isnan(ratio), np.inf, ratio)
    worst = tuple(int(i) for i in np.unravel_index(np.argmax(ratio), ratio.shape))
    within = bool(ratio[worst] <= 1)
    problem = "" if within else _problem(found[worst], value[worst], bool(unknown[worst]), bool(wanted.written[worst]))
    largest = np.unravel_index(np.argmax(error), error.shape)
    return Comparison(name, float(error[largest]), float(bound[largest]), float(ratio[worst]), worst, within, problem)


def _problem(found: float, value: float, unknown: bool, written: bool) -> str:
    if unknown:
        return "the reference is NaN there" if np.isnan(value) else "the reference has no bound there"
    if not written:
        return f"is {found:g}, but the kernel writes nothing there"
    if np.isnan(found) or found == POISON_INT:
        return f"is not written, expected {value:g}"
    return f"is {found:g}, expected {value:g}"
