"""Findings about the order of memory accesses: PK730 to PK739."""

from __future__ import annotations

from dataclasses import dataclass

from pkc.diagnostics import Diagnostic


@dataclass(frozen=True)
class Race(Diagnostic):
    """Raised when two workers access an element, one of them writes it, and nothing says which of them is first."""

    code = "PK730"
    title = "nothing orders two accesses to `{array}` at {element}"
    label = "{done} here by {worker}"
    help = "a signal that releases behind the first, a wait that counts it in front of the second"
    array: str
    element: str
    done: str
    worker: str


@dataclass(frozen=True)
class NotAcquired(Diagnostic):
    """Raised when a worker has waited for what it accesses, but no fence of that scope stands behind the wait."""

    code = "PK731"
    title = "`{array}` is {done} at {element} without acquire"
    label = "{done} here by {worker}"
    help = "`pk.fence acquire_sys` behind the wait; `acquire_gpu` where only this rank signals"
    array: str
    element: str
    done: str
    worker: str


@dataclass(frozen=True)
class ProxiesNotFenced(Diagnostic):
    """Raised when TMA accesses what was written through the generic proxy, or by others, without a fence between."""

    code = "PK732"
    title = "`{array}` is {done} by TMA at {element} without a fence to the async proxy"
    label = "{done} here by {worker}"
    help = "`pk.fence async_global` behind the acquire"
    array: str
    element: str
    done: str
    worker: str


@dataclass(frozen=True)
class NotDrained(Diagnostic):
    """Raised when an asynchronous access was announced as done, or its part ended, and it may still be under way."""

    code = "PK733"
    title = "`{array}` is {done} at {element} while TMA may still be {doing} it"
    label = "{begun} here by {worker}"
    help = "`pk.drain {kind}` between this and the signal that announces it, or the end of the part"
    array: str
    element: str
    done: str
    doing: str
    begun: str
    worker: str
    kind: str


@dataclass(frozen=True)
class StageNotFenced(Diagnostic):
    """Raised when TMA or wgmma reads from a stage what ordinary instructions have put there without a fence."""

    code = "PK734"
    title = "a stage of `{channel}` is filled by ordinary instructions and read through the async proxy"
    label = "committed here by {worker}"
    help = "`pk.fence async_shared` between the last tile of the stage and its commit"
    channel: str
    worker: str


@dataclass(frozen=True)
class StageStillRead(Diagnostic):
    """Raised when a stage is released that a TMA store may not have read yet."""

    code = "PK735"
    title = "a stage of `{channel}` is released while a TMA store may still read it"
    label = "released here by {worker}"
    help = "`pk.drain read` in front of the release"
    channel: str
    worker: str


@dataclass(frozen=True)
class BeforeEntry(Diagnostic):
    """Raised when a rank's memory is accessed by another that does not know whether the launch has begun there."""

    code = "PK736"
    title = "`{array}` of rank {owner} is {done} before that rank is known to have begun the launch"
    label = "{done} here by {worker}"
    help = "wait for a signal that rank {owner} sends when it begins"
    array: str
    owner: int
    done: str
    worker: str


@dataclass(frozen=True)
class AfterExit(Diagnostic):
    """Raised when a launch may end on a rank while another still accesses that rank's memory."""

    code = "PK737"
    title = "the launch may end on rank {owner} while its `{array}` is {done}"
    label = "{done} here by {worker}"
    help = "let the launch end on rank {owner} when all who reach its arrays have signalled that they are done"
    array: str
    owner: int
    done: str
    worker: str


@dataclass(frozen=True)
class StageStillMultiplied(Diagnostic):
    """Raised when a stage is released that a product still in flight may not have read yet."""

    code = "PK738"
    title = "a stage of `{channel}` is released while a product may still read it"
    label = "released here by {worker}"
    help = "`held 1` on the release, `pk.release_deferred` behind the loop; or leave out `in_flight`"
    channel: str
    worker: str
