"""The hardware has the tensor maps of all kernels that are run on GPUs, at all their sizes."""

from __future__ import annotations

import pytest

from pkc.codegen.artifact import TensorMaps
from pkc.codegen.kernel_parameters import array_parameters, struct_fields
from pkc.diagnostics import PkcError
from pkc.dialect.words import RANKS
from pkc.driver.planned import planned
from pkc.runtime.kernel_parameters import Values, tilings_of
from pkc.targets import DEFAULT
from tests.gpu.cases import CASES, Case
from tests.sweeps import sweep

ADDRESS, STRIDE = 1 << 40, 1 << 34
SLOTS = "tiles column_sums uneven"
"""Rows that a pass adds, as long as a shard that is no multiple of what TMA moves."""
OFTEN = {SLOTS, *(case.name for case in CASES[::150])}


def _refused(case: Case, ranks: int, dims: dict[str, int]) -> list[str]:
    """What is wrong with the maps of a kernel."""
    given = {**dims, **case.constants}
    found = planned(case.program(), given, ranks=ranks, schedule=case.schedule, target=DEFAULT, level="machine")
    kernel = found.compiled.kernel
    arrays = {array.name: array for array in array_parameters(kernel)}
    refused: list[str] = []
    for field in struct_fields(kernel)[0]:
        if not isinstance(field, TensorMaps):
            continue
        values = Values(0, STRIDE, 0, 0, {**found.dims, RANKS: ranks}, {}, {field.array: ADDRESS})
        try:
            for tiling in tilings_of(field, arrays[field.array], values):
                tiling.check()
        except PkcError as error:
            refused.append(f"{ranks} ranks, {dims}: {error}")
    return refused


@pytest.mark.parametrize("case", sweep(CASES, lambda case: case.name in OFTEN), ids=lambda case: case.name)
def test_the_hardware_has_the_maps(case: Case) -> None:
    refused = [found for ranks in (2, 3) for dims in case.sizes(ranks) for found in _refused(case, ranks, dict(dims))]
    assert not refused
