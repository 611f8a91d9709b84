"""Programs about axes: what they compute in the simulator against numpy, and at the machine level, thread by thread,
against the simulator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from pkc.codegen.build import machine_level
from pkc.dialect.numeric import numpy_dtype
from pkc.dialect.types import ArrayType, i32
from pkc.sim.run import simulate
from tests.axes import ACROSS, PROGRAMS
from tests.codegen.test_tiles import check, compiled, sizes_of

SIZES = {"B": 3, "M": 72, "N": 76, "K": 40, "H": 144, "V": 152, "S": 100}
"""Ragged blocks; rows of 16 bits begin at no multiple of 16 bytes."""


OFTEN = {
    "one dimension twice",
    "rows and columns",
    "one of each row",
    "columns",
    "differences",
    "heads",
    "norms of heads",
    *ACROSS,
}
"""Those that `make test` runs thread by thread."""

SELDOM = {
    "taps of pixels",
    "upsampled",
    "codes in words",
    "mirrored and turned",
    "one hot",
    "stencil",
    "softmax of three axes",
}
"""Those that it does not run in the simulator."""


def drawn(text: str, sizes: Mapping[str, int]) -> tuple[Any, dict[str, Any]]:
    """The tile level of a program, and inputs: eighths, and numbers of which most are positions."""
    found, generator = compiled(text, sizes, "tile"), np.random.default_rng(1)
    inputs: dict[str, Any] = {}
    for argument in found.kernel.body.block.args:
        name, kind = found.kernel.argument_name(argument), argument.type
        if name == "Y" or not isinstance(kind, ArrayType):
            continue
        shape = [dim if isinstance(dim, int) else sizes[dim] for dim in kind.dimensions]  # pyright: ignore
        if kind.element_type == i32:
            inputs[name] = generator.integers(-1, 40, (1, *shape)).astype(np.int32)
        else:
            inputs[name] = (generator.integers(-16, 17, (1, *shape)) / 8).astype(numpy_dtype(kind.element_type))
    return found, inputs


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if name in SELDOM else ()) for name in PROGRAMS]
)
def test_programs_mean_what_numpy_says(name: str) -> None:
    text, expected = PROGRAMS[name]
    sizes = sizes_of(text, SIZES)
    tile, inputs = drawn(text, sizes)
    exact = {name: of[0] if of.dtype == np.int32 else of[0].astype(np.float64) for name, of in inputs.items()}
    wanted = expected(exact)
    for module in (tile.module, compiled(text, sizes, "roles").module):
        found = simulate(module, ranks=1, dims=sizes, inputs=inputs)["Y"][0]
        np.testing.assert_allclose(np.asarray(found, np.float64), wanted, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in OFTEN else pytest.mark.long)
        for name, program in PROGRAMS.items()
        if "@" not in program.text
    ],
)
def test_threads_compute_what_the_simulator_does(name: str) -> None:
    check(PROGRAMS[name].text, SIZES | {"B": 2, "M": 20, "K": 24, "H": 24, "V": 72})


@pytest.mark.parametrize("name", [name for name, program in PROGRAMS.items() if "@" in program.text])
def test_programs_with_matmuls_are_lowered(name: str) -> None:
    text = PROGRAMS[name].text
    assert machine_level(compiled(text, sizes_of(text, SIZES), "roles").kernel)
