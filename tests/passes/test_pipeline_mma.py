"""MMAs of one iteration that run while another one computes what the next MMA needs: bits, stages, machine code."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from pkc.check.run import Trial, baseline_of, check_roles
from pkc.check.static import check_statically
from pkc.codegen.build import build_kernel
from pkc.dialect.machine import GetOp, InstructionOp, SetOp, SubviewOp
from pkc.dialect.program import KernelOp
from pkc.dialect.roles import ChannelOp
from pkc.dialect.tile import MmaIssueOp, MmaOp, MmaWaitOp
from pkc.driver.compiler import Compiled, compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes import ROLES_PIPELINE
from pkc.passes.roles.overlap_mma import OverlapMma
from pkc.passes.run import run_pipeline
from pkc.remarks import collecting
from pkc.sim.draw import draw_inputs
from pkc.sim.run import simulate
from tests.pipelines import ALONE, LOOPS
from tests.sweeps import sweep
from tools.mutant_stages import is_awaited_first, one_stage

BLOCK = 64
MMAS = {"gate and up": 3, "two results": 3}
"""MMAs of an iteration; two of other loops."""

NOT_LOWERED = {"no iteration"}
"""Its loader is a single warp, and clips what it loads."""

WAIT = "wgmma_wait_"


@cache
def compiled(name: str, level: str) -> Compiled:
    return compile_program(parse_text(Source("k.pk", LOOPS[name]).remember()), level=level)


def dims_of(kernel: KernelOp, iterations: int) -> dict[str, int]:
    """Sizes at which the loop has so many iterations, and the last block of each dimension is ragged."""
    sizes = {"M": 150, "N": iterations * BLOCK - 5, "L": iterations}
    used = {dim for argument in kernel.body.block.args for dim in getattr(argument.type, "dimensions", ())}
    return {dim: size for dim, size in sizes.items() if dim in used}


@pytest.mark.parametrize(("name", "iterations"), sweep(product(LOOPS, (1, 2, 3, 7)), lambda _, count: count in (1, 3)))
def test_bits_are_those_of_the_tile_level(name: str, iterations: int) -> None:
    tile, roles = compiled(name, "tile"), compiled(name, "roles")
    dims = dims_of(tile.kernel, iterations)
    inputs = draw_inputs(tile.module, ranks=1, dims=dims, seed=iterations)
    expected = simulate(tile.module, ranks=1, dims=dims, inputs=inputs)
    assert all(np.isfinite(values.astype(np.float32)).all() for values in expected.values())
    for ctas, seed in ((1, 0), (2, 1)):
        found = simulate(roles.module, ranks=1, dims=dims, inputs=inputs, seed=seed, ctas=ctas)
        assert {key: value.tobytes() for key, value in found.items()} == {
            key: value.tobytes() for key, value in expected.items()
        }


@pytest.mark.parametrize("name", LOOPS)
def test_nothing_is_found(name: str) -> None:
    tile, roles = compiled(name, "tile"), compiled(name, "roles")
    for iterations in (1, 4):
        meaning = baseline_of(tile, ranks=1, dims=dims_of(tile.kernel, iterations))
        assert check_roles(roles, meaning, (Trial(1, 0), Trial(2, 1))) == []
        assert list(check_statically(roles.kernel, ranks=1, dims=meaning.dims).findings) == []


@pytest.mark.parametrize("name", LOOPS)
def test_all_are_pipelined(name: str) -> None:
    """The loop has its MMAs twice, in front of it and behind it once each."""
    ops = list(compiled(name, "roles").kernel.walk())
    assert not any(isinstance(op, MmaOp) for op in ops)
    count = 2 * MMAS.get(name, 2)
    assert sum(isinstance(op, MmaIssueOp) for op in ops) == sum(isinstance(op, MmaWaitOp) for op in ops) == count


@pytest.mark.parametrize("name", [name for name in LOOPS if name not in NOT_LOWERED])
def test_registers_of_an_mma_in_flight_are_not_touched(name: str) -> None:
    kernel = compiled(name, "machine").kernel
    issued, touched = in_flight(kernel)
    assert issued == 2 * MMAS.get(name, 2)
    assert touched == []


def in_flight(kernel: KernelOp) -> tuple[int, list[str]]:
    """How many groups of MMAs a kernel issues; what reads or writes an accumulator of one in flight, or writes to its
    left operand, in the order of the text, in which each group is complete at the end of its block."""
    groups, now = list[tuple[set[SSAValue], set[SSAValue]]](), (set[SSAValue](), set[SSAValue]())
    issued, touched = 0, list[str]()
    for op in kernel.walk():
        name = op.instruction_name.data if isinstance(op, InstructionOp) else ""
        if name.startswith("wgmma_n"):
            now[0].add(_whole(op.operands[0]))
            now[1].update(value.owner.registers for value in op.operands if isinstance(value.owner, GetOp))
        elif name == "wgmma_commit":
            groups.append(now)
            now, issued = (set(), set()), issued + 1
        elif name.startswith("wgmma_wait_"):
            del groups[: max(0, len(groups) - int(name.rpartition("_")[2]))]
        elif isinstance(op, GetOp | SetOp) or name.startswith("wgmma_done"):
            used = _whole(op.operands[0] if name else op.registers)
            written = isinstance(op, SetOp)
            if any(used in accumulators or (written and used in lefts) for accumulators, lefts in groups):
                touched.append(str(op))
    assert not groups
    return issued, touched


def _whole(registers: SSAValue) -> SSAValue:
    while isinstance(registers.owner, SubviewOp):
        registers = registers.owner.registers
    return registers


def test_a_wait_for_one_less_is_a_register_touched() -> None:
    """The check above finds what it is made for."""
    kernel = compiled("chained GEMMs", "machine").kernel.clone()
    first = next(op for op in kernel.walk() if isinstance(op, InstructionOp) and op.instruction_name.data[:-1] == WAIT)
    first.properties["instruction_name"] = StringAttr(f"{WAIT}1")
    assert in_flight(kernel)[1]


@pytest.mark.parametrize("name", ["attention", "chained GEMMs", "operand from outside"])
def test_machine_code(name: str) -> None:
    assert not build_kernel(compiled(name, "machine").kernel).warnings


@pytest.mark.parametrize("name", ALONE)
def test_what_is_left_alone(name: str) -> None:
    text, schedule, remark = ALONE[name]
    compiled = compile_program(parse_text(Source("k.pk", text).remember()), level="tile", schedule=schedule)
    # pk-overlap-mma splits MMAs, too.
    with collecting() as remarks:
        run_pipeline(
            compiled.module, [step for step in ROLES_PIPELINE if not isinstance(step, OverlapMma)], verify_each=False
        )
    assert not any(isinstance(op, MmaIssueOp) for op in compiled.kernel.walk())
    assert f"k.pk:{remark} [pk-pipeline-mma]" in map(str, remarks)


@pytest.mark.parametrize(("name", "is_broken"), [("late operand loaded first", True), ("chained GEMMs", False)])
def test_late_stages(name: str, is_broken: bool) -> None:
    """With one stage, the loader waits for it, and the consumer for what the loader would bring next."""
    kernel = compile_program(parse_text(Source("k.pk", LOOPS[name])), level="roles").kernel
    meaning = baseline_of(compiled(name, "tile"), ranks=1, dims=dims_of(kernel, 3))
    (channel,) = [op for op in kernel.walk() if isinstance(op, ChannelOp) and op.label.data == "B"]
    assert is_awaited_first(channel) == is_broken
    one_stage(channel)
    codes = {finding.code for finding in check_statically(kernel, ranks=1, dims=meaning.dims).findings}
    assert codes == ({"PK480"} if is_broken else set())
