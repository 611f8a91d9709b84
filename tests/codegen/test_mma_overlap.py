"""What the compiler leaves between an MMA that is issued and the wait for it, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects.builtin import StringAttr

from pkc.codegen.build import Built, build_kernel
from pkc.codegen.cubin import code_of
from pkc.codegen.mma_overlap import beside, lost_overlap
from pkc.codegen.nvrtc import compile_cuda
from pkc.dialect.machine import InstructionOp
from pkc.dialect.program import KernelOp
from pkc.driver.compiler import compile_program, load
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.targets.sm_90a import TARGET
from pkc.targets.sm_90a.instructions import instruction
from pkc.targets.sm_90a.machine_code import MACHINE_CODE
from tests.pipelines import LOOPS

EXAMPLES = Path(__file__).parents[2] / "examples"


def code(built: Built) -> bytes:
    return code_of(built.artifact.cubin, built.artifact.name)


def machine(name: str) -> KernelOp:
    return compile_program(parse_text(Source("k.pk", LOOPS[name]).remember()), level="machine").kernel


def at_once(kernel: KernelOp) -> KernelOp:
    """A copy that waits for all MMAs where it should wait for the first one."""
    copy = kernel.clone()
    for op in copy.walk():
        if isinstance(op, InstructionOp) and op.instruction_name.data == "wgmma_wait_1":
            op.properties["instruction_name"] = StringAttr("wgmma_wait_0")
    return copy


def test_attention_overlaps() -> None:
    built = build_kernel(load(EXAMPLES / "attention.pk", level="machine").kernel)
    before, early, late, behind = beside(MACHINE_CODE, code(built))
    # The softmax: 64 elements for each thread, of each a multiplication, a maximum, a difference, exp2 and a sum.
    assert late > 5 * 64
    assert before == behind == 0 < early
    assert built.remarks == ()


def test_a_wait_that_follows_at_once() -> None:
    kernel = machine("chained GEMMs")
    built = build_kernel(kernel)
    assert built.remarks == ()
    moved = code(build_kernel(at_once(kernel)))
    late = beside(MACHINE_CODE, moved)[2]
    assert late < 8 < 32 < beside(MACHINE_CODE, code(built))[2]
    (remark,) = lost_overlap(kernel, moved, ())
    assert str(remark) == (
        f"k.pk:5: pk.mma_issue: the compiler has moved its wait: {late} instructions of the machine code stand between"
        " them, for 32 operations on elements [ptxas]"
    )


def test_what_the_compiler_says_itself() -> None:
    kernel = machine("chained GEMMs")
    text = "(C7510) wgmma.mma_async instructions are serialized due to ..."
    (remark,) = lost_overlap(kernel, code(build_kernel(kernel)), [text])
    assert (remark.span.line, remark.reason) == (5, f"MMAs may run one after the other: {text}")


def test_other_loops_of_mmas_get_no_remark() -> None:
    """MMAs that stay in flight until the next iteration, and kernels without any."""
    for name in ("gemm", "all_gather"):
        kernel = load(EXAMPLES / f"{name}.pk", level="machine").kernel
        assert list(lost_overlap(kernel, code(build_kernel(kernel)), ["serialized"])) == []


@pytest.mark.parametrize("left", [0, 1, 5])
def test_a_wait_says_what_it_leaves(left: int) -> None:
    entry = instruction(f"wgmma_wait_{left}")
    assert entry is not None
    text = f"""
        __device__ void wait() {{ {entry.body} }}
        extern "C" __global__ void k() {{ wait(); }}"""
    found = code_of(compile_cuda(text, TARGET.code, "k").cubin, "k")
    instructions = [int.from_bytes(found[at : at + 16], "little") for at in range(0, len(found), 16)]
    assert [n for n in map(MACHINE_CODE.left, instructions) if n is not None] == [left]
    assert not any(map(MACHINE_CODE.ends_group, instructions))
