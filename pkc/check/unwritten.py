"""Outputs that a kernel leaves as they were, on some rank or in part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from xdsl.dialects.arith import IndexCastOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument

from pkc.check.run import Baseline
from pkc.diagnostics import Diagnostic
from pkc.dialect.access import ReadOp, StoreOp
from pkc.dialect.by_table import ByTable
from pkc.dialect.numeric import Values, compute_dtype
from pkc.dialect.program import KernelOp
from pkc.sim.array import poison
from pkc.sim.draw import draw_inputs
from pkc.sim.program import Program
from pkc.sim.run import simulate

_RECEIVED = "; where nothing comes on purpose, the caller fills it before the launch, and this may stay"
_AGAIN, _OTHER = 4, 1000
"""As many more runs, with inputs of seeds from there, tell bytes that are like poison by chance."""


class Unwritten(Diagnostic):
    """Said by `pkc check` of an array that is only written, and not everywhere."""

    code = "PK721"
    severity = "warning"
    title = "`{array}` is not written at {element}: {missing} of {size} elements are not"
    label = "with {ranks} ranks; they keep what they held before the launch"
    help = "write every element on every rank, or declare what is not needed `.scratch()`{received}"
    array: str
    element: str
    missing: int
    size: int
    ranks: int
    received: str = ""
    """What else is right for an array that other ranks write to."""


def unwritten(kernel: KernelOp, baseline: Baseline) -> Iterator[Unwritten]:
    """The outputs of a run of the tile level that lack elements; none of a kernel in which data or a number of the
    caller's decides what is written, as it may be right to leave the rest."""
    if any(isinstance(op, ReadOp | ByTable) for op in kernel.walk()):
        return
    if any(isinstance(op, IndexCastOp) and isinstance(op.input, BlockArgument) for op in kernel.walk()):
        return
    called = Program(kernel)
    reached = [op.array for op in kernel.walk() if isinstance(op, StoreOp) and op.rank is not None]
    for name, value in baseline.outputs[0].items() if baseline.outputs else ():
        if name in called.inputs or name in called.summed:
            continue
        untouched = _untouched(called, name, baseline)
        if not untouched.any():
            continue
        first = [int(i) for i in np.argwhere(untouched)[0]]
        by_rank = value.ndim > len(called.arrays[name].dimensions)
        element = f"{first[1:]} of rank {first[0]}" if by_rank else str(first)
        found = int(untouched.sum())
        received = _RECEIVED if by_rank and kernel.arguments[name] in reached else ""
        yield Unwritten(called.span_of(name), name, element, found, untouched.size, baseline.ranks, received)


def _untouched(called: Program, name: str, baseline: Baseline) -> Values:
    """Which elements hold what nobody has written, whatever the inputs are: a byte may be the same by chance."""
    outputs = [one[name] for one in baseline.outputs]
    nothing = _bits(_nothing(called, name, outputs[0].dtype))
    untouched = np.logical_and.reduce([_bits(value) == nothing for value in outputs])
    module = called.kernel.parent_op()
    assert isinstance(module, ModuleOp)
    for seed in range(_AGAIN if outputs[0].dtype.itemsize == 1 else 0):
        if not untouched.any():
            break
        inputs = draw_inputs(module, ranks=baseline.ranks, dims=baseline.dims, seed=_OTHER + seed, both_sides=True)
        found = simulate(module, ranks=baseline.ranks, dims=baseline.dims, inputs=inputs)
        untouched &= _bits(found[name]) == nothing
    return untouched


def _nothing(called: Program, name: str, dtype: np.dtype[Any]) -> Values:
    """What an element holds that nobody writes."""
    return poison((1,), compute_dtype(called.arrays[name].element_type)).astype(dtype)


def _bits(values: Values) -> Values:
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")
