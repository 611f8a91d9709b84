"""MMAs that stay in flight: what they read is not released before they are complete."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64

from pkc.check.run import Baseline, Trial, Trials, baseline_of
from pkc.check.static import check_statically
from pkc.dialect.program import KernelOp
from pkc.dialect.roles import ChannelOp, ReleaseDeferredOp, ReleaseOp
from pkc.dialect.tile import IN_FLIGHT, MmaOp, MmaWaitOp, chain_of, pieces_of
from pkc.dialect.transfers import mma_operand_stage
from pkc.driver.compiler import load
from pkc.passes.roles.check_roles import CheckRoles
from pkc.passes.verify import findings
from tests.sim.test_order import EXAMPLES, drop, every, first, kernel_of


def gemm_in_flight() -> tuple[KernelOp, Baseline]:
    """A kernel whose MMAs stay in flight, and sizes with which there are four of them in a loop."""
    return kernel_of("gemm"), baseline_of(load(EXAMPLES / "gemm.pk"), ranks=1, dims={"M": 130, "N": 70, "K": 200})


def at_once(kernel: KernelOp) -> None:
    first(kernel, ReleaseOp).deferred = None
    drop(first(kernel, ReleaseDeferredOp))


def an_iteration_early(kernel: KernelOp) -> None:
    """Every deferred release is freed in the same iteration."""
    freed, release = first(kernel, ReleaseDeferredOp), first(kernel, ReleaseOp)
    freed.detach()
    release.parent.insert_op_after(freed, release)


def before_the_mma(kernel: KernelOp) -> None:
    """The stage of the previous iteration is released while the MMA of that iteration is the last one issued."""
    release, mma = first(kernel, ReleaseOp), first(kernel, MmaOp)
    release.detach()
    mma.parent.insert_op_before(release, mma)


@pytest.mark.parametrize("ctas", [1, 2])
@pytest.mark.parametrize("change", [at_once, an_iteration_early, before_the_mma])
def test_a_stage_that_a_product_in_flight_reads(change: Callable[[KernelOp], None], ctas: int) -> None:
    kernel, long = gemm_in_flight()
    assert Trials(kernel, long).check(Trial(ctas, 0)) == []
    change(kernel)
    (finding,) = Trials(kernel, long).check(Trial(ctas, 0))
    assert (finding.code, finding.channel) == ("PK738", "A, B")


def test_an_mma_that_is_complete_is_released_at_once() -> None:
    kernel, long = gemm_in_flight()
    at_once(kernel)
    del first(kernel, MmaOp).attributes[IN_FLIGHT]
    assert Trials(kernel, long).check(Trial(1, 0)) == []


def test_an_mma_in_flight_needs_two_stages() -> None:
    """Each layer refuses to defer the release of an only stage: the next MMA would wait for it for ever."""
    kernel, long = gemm_in_flight()
    channel = first(kernel, ChannelOp, lambda op: op.label.data == "A, B")
    channel.properties["stages"] = IntegerAttr(1, i64)
    module = kernel.parent_op()
    assert isinstance(module, ModuleOp)
    (refused,) = findings(module)
    assert (refused.op, refused.message) == ("pk.release", "of 1 stages 1 to 0 can be kept, not 1")
    assert [finding.code for finding in Trials(kernel, long).check(Trial(1, 0))] == ["PK701"]
    assert [found.code for found in check_statically(kernel, ranks=1, dims=long.dims).findings] == ["PK480"]


@pytest.mark.parametrize("members", [0, 1, 2])
def test_a_stage_that_pieces_of_a_product_read(members: int) -> None:
    """It is released when the chain that needs the pieces ends, and not behind one or two of its operations."""
    kernel = kernel_of("gemm_fp8_blocks")
    dims = {"M": 130, "N": 70, "K": 500, "G": 4, "H": 1}
    trials = Trials(kernel, baseline_of(load(EXAMPLES / "gemm_fp8_blocks.pk"), ranks=1, dims=dims))
    assert trials.check(Trial(1, 0)) == []
    mma = first(kernel, MmaOp, lambda op: pieces_of(op) > 1)
    chain = [op for op in mma.parent.ops if chain_of(op) is not None]
    assert len(chain) > members
    release = first(kernel, ReleaseOp, lambda op: op.channel is mma_operand_stage(mma.a).channel)
    release.detach()
    mma.parent.insert_op_after(release, [mma, *chain][members])
    (finding,) = trials.check(Trial(1, 0))
    assert (finding.code, finding.channel) == ("PK738", "A, B")
    assert "PK463" in [refused.code for refused in CheckRoles().check(kernel)]


def pipelined() -> tuple[KernelOp, Baseline]:
    """A kernel whose MMAs are pipelined, and sizes with which its loop has four iterations."""
    dims = {"B": 1, "H": 1, "S": 130, "T": 500}
    return kernel_of("attention"), baseline_of(load(EXAMPLES / "attention.pk"), ranks=1, dims=dims)


@pytest.mark.parametrize("place", range(4))
def test_an_mma_that_is_not_awaited(place: int) -> None:
    """Each wait of a pipelined loop, in front of it, in it and behind it, is needed."""
    kernel, meaning = pipelined()
    assert Trials(kernel, meaning).check(Trial(1, 0)) == []
    waits = every(kernel, MmaWaitOp)
    assert len(waits) == 4
    wait = waits[place]
    wait.left = IntegerAttr(wait.left.value.data + 1, i64)
    (finding,) = Trials(kernel, meaning).check(Trial(1, 0))
    assert (finding.code, finding.left) == ("PK739", wait.left.value.data)
    assert [label.text for label in finding.also] == ["MMA issued here"]


@pytest.mark.parametrize("place", range(4))
def test_a_stage_released_before_the_wait(place: int) -> None:
    kernel, meaning = pipelined()
    wait = every(kernel, MmaWaitOp)[place]
    release = wait.next_op
    assert isinstance(release, ReleaseOp)
    release.detach()
    wait.parent.insert_op_before(release, wait)
    (finding,) = Trials(kernel, meaning).check(Trial(1, 0))
    assert finding.code == "PK738"
