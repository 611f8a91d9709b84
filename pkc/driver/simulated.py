"""A kernel run on simulated ranks for Python: what is missing is drawn, and results are compared with the reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from pkc.diagnostics import PkcError, listing
from pkc.dialect.numeric import Values
from pkc.dialect.types import RANKS, dtype_name
from pkc.driver import results
from pkc.driver.compiler import compile_program, constants_of, default_constants, refuse_unknown
from pkc.driver.errors import NotWritten
from pkc.driver.references import computed, expected_by, references_of
from pkc.frontend import tree
from pkc.location import NOWHERE
from pkc.sim.draw import draw_inputs
from pkc.sim.inputs import as_elements
from pkc.sim.program import Program
from pkc.sim.reference import Comparison, Expected, compare, reference
from pkc.sim.run import resolve_dims, simulate
from pkc.sim.small import small_dims


class NoOutput(PkcError, KeyError):
    """Raised for an array that a kernel does not write; a `KeyError` as of any mapping."""


@dataclass(frozen=True, repr=False)
class Simulated(Mapping[str, Values]):
    """The arrays that a kernel wrote, by name, with all that led to them and how they compare with the reference.

    Private and symmetric arrays have a leading axis of ranks, sharded and replicated ones are the global array.
    Printed, and as the last line of a notebook's cell, it is the table of `pkc run`.
    """

    kernel: str
    ranks: int
    seed: int
    dims: Mapping[str, int]
    """The lengths of the run-time dimensions."""
    inputs: Mapping[str, Any]
    """Arrays and scalars as the kernel read them: what was given, rounded, and what was drawn."""
    outputs: Mapping[str, Values]
    expected: Mapping[str, Expected]
    """What each output should be, and the bound on its error."""
    compared: tuple[Comparison, ...]
    others: tuple[tuple[str, tuple[Comparison, ...]], ...]
    """The same against the reference that the program names, with its name."""
    rounded: tuple[str, ...]
    """A line for each array that was given in another type than its parameter's."""

    @property
    def ok(self) -> bool:
        """Whether every element is within its bound, of all references, and not most of an array in doubt."""
        return all(item.ok for item in [*self.compared, *(item for _, items in self.others for item in items)])

    def __getitem__(self, name: str) -> Values:
        if name not in self.outputs:
            raise NoOutput(NotWritten(NOWHERE, self.kernel, name, listing(self.outputs) or "nothing"))
        return self.outputs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.outputs)

    def __len__(self) -> int:
        return len(self.outputs)

    def __repr__(self) -> str:
        shown = results.comparison_table(self.expected, self.compared)
        doubtful = [line for items in [self.compared, *dict(self.others).values()] for line in self._doubtful(items)]
        warnings = [*results.unwritten(self.expected), *results.improbable(self.compared), *doubtful]
        return "\n".join([self._title(), *self.rounded, shown, *warnings, self._verdict()])

    def _repr_html_(self) -> str:
        head, *rows = results.comparison_rows(self.expected, self.compared)
        lines = [_row("th", head), *(_row("td", row) for row in rows)]
        about = "<br>".join(map(escape, [self._title(), *self.rounded]))
        return f"<p>{about}</p><table>{''.join(lines)}</table><p>{escape(self._verdict())}</p>"

    def _doubtful(self, items: tuple[Comparison, ...]) -> list[str]:
        return results.doubtful(self.expected, items)

    def _verdict(self) -> str:
        return results.verdict(self.compared, self.others)

    def _title(self) -> str:
        sizes = "".join(f", {name}={size}" for name, size in self.dims.items())
        return f"{self.kernel} on {self.ranks} simulated rank{'s' * (self.ranks > 1)}{sizes}, seed {self.seed}"


def _row(cell: str, texts: tuple[str, ...]) -> str:
    return f"<tr>{''.join(f'<{cell}>{escape(text)}</{cell}>' for text in texts)}</tr>"


def simulated(
    program: tree.Program, given: Mapping[str, Any], *, ranks: int, seed: int, schedule: Mapping[str, str]
) -> Simulated:
    """Run a program of one kernel with what is given by name: arrays, scalars, constants, dimensions. Raises
    `PkcError`."""
    (source,) = program.kernels
    constants = constants_of(source)
    values = {name: given[name] for name in constants if name in given}
    compiled = compile_program(program, constants=values, schedule=schedule)
    kernel, module = compiled.kernel, compiled.module
    called = Program(kernel)
    data = {name: given[name] for name in given if name in kernel.arguments}
    sizes = {name: given[name] for name in given if name in called.dims}
    refuse_unknown(source.name, given, [*kernel.arguments, *constants, *called.dims, "ranks", "seed"])
    if not sizes and not set(data) & set(called.arrays):
        sizes = small_dims(kernel, ranks)
    dims = resolve_dims(kernel, sizes, data, ranks)
    inputs = draw_inputs(module, ranks=ranks, dims=dims, seed=seed, both_sides=True) | as_elements(called, data)
    references = [] if source.reference is None else [source.reference]
    asked = references_of(references, source.name, called.outputs, source.span)
    wanted = computed(asked, called, inputs, default_constants(source) | values | dims | {RANKS: ranks})
    outputs = simulate(module, ranks=ranks, dims=dims, inputs=inputs, seed=seed, say=print)
    expected = reference(module, ranks=ranks, dims=dims, inputs=inputs, probable=True)
    around = reference(module, ranks=ranks, dims=dims, inputs=inputs, as_written=True) if asked else expected
    rounded = tuple(
        f"`{name}` is rounded from {np.asarray(data[name]).dtype} to {dtype_name(kind.element_type)}"
        for name, kind in called.arrays.items()
        if name in data and np.asarray(data[name]).dtype != inputs[name].dtype
    )
    compared = tuple(compare(outputs, expected))
    others = tuple(
        (one.name, tuple(compare(outputs, expected_by(one, found, around, called))))
        for one, found in zip(asked, wanted, strict=True)
    )
    return Simulated(source.name, ranks, seed, dims, inputs, outputs, expected, compared, others, rounded)
