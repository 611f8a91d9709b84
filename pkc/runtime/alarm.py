"""The alarm of a mesh: a page of memory of the host that all its processes and GPUs share, by which one stops all.

A thread of a kernel that has waited too long raises it. Threads of all kernels whose waits are bounded look at it while
they wait; hosts look at it before a launch, which takes no call of the driver. A host may raise it, too. The page has
no name: it goes with the last process that has it.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os

from pkc.diagnostics import PkcError
from pkc.location import NOWHERE
from pkc.runtime.driver import Driver
from pkc.runtime.errors import LIMIT_VARIABLE, NoWaitLimit
from pkc.runtime.group import Group, close_all

LIMIT = 30.0
"""Seconds that a bounded wait may take, late launches of other ranks included."""

_FIRST_TEXT = 64
_TEXT = 512


class Alarm:
    """Bytes 0 to 3: not 0 if raised; 4 to 7: the milliseconds that a wait may take; then a text for each rank.

    The context of a GPU of this process must be current. All processes of a group make it together. Raises `PkcError`.
    """

    def __init__(self, driver: Driver, ranks: int, group: Group | None) -> None:
        self._driver = driver
        size = -(-(_FIRST_TEXT + ranks * _TEXT) // mmap.PAGESIZE) * mmap.PAGESIZE
        self._memory = mmap.mmap(-1, size) if group is None else _shared(group, size)
        self.raised = ctypes.c_uint32.from_buffer(self._memory)
        """Its `value`; it stays readable when the mesh is closed."""
        self._limit = ctypes.c_uint32.from_buffer(self._memory, 4)
        self._host = ctypes.addressof(self.raised)
        flags = driver.api.CU_MEMHOSTREGISTER_PORTABLE | driver.api.CU_MEMHOSTREGISTER_DEVICEMAP
        limit = _limit(os.environ.get(LIMIT_VARIABLE, ""))
        driver.cuMemHostRegister(self._host, size, flags)
        self.address = int(driver.cuMemHostGetDevicePointer(self._host, 0))
        """Where GPUs find it."""
        self.limit = limit
        _open.add(self)

    @property
    def limit(self) -> float:
        """Seconds that a bounded wait may take."""
        return self._limit.value / 1000

    @limit.setter
    def limit(self, seconds: float) -> None:
        self._limit.value = max(1, min(round(1000 * seconds), 2**32 - 1))

    def raise_it(self) -> None:
        """End all waits of all ranks."""
        self.raised.value = 1

    def say(self, rank: int, text: str) -> None:
        """Let all processes know something of a rank."""
        start = _FIRST_TEXT + rank * _TEXT
        # Cut within a character, it may end in bytes that are none.
        self._memory[start : start + _TEXT] = text.encode()[: _TEXT - 1].ljust(_TEXT, b"\0")

    def said(self, rank: int) -> str:
        """What is known of a rank; empty if nothing is."""
        start = _FIRST_TEXT + rank * _TEXT
        return self._memory[start : start + _TEXT].split(b"\0")[0].decode(errors="ignore")

    def close(self) -> None:
        """Take it from the GPUs. No kernel may run."""
        self._driver.cuMemHostUnregister(self._host)
        _open.discard(self)


_open: set[Alarm] = set()
"""Those that GPUs may look at: their memory must not go, even if nobody else has their mesh any more."""


def _limit(text: str) -> float:
    """The seconds that the environment says. Raises `PkcError`."""
    try:
        found = float(text or LIMIT)
    except ValueError:
        found = 0.0
    if not 0 < found < math.inf:
        raise PkcError(NoWaitLimit(NOWHERE, text))
    return found


def _shared(group: Group, size: int) -> mmap.mmap:
    """New memory, zeros, that all processes of a group have."""
    mine: list[int] = []
    if group.rank == 0:
        mine = [os.memfd_create("pkc alarm", os.MFD_CLOEXEC)]
        os.ftruncate(mine[0], size)
    given = mine
    try:
        found = group.agree("makes a mesh", mine)
        given = found[0] if group.rank else mine
        return mmap.mmap(given[0], size)
    finally:
        close_all(given)
