"""The first item for which something holds, in this process and in two others."""

from __future__ import annotations

import multiprocessing
import os
import signal
from multiprocessing.context import ForkProcess
from pathlib import Path

import pytest

from pkc.check import parallel
from pkc.check.parallel import first_that

THINGS = (3, 8, 5, 12, 7)


@pytest.fixture(params=["here", "in others"])
def _where(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_WORTH", 0.0 if request.param == "in others" else 1e9)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


@pytest.mark.usefixtures("_where")
@pytest.mark.parametrize(
    ("least", "expected"), [(0, 3), (4, 8), (9, 12), (13, None)], ids=["first", "second", "later", "none"]
)
def test_the_first_that_holds(least: int, expected: int | None) -> None:
    assert first_that(lambda thing: thing >= least, THINGS) == expected


@pytest.mark.usefixtures("_where")
def test_nothing_and_one() -> None:
    assert first_that(bool, ()) is None
    assert first_that(bool, (0,)) is None
    assert first_that(bool, (1,)) == 1


def test_others_are_asked_where_it_is_worth_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The first item here, the rest in other processes; with one core all here."""

    def asked(thing: int) -> bool:
        (tmp_path / str(thing)).write_text(str(os.getpid()))
        return False

    monkeypatch.setattr(parallel, "_WORTH", 0.0)
    for cores, others in ((2, True), (1, False)):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        assert first_that(asked, THINGS) is None
        here = {thing: int((tmp_path / str(thing)).read_text()) == os.getpid() for thing in THINGS}
        assert here == {thing: thing == THINGS[0] or not others for thing in THINGS}


def test_a_process_that_has_just_been_started_is_ended_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C before the pool knows a process that it has forked."""
    start = ForkProcess.start

    def interrupted(process: ForkProcess) -> None:
        start(process)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(ForkProcess, "start", interrupted)
    monkeypatch.setattr(parallel, "_WORTH", 0.0)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            first_that(lambda thing: thing > THINGS[-1], THINGS)
    finally:
        signal.signal(signal.SIGINT, before)
    left = multiprocessing.active_children()
    for process in left:
        process.kill()
    assert left == []


def test_an_interrupt_that_nothing_handles_ends_the_process() -> None:
    process = os.fork()
    if not process:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        with parallel._interrupts_later():
            signal.raise_signal(signal.SIGINT)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(process, 0)[1]) == signal.SIGINT
