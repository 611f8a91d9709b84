"""Deferred signals: a thread with several stores in flight announces only those that a wait has covered."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from pkc.check.run import Trial, baseline_of, check_roles
from pkc.codegen.build import build_kernel, machine_level
from pkc.dialect.counters import SignalOp, WaitOp
from pkc.dialect.deferred import SendDeferredOp
from pkc.dialect.fences import Drain, DrainOp
from pkc.dialect.program import FIRST_WARP, KernelOp, RoleOp
from pkc.dialect.roles import ChannelOp
from pkc.driver.compiler import Compiled, load
from pkc.passes import ROLES_PIPELINE, machine_pipeline
from pkc.passes.build import add_parameter
from pkc.passes.roles.defer_signals import DeferSignals
from pkc.passes.roles.plan_warps import has_separate_sms
from pkc.passes.run import run_pipeline
from tests.codegen.threads import Cta, Does, Memory, Thread

EXAMPLES = Path(__file__).parents[2] / "examples"
RANKS = 3

Event = tuple[str, tuple[int, ...]]


class Recorder(Thread):
    """A thread that only notes its copies, waits, fences and signals."""

    def __init__(self, cta: Cta, number: int) -> None:
        super().__init__(cta, number)
        self.events: list[Event] = []

    @classmethod
    def does(cls, name: str) -> Does:
        if re.match("tma|bulk|fence_release|signal|raise|mbarrier_arrive", name):
            return lambda thread, *values: thread.events.append(
                (name, tuple(value for value in values if isinstance(value, int)))
            )
        return super().does(name)


@cache
def kernels(example: str) -> tuple[KernelOp, KernelOp]:
    """The roles and the machine level of an example."""
    schedule = {"overlap": "inter_sm", "comm_sms": "2"}
    roles = load(EXAMPLES / f"{example}.pk", schedule=schedule, level="roles").kernel
    return roles, machine_level(roles)


@cache
def twice_announced() -> tuple[Compiled, KernelOp]:
    """`ag_gemm` whose communicator also announces each tile by a second counter; its machine level."""
    schedule = {"overlap": "inter_sm", "comm_sms": "2"}
    found = load(EXAMPLES / "ag_gemm.pk", schedule=schedule)
    place = next(number for number, step in enumerate(ROLES_PIPELINE) if isinstance(step, DeferSignals))
    run_pipeline(found.module, ROLES_PIPELINE[:place], verify_each=False)
    separate = [op for op in found.kernel.body.block.ops if isinstance(op, RoleOp) and has_separate_sms(op)]
    (signal,) = (op for role in separate for op in role.walk() if isinstance(op, SignalOp))
    seen = add_parameter(found.kernel, "A.seen", signal.signal.type, signal.location)
    for op in (signal, *[use.operation for use in signal.signal.uses if isinstance(use.operation, WaitOp)]):
        more = op.clone()
        more.operands = [seen if operand is op.signal else operand for operand in op.operands]
        op.parent.insert_op_after(more, op)
    run_pipeline(found.module, ROLES_PIPELINE[place:], verify_each=False)
    # A loader that awaits two counters has no registers left for guards.
    module = ModuleOp([found.kernel.clone()])
    run_pipeline(module, machine_pipeline(["unguarded"]), verify_each=False)
    (lowered,) = module.ops
    assert isinstance(lowered, KernelOp)
    return found, lowered


def events_of(example: str, sizes: dict[str, int]) -> list[Event]:
    """What the storing thread of the first of two CTAs that communicate does, on rank 1."""
    return events_in(*kernels(example), sizes)


def events_in(roles: KernelOp, lowered: KernelOp, sizes: dict[str, int]) -> list[Event]:
    role = [op for op in roles.body.block.ops if isinstance(op, RoleOp) and op.role.data == "communicator"][1]
    first = role.attributes[FIRST_WARP].value.data
    thread = Recorder(Cta(Memory(lowered, RANKS, sizes), 1, 4, 6), 32 * first)
    thread.block(lowered.body.block)
    return thread.events


def left(name: str) -> int:
    """How many groups of stores a wait leaves in flight."""
    number = re.fullmatch(r"bulk_wait_(?:read|full)_?(\d*)", name)
    assert number is not None
    return int(number[1] or 0)


SIZES = {
    "ag_gemm": [{"M": 300, "N": 256, "K": k} for k in (1, 64, 200, 500, 64 * 31 + 5)],
    "ring_attention": [{"B": 2, "H": 1, "S": s} for s in (3, 500, 3000)],
}
CASES = [(example, sizes) for example, several in SIZES.items() for sizes in several]


@pytest.mark.parametrize(("example", "sizes"), CASES, ids=str)
def test_signals_follow_the_stores_that_they_announce(example: str, sizes: dict[str, int]) -> None:
    """Signals keep the order of iterations, each behind a wait for its stores and a fence behind that wait."""
    events = events_of(example, sizes)
    each = 2 if example == "ring_attention" else 1
    committed = complete = released = sent = 0
    for name, _ in events:
        if name == "bulk_commit":
            committed += 1
        elif name.startswith("bulk_wait_full"):
            complete = max(complete, committed - left(name))
        elif name.startswith("fence_release"):
            released = complete
        elif name.startswith(("signal_relaxed", "raise_relaxed")):
            sent += 1
            assert each * sent <= released
        assert not name.startswith(("signal_release", "raise_release"))
    assert sum(name.startswith("tma_store") for name, _ in events) >= committed
    assert each * sent == committed
    assert complete == committed
    fences = sum(name.startswith("fence_release") for name, _ in events)
    assert fences <= sent // 8 + 1


@pytest.mark.parametrize("sizes", SIZES["ag_gemm"], ids=str)
def test_two_signals_follow_each_store(sizes: dict[str, int]) -> None:
    """Signals keep their order, each behind a wait for its store; the stores of three iterations may be in flight."""
    found, lowered = twice_announced()
    committed = complete = released = 0
    sent: list[int] = []
    for name, values in events_in(found.kernel, lowered, sizes):
        committed += name == "bulk_commit"
        if name.startswith("bulk_wait_full"):
            complete = max(complete, committed - left(name))
        elif name.startswith("fence_release"):
            released = complete
        elif name.startswith("signal_relaxed"):
            sent.append(values[0])
            assert (len(sent) + 1) // 2 <= released
    assert len(sent) == 2 * committed
    usual = [values[0] for name, values in events_of("ag_gemm", sizes) if name.startswith("signal_relaxed")]
    assert len(usual) == committed
    assert sent[::2] == usual
    assert {a - b for a, b in zip(sent[1::2], usual, strict=True)} == {sent[1] - sent[0]} != {0}


def test_two_signals_of_an_iteration_are_ordered() -> None:
    """The memory model has no findings, unless one more iteration's stores are in flight than signals are deferred."""
    found, lowered = twice_announced()
    assert not build_kernel(lowered).warnings
    meaning = baseline_of(load(EXAMPLES / "ag_gemm.pk"), ranks=2, dims={"M": 300, "N": 40, "K": 700})
    trials = [Trial(2, seed) for seed in range(3)]
    assert check_roles(found, meaning, trials) == []
    drain = next(op.prev_op for op in found.kernel.walk() if isinstance(op, SendDeferredOp))
    assert isinstance(drain, DrainOp) and drain.may_remain == 3
    more = DrainOp(Drain.Full, 4)
    more.location = drain.location
    drain.parent.insert_op_before(more, drain)
    drain.detach()
    assert {finding.code for finding in check_roles(found, meaning, trials)} & {"PK732", "PK733", "PK735"}


