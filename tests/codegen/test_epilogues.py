"""Half of an epilogue beside the next task: each result has what it has without that, before anybody is told of it."""

from __future__ import annotations

from typing import Any

import pytest

from pkc.codegen.build import machine_level
from pkc.dialect.attributes import number_on
from pkc.dialect.program import KernelOp
from pkc.dialect.roles import LATER
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.remarks import collecting
from tests.codegen.threads import Cta, Does, Memory, Thread
from tests.tiles import EPILOGUES, LONG

_REAL = (
    "thread_number",
    "warp_number",
    "cta_",
    "shared_base",
    "float_bits",
    "bits_",
    "low_",
    "high_",
    "pack_",
    "sigmoid",
)

Result = tuple[dict[int, Any], int]
"""What a thread writes into a stage, by address, and the barrier at which it arrives then."""


class Writing(Thread):
    """A thread whose products are numbers that no two MMAs share; it notes what it writes, and its arrivals."""

    def __init__(self, cta: Cta, number: int) -> None:
        super().__init__(cta, number)
        self.results: list[Result] = []
        self.written: dict[int, Any] = {}
        self.multiplied = 0

    @classmethod
    def does(cls, name: str) -> Does:
        if name.startswith("wgmma_n"):
            return _multiplied
        if name.startswith(("stmatrix", "store_shared")):
            return _writes
        if name == "mbarrier_arrive":
            return _arrives
        if name == "load_shared_v2":
            return _reads
        if name.startswith("load_shared"):
            return lambda _, address: (address % 1009 / 64, address % 997 / 64)
        return super().does(name) if name.startswith(_REAL) else lambda *_: 0


def _multiplied(thread: Writing, acc: tuple[list[Any], int], *_operands: Any) -> None:
    registers, start = acc
    thread.multiplied += 1
    for at in range(start, len(registers)):
        registers[at] += (at - start + 1) * thread.multiplied / 4096


def _reads(_: Writing, to: tuple[list[Any], int], address: int) -> None:
    registers, start = to
    registers[start : start + 2] = [address % 1009 / 64, address % 997 / 64]


def _writes(thread: Writing, address: int, *words: Any) -> None:
    assert address not in thread.written, "written twice"
    thread.written[address] = words


def _arrives(thread: Writing, barrier: int) -> None:
    if thread.written:
        thread.results.append((thread.written, barrier))
        thread.written = {}


# Half of 3 + erf(x) has more instructions than MMAs have room for beside them.
TEXTS = EPILOGUES | {"no step": EPILOGUES["gemm_gelu"].replace("1.0 +", "3.0 +")}


def roles_of(name: str, schedule: dict[str, str] | None = None) -> KernelOp:
    return compile_program(parse_text(Source("k.pk", TEXTS[name])), schedule=schedule, level="roles").kernel


def results(lowered: KernelOp, sizes: dict[str, int], thread: int) -> list[Result]:
    found = Writing(Cta(Memory(lowered, 1, sizes), 0, 1, 2), thread)
    found.block(lowered.body.block)
    assert not found.written, "nobody is told"
    return found.results


@pytest.mark.parametrize(
    ("name", "consumers", "stores"),
    [
        ("gemm_silu", "", 16),
        ("gemm_silu", "1", 16),
        ("gemm_silu", "2", 8),
    ],
)
def test_results_are_those_of_one_task_after_the_other(name: str, consumers: str, stores: int) -> None:
    """Tasks 1, 3 and 5 of 6 or more, with no, fewer, as many and more iterations than the end of a task has pieces."""
    schedule = {"consumers": consumers, "tile_N": "128"} if consumers else {}
    later, plain = roles_of(name, schedule), roles_of(name, schedule)
    (commit,) = [op for op in plain.walk() if LATER in op.attributes]
    del commit.attributes[LATER]
    with collecting() as remarks:
        moved, kept = machine_level(later), machine_level(plain)
    assert not [remark for remark in remarks if "epilogues" in remark.step]
    for blocks in (0, 7, 8, 9):
        sizes = {"M": 300, "N": 250 if consumers else 500, "K": 64 * blocks}
        found = results(moved, sizes, 103)
        assert len(found) == 3
        assert all(len(written) == stores for written, _ in found)
        assert found == results(kept, sizes, 103)


@pytest.mark.parametrize("name", LONG)
def test_long_epilogues_have_half_beside_the_next_task(name: str) -> None:
    assert [number_on(op, LATER) for op in roles_of(name).walk() if LATER in op.attributes] == [64]


@pytest.mark.parametrize("name", ["gemm_bias", "gemm_residual", "gemm_residual_f32", "no step"])
def test_others_have_none(name: str) -> None:
    with collecting() as remarks:
        roles = roles_of(name)
    assert not [remark for remark in remarks if "epilogues" in remark.step]
    assert not [op for op in roles.walk() if LATER in op.attributes]
