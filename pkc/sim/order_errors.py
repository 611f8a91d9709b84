"""Findings about the order of memory accesses: PK730 to PK740."""

from __future__ import annotations

from pkc.diagnostics import Diagnostic


class Race(Diagnostic):
    """Raised when two roles access an element, one of them writes it, and nothing orders the two accesses."""

    code = "PK730"
    title = "nothing orders two accesses to `{array}` at {element}"
    label = "{done} here by {warp_role}"
    help = "put a signal that releases after the first access, and a wait for it before the second"
    array: str
    element: str
    done: str
    warp_role: str


class NotAcquired(Diagnostic):
    """Raised when a role has waited for what it accesses, but no fence of that scope follows the wait."""

    code = "PK731"
    title = "`{array}` is {done} at {element} without acquire"
    label = "{done} here by {warp_role}"
    help = "put `pk.fence acquire_sys` after the wait; `acquire_gpu` suffices where only this rank signals"
    array: str
    element: str
    done: str
    warp_role: str


class ProxiesNotFenced(Diagnostic):
    """Raised when TMA accesses what was written through the generic proxy, or by others, without a fence."""

    code = "PK732"
    title = "`{array}` is {done} by TMA at {element} without a fence to the async proxy"
    label = "{done} here by {warp_role}"
    help = "put `pk.fence async_global` after the acquire"
    array: str
    element: str
    done: str
    warp_role: str


class NotDrained(Diagnostic):
    """Raised when an asynchronous access may be in flight when a signal announces it, or when its role ends."""

    code = "PK733"
    title = "`{array}` is {done} at {element} while TMA may still be {doing} it"
    label = "{begun} here by {warp_role}"
    help = "put `pk.drain {kind}` between this and the signal that announces it, or the end of the role"
    array: str
    element: str
    done: str
    doing: str
    begun: str
    warp_role: str
    kind: str


class StageNotFenced(Diagnostic):
    """Raised when TMA or wgmma reads a stage that ordinary instructions have filled without a fence."""

    code = "PK734"
    title = "a stage of `{channel}` is filled by ordinary instructions and read through the async proxy"
    label = "committed here by {warp_role}"
    help = "put `pk.fence async_shared` between the last tile of the stage and its commit"
    channel: str
    warp_role: str


class ReadNotFenced(Diagnostic):
    """Raised when a stage is released that ordinary instructions have read, and that TMA fills again, without a
    fence."""

    code = "PK740"
    title = "a stage of `{channel}` is read by ordinary instructions and filled again through the async proxy"
    label = "released here by {warp_role}"
    help = "put `pk.fence async_shared` in front of the release: what threads have asked for may come later"
    channel: str
    warp_role: str


class StageStillRead(Diagnostic):
    """Raised when a stage is released that a TMA store may still read."""

    code = "PK735"
    title = "a stage of `{channel}` is released while a TMA store may still read it"
    label = "released here by {warp_role}"
    help = "put `pk.drain read` before the release"
    channel: str
    warp_role: str


class BeforeEntry(Diagnostic):
    """Raised when a rank's memory is accessed by another rank before the launch is known to have begun there."""

    code = "PK736"
    title = "`{array}` of rank {owner} is {done} before that rank is known to have begun the launch"
    label = "{done} here by {warp_role}"
    help = "wait for a signal that rank {owner} sends when it begins"
    array: str
    owner: int
    done: str
    warp_role: str


class AfterExit(Diagnostic):
    """Raised when a launch may end on a rank while another still accesses that rank's memory."""

    code = "PK737"
    title = "the launch may end on rank {owner} while its `{array}` is {done}"
    label = "{done} here by {warp_role}"
    help = "let rank {owner} end the launch after all who access its arrays have signalled that they are done"
    array: str
    owner: int
    done: str
    warp_role: str


class StageStillMultiplied(Diagnostic):
    """Raised when a stage is released that an MMA in flight, or in pieces, may still read."""

    code = "PK738"
    title = "a stage of `{channel}` is released while an MMA in flight may still read it"
    label = "released here by {warp_role}"
    help = "put `deferred 1` on the release and `pk.release_deferred` after the loop, or leave out `in_flight`; behind\
 `pk.mma_issue`, release the stage after `pk.mma_wait`, and of `pieces` after the chain that uses the product"
    channel: str
    warp_role: str


class MmaNotAwaited(Diagnostic):
    """Raised when the result of an MMA is taken that may still be in flight."""

    code = "PK739"
    title = "the result of an MMA is used while the MMA may still be in flight: {left} are after this wait"
    label = "awaited here by {warp_role}"
    help = "let `left` be the number of MMAs that are issued between the awaited one and the wait"
    left: int
    warp_role: str
