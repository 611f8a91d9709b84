"""The warp roles of a predicted time line, as processes that make steps (`steps.py`)."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from xdsl.ir import Operation

from pkc.dialect import access
from pkc.dialect.attributes import Role
from pkc.dialect.deferred import is_deferred
from pkc.dialect.program import RoleOp
from pkc.dialect.tile import AnyMmaOp
from pkc.timeline import steps


@dataclass
class Sm:
    """When what the warp roles of an SM share is free again."""

    tensor: float = 0.0
    threads: float = 0.0
    loads: float = 0.0
    stores: float = 0.0
    remote: float = 0.0


@dataclass(eq=False)
class Process:
    """A warpgroup of a warp role, or one of its warps if it has fewer; or a stream of a copy engine."""

    rank: int
    cta: int
    role: int
    op: RoleOp
    group: int
    groups: int
    sm: Sm
    steps: Iterator[steps.Step]
    time: float = 0.0
    pending: steps.Step | None = None
    """The step that it waits at."""
    counts: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    kept: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    mmas: deque[float] = field(default_factory=deque[float])
    arrives: dict[Operation, float] = field(default_factory=dict[Operation, float])
    stores: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    written: float = 0.0
    """When all that its threads have stored themselves is visible."""
    deferred: list[tuple[int, Any, int]] = field(default_factory=list[tuple[int, Any, int]])
    records: list[tuple[int, int, float, float]] = field(default_factory=list[tuple[int, int, float, float]])
    """Point, task, begin, length."""
    task: int = -1
    within: Operation | None = None
    """The tasks that it is in."""
    summed: dict[int, float] = field(default_factory=lambda: defaultdict(float))

    def complete(self, left: int) -> None:
        """Wait until at most so many MMAs are in flight."""
        while len(self.mmas) > left:
            self.time = max(self.time, self.mmas.popleft())


def groups_of(role: RoleOp, warpgroup: int) -> int:
    """Into how many processes a role is divided: its warpgroups, if it computes with tensor cores."""
    return max(1, _warps(role) // warpgroup) if computes(role) else 1


@cache
def computes(role: RoleOp) -> bool:
    """Whether a role has MMAs."""
    return any(isinstance(op, AnyMmaOp) for op in role.walk())


@cache
def fetches(role: RoleOp) -> bool:
    """Whether a role on the SMs of others stores what has been fetched from other ranks, and announces it."""
    if role.role.data is not Role.Communicator or role.sms is not None:
        return False
    return any(isinstance(op, access.StoreOp) for op in role.walk()) and any(map(is_deferred, role.walk()))


def _warps(role: RoleOp) -> int:
    return 1 if role.warps is None else role.warps.value.data
