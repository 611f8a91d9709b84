"""The pass `pk-unroll-taps`: a loop over few neighbours of what it computes is written out."""

from __future__ import annotations

from xdsl.dialects import scf

from pkc.dialect.access import LoadOp
from pkc.dialect.by_table import GatherOp
from pkc.dialect.program import KernelOp, TasksOp
from pkc.dialect.tile import AnyMmaOp
from pkc.dialect.types import PrivateType
from pkc.passes.analysis.dependence import enclosing_tasks
from pkc.passes.analysis.spans import Spans
from pkc.passes.analysis.value_numbers import ValueNumbers
from pkc.passes.kernel_pass import KernelPass
from pkc.passes.tile.load_windows import why_none, why_not
from pkc.passes.tile.write_out import iterations, write_out
from pkc.remarks import missed

_MOST = 16
"""So many iterations are written out at most: each is compiled for itself."""

_LOADS = 64
"""So many loads a loop may have then."""


class UnrollTaps(KernelPass):
    """Write out loops of at most 16 iterations without MMAs, each of which loads elements again that the one before has
    loaded, a constant number of places further: as the taps of a convolution.

    So all of them are loads of one place at constants, which become one (`pk-load-windows`). Inner loops come first:
    those over rows and columns of neighbours are written out both.

    Before:

        scf.for %i = %zero to %two step %one {
          %b = pk.block[%j] from %i to %end {shifted = !pk.block<N by 8>} : !pk.block<N by 8>
          %x = pk.load %X[%b, %c : ...] : ...
        }

    After:

        %first = arith.constant 0 : index
        %b = pk.block[%j] from %first to %end {shifted = !pk.block<N by 8>} : !pk.block<N by 8>
        %x = pk.load %X[%b, %c : ...] : ...
        %second = arith.constant 1 : index
        %b_1 = pk.block[%j] from %second to %end {shifted = !pk.block<N by 8>} : !pk.block<N by 8>
        %x_1 = pk.load %X[%b_1, %c : ...] : ...
    """

    name = "pk-unroll-taps"

    def run(self, kernel: KernelOp) -> None:
        values: ValueNumbers | None = None
        for loop in reversed([op for op in kernel.walk() if isinstance(op, scf.ForOp)]):  # inner loops first
            values = values or ValueNumbers(kernel)
            if not enclosing_tasks(loop) or not _goes_through_taps(loop, values):
                continue
            numbers = iterations(loop)
            if reason := _why_kept(loop, numbers):
                missed(self.name, loop, f"each iteration loads what others load, too: {reason}")
            elif numbers is not None:
                write_out(loop, numbers)
                values = None


def _why_kept(loop: scf.ForOp, numbers: range | None) -> str:
    """Why a loop stays as it is; empty if it need not."""
    if numbers is None:
        return "a run-time value says how many iterations this loop has"
    inside = list(loop.body.walk())
    if any(isinstance(op, AnyMmaOp) for op in inside):
        return "MMAs read their operands where they are loaded"
    if any(isinstance(op, TasksOp) for op in inside):
        return "it has tasks of its own"
    loads = sum(isinstance(op, LoadOp | GatherOp) for op in inside)
    if len(numbers) > _MOST or len(numbers) * loads > _LOADS:
        return f"written out, it has {len(numbers)} iterations of {loads} loads"
    return ""


def _goes_through_taps(loop: scf.ForOp, values: ValueNumbers) -> bool:
    """Whether some load of a loop, of those that become one at constant places, shares elements with the next one."""
    spans, variable = Spans(values), values[loop.body.block.args[0]]
    return any(
        isinstance(op, LoadOp | GatherOp) and isinstance(op.array.type, PrivateType) and _is_tap(op, spans, variable)
        for op in loop.body.block.ops
    )


def _is_tap(op: LoadOp | GatherOp, spans: Spans, variable: int) -> bool:
    """Whether the loop whose variable has a number only shifts the blocks of a load, by less than they have."""
    found = spans.of(op)
    if found is None or found[-1].block is None or not any(variable in span.begin.terms for span in found):
        return False
    shifts = [(span, span.begin.terms[variable][1]) for span in found if variable in span.begin.terms]
    if not all(span.block is not None and abs(factor) < span.reach for span, factor in shifts):
        return False
    return not why_not(op) and not why_none(op, found[-1].without(variable))
