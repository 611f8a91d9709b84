"""The time that operands of other ranks take to come, and what that costs the tasks beside it, in nanoseconds."""

from __future__ import annotations

from pkc.cost.records import Work
from pkc.dialect.words import JOINED
from pkc.targets.arch import Rates


def takes(work: Work, sms: int, separate: int, rates: Rates) -> float:
    """Until all has come: by the link, and by each of `sms` SMs one tile at a time, or through `separate` SMs that only
    communicate, or by a copy engine one copy after the other."""
    link = sum(operand.bytes for operand in work.fetched) / rates.pulled_bytes
    by_sms = [operand for operand in work.fetched if not operand.copies]
    if separate:
        copied = sum(operand.tiles * operand.stage_bytes for operand in by_sms) / separate / rates.fetch_bytes
    else:
        copied = sum(-(-operand.tiles // sms) * rates.copy for operand in by_sms)
    return max(link + sum(operand.copies for operand in work.fetched) * rates.engine_copy, copied)


def costs_tasks(work: Work, main: float, fetches: float, separate: int, rates: Rates) -> float:
    """What tasks of `main` lose because their SMs also store what they fetch."""
    if separate or all(operand.copies for operand in work.fetched):
        return 0.0
    rows = sum(operand.tiles * operand.stage_bytes for operand in work.fetched if operand.by_rows)
    if rows:
        return rows / rates.rows_beside
    return rates.while_fetching * min(main, fetches)


def enqueued(work: Work, ranks: int, rates: Rates) -> float:
    """The host's time to enqueue the copies of all ranks, which one process may drive."""
    copies = sum(operand.copies for operand in work.fetched)
    return 2 * copies / JOINED * ranks * rates.enqueue