def test_signals_keep_their_order() -> None:
    """A tile of 128 x 64 belongs to the counter of its row block and of eight tiles along K."""
    events = events_of("ag_gemm", SIZES["ag_gemm"][-1])
    stored = [values[1:] for name, values in events if name.startswith("tma_store")]
    sent = [values[0] for name, values in events if name.startswith("signal")]
    groups = [(x // 512, y, shard) for x, y, shard in stored]
    counters = dict(zip(groups, sent, strict=True))
    assert [counters[group] for group in groups] == sent
    assert len(set(counters.values())) == len(counters) > 2


@pytest.mark.parametrize(("example", "sizes"), CASES, ids=str)
def test_stages_are_free_when_they_are_read(example: str, sizes: dict[str, int]) -> None:
    """Each iteration frees one stage, behind a wait for the store that reads it; all are free in the end."""
    committed = read = freed = 0
    for name, _ in events_of(example, sizes):
        if name == "bulk_commit":
            committed += 1
        elif name.startswith("bulk_wait"):
            read = max(read, committed - left(name))
        elif name == "mbarrier_arrive":
            freed += 1
            assert freed <= read
    assert freed == committed


def test_stages_are_freed_in_order() -> None:
    freed = [values[0] for name, values in events_of("ag_gemm", SIZES["ag_gemm"][-1]) if name == "mbarrier_arrive"]
    depth = next(op.depth for op in kernels("ag_gemm")[0].body.block.ops if isinstance(op, ChannelOp))
    assert len(set(freed[:depth])) == depth < len(freed)
    assert all(barrier == freed[number % depth] for number, barrier in enumerate(freed))
