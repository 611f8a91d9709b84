"""The float64 reference: what a kernel should give, by its semantics on global arrays, and how far off it may be.

Nothing is rounded, and no array is sharded: so rounding, sums and the arithmetic of owners in the simulator are checked
against something that has none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from pkc.dialect.elementwise import CompareOp
from pkc.dialect.numeric import Values
from pkc.dialect.ranges import Bounded
from pkc.location import describe
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
    bound. Where errors leave a comparison open, the bound covers both outcomes; `settled` is the same array if all of
    them come out as in the reference, and `open_at` says in which lines they stand. `own` is that of pkc's own
    reference, if these are values of another: elements that agree with it were decided so.
    """

    value: Values
    bound: Values
    written: Values
    probable: Values | None = None
    settled: Expected | None = None
    open_at: tuple[str, ...] = ()
    own: Expected | None = None


@dataclass(frozen=True)
class Comparison:
    """How an array compares with what is expected.

    `max_error` is the largest error and `bound_there` the bound of that element; `worst_ratio` is the largest error in
    terms of its own bound, of the element at `where`. `problem` says what is wrong there. `probable_there` and
    `probable_ratio` are the same of the probable bound, which nothing is wrong for exceeding.

    So many elements are `doubted`: they are not those of the reference, and right only if a comparison that errors
    leave open came out otherwise; `doubt` says so of the first one. An array of which most is doubted is not `ok`.

    So many elements are `unjudged`: the reference is NaN there, or has no bound, as `reason` says of the first one.
    They are no `problem`, and an array with such elements is not `ok`; `worst_ratio` is of the others.
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
    doubted: int = 0
    doubt: str = ""
    unjudged: int = 0
    reason: str = ""


_JUMP = 4.0
"""A choice matters that is open by so many times the bound of any element without it: others go from one branch to the
other as a continuous function does."""


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
        return _with_settled(program, data, tile_ops.as_written if as_written else tile_ops.bounded)
    with one_thread(), ThreadPoolExecutor(1) as beside:
        likely = beside.submit(_execute, program, data, tile_ops.probable)
        found = _with_settled(program, data, tile_ops.bounded)
        return _with_probable(found, likely.result())


_Semantics: TypeAlias = Callable[[Operation], Callable[..., Any]]


def _with_settled(program: Program, data: Data, semantics: _Semantics) -> dict[str, Expected]:
    open_: set[Operation] = set()
    found = _execute(program, data, _noting(semantics, open_))
    if not open_:
        return found
    settled = _execute(program, data, tile_ops.settled(semantics))
    lines = tuple(sorted({describe(op.location) for op in open_}))
    return {name: replace(array, settled=settled[name], open_at=lines) for name, array in found.items()}


def _noting(semantics: _Semantics, open_: set[Operation]) -> _Semantics:
    """The same, noting which comparisons errors leave open."""

    def noting(op: Operation) -> Callable[..., Any]:
        compute = semantics(op)
        if not isinstance(op, CompareOp):
            return compute

        def compared(*operands: Bounded) -> Bounded:
            made = compute(*operands)
            if made.error is not None:
                open_.add(op)
            return made

        return compared

    return noting


def _execute(program: Program, data: Data, semantics: _Semantics) -> dict[str, Expected]:
    arrays: dict[str, BoundedArray] = make_arrays(program, data, BoundedArray, is_global=True)
    for array in arrays.values():
        array.in_any_order = program.kernel.in_any_order
    machine = make_machine(program, data, MemoryState(arrays, None), None)
    execute(program, data, machine, semantics)
    return {name: _expected(arrays[name]) for name in program.outputs}


def _with_probable(found: dict[str, Expected], probable: dict[str, Expected]) -> dict[str, Expected]:
    return {name: _probably(array, probable[name]) for name, array in found.items()}


def _probably(array: Expected, probable: Expected) -> Expected:
    settled = None if array.settled is None else _probably(array.settled, probable)
    return replace(array, probable=_smaller(array, probable), settled=settled)


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
    found = output.astype(np.float64)
    errors, doubted = _errors(output, wanted), np.zeros(output.shape, np.bool_)
    if wanted.settled is not None:
        agrees = None if wanted.own is None else _errors(output, wanted.own).ratio <= 1
        errors, doubted = _decided(errors, _errors(output, wanted.settled), agrees)
    unjudged = errors.unknown & ~_left_out(output)
    errors = errors._replace(ratio=np.where(unjudged, 0.0, errors.ratio))
    worst, largest = _place_of_greatest(errors.ratio), _place_of_greatest(errors.error)
    within = bool(errors.ratio[worst] <= 1)
    problem = "" if within else _problem(found[worst], errors, worst, bool(wanted.written[worst]))
    doubt = ""
    if doubted.any():
        first = _place_of_greatest(doubted)
        doubt = f"[{', '.join(map(str, first))}] is {found[first]:g}, expected {errors.value[first]:g}"
    return Comparison(
        name,
        float(errors.error[largest]),
        float(errors.bound[largest]),
        float(errors.ratio[worst]),
        worst,
        within and not unjudged.any() and 2 * int(doubted.sum()) <= int(wanted.written.sum()),
        problem,
        float(errors.probable[largest]),
        float(_ratio(errors.error, errors.probable).max()),
        int(doubted.sum()),
        doubt,
        int(unjudged.sum()),
        _reason(errors.value, _place_of_greatest(unjudged)) if unjudged.any() else "",
    )


def _left_out(output: Values) -> Values:
    """Where integers are as they were at entry: there is no bound by which that could be a result."""
    integers = np.issubdtype(output.dtype, np.integer)
    return output == POISON_INT if integers else np.zeros(output.shape, np.bool_)


def _reason(values: Values, where: tuple[int, ...]) -> str:
    what = "is NaN, of these inputs: `--in A=a.npy` gives others" if np.isnan(values[where]) else "has no bound"
    return f"at [{', '.join(map(str, where))}] the reference {what}"


class _Errors(NamedTuple):
    """Of each element what is expected, the error and its bounds, what it is in terms of the bound, and whether nothing
    is known of it."""

    value: Values
    error: Values
    bound: Values
    probable: Values
    ratio: Values
    unknown: Values


def _errors(output: Values, wanted: Expected) -> _Errors:
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
        ratio = _ratio(error, bound)
    unknown = wanted.written & (np.isnan(value) | ~np.isfinite(bound))
    return _Errors(value, error, bound, probable, np.where(unknown, np.inf, ratio), unknown)


def _decided(open_: _Errors, settled: _Errors, agrees: Values | None) -> tuple[_Errors, Values]:
    """The errors by what is left of the bound where the program has decided as the reference, and otherwise by one that
    covers both outcomes; and which elements are in doubt then. Where that bound says nothing, those are not which are
    known to be decided as the reference: they agree with pkc's own."""
    unknown = open_.unknown if agrees is None else open_.unknown & ~agrees
    same = settled.ratio <= 1
    jumps = open_.bound > _JUMP * settled.bound[np.isfinite(settled.bound)].max(initial=0.0)
    doubted = ~same & jumps & ((open_.ratio <= 1) | unknown) & ~settled.unknown
    known = same | doubted | (open_.unknown & ~unknown & ~settled.unknown)
    errors = _Errors(*(np.where(known, a, b) for a, b in zip(settled, open_, strict=True)))
    bound, probable = (np.where(doubted, open_.bound, each) for each in (errors.bound, errors.probable))
    ratio = np.where(doubted, np.where(open_.unknown, 0.0, open_.ratio), errors.ratio)
    return errors._replace(bound=bound, probable=probable, ratio=ratio), doubted


def _place_of_greatest(values: Values) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(np.argmax(values), values.shape))


def _ratio(error: Values, bound: Values) -> Values:
    with np.errstate(all="ignore"):
        ratio = np.where(error == 0, 0.0, error / np.where(bound > 0, bound, 0.0))
    return np.where(np.isnan(ratio), np.inf, ratio)


def _problem(found: float, errors: _Errors, where: tuple[int, ...], written: bool) -> str:
    value = errors.value[where]
    if not written:
        return f"is {found:g}, but the kernel writes nothing there"
    if np.isnan(found) or found == POISON_INT:
        return f"is not written, expected {value:g}"
    return f"is {found:g}, expected {value:g}"
