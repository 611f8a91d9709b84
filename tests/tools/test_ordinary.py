"""The kernels that are measured beside torch.compile compile for their sizes."""

from __future__ import annotations

import pytest

from tests.sweeps import sweep
from tools.ordinary import CASES, KERNELS, built


@pytest.mark.parametrize("name", sweep(CASES, {"conv1d", "kv_update", "meanpool"}.__contains__))
def test_a_case_is_built_and_names_its_arrays(name: str) -> None:
    artifact, dims, scalars = built(name)
    arrays = [array for array in artifact.arrays if not array.scratch]
    case = CASES[name]
    assert {*case.outputs, *case.ints, *case.scale} <= {array.name for array in arrays}
    assert {dim for array in arrays for dim in array.dims if isinstance(dim, str)} <= {*dims, "ranks"}
    assert set(scalars) <= set(case.sizes)


def test_each_program_is_measured() -> None:
    assert {path.stem for path in KERNELS.glob("*.pk")} == {case.file or name for name, case in CASES.items()}
