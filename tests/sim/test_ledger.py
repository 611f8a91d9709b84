"""Signals that are left over at the end of a launch."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr
from xdsl.ir import Operation

from pkc.diagnostics import PkcError
from pkc.location import Source
from pkc.sim.ledger import Ledger
from pkc.sim.schedule import Counter

SOURCE = Source("ledger.pk", "signal(ready.at(r)[0])\nwait(ready[0], 2)\n").remember()
HERE, THERE = Counter(0, "ready", (0,)), Counter(1, "ready", (0,))


def at(line: int) -> Operation:
    op = ModuleOp([])
    op.location = FileLineColLoc(StringAttr(SOURCE.name), IntAttr(line), IntAttr(1))
    return op


SIGNAL, WAIT = at(1), at(2)


def ledger(
    *sent: tuple[Counter, int, int], awaited: tuple[tuple[Counter, int, int], ...], raised: bool = False
) -> Ledger:
    """Signals and waits, each with a counter, a number and a launch."""
    made = Ledger()
    for counter, amount, launch in sent:
        made.sent(counter, amount, launch, SIGNAL, raised=raised)
    for counter, wanted, launch in awaited:
        made.awaited(counter, wanted, launch, WAIT)
    return made


def test_all_that_is_sent_is_awaited() -> None:
    ledger((HERE, 1, 1), (HERE, 1, 1), (HERE, 2, 2), awaited=((HERE, 2, 1), (HERE, 4, 2))).check()


def test_what_comes_early_belongs_to_its_launch() -> None:
    ledger((HERE, 2, 2), (HERE, 2, 1), awaited=((HERE, 2, 1), (HERE, 4, 2))).check()


def test_a_rank_without_tasks_need_not_wait() -> None:
    ledger((HERE, 2, 1), (THERE, 2, 1), awaited=((HERE, 2, 1),)).check()


def test_what_is_raised_need_not_be_awaited() -> None:
    ledger((HERE, 1, 1), (HERE, 2, 2), awaited=(), raised=True).check()
    ledger((HERE, 1, 1), (HERE, 2, 2), awaited=((HERE, 1, 1), (HERE, 2, 2)), raised=True).check()


@pytest.mark.parametrize("wanted", [1, 3])
def test_another_number_than_is_sent(wanted: int) -> None:
    with pytest.raises(PkcError) as error:
        ledger((HERE, 1, 1), (HERE, 1, 1), awaited=((HERE, wanted, 1),)).check()
    assert str(error.value).splitlines() == [
        f"error[PK713]: `ready[0]` of rank 0 reaches 2 in launch 1, but the wait is for {wanted}",
        " --> ledger.pk:2:1",
        "  |",
        "2 | wait(ready[0], 2)",
        "  | ^^^^ here",
        " ::: ledger.pk:1:1",
        "  |",
        "1 | signal(ready.at(r)[0])",
        "  | ------ signalled here",
        "  = help: each wait must count every signal that its launch and those before it send to the counter",
    ]


def test_nobody_waits() -> None:
    with pytest.raises(PkcError) as error:
        ledger((HERE, 1, 1), (HERE, 1, 2), awaited=((HERE, 1, 1),)).check()
    (found,) = error.value.diagnostics
    assert found.fill(found.title) == "`ready[0]` of rank 0 reaches 2 in launch 2, and nobody waits for it"
