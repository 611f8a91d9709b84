"""Ctrl-C: whatever is being done ends at once, and nothing is left of it: no process, no file, no socket."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from pkc.check.parallel import first_that
from pkc.cli import main as main_module
from pkc.cli.main import main
from pkc.runtime.driver import Driver
from pkc.runtime.mesh import Mesh
from tests.runtime.fake import Api

EXAMPLES = Path(__file__).parents[2] / "examples"
AT_ONCE = 3.0
"""Seconds, on a machine that does other work too."""

INTERRUPTED = 130


def _run() -> int:
    return main(["run", str(EXAMPLES / "gemm_rs.pk"), "--ranks", "4", "--set", "M=4096,N=4096,K=4096"])


def _check() -> int:
    return main(["check", str(EXAMPLES / "ag_gemm.pk"), "--ranks", "4", "--seeds", "1000000"])


def _processes() -> int:
    """As `pkc check` with many instances, in processes beside this one."""
    first_that(lambda number: time.sleep(60 if number else 0.05) is not None, range(1_000_000))
    return 0


def _synchronize() -> int:
    api = Api(gpus=2)
    mesh = Mesh.single_process(driver=Driver(api))
    api.unready = {mesh.local[1].stream}
    mesh.synchronize(60.0)
    return 0


@pytest.mark.parametrize("what", [_run, _check, _processes, _synchronize])
@pytest.mark.parametrize("all_of_them", [True, False], ids=["group", "process"])
def test_nothing_is_left(what: Callable[[], int], all_of_them: bool) -> None:
    files = _files()
    process = _begin(what)
    time.sleep(0.4)
    began = time.monotonic()
    (os.killpg if all_of_them else os.kill)(process, signal.SIGINT)
    try:
        status = _end(process, began + 20)
        assert time.monotonic() - began < AT_ONCE
        assert status == INTERRUPTED
        assert _session(process) == []
        assert {file for file in _files() - files if str(process) in file} == set()
    finally:
        for left in _session(process):
            os.kill(left, signal.SIGKILL)


def test_one_that_python_ignores_comes_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C in a callback of a weak reference, which each import has, is printed and forgotten by Python itself."""

    @click.command
    def command() -> None:
        lock = threading.Thread()
        weak = weakref.ref(lock, lambda _: signal.raise_signal(signal.SIGINT))
        del lock
        assert weak() is None
        time.sleep(2 * AT_ONCE)

    monkeypatch.setattr(main_module, "cli", command)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    began = time.monotonic()
    try:
        assert main([]) == INTERRUPTED
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - began < AT_ONCE
    assert capsys.readouterr().err.strip() == "interrupted"


def test_what_python_ignores_else_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command
    def command() -> None:
        watched = threading.Thread()
        weak = weakref.ref(watched, lambda _: int("one"))
        del watched
        assert weak() is None

    monkeypatch.setattr(main_module, "cli", command)
    monkeypatch.setattr(sys, "unraisablehook", lambda found: print(found.exc_type.__name__))
    assert main([]) == 0
    assert capsys.readouterr().out == "ValueError\n"


def _begin(what: Callable[[], int]) -> int:
    """A process in a session of its own."""
    process = os.fork()
    if process:
        return process
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    status = 1
    try:
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        status = what()
    except KeyboardInterrupt:
        status = INTERRUPTED
    finally:
        os._exit(status)


def _end(process: int, until: float) -> int | None:
    while time.monotonic() < until:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    return None


def _session(process: int) -> list[int]:
    """The processes of a session that have not ended."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session, *_ = path.read_text().rpartition(")")[2].split()
        except (OSError, ValueError):
            continue
        if int(session) == process and state != "Z":
            found.append(int(path.parent.name))
    return found


def _files() -> set[str]:
    """Files in shared memory, and sockets with a name."""
    sockets = {
        line.split()[-1] for line in Path("/proc/net/unix").read_text().splitlines()[1:] if len(line.split()) > 7
    }
    return {path.name for path in Path("/dev/shm").iterdir()} | sockets
