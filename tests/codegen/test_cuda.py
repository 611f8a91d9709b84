"""The text of CUDA C++: two kernels in full, names, what the instruction table says."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from xdsl.dialects import arith, scf
from xdsl.ir import Operation

from pkc.codegen.build import build_kernel, machine_level
from pkc.codegen.cubin import kernel_facts
from pkc.codegen.cuda import print_kernel
from pkc.codegen.names import DECLARED, RESERVED, Names
from pkc.codegen.nvrtc import compile_cuda
from pkc.dialect.machine import KINDS, InstructionOp
from pkc.dialect.roles import ChannelOp
from pkc.driver.compiler import compile_program, load
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes.roles.budgets import channel_group
from pkc.targets.instruction import Instruction
from pkc.targets.sm_90a.instructions import PLAIN, instruction
from tools import machine_page

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PKC_CACHE_DIR", str(tmp_path / "cache"))


def source(path: str | Path) -> str:
    return print_kernel(machine_level(load(path, level="machine").kernel))


@pytest.mark.parametrize("name", ["gemm", "ring_attention"])
def test_text(name: str, golden: Callable[[Path, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    golden(HERE / f"{name}.cu", source(f"examples/{name}.pk"))


@pytest.mark.parametrize("name", ["gemm", "ring_attention"])
def test_every_line_of_the_text_has_a_line_of_the_program(name: str) -> None:
    path = ROOT / "examples" / f"{name}.pk"
    marks = [(int(line), file) for line, file in re.findall(r'^#line (\d+) "(.*)"$', source(path), re.M)]
    last = path.read_text().count("\n") + 1
    assert {file for _, file in marks} == {str(path)}
    assert all(1 <= line <= last for line, _ in marks)
    assert source(path).count("\n#include") == 0


def test_page_is_current() -> None:
    text = machine_page.PAGE.read_text(encoding="utf-8")
    assert text == machine_page.page(text, "loop", "table"), "run `make golden`"  # the rest: tests/test_site.py
    assert "wgmma_commit();" in text
    assert "| `mbarrier_wait` | index, index |  |" in text


HOSTILE = """\
kernel warp_number(int: bf16[double, epochs], A_base: bf16[double, epochs], min: f32, A: f32[double, epochs]):
    for m, n in tasks(blocks(double, 64), blocks(epochs, 64)):
        max = cast(int[m, n], f32) * min
        args = max + 1.0
        a1 = exp2(args)
        a = exp2(max) + a1
        shared = a + args
        A[m, n] = shared
"""


def test_names_that_mean_something_in_cuda(tmp_path: Path) -> None:
    path = tmp_path / 'a "b" \\c.pk'
    path.write_text(HOSTILE)
    text = source(path)
    assert ".entry warp_number1(" in compile_cuda(text, "sm_90a", "k").ptx


NAMED = """\
kernel {}(A: f32[N], B: f32[N]):
    for n in tasks(blocks(N, 256)):
        B[n] = A[n] + 1.0
"""


# `atomicAdd` and `float4` are declared, too, but go with a kernel of that name.
@pytest.mark.parametrize("name", ["norm", "y1", "free", "powf", "__syncthreads", "_NaN", "atomicAdd", "float4", "NULL"])
def test_a_kernel_may_have_the_name_of_a_function_of_c(name: str, tmp_path: Path) -> None:
    """And its artifact says what the function in the machine code is called."""
    path = tmp_path / "k.pk"
    path.write_text(NAMED.format(name))
    artifact = build_kernel(load(path, level="roles").kernel).artifact
    assert list(kernel_facts(artifact.cubin)) == [artifact.name]
    assert name in artifact.name


def test_no_kernel_has_a_name_that_is_declared() -> None:
    """One text with a kernel of each name that is known to be taken, and of each function of Python's `math`."""
    names = Names(DECLARED)
    wishes = sorted({*DECLARED, *RESERVED, *dir(math)} - {"Args"})
    head = 'extern "C" __global__ void __launch_bounds__(128, 1)'
    kernels = [f"{head} {names.new(wish)}(const __grid_constant__ Args args) {{}}" for wish in wishes]
    text = "\n".join(["struct alignas(128) Args { int a; };", *kernels])
    assert compile_cuda(text, "sm_90a", "k").ptx.count(".entry") == len(wishes)


def test_names() -> None:
    names = Names(("taken",))
    wishes = ["taken", "taken1", "taken", "A.fetched", "A_fetched", "é", "2d", "new", "max", ""]
    got = [names.new(wish) for wish in wishes]
    assert got == ["taken1", "taken11", "taken2", "A_fetched", "A_fetched1", "_", "_2d", "new_", "max_", "v"]
    assert names.new("v", numbered=True) == "v0"
    assert names.new("v", numbered=True) == "v1"


FAMILIES = [
    "tma_load_1d", "tma_load_5d", "tma_load_3d_keep", "tma_store_3d", "tma_store_2d_once", "tma_add_2d",
    "wgmma_n8_bf16_ss_kk", "wgmma_n256_f16_ss_mn",
    "wgmma_n64_bf16_rs_kn", "wgmma_n16_e4m3_ss_kk", "wgmma_n16_e5m2_rs_kk", "wgmma_n16_e5m2_e4m3_ss_kk",
    "load_global_v4", "load_global_v1",
    "store_global_v2", "wgmma_wait_7", "wgmma_done_8", "setmaxnreg_dec_24", "setmaxnreg_inc_240", "sync_15_of_128",
]  # fmt: skip


