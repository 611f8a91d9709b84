"""The order of memory accesses: what each missing fence, drain or release is found by, and where."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Operation

from pkc.check.run import Baseline, Trial, Trials, baseline_of
from pkc.diagnostics import Diagnostic, PkcError
from pkc.dialect.access import StoreOp
from pkc.dialect.counters import EARLIER, ORDER, SignalAllOp, SignalOp, WaitOp
from pkc.dialect.fences import Drain, DrainAttr, DrainOp, Fence, FenceAttr, FenceOp
from pkc.dialect.program import KernelOp, RoleOp
from pkc.dialect.transfers import TRANSFER, transfer
from pkc.driver.compiler import load
from pkc.sim import errors, order_errors
from pkc.sim.draw import draw_inputs
from pkc.sim.run import simulate
from tests.sim.helpers import checked, finding, parse

EXAMPLES = Path(__file__).parents[2] / "examples"
SIZES = {"M": 130, "N": 70, "K": 20, "B": 1, "H": 1, "S": 140}


@cache
def meaning(example: str) -> Baseline:
    tile = load(EXAMPLES / f"{example}.pk")
    used = {dim for argument in tile.kernel.body.block.args for dim in getattr(argument.type, "dimensions", ())}
    return baseline_of(tile, ranks=3, dims={dim: size for dim, size in SIZES.items() if dim in used})


def kernel_of(example: str, overlap: str = "") -> KernelOp:
    return load(EXAMPLES / f"{example}.pk", schedule={"overlap": overlap} if overlap else {}, level="roles").kernel


def found(kernel: KernelOp, example: str, seed: int = 0) -> Diagnostic:
    (finding,) = Trials(kernel, meaning(example)).check(Trial(1, seed))
    return finding


def last_role(kernel: KernelOp, role: str) -> RoleOp:
    """The last role of a kind."""
    roles = [op for op in kernel.body.block.ops if isinstance(op, RoleOp) and op.role.data == role]
    return roles[-1]


def every(
    inside: Operation, kind: type[Operation], which: Callable[[Operation], bool] = lambda op: True
) -> list[Operation]:
    return [op for op in inside.walk() if isinstance(op, kind) and which(op)]


def first(inside: Operation, kind: type[Operation], which: Callable[[Operation], bool] = lambda op: True) -> Operation:
    return every(inside, kind, which)[0]


def drop(op: Operation) -> None:
    op.detach()
    op.erase()


def is_fence(kind: Fence) -> Callable[[Operation], bool]:
    return lambda op: op.properties.get("kind") == FenceAttr(kind)


def is_drain(kind: Drain) -> Callable[[Operation], bool]:
    return lambda op: op.properties.get("kind") == DrainAttr(kind)


# What is missing: the example, its overlap, the role (or all of them), the operation that is dropped there, what is
# found, about which array.
DROPPED = {
    "acquire of all ranks' contributions": (
        ("gemm_rs", "", "", FenceOp, is_fence(Fence.AcquireSys)),
        ("PK731", "C.slots"),
    ),
    "acquire of this rank's receive buffer": (
        ("ag_gemm", "", "loader", FenceOp, is_fence(Fence.AcquireGpu)),
        ("PK731", "A.fetched"),
    ),
    "async fence in front of loads": (
        ("ag_gemm", "", "loader", FenceOp, is_fence(Fence.AsyncGlobal)),
        ("PK732", "A.fetched"),
    ),
    "async fence in front of stores to others": (
        ("all_gather", "", "storer", FenceOp, is_fence(Fence.AsyncGlobal)),
        ("PK732", "Y"),
    ),
    "drain in front of the signal": (
        ("gemm_rs", "", "storer", DrainOp, is_drain(Drain.Full)),
        ("PK733", "C.slots"),
    ),
    "drain at the end of a role": (
        ("ag_gemm", "", "storer", DrainOp, is_drain(Drain.Full)),
        ("PK733", "C"),
    ),
    "drain of loads from others": (
        ("ag_gemm", "intra_sm", "loader", DrainOp, is_drain(Drain.Loads)),
        ("PK733", "A"),
    ),
    "fence between filling a stage and a TMA store": (
        ("gemm_rs", "", "consumer", FenceOp, is_fence(Fence.AsyncShared)),
        ("PK734", "cast"),
    ),
    "fence between what threads read and the release": (
        ("attention_delta", "", "consumer", FenceOp, is_fence(Fence.AsyncShared)),
        ("PK740", "dO, O"),
    ),
    "drain in front of a release": (
        ("gemm_rs", "", "storer", DrainOp, is_drain(Drain.Read)),
        ("PK735", "cast"),
    ),
    "wait for entry": (("all_gather", "", "storer", WaitOp, lambda op: True), ("PK736", "Y")),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", DROPPED)
def test_what_is_missing_is_found_in_every_order(name: str, seed: int) -> None:
    (example, overlap, role, kind, which), (code, about) = DROPPED[name]
    kernel = kernel_of(example, overlap)
    for op in every(last_role(kernel, role) if role else kernel, kind, which):
        drop(op)
    finding = found(kernel, example, seed)
    assert (finding.code, getattr(finding, "array", getattr(finding, "channel", ""))) == (code, about)


@pytest.mark.parametrize("seed", range(3))
def test_a_slot_is_not_written_before_it_was_read_in_the_last_launch(seed: int) -> None:
    kernel = kernel_of("reduce_scatter")
    for op in every(last_role(kernel, "storer"), WaitOp, lambda op: EARLIER in op.attributes):
        drop(op)
    finding = found(kernel, "reduce_scatter", seed)
    # By what it holds, or by what orders the two.
    assert finding.code in ("PK714", "PK730") and getattr(finding, "array", "") == "Y.slots"


@pytest.mark.parametrize("example", ["gemm_rs", "ag_gemm", "all_gather", "reduce_scatter", "all_reduce"])
def test_nothing_is_missing(example: str) -> None:
    assert Trials(kernel_of(example), meaning(example)).check(Trial(2, 1)) == []


def test_reading_the_stage_is_not_completion() -> None:
    kernel = kernel_of("gemm_rs")
    first(last_role(kernel, "storer"), DrainOp, is_drain(Drain.Full)).properties["kind"] = DrainAttr(Drain.Read)
    finding = found(kernel, "gemm_rs")
    assert (finding.code, finding.kind) == ("PK733", "full")


def test_a_drain_behind_the_signal_is_too_late() -> None:
    kernel = kernel_of("gemm_rs")
    drain = first(last_role(kernel, "storer"), DrainOp, is_drain(Drain.Full))
    signal = first(last_role(kernel, "storer"), SignalOp)
    drain.detach()
    signal.parent.insert_op_after(drain, signal)
    assert found(kernel, "gemm_rs").code == "PK733"


def test_a_fence_behind_the_commit_is_too_late() -> None:
    kernel = kernel_of("gemm_rs")
    fence = first(kernel, FenceOp, is_fence(Fence.AsyncShared))
    commit = fence.next_op
    fence.detach()
    commit.parent.insert_op_after(fence, commit)
    assert found(kernel, "gemm_rs").code == "PK734"


def test_a_fence_in_front_of_what_it_is_for_is_too_early() -> None:
    kernel = kernel_of("gemm_rs")
    fence = first(kernel, FenceOp, is_fence(Fence.AsyncShared))
    cast = fence.prev_op
    fence.detach()
    cast.parent.insert_op_before(fence, cast)
    assert found(kernel, "gemm_rs").code == "PK734"


@pytest.mark.parametrize(
    ("example", "kind", "order", "code"),
    [
        ("gemm_rs", SignalOp, "relaxed_sys", "PK730"),
        ("gemm_rs", SignalOp, "release_gpu", "PK730"),
        ("reduce_scatter", SignalAllOp, "relaxed_sys", "PK730"),
        ("ring_attention", SignalOp, "relaxed_sys", "PK730"),
        ("all_gather", SignalAllOp, "relaxed_sys", "PK737"),
    ],
)
def test_a_signal_that_does_not_release_enough(example: str, kind: type[Operation], order: str, code: str) -> None:
    kernel = kernel_of(example)
    every(kernel, kind)[-1].attributes[ORDER] = StringAttr(order)
    assert found(kernel, example).code == code


def test_the_scope_of_an_acquire_takes_in_the_signalling_rank() -> None:
    kernel = kernel_of("gemm_rs")
    for fence in every(kernel, FenceOp, is_fence(Fence.AcquireSys)):
        fence.properties["kind"] = FenceAttr(Fence.AcquireGpu)
    assert found(kernel, "gemm_rs").code == "PK731"


def test_an_exit_without_waiting() -> None:
    kernel = kernel_of("all_gather")
    drop(every(kernel, WaitOp)[-1])
    finding = found(kernel, "all_gather")
    assert (finding.code, finding.array, finding.done) == ("PK737", "Y", "stored")


def test_another_transfer_needs_other_fences() -> None:
    """A store by ordinary instructions needs neither the drains nor the fences of a TMA store."""
    kernel = kernel_of("gemm_rs")
    storer = last_role(kernel, "storer")
    first(storer, StoreOp).attributes[TRANSFER] = transfer("register", "by hand")
    for op in [*every(storer, DrainOp), *every(storer, FenceOp, is_fence(Fence.AsyncGlobal))]:
        drop(op)
    drop(first(last_role(kernel, "consumer"), FenceOp, is_fence(Fence.AsyncShared)))
    assert Trials(kernel, meaning("gemm_rs")).check(Trial(2, 2)) == []


def test_both_ends_are_shown() -> None:
    kernel = kernel_of("gemm_rs")
    drop(first(last_role(kernel, "storer"), DrainOp, is_drain(Drain.Full)))
    text = str(PkcError(found(kernel, "gemm_rs")))
    assert "while TMA may still be writing it" in text
    assert "stored here by rank" in text
    assert "read here by rank" in text
    assert text.count("C[m, n] += acc") == 2


STAGES = """
pk.kernel @stages(
    %X: !pk.private<[M, 4], f32> {pk.name = "X"}, %Y: !pk.private<[M, 4], f32> {pk.name = "Y"}) attributes {fenced} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %0 = pk.channel "X" stages 2 : !pk.channel<!pk.tile<4x4xf32>>
  pk.role loader {
    %two = arith.constant 2 : index
    %d = pk.block[%zero] : !pk.block<4 by 4>
    scf.for %i = %zero to %two step %one {
      %m = pk.block[%i] : !pk.block<M by 4>
      pk.acquire %0 : !pk.channel<!pk.tile<4x4xf32>>
      %t = pk.load %X[%m, %d : !pk.block<M by 4>, !pk.block<4 by 4>] {transfer = {by = "tma", why = ""}}
        : !pk.private<[M, 4], f32> -> !pk.tile<4x4xf32>
      pk.commit %0, %t : !pk.channel<!pk.tile<4x4xf32>>, !pk.tile<4x4xf32>
    }
  }
  pk.role storer {
    %m_1 = pk.block[%zero] : !pk.block<M by 4>
    %d_1 = pk.block[%zero] : !pk.block<4 by 4>
    FIRST
    %b = pk.consume %0 : !pk.channel<!pk.tile<4x4xf32>> -> !pk.tile<4x4xf32>
    LATER
    pk.release %0 : !pk.channel<!pk.tile<4x4xf32>>
    pk.drain full
    pk.release %0 : !pk.channel<!pk.tile<4x4xf32>>
  }
}"""
CONSUME = "%a = pk.consume %0 : !pk.channel<!pk.tile<4x4xf32>> -> !pk.tile<4x4xf32>"
STORE = (
    'pk.store TILE, %Y[%m_1, %d_1 : !pk.block<M by 4>, !pk.block<4 by 4>] {transfer = {by = "tma", why = ""}}'
    " : !pk.tile<4x4xf32>, !pk.private<[M, 4], f32>"
)


def test_only_the_stage_that_a_store_reads_has_to_wait() -> None:
    """The first release is of the first stage."""
    of_second = STAGES.replace("FIRST", CONSUME).replace("LATER", STORE.replace("TILE", "%b"))
    inputs, outputs = checked(parse(of_second), 1, M=4 * 2)
    np.testing.assert_array_equal(outputs["Y"][0, :4], inputs["X"][0, 4:])
    of_first = STAGES.replace("FIRST", CONSUME + "\n    " + STORE.replace("TILE", "%a")).replace("LATER", "")
    assert isinstance(finding(parse(of_first), 1, M=8), order_errors.StageStillRead)


COPIES = """
pk.kernel @copies(
    %X: !pk.private<[M], f32> {pk.name = "X"}, %L: !pk.private<[M], f32> {pk.name = "L", pk.scratch},
    %Y: !pk.private<[M], f32> {pk.name = "Y"}, %ready: !pk.signal<[2]> {pk.name = "ready"}) attributes {fenced} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rank = pk.rank
  %m = pk.block[%zero] : !pk.block<M by 4>
  pk.role communicator {
    %x = pk.load %X[%m : !pk.block<M by 4>] : !pk.private<[M], f32> -> !pk.tile<4xf32>
    pk.store %x, %L[%m : !pk.block<M by 4>] : !pk.tile<4xf32>, !pk.private<[M], f32>
    pk.signal %ready at %rank[%zero] by %one {order = "release_gpu"} : !pk.signal<[2]>
  }
  pk.role communicator {
    %x_1 = pk.load %X[%m : !pk.block<M by 4>] : !pk.private<[M], f32> -> !pk.tile<4xf32>
    OTHER
    pk.store %y_1, %L[%m : !pk.block<M by 4>] : !pk.tile<4xf32>, !pk.private<[M], f32>
    pk.signal %ready at %rank[%one] by %one {order = "release_gpu"} : !pk.signal<[2]>
  }
  pk.role consumer {
    pk.wait %ready[COUNTER] for %one : !pk.signal<[2]>
    pk.fence acquire_gpu
    %z = pk.load %L[%m : !pk.block<M by 4>] : !pk.private<[M], f32> -> !pk.tile<4xf32>
    pk.store %z, %Y[%m : !pk.block<M by 4>] : !pk.tile<4xf32>, !pk.private<[M], f32>
  }
}"""
SAME = "%y_1 = pk.max %x_1, %x_1 : !pk.tile<4xf32>"
DIFFERENT = "%y_1 = pk.neg %x_1 : !pk.tile<4xf32>"


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("counter", ["%zero", "%one"])
def test_storing_the_same_again_changes_nothing(counter: str, seed: int) -> None:
    module = parse(COPIES.replace("OTHER", SAME).replace("COUNTER", counter))
    inputs, outputs = checked(module, 2, seed=seed, M=4)
    np.testing.assert_array_equal(outputs["Y"], inputs["X"])
    module = parse(COPIES.replace("OTHER", DIFFERENT).replace("COUNTER", counter))
    assert isinstance(finding(module, 2, seed=seed, M=4), order_errors.Race)


# What a communicator with its own SMs does on its way: what is changed, and the finding.
TOO_SOON = {
    "a store announced that may be in flight": (DrainOp, is_drain(Drain.Full), "PK733"),
    "a stage given back that a store may read": (DrainOp, is_drain(Drain.Read), "PK735"),
}


@pytest.mark.parametrize("name", TOO_SOON)
def test_a_drain_that_leaves_one_store_more(name: str) -> None:
    kind, which, code = TOO_SOON[name]
    long = baseline_of(load(EXAMPLES / "ag_gemm.pk"), ranks=2, dims={"M": 130, "N": 20, "K": 1000})
    kernel = load(EXAMPLES / "ag_gemm.pk", schedule={"overlap": "inter_sm", "comm_sms": "1"}, level="roles").kernel
    assert Trials(kernel, long).check(Trial(1, 0)) == []
    drain = first(kernel, kind, lambda op: which(op) and op.may_remain > 0)
    drain.left = IntegerAttr(drain.may_remain + 1, i64)
    (finding,) = Trials(kernel, long).check(Trial(1, 0))
    assert finding.code == code


TASKS = """
pk.kernel @tasks(
    %X: !pk.private<[M], f32> {pk.name = "X"}, %L: !pk.private<[M], f32> {pk.name = "L", pk.scratch},
    %Y: !pk.private<[M], f32> {pk.name = "Y"}, %ready: !pk.signal<[M by 4]> {pk.name = "ready"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rank = pk.rank
  %count = pk.block_count <M by 4>
  pk.role copy_engine {
    pk.tasks (%i) in (%count) attributes {per_cta} {
      %m = pk.block[%i] : !pk.block<M by 4>
      pk.copy %X[%m : !pk.block<M by 4>] along [0] to %L[%m : !pk.block<M by 4>] along [0]
        : !pk.private<[M], f32> to !pk.private<[M], f32>
      INSIDE
    }
    BEHIND
  }
  pk.role consumer {
    pk.tasks (%j) in (%count) attributes {per_cta} {
      %m_1 = pk.block[%j] : !pk.block<M by 4>
      AWAITED
      pk.wait %ready[%w] for %one : !pk.signal<[M by 4]>
      %z = pk.load %L[%m_1 : !pk.block<M by 4>] : !pk.private<[M], f32> -> !pk.tile<4xf32>
      pk.store %z, %Y[%m_1 : !pk.block<M by 4>] : !pk.tile<4xf32>, !pk.private<[M], f32>
    }
  }
}"""
RAISE = "pk.raise %ready at %rank[PLACE] to %one : !pk.signal<[M by 4]>"
LAST = "%w = arith.subi %count, %one : index"
SAME_TASK = "%w = arith.addi %j, %zero : index"


def tasks(inside: str, behind: str, awaited: str) -> ModuleOp:
    return parse(TASKS.replace("INSIDE", inside).replace("BEHIND", behind).replace("AWAITED", awaited))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("count", [1, 2, 5, 30])
def test_tasks_of_a_copy_engine_do_not_wait_for_each_other(count: int, seed: int) -> None:
    """Each task announces its own store, or a signal after them all; but the last one does not announce the others."""
    each = tasks(RAISE.replace("PLACE", "%i"), "", SAME_TASK)
    behind = tasks("", RAISE.replace("PLACE", "%zero"), "%w = arith.muli %j, %zero : index")
    for module in (each, behind):
        inputs, outputs = checked(module, 2, seed=seed, M=4 * count)
        np.testing.assert_array_equal(outputs["Y"], inputs["X"])
    if count > 1:
        last = tasks(RAISE.replace("PLACE", "%i"), "", LAST)
        assert isinstance(finding(last, 2, seed=seed, M=4 * count), order_errors.Race | errors.ReadUnwritten)


def test_with_one_lane_tasks_come_in_their_order() -> None:
    module = tasks(RAISE.replace("PLACE", "%i"), "", LAST)
    inputs = draw_inputs(module, ranks=2, dims={"M": 20}, seed=0)
    outputs = simulate(module, ranks=2, dims={}, inputs=inputs, ctas=1)
    np.testing.assert_array_equal(outputs["Y"], inputs["X"])
