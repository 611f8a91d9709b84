"""What is known when kernels of a mesh have given up waiting, and the thread that notices that a process has ended.

Of each process one thread looks at the alarms of its meshes ten times a second. When the process of another rank has
ended, waits of this mesh may take two seconds more: nothing is wrong if none does. When the alarm is raised, it says
for the others what this process has launched, and if no call of this mesh asks for three seconds, it raises the fault
in the thread that loaded the kernels.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol, TypeAlias

from pkc.diagnostics import Diagnostic, PkcError
from pkc.location import NOWHERE
from pkc.runtime.alarm import Alarm
from pkc.runtime.errors import GaveUp, LaunchFailed, Stuck
from pkc.runtime.group import Group

PERIOD = 0.1
_ALONE = 2.0
"""Seconds that a wait may take once a process has ended: what it has sent is there long before."""

UNASKED = 3.0
"""Seconds after which a fault is raised that no call has asked for."""

_PATIENCE = 1.0
"""Seconds in which kernels and other processes say what they know."""

_ENDED = "its process has ended"
_FAILED = "its launch of "
"""How begins what a process says of a rank whose launch has failed."""


Find: TypeAlias = Callable[[Sequence[str]], Diagnostic | None]


class Launched(Protocol):
    """A launch, in words."""

    @property
    def what(self) -> str: ...


class Faults:
    """The faults of a mesh. `mine` are the ranks of this process; `last` has what was launched last, for each rank."""

    def __init__(self, alarm: Alarm, group: Group | None, mine: Sequence[int], ranks: int) -> None:
        self._alarm, self._group, self._mine, self._ranks = alarm, group, mine, ranks
        self.last: Sequence[Launched] = ()
        self.closed = False
        self._finds: list[Find] = []
        self._releases: list[Callable[[], None]] = []
        self._failure = ""
        """Why a launch of this process has failed, in words."""
        self._found: PkcError | None = None
        self._finding = threading.Lock()
        self._raised_at = 0.0
        self._thread = threading.get_ident()
        if group is not None:
            group.interrupt = self.check

    def add(self, find: Find, release: Callable[[], None]) -> None:
        """Of a kernel: what finds its reports, given what is known of other ranks, and what ends waits of streams."""
        self._finds.append(find)
        self._releases.append(release)
        self._thread = threading.get_ident()
        _watch(self)

    def failed(self, error: Exception) -> None:
        """A launch of this process has failed: let all others know, and end their waits for it."""
        self._failure = f"{_FAILED}{self.last[0].what} has failed: {str(error).splitlines()[0]}"
        self._say()
        self._alarm.raise_it()

    def check(self) -> None:
        """Raise `PkcError` if the alarm of the mesh is raised."""
        if self._alarm.raised.value:
            raise self.found()

    def found(self) -> PkcError:
        """What has happened; the alarm is raised. Waits a moment for what others say."""
        with self._finding:
            if self._found is None:
                self._say()
                began = time.monotonic()
                while not (found := self._look()) or self._silent():
                    if time.monotonic() - began > _PATIENCE:
                        break
                    time.sleep(PERIOD / 5)
                found = self._look()  # with all that was said meanwhile
                late = sorted(found, key=lambda one: isinstance(one, Stuck) and not one.late)
                known = "\n          ".join(self._known()) or self._failure or "no kernel of this process did"
                failed = self._failed()
                first = LaunchFailed(NOWHERE, failed, known) if failed else GaveUp(NOWHERE, known)
                self._found = PkcError(*([first, *late] if failed else late or [first]))
            return PkcError(*self._found.diagnostics)

    def watch(self) -> None:
        """Look for ended processes and for the alarm."""
        for rank in self._group.left() if self._group is not None else ():
            said = self._alarm.said(rank)
            if said != _ENDED and not said.startswith(_FAILED):  # why it has ended says more
                self._alarm.say(rank, _ENDED)
                self._alarm.limit = min(self._alarm.limit, _ALONE)
        if not self._alarm.raised.value:
            return
        if not self._raised_at:
            self._raised_at = time.monotonic()
            self._say()
        for release in self._releases:  # again and again: launches that were enqueued before clear their counters
            with suppress(PkcError):  # the GPU may do nothing more
                release()
        if self._found is None and time.monotonic() - self._raised_at > UNASKED:
            _raise_in(self._thread, self.found())

    def _look(self) -> list[Diagnostic]:
        known = self._known()
        return [stuck for find in self._finds if (stuck := find(known)) is not None]

    def _known(self) -> list[str]:
        """What processes say of their ranks, a line each."""
        if self._group is None:
            return []
        return [f"rank {rank}: {self._alarm.said(rank) or 'it says nothing'}" for rank in range(self._ranks)]

    def _failed(self) -> str:
        """The ranks whose launches have failed, in words."""
        ranks = range(self._ranks) if self._group is not None else self._mine if self._failure else ()
        found = [str(rank) for rank in ranks if self._alarm.said(rank).startswith(_FAILED)]
        return f"rank{'s' * (len(found) > 1)} {', '.join(found)}" if found else ""

    def _silent(self) -> bool:
        return self._group is not None and not all(map(self._alarm.said, range(self._ranks)))

    def _say(self) -> None:
        text = f"it has launched {self.last[0].what} last" if self.last else "it has launched nothing"
        if self._failure:
            text = self._failure
        elif self._group is not None and self._group.waits_until:
            text += f", and waits until each of the others {self._group.waits_until}"
        for rank in self._mine:
            self._alarm.say(rank, text)


_watched: weakref.WeakSet[Faults] = weakref.WeakSet()
_watching = threading.Lock()


def _watch(faults: Faults) -> None:
    with _watching:
        _watched.add(faults)
        if not any(thread.name == _NAME for thread in threading.enumerate()):
            threading.Thread(target=_run, name=_NAME, daemon=True).start()


_NAME = "pkc faults"


def _run() -> None:
    while True:
        time.sleep(PERIOD)
        _look_at_all()


def _look_at_all() -> None:
    with _watching:
        watched = list(_watched)
    for faults in watched:
        if faults.closed:
            _watched.discard(faults)
        else:
            faults.watch()


def _raise_in(thread: int, error: PkcError) -> None:
    """Let another thread raise an error. It may be within a call that never ends, so the error is printed as well."""
    sys.stderr.write(f"{error}\n")
    sys.stderr.flush()

    class Fault(PkcError):  # a class alone can be given to a thread
        def __init__(self) -> None:
            super().__init__(*error.diagnostics)

    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Fault))