def test_every_instruction_assembles() -> None:
    """Each with operands that the compiler does not know, so that none is left out."""
    entries = [*PLAIN, *(entry for name in FAMILIES if (entry := instruction(name)) is not None)]
    assert len(entries) == len(PLAIN) + len(FAMILIES)
    text = ["struct alignas(128) TensorMap { char bytes[128]; };"]
    for number, entry in enumerate(entries):
        text += [as_function(entry), _kernel(number, entry)]
    ptx = compile_cuda("\n".join(text), "sm_90a", "table").ptx
    assert ptx.count(".entry") == len(entries)


def as_function(entry: Instruction) -> str:
    """An entry of the table as a function."""
    names = zip(entry.operands, "abcdefghijk", strict=False)
    parameters = ", ".join(
        _array(kind, name) if kind.startswith("registers") else f"{_type(kind)} {name}" for kind, name in names
    )
    result = "void" if entry.result is None else KINDS[entry.result]
    return f"static __device__ {result} {entry.name}({parameters}) {{ {entry.body} }}"


def _type(kind: str) -> str:
    return "const TensorMap&" if kind == "map" else KINDS[kind]


def _array(kind: str, name: str) -> str:
    count, element = kind.removeprefix("registers<").removesuffix(">").split(" x ")
    return f"{KINDS[element]} (&{name})[{count}]"


def _kernel(number: int, entry: Instruction) -> str:
    """Calls one instruction with what it is given, and keeps what it gives."""
    body: list[str] = []
    for i, kind in enumerate(entry.operands):
        if kind.startswith("registers"):
            body.append(f"{_array(kind, f'x{i}').replace('(&', '').replace(')', '')} = {{}};")
    arguments = ", ".join(
        "map" if kind == "map" else f"x{i}" if kind.startswith("registers") else f"({KINDS[kind]})n"
        for i, kind in enumerate(entry.operands)
    )
    call = f"{entry.name}({arguments});"
    body.append(call if entry.result is None else f"*p = (float){call}")
    keep = [f"*p += (float)x{i}[0];" for i, kind in enumerate(entry.operands) if kind.startswith("registers")]
    return (
        f'extern "C" __global__ void __launch_bounds__(128, 1) k{number}'
        f"(const __grid_constant__ TensorMap map, float* p, int n) {{ {' '.join(body + keep)} }}"
    )


def test_barriers_of_ctas_that_communicate_are_their_own() -> None:
    """Stages of both kinds of CTAs lie in the same places: each initialises its own barriers, with its own counts."""
    options = {"overlap": "inter_sm", "comm_sms": "4"}
    path = ROOT / "examples" / "ring_attention.pk"
    roles, machine = (
        load(path, constants={"D": 64}, schedule=options, level=level).kernel for level in ("roles", "machine")
    )
    stages = {"compute": 0, "communicate": 0}
    for op in roles.body.block.ops:
        if isinstance(op, ChannelOp):
            stages[channel_group(op)] += op.depth
    counts = Counter(op.parent_op() for op in machine.walk() if _is(op, "mbarrier_init"))
    assert sorted(counts.values()) == sorted(2 * number for number in stages.values())
    conditions = [branch.cond.owner for branch in counts if isinstance(branch, scf.IfOp)]
    sides = {op.predicate.value.data for op in conditions if isinstance(op, arith.CmpiOp)}
    assert sides == {2, 5}  # signed less than, greater than or equal: the number of the CTA against those that compute


def _is(op: Operation, name: str) -> bool:
    return isinstance(op, InstructionOp) and op.instruction_name.data == name


def test_the_least_integer_is_an_int() -> None:
    """In C++ `-2147483648` is a long, which `max` of ints does not take."""
    text = (
        "kernel last(X: f32[M, N], Y: i32[M]):\n    for m in tasks(blocks(M, 64)):\n        p = full(i32, -1, m)\n"
        "        for n in blocks(N, 64):\n"
        "            p = max(p, rowmax(where(X[m, n] > 0.0, positions(n), -1)))\n        Y[m] = p\n"
    )
    program = parse_text(Source("last.pk", text))
    printed = print_kernel(compile_program(program, level="machine").kernel)
    assert "(-2147483647 - 1)" in printed
    assert "-2147483648" not in printed


def test_rows_that_a_thread_copies_share_their_swizzle() -> None:
    """Those of a thread of two warps lie multiples of eight rows apart, after which the pattern repeats."""
    text = """\
kernel rows(X: bf16[T, H], R: i32[P], W: bf16[H, N], Y: bf16[P, N]):
    for p, n in tasks(blocks(P, 128), blocks(N, 64)):
        acc = zeros(f32, p, n)
        for h in blocks(H, 64):
            acc += gather(X, R[p], h) @ W[h, n]
        Y[p, n] = acc
"""
    compiled = compile_program(parse_text(Source("rows.pk", text)), level="machine")
    whole, _, _ = print_kernel(compiled.kernel).rpartition("load_global_b16(")  # the last ones are element by element
    copying = whole.rpartition("< 1024; ")[2]
    assert copying.count("copy_shared_v4_where(") == 16
    assert copying.count(" ^ (") == 1
