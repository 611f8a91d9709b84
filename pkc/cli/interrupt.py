"""Ctrl-C that Python loses: raised where nothing can be raised.

Python handles a signal at the next call in the main thread. If that is a callback of a weak reference or a `__del__`,
the `KeyboardInterrupt` is printed as "Exception ignored in" and forgotten, and the program goes on. Each import ends
in such a callback (`_get_module_lock` of importlib), and a command imports while it works.
"""

from __future__ import annotations

import _thread
import inspect
import signal
import sys
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_SOON = 0.001
"""Seconds until the interrupt comes again: what lost it has then returned, or loses it once more."""


@contextmanager
def never_lost() -> Generator[None]:
    """A `KeyboardInterrupt` that Python would ignore comes again, until it is raised. In the main thread."""
    others = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            _thread.start_new_thread(_again, (inspect.currentframe(),))
        else:
            others(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = others


def _again(hook: FrameType | None) -> None:
    """Interrupt the main thread, which has left the hook by then: what is raised in there is lost for good."""
    thread = threading.main_thread().ident or 0
    time.sleep(_SOON)
    while hook in _stack(thread):
        time.sleep(_SOON)
    signal.pthread_kill(thread, signal.SIGINT)  # ends what the thread waits for, too


def _stack(thread: int) -> Iterator[FrameType | None]:
    frame = sys._current_frames().get(thread)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        yield frame
        frame = frame.f_back
