"""Small programs at the machine level, thread by thread on numpy, against the simulator; epilogues as machine code."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pytest
from xdsl.ir import BlockArgument

from pkc.codegen.build import build_kernel, machine_level
from pkc.dialect.arrays import given_type
from pkc.dialect.machine import InstructionOp
from pkc.dialect.numeric import numpy_dtype
from pkc.dialect.program import KernelOp
from pkc.dialect.types import INTEGERS, PrivateType
from pkc.driver.building import lengths
from pkc.driver.compiler import Compiled, compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.sim.program import Program
from pkc.sim.run import simulate
from tests import drawn_lately
from tests.codegen.threads import SHARES, Memory, warps
from tests.codegen.together import Together
from tests.sweeps import sweep
from tests.tiles import EPILOGUES, OVER_RANKS, TILES

ALIGNED = {"B": 3, "M": 18, "N": 136, "K": 136, "S": 18}
UNEVEN = {"B": 3, "M": 17, "N": 131, "K": 131, "S": 17}
"""Rows that begin at no multiple of 16 bytes, and no threads that share them evenly."""

SMALLER = {"softmax_1024_m64", "softmax_8192_m64", "layernorm_1024_m64", "rowsum_1024_m64"}
"""Their blocks have fewer positions than the program says."""

OFTEN = {
    "ew_bias",
    "ew_outer",
    "ew_scale_row",
    "ew_default_tile",
    "copy_n260",
    "kept_and_scaled",
    "kept_rows",
    "transpose_add",
    "transposed_f32",
    "argmax",
    "bits",
    "group_norm",
    "clip_norm",
    "clip_norms",
    "batched_3axis",
    "softmax_odd_132_m1",
    "layernorm_1024_m16",
    "rmsnorm_loop",
    "softmax_online_row",
    "rs_residual_after",
    "rs_rmsnorm_after",
    "ag_scale_row",
    "ar_1d",
    "gemm_residual_f32",
    "gradient_of_bias",
    "ar_gradient_of_bias",
    "columns_beside",
    "columns_beside_f32",
    "swiglu_256",
    "gemm_to_e4m3",
    "to_e4m3",
    "from_e4m3",
    "of_i8",
    "from_i8",
    "right_i8",
    "right_i8_scaled",
    "right_i4",
    "taps",
    "taps_before",
    "sums_of_columns",
    "greatest_of_columns",
    "row_before_as_it_is",
    "row_before",
    "first_row",
    "parted_row",
}
"""Those that `make test` runs: each for one way through the lowering."""


def often(names: Iterable[str]) -> list[Any]:
    return [pytest.param(name, marks=() if name in OFTEN else pytest.mark.long) for name in names]


def sizes_of(text: str, sizes: Mapping[str, int]) -> dict[str, int]:
    """Of the dimensions that a program has; two tasks where each has a single row."""
    head = text.partition(":\n")[0]
    few = {"M": 2} if "tasks(M" in text else {}
    return {dim: size for dim, size in {**sizes, **few}.items() if re.search(rf"[\[ ]{dim}[,\]]", head)}


def compiled(text: str, sizes: Mapping[str, int], level: str) -> Compiled:
    program = parse_text(Source("tiles.pk", text))
    divisors = lengths(program, program.kernels[0].name, None, SHARES).divisors(sizes, 1)
    return compile_program(program, schedule=SHARES, level=level, divisors=divisors)


def check(text: str, sizes: Mapping[str, int]) -> None:
    """All arrays that a kernel writes on one rank, each task on a CTA of its own."""
    sizes = sizes_of(text, sizes)
    tile, roles = compiled(text, sizes, "tile"), compiled(text, sizes, "roles").kernel
    lowered = machine_level(roles)
    memory = Memory(lowered, 1, dict(sizes))
    called, generator = Program(tile.kernel), np.random.default_rng(1)
    written = set(called.outputs)
    inputs: dict[str, np.ndarray[Any, Any]] = {}
    for argument in lowered.body.block.args:
        name, kind = lowered.argument_name(argument), argument.type
        if name in written or name not in called.arrays or not isinstance(kind, PrivateType):
            continue
        # Eighths are exact in all types.
        values: np.ndarray[Any, Any] = np.asarray(generator.integers(-16, 17, memory.arrays[name][0].shape))
        inputs[name] = (values if kind.element_type in INTEGERS else values / 8).astype(numpy_dtype(kind.element_type))[
            None
        ]
        memory.arrays[name][0][...] = inputs[name][0]
        inputs[name] = inputs[name].reshape(1, *given_shape(lowered, argument, sizes))
    count = tasks(text, sizes)
    memory.ctas = [Together(memory, 0, number, count) for number in range(count)]
    for numbers, threads in warps(roles, count):
        for number in numbers:
            memory.ctas[number].run(lowered.body.block, threads)
    expected = simulate(tile.module, ranks=1, dims=sizes, inputs=inputs)
    for name in written:
        wanted = np.asarray(expected[name][0]).astype(np.float64).reshape(memory.arrays[name][0].shape)
        np.testing.assert_allclose(memory.arrays[name][0], wanted, rtol=1e-2, atol=1e-3)


def given_shape(kernel: KernelOp, argument: BlockArgument, sizes: Mapping[str, int]) -> list[int]:
    """The shape of an array as callers have it."""
    dims = given_type(kernel, argument).dimensions
    return [sizes[dim] if isinstance(dim, str) else dim for dim in dims]


def tasks(text: str, sizes: Mapping[str, int]) -> int:
    """How many tasks the program's blocks give."""
    found = re.search(r"tasks\((.*)\):", text)
    assert found is not None
    count = 1
    for dim, size, alone in re.findall(r"blocks\((\w+), (\d+)\)|\b([A-Z])\b", found[1]):
        extent = sizes[alone] if alone else int(dim) if dim.isdigit() else sizes[dim]
        count *= extent if alone else -(-extent // int(size))
    return count


WHOLE = [name for name in TILES if name not in SMALLER]


@pytest.mark.parametrize(
    ("name", "uneven"),
    sweep(
        itertools.product(WHOLE, (False, True)),
        lambda name, uneven: name in OFTEN and sorted(OFTEN).index(name) % 2 == uneven,
    ),
)
def test_tiles_without_mma(name: str, uneven: bool) -> None:
    check(TILES[name], UNEVEN if uneven else ALIGNED)


@pytest.mark.parametrize("sizes", [ALIGNED, UNEVEN], ids=["aligned", "uneven"])
def test_several_results_of_what_is_loaded(sizes: dict[str, int]) -> None:
    texts = [text for seed in drawn_lately.SEEDS if "kernel several" in (text := drawn_lately.draw(seed).text)]
    assert any(re.search(r"\] = [xw]$", text, re.M) for text in texts)
    for text in texts:
        check(text, sizes)


ONE_OF_EACH = {
    "copied": "kernel f(X: bf16[M, N, 8], Y: bf16[M, N]):\n    for m, n in tasks(blocks(M, 16), blocks(N, 64)):\n"
    "        Y[m, n] = X[m, n, 3]\n",
    "computed": "kernel f(X: bf16[M, N, 8], Y: f32[M, N]):\n    for m, n in tasks(blocks(M, 16), blocks(N, 64)):\n"
    "        Y[m, n] = cast(X[m, n, 3], f32) * 2.0\n",
    "a row": "kernel f(X: bf16[M, 8], Y: bf16[M]):\n    for m in tasks(blocks(M, 16)):\n        Y[m] = X[m, 3]\n",
}


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_neighbours_in_a_tile_that_are_none_in_the_array(name: str) -> None:
    check(ONE_OF_EACH[name], ALIGNED)


GATHERED = {
    "copied": "        for n in blocks(N, 64):\n            Y[s, n] = gather(X, rows[s], n)\n",
    "computed": "        for n in blocks(N, 64):\n            x = cast(gather(X, rows[s] - 1, n), f32)\n"
    "            Y[s, n] = cast(x * w[s], bf16)\n",
    "reduced": "        for n in blocks(N, 64):\n            x = cast(gather(X, rows[s], n), f32)\n"
    "            Y[s, n] = cast(x - rowmax(x), bf16)\n",
}


@pytest.mark.parametrize("sizes", [ALIGNED, UNEVEN], ids=["aligned", "uneven"])
@pytest.mark.parametrize("name", GATHERED)
def test_gathered_rows(name: str, sizes: dict[str, int]) -> None:
    """Rows of any length, of which each thread has 16 bytes, or some lanes have each."""
    head = "kernel f(X: bf16[M, N], rows: i32[S], w: f32[S], Y: bf16[S, N]):\n    for s in tasks(blocks(S, 16)):\n"
    check(head + GATHERED[name], sizes)


def test_several_warps_share_a_row() -> None:
    check(TILES["softmax_1024_m1"].replace("1024", "264"), {"M": 2})


def test_pieces_of_a_row_are_reduced_by_each_thread() -> None:
    text = (
        TILES["softmax_1024_m1"].replace("1024", "1000").replace("):\n", "):\n    schedule(row=256, consumers=1)\n", 1)
    )
    assert "pk.repeat" in str(compile_program(parse_text(Source("tiles.pk", text))).module)
    check(text, {"M": 2})


def test_blocks_are_as_small_as_a_cta_needs() -> None:
    """Of 64 rows of 8192 elements two fit; the rest of the program stays."""
    found = compile_program(parse_text(Source("tiles.pk", TILES["softmax_8192_m64"])), level="roles")
    (remark,) = (remark for remark in found.remarks if remark.step == "fit")
    assert "tile_M=2:" in remark.reason
    assert "<M by 2>" in str(found.module)


@pytest.mark.parametrize("name", often([*EPILOGUES, *OVER_RANKS]))
def test_epilogues_are_compiled(name: str) -> None:
    """At the tiles that the program says or, with a remark, at smaller ones; with rows of any length."""
    text = (EPILOGUES | OVER_RANKS)[name]
    for sizes in (ALIGNED, UNEVEN):
        assert machine_level(compiled(text, sizes_of(text, sizes), "roles").kernel)


@pytest.mark.parametrize("name", ["gemm_bias_residual_gelu", "gemm_two_out"])
def test_an_epilogue_needs_no_registers_beside_the_accumulators(name: str) -> None:
    found = compile_program(parse_text(Source("tiles.pk", EPILOGUES[name])), level="roles")
    assert not [remark for remark in found.remarks if remark.step == "fit"]
    assert not build_kernel(found.kernel).warnings


@pytest.mark.parametrize(("name", "load", "times"), [("gemm_residual_f32", "v2", 1), ("gemm_alpha_beta", "b32", 4)])
def test_neighbours_come_out_of_a_stage_together(name: str, load: str, times: int) -> None:
    """In the body of an unrolled loop, for two neighbours or for the four pairs of a matrix."""
    kernel = machine_level(compiled(EPILOGUES[name], sizes_of(EPILOGUES[name], ALIGNED), "roles").kernel)
    found = [op.instruction_name.data for op in kernel.walk() if isinstance(op, InstructionOp)]
    assert [one for one in found if one.startswith("load_shared")] == [f"load_shared_{load}"] * times


@pytest.mark.parametrize(
    "order", ["barrier(b[start(m) // 32])", "signal_all(b[start(m)], 1)\n            wait(b[start(m)], ranks)"]
)
def test_tiles_in_front_of_a_wait_and_behind_it(order: str) -> None:
    """Threads go over those of each side in chunks, and the sum over ranks is one of them."""
    text = f"""\
kernel k(X: f32[M], Y: f32[M], S: f32[M].symmetric().scratch(), b: signal[M]):
    with role(communicator):
        for m in tasks(blocks(M, 32)):
            store(S[m], X[m])
            {order}
            Y[m] = reduce(S[m])
"""
    check(text, {"M": 70})


def test_a_row_in_one_piece_is_added_to_memory() -> None:
    """One that no box divides evenly."""
    text = "kernel k(X: f32[M, 1096], Z: f32[M, 1096]):\n    for m in tasks(M):\n"
    text += "        store_add(Z[m, :], X[m, :] * rowsum(X[m, :]))\n"
    schedule = {"deterministic": "False"}
    built = build_kernel(compile_program(parse_text(Source("k.pk", text)), level="roles", schedule=schedule).kernel)
    assert "tma_add_row(" in built.source and "tma_add_1d" not in built.source


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "rowsum_1024_m64" else pytest.mark.long) for name in TILES]
)
def test_rows_stay_in_registers(name: str) -> None:
    """Where the elements of a thread lie is a constant behind one address: addresses take no registers of their own."""
    assert not build_kernel(compiled(TILES[name], sizes_of(TILES[name], ALIGNED), "roles").kernel).warnings
