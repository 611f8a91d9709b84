"""Copies from rows that begin anywhere to padded rows, by the threads of a consumer: thread by thread on numpy, where
what belongs to nothing is poison. Matmuls of these copies give the bits of the program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pkc.codegen.build import machine_level
from pkc.dialect.numeric import numpy_dtype
from pkc.dialect.program import KernelOp
from pkc.dialect.types import DTYPES
from pkc.driver.building import lengths
from pkc.driver.compiler import compile_program, load_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.draw import draw_inputs
from pkc.sim.run import simulate
from tests.codegen.test_tiles import Together
from tests.codegen.threads import Memory, warps
from tests.sim.helpers import parse

EXAMPLES = Path(__file__).parents[2] / "examples"
COPY = """
pk.kernel @copy(%X: !pk.private<[M, N], {dtype}> {{pk.name = "X"}},
    %Y: !pk.private<[M, N], {dtype}, padded> {{pk.name = "Y", pk.scratch}}) attributes {{target = "sm_90a",
    schedule = {{}}, divisors = {{N = 1 : i64}}, derived, comm_sms = 0 : i64, fenced}} {{
  pk.role consumer warps 8 attributes {{group = "compute", first_warp = 0 : i64, registers = 232 : i64}} {{
    %0 = pk.block_count <M by 16>
    %1 = pk.block_count <N by {columns}>
    pk.tasks (%2, %3) in (%0, %1) attributes {{per_cta}} {{
      %m = pk.block[%2] : !pk.block<M by 16>
      %n = pk.block[%3] : !pk.block<N by {columns}>
      %x = pk.load %X[%m, %n : !pk.block<M by 16>, !pk.block<N by {columns}>] {{{by_threads}}}
        : !pk.private<[M, N], {dtype}> -> !pk.tile<16x{columns}x{dtype}>
      pk.store %x, %Y[%m, %n : !pk.block<M by 16>, !pk.block<N by {columns}>] {{{by_threads}}}
        : !pk.tile<16x{columns}x{dtype}>, !pk.private<[M, N], {dtype}, padded>
    }}
  }}
}}
"""
BY_THREADS = 'transfer = {by = "register", why = ""}'


@pytest.mark.parametrize("columns", [131, 261])
@pytest.mark.parametrize(("dtype", "each"), [("bf16", 256), ("f32", 128)])
def test_all_elements_are_copied_once(dtype: str, each: int, columns: int) -> None:
    """The last eight of a row may go past its end, up to where the next one begins."""
    (kernel,) = parse(COPY.format(dtype=dtype, columns=each, by_threads=BY_THREADS)).ops
    assert isinstance(kernel, KernelOp)
    lowered = machine_level(kernel)
    assert "load_global_v4_around_where" in str(lowered)
    memory = Memory(lowered, 1, {"M": 18, "N": columns})
    values = (np.random.default_rng(columns).integers(-64, 65, (18, columns)) / 8).astype(numpy_dtype(DTYPES[dtype]))
    memory.arrays["X"][0][...] = values
    count = 2 * -(-columns // each)
    memory.ctas = [Together(memory, 0, number, count) for number in range(count)]
    for numbers, threads in warps(kernel, count):
        for number in numbers:
            memory.ctas[number].run(lowered.body.block, threads)
    found = memory.arrays["Y"][0]
    assert found.shape[1] * values.dtype.itemsize % 32 == 0
    assert (found[:, :columns] == values.astype(float)).all()


@pytest.mark.parametrize(
    ("name", "dims", "ranks"),
    [
        ("gemm", {"M": 70, "N": 131, "K": 75}, 1),
        ("gemm_fp8", {"M": 70, "N": 64, "K": 75}, 1),
        ("swiglu", {"M": 70, "N": 131, "K": 72}, 1),
        ("grouped_gemm", {"E": 2, "P": 70, "N": 131, "K": 75}, 1),
        ("gemm_rs", {"M": 70, "N": 131, "K": 75}, 2),
    ],
)
def test_matmuls_of_copies_give_the_bits_of_the_program(name: str, dims: dict[str, int], ranks: int) -> None:
    program = load_program(EXAMPLES / f"{name}.pk")
    divisors = lengths(program, name, None, None).divisors(dims, ranks)
    tile, roles = compile_program(program), compile_program(program, level="roles", divisors=divisors)
    assert any(str(argument.type).endswith("padded>") for argument in roles.kernel.body.block.args)
    inputs = draw_inputs(tile.module, ranks=ranks, dims=dims, seed=1)
    expected = simulate(tile.module, ranks=ranks, dims=dims, inputs=inputs)
    for ctas in (1, 3):
        found = simulate(roles.module, ranks=ranks, dims=dims, inputs=inputs, seed=ctas, ctas=ctas)
        for array, values in expected.items():
            assert found[array].tobytes() == values.tobytes(), array
    assert machine_level(roles.kernel).body.block.ops


SCATTERED = {
    "a row": (
        "X: bf16[M, N], rows: i32[M], Y: bf16[P, N]",
        "m, n in tasks(blocks(M, 16), blocks(N, 128))",
        "[rows[m], n] = X[m, n] * 2.0",
    ),
    "scaled by a column": (
        "X: bf16[M, N], S: f32[M], rows: i32[M], Y: bf16[P, N]",
        "m, n in tasks(blocks(M, 16), blocks(N, 128))",
        "[rows[m], n] = X[m, n] * S[m]",
    ),
    "single elements": (
        "X: f32[M, 8], rows: i32[M], Y: f32[P]",
        "m in tasks(blocks(M, 128))",
        "[rows[m]] = X[m, 3] * 2.0",
    ),
}


@pytest.mark.parametrize("name", SCATTERED)
def test_scatters_have_no_room_for_whole_chunks(name: str) -> None:
    """Rows of 131 elements: beside whole chunks, of rows that suit them, only elements are stored."""
    parameters, tasks, line = SCATTERED[name]
    body = f"    with role(communicator, sms=4):\n        for {tasks}:\n            Y{line}\n"
    program = parse_text(Source("put.pk", f"kernel put({parameters}):\n{body}"))
    lowered = str(machine_level(compile_program(program, level="roles", divisors={"N": 1}).kernel))
    assert "load_global_v4_around_where" not in lowered
    assert "store_global_b" in lowered
