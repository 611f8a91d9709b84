"""Consumers add up the last rows of every sum of a kernel: its bits, and its machine code."""

from __future__ import annotations

import pytest

from pkc.codegen.build import build_kernel
from pkc.dialect.attributes import Role
from pkc.dialect.counters import WaitOp
from pkc.dialect.program import KernelOp, RoleOp
from pkc.driver.compiler import Compiled, compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.draw import draw_inputs
from pkc.sim.run import simulate
from tests.matmuls import SUMS

EXPECTED = {"two": 2, "rows": 1, "phases": 1, "of iterations": 1}
"""How many sums of each kernel consumers share."""


def compiled(name: str, level: str) -> Compiled:
    return compile_program(parse_text(Source("k.pk", SUMS[name])), level=level)


def awaited(kernel: KernelOp) -> set[str]:
    """The counters that consumers wait for."""
    roles = [op for op in kernel.body.block.ops if isinstance(op, RoleOp) and op.role.data is Role.Consumer]
    waits = [op for role in roles for op in role.walk() if isinstance(op, WaitOp)]
    return {kernel.argument_name(op.signal) for op in waits}


@pytest.mark.parametrize("name", SUMS)
def test_consumers_share_each_sum(name: str) -> None:
    found = compiled(name, "roles")
    shared = {counter for counter in awaited(found.kernel) if counter.endswith(".arrived")}
    assert len(shared) == EXPECTED[name]
    told = [remark.reason for remark in found.remarks if remark.step == "pk-share-sums"]
    assert told == ["communicators alone add up this sum: a later phase may wait for it"] * (name == "phases")


@pytest.mark.parametrize("name", SUMS)
def test_bits_are_those_of_the_tile_level(name: str) -> None:
    tile, roles = compiled(name, "tile"), compiled(name, "roles")
    used = {dim for argument in tile.kernel.body.block.args for dim in getattr(argument.type, "dimensions", ())}
    dims = {dim: size for dim, size in {"M": 290, "N": 140, "K": 70}.items() if dim in used}
    for ranks in (1, 2, 3):
        inputs = draw_inputs(tile.module, ranks=ranks, dims=dims, seed=ranks)
        expected = simulate(tile.module, ranks=ranks, dims=dims, inputs=inputs)
        for ctas, seed in ((1, 0), (2, 1), (5, 2)):
            found = simulate(roles.module, ranks=ranks, dims=dims, inputs=inputs, seed=seed, ctas=ctas)
            assert {key: value.tobytes() for key, value in found.items()} == {
                key: value.tobytes() for key, value in expected.items()
            }


@pytest.mark.parametrize("name", ["two", "rows"])
def test_machine_code(name: str) -> None:
    assert {warning.code for warning in build_kernel(compiled(name, "machine").kernel).warnings} <= {"PK803"}
