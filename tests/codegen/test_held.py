"""What one thread does that has several stores on their way: which of its waits covers what it says is done."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from pkc.codegen.build import machine_level
from pkc.compiler import load
from pkc.dialect.program import FIRST_WARP, KernelOp, RoleOp
from pkc.dialect.roles import ChannelOp
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


def events_of(example: str, sizes: dict[str, int]) -> list[Event]:
    """What the storing thread of the first of two CTAs that communicate does, on rank 1."""
    roles, lowered = kernels(example)
    part = [op for op in roles.body.block.ops if isinstance(op, RoleOp) and op.role.data == "communicator"][1]
    first = part.attributes[FIRST_WARP].value.data
    thread = Recorder(Cta(Memory(lowered, RANKS, sizes), 1, 4, 6), 32 * first)
    thread.block(lowered.body.block)
    return thread.events


def left(name: str) -> int:
    """How many groups a wait leaves."""
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
    """Each turn's signal comes in its order, behind a wait that covers its stores and a fence behind that wait."""
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


def test_signals_keep_their_order() -> None:
    """A tile of 128 x 64 belongs to the counter of its row block and of eight tiles along K."""
    events = events_of("ag_gemm", SIZES["ag_gemm"][-1])
    stored = [values[1:] for name, values in events if name.startswith("tma_store")]
    sent = [values[0] for name, values in events if name.startswith("signal")]
    cells = [(x // 512, y, part) for x, y, part in stored]
    counters = dict(zip(cells, sent, strict=True))
    assert [counters[cell] for cell in cells] == sent
    assert len(set(counters.values())) == len(counters) > 2


@pytest.mark.parametrize(("example", "sizes"), CASES, ids=str)
def test_stages_are_free_when_they_are_read(example: str, sizes: dict[str, int]) -> None:
    """Each stage is given back once for each turn, behind a wait for the store that reads it; all are in the end."""
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


def test_stages_are_freed_in_turn() -> None:
    freed = [values[0] for name, values in events_of("ag_gemm", SIZES["ag_gemm"][-1]) if name == "mbarrier_arrive"]
    depth = next(op.depth for op in kernels("ag_gemm")[0].body.block.ops if isinstance(op, ChannelOp))
    assert len(set(freed[:depth])) == depth < len(freed)
    assert all(barrier == freed[turn % depth] for turn, barrier in enumerate(freed))
