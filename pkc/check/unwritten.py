"""Outputs that a kernel leaves as they were, on some rank or in part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pkc.check.run import Baseline
from pkc.diagnostics import Diagnostic
from pkc.dialect.access import GatherOp, ReadOp, ScatterAccumulateOp, ScatterAddOp
from pkc.dialect.numeric import Values, compute_dtype
from pkc.dialect.program import KernelOp
from pkc.sim.array import poison
from pkc.sim.program import Program


class Unwritten(Diagnostic):
    """Said by `pkc check` of an array that is only written, and not everywhere."""

    code = "PK721"
    severity = "warning"
    title = "`{array}` is not written at {element}: {missing} of {size} elements are not"
    label = "with {ranks} ranks; they keep what they held before the launch"
    help = "write every element on every rank, or declare what is not needed `.scratch()`"
    array: str
    element: str
    missing: int
    size: int
    ranks: int


def unwritten(kernel: KernelOp, baseline: Baseline) -> Iterator[Unwritten]:
    """The outputs of a run of the tile level that lack elements; none of a kernel in which data decides what is
    written, as it may be right to leave the rest."""
    if any(isinstance(op, ReadOp | GatherOp | ScatterAccumulateOp | ScatterAddOp) for op in kernel.walk()):
        return
    called = Program(kernel)
    for name, value in baseline.outputs[0].items() if baseline.outputs else ():
        untouched = _bits(value) == _bits(_nothing(called, name, value.dtype))
        if name in called.inputs or name in called.summed or not untouched.any():
            continue
        first = [int(i) for i in np.argwhere(untouched)[0]]
        by_rank = value.ndim > len(called.arrays[name].dimensions)
        element = f"{first[1:]} of rank {first[0]}" if by_rank else str(first)
        found = int(untouched.sum())
        yield Unwritten(called.span_of(name), name, element, found, untouched.size, baseline.ranks)


def _nothing(called: Program, name: str, dtype: np.dtype[Any]) -> Values:
    """What an element holds that nobody writes."""
    return poison((1,), compute_dtype(called.arrays[name].element_type)).astype(dtype)


def _bits(values: Values) -> Values:
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")
