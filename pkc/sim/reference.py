"""The float64 reference: what a kernel should give, by its semantics on global arrays, and how far off it may be.

Nothing is rounded, and no array is sharded: so rounding, sums and the arithmetic of owners in the simulator are checked
against something that has none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from pkc.dialect.numeric import Values
from pkc.semantics import tile_ops
from pkc.sim.array import POISON_INT
from pkc.sim.bounded import BoundedArray
from pkc.sim.inputs import Data, Inputs, check_data
from pkc.sim.memory import MemoryState
from pkc.sim.program import Program, find_kernel
from pkc.sim.run import execute, make_arrays, make_machine
from pkc.sim.threads import one_thread


@dataclass(frozen=True)
class Expected:
    """An array as it should be: real values, the bound on a program's error, and which elements are written.

    At an infinity a bound of 0 asks for that infinity; another bound also allows any number that is at least as large.
    `probable` is a bound that errors hardly ever exceed (`pkc/dialect/probable_bounds.py`), nowhere greater than the
    bound.
    """

    value: Values
    bound: Values
    written: Values
    probable: Values | None = None


@dataclass(frozen=True)
class Comparison:
    """How an array compares with what is expected.

    `max_error` is the largest error and `bound_there` the bound of that element; `worst_ratio` is the largest error in
    terms of its own bound, of the element at `where`. `problem` says what is wrong there. `probable_there` and
    `probable_ratio` are the same of the probable bound, which nothing is wrong for exceeding.
    """

    array: str
    max_error: float
    bound_there: float
    worst_ratio: float
    where: tuple[int, ...]
    ok: bool
    problem: str = ""
    probable_there: float = 0.0
    probable_ratio: float = 0.0


def reference(
    module: ModuleOp,
    *,
    ranks: int,
    dims: Mapping[str, int],
    inputs: Inputs,
    kernel: str | None = None,
    probable: bool = False,
    as_written: bool = False,
) -> dict[str, Expected]:
    """What `simulate` should give for the same arguments, for every array that the kernel writes.

    `probable` asks for the probable bound too, which is computed by a second thread. With `as_written` the bound allows
    for constants that an f32 rounds: for who computes with them as they are written.
    """
    program = Program(find_kernel(module, kernel))
    data = check_data(program, dims, inputs, ranks)
    if not probable:
        return _execute(program, data, tile_ops.as_written if as_written else tile_ops.bounded)
    with one_thread(), ThreadPoolExecutor(1) as beside:
        likely = beside.submit(_execute, program, data, tile_ops.probable)
        found = _execute(program, data, tile_ops.bounded)
        return _with_probable(found, likely.result())


def _execute(program: Program, data: Data, semantics: Callable[[Operation], Callable[..., Any]]) -> dict[str, Expected]:
    arrays: dict[str, BoundedArray] = make_arrays(program, data, BoundedArray, is_global=True)
    for array in arrays.values():
        array.in_any_order = program.kernel.in_any_order
    machine = make_machine(program, data, MemoryState(arrays, None), None)
    execute(program, data, machine, semantics)
    return {name: _expected(arrays[name]) for name in program.outputs}


def _with_probable(found: dict[str, Expected], probable: dict[str, Expected]) -> dict[str, Expected]:
    return {name: replace(array, probable=_smaller(array, probable[name])) for name, array in found.items()}


def _smaller(array: Expected, probable: Expected) -> Values:
    """The probable bound where it is the smaller one; at an infinity a bound is no distance."""
    numbers = np.isfinite(array.value) & np.isfinite(probable.value)
    return np.where(numbers, np.minimum(array.bound, probable.bound), array.bound)


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
    if np.issubdtype(output.dtype, np.integer):
        # What nobody wrote is of the type in which integers are computed; arrays may be narrower.
        value = np.where(wanted.written, value, wanted.value.astype(output.dtype))
    both_nan = np.isnan(found) & np.isnan(value)
    with np.errstate(all="ignore"):
        may_be_finite = np.isinf(value) & np.isfinite(wanted.bound) & (wanted.bound > 0)
        large = may_be_finite & (np.copysign(1.0, value) * found >= wanted.bound)
        error = np.where((found == value) | both_nan | large, 0.0, np.abs(found - value))
        # NaN against a number is as wrong as can be.
        error = np.where(np.isnan(error), np.inf, error)
        is_distance = wanted.written & ~may_be_finite
        bound = np.where(is_distance, wanted.bound, 0.0)
        probable = bound if wanted.probable is None else np.where(is_distance, wanted.probable, 0.0)
        ratio, probable_ratio = _ratio(error, bound), _ratio(error, probable)
    unknown = wanted.written & (np.isnan(value) | ~np.isfinite(bound))
    ratio = np.where(unknown, np.inf, ratio)
    worst = tuple(int(i) for i in np.unravel_index(np.argmax(ratio), ratio.shape))
    within = bool(ratio[worst] <= 1)
    problem = "" if within else _problem(found[worst], value[worst], bool(unknown[worst]), bool(wanted.written[worst]))
    largest = np.unravel_index(np.argmax(error), error.shape)
    return Comparison(
        name,
        float(error[largest]),
        float(bound[largest]),
        float(ratio[worst]),
        worst,
        within,
        problem,
        float(probable[largest]),
        float(probable_ratio.max()),
    )


def _ratio(error: Values, bound: Values) -> Values:
    ratio = np.where(error == 0, 0.0, error / np.where(bound > 0, bound, 0.0))
    return np.where(np.isnan(ratio), np.inf, ratio)


def _problem(found: float, value: float, unknown: bool, written: bool) -> str:
    if unknown:
        return "the reference is NaN there" if np.isnan(value) else "the reference has no bound there"
    if not written:
        return f"is {found:g}, but the kernel writes nothing there"
    if np.isnan(found) or found == POISON_INT:
        return f"is not written, expected {value:g}"
    return f"is {found:g}, expected {value:g}"
