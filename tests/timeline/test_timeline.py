"""Records made by hand, as events, as a table and as a file for viewers."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from pkc.codegen.artifact import Probe, Trace
from pkc.timeline import chrome, table
from pkc.timeline.records import Events, Words, decode, longest

TRACE = Trace(
    "trace",
    "trace_ctas",
    "trace_records",
    ("consumer", "storer"),
    (
        Probe(0, "cta", "", "k.pk:2"),
        Probe(0, "begin", "", "k.pk:2"),
        Probe(0, "task", "MMAs", "k.pk:2"),
        Probe(0, "waits", "`A`", "k.pk:3"),
        Probe(0, "over", "MMAs", "k.pk:2"),
        Probe(0, "wait", "`left`", "k.pk:4"),
        Probe(0, "end", "", "k.pk:2"),
        Probe(1, "cta", "", "k.pk:2"),
        Probe(1, "begin", "", "k.pk:2"),
        Probe(1, "task", "stores", "k.pk:2"),
        Probe(1, "wait", "`cast`", "k.pk:5"),
        Probe(1, "drain", "complete", "k.pk:5"),
        Probe(1, "over", "stores", "k.pk:2"),
        Probe(1, "end", "", "k.pk:2"),
    ),
)
MHZ2000 = 2
"""Cycles in a nanosecond."""


TABLE = """\
rank 0: CTAs begin within 0.6 us; their warp roles end from 9.0 to 10.6 us, half of them by 10.0
rank 1: CTAs begin within 0.6 us; their warp roles end from 9.0 to 10.6 us, half of them by 10.0

consumer: MMAs 67% from 1.3 to 9.3 us, waits for `A` 22%, waits for `left` 6% from 9.3 to 9.8 us, else 6%
storer: waits for `cast` 50% from 2.0 to 6.0 us, drains: complete 25% from 6.5 to 8.5 us, stores 12%, else 12%

                                                    us in each CTA       first at last until
                                     times  share    least   median     most   median     median
consumer                                   100.0%      9.0      9.0      9.0      1.3       10.3  k.pk:2
  MMAs                                   2  66.7%      6.0      6.0      6.0      1.3        9.3  k.pk:2
    waits for `A`                        2  22.2%      2.0      2.0      2.0                      k.pk:3
  waits for `left`                       1   5.6%      0.5      0.5      0.5      9.3        9.8  k.pk:4
  else                                       5.6%      0.5      0.5      0.5
storer                                     100.0%      8.0      8.0      8.0      1.0        9.0  k.pk:2
  stores                                 1  12.5%      1.0      1.0      1.0      2.0        9.0  k.pk:2
    waits for `cast`                     1  50.0%      4.0      4.0      4.0      2.0        6.0  k.pk:5
    drains: complete                     1  25.0%      2.0      2.0      2.0      6.5        8.5  k.pk:5
  else                                      12.5%      1.0      1.0      1.0"""


def consumer(start: int, late: int) -> list[tuple[int, int, int, int]]:
    """Two tasks of 4 us from `start` + 1000 on, 1 us of each waiting; then `left`, for 500 ns."""

    def at(time: int) -> tuple[int, int]:
        return start + time + late, MHZ2000 * (start + time + late) + 77

    def moment(time: int, point: int, task: int = -1) -> tuple[int, int, int, int]:
        return at(time)[0], point, task, at(time)[1]

    return [
        (at(0)[0], 0, -1, 40),
        moment(1000, 1),
        moment(1000, 2, 7),
        (at(4800)[0], 3, 7, 2000),
        moment(5000, 2, 9),
        (at(8800)[0], 3, 9, 2000),
        moment(9000, 4),
        (at(9000)[0], 5, -1, 1000),
        moment(10000, 6),
    ]


def storer(start: int) -> list[tuple[int, int, int, int]]:
    """One task from 2 to 9 us: 4 us for `cast`, 2 us for the drain; 8 us in all."""
    return [
        (start, 7, -1, 40),
        (start + 1000, 8, -1, 2 * start + 2000),
        (start + 2000, 9, 7, 2 * start + 4000),
        (start + 2000, 10, 7, 8000),
        (start + 6500, 11, 7, 4000),
        (start + 9000, 12, -1, 2 * start + 18000),
        (start + 9000, 13, -1, 2 * start + 18000),
    ]


def words(*rows: list[list[tuple[int, int, int, int]]], records: int = 16) -> Words:
    """The memory of one rank: by CTA, by role; an empty row is of a role that did not run."""
    memory = np.zeros((len(rows), 2, records, 4), np.uint32)
    for cta, roles in enumerate(rows):
        for role, entries in enumerate(roles):
            memory[cta, role, 0, 0] = len(entries) + 1 if entries else 0
            for place, (time, point, task, value) in enumerate(entries[: records - 1], start=1):
                memory[cta, role, place] = [n % 2**32 for n in (time, point, task, value)]
    return memory.view(np.int32)


@pytest.fixture
def events() -> Events:
    wraps = 2**32 - 3000  # the clock of rank 1 passes its end within the kernel
    first = words([consumer(5000, 0), storer(5000)], [consumer(5000, 600), []])
    return decode(TRACE, [first, words([consumer(wraps, 0), storer(wraps)], [consumer(wraps, 600), []])])


def test_times_are_those_of_each_rank(events: Events) -> None:
    begun = events.of_kind("cta")
    assert events.begin[begun].tolist() == [0, 0, 600, 0, 0, 600]
    assert events.rank[begun].tolist() == [0, 0, 0, 1, 1, 1]
    assert events.sms.tolist() == [[40, 40], [40, 40]]
    assert events.lost == 0


def test_lengths_are_cycles_by_the_rate_of_the_clock(events: Events) -> None:
    drains = events.of_kind("drain")
    assert events.begin[drains].tolist() == [6500, 6500]
    assert events.length[drains].tolist() == [2000, 2000]


def test_waits_of_a_loop_belong_to_their_task(events: Events) -> None:
    waits = np.flatnonzero(events.of_kind("waits"))
    assert events.task[waits].tolist() == [7, 9] * 4
    assert events.task[events.within[waits]].tolist() == [7, 9] * 4
    left = np.flatnonzero(events.of_kind("wait") & (events.task == -1))
    assert events.within[left].tolist() == left.tolist()


def test_each_role_adds_up(events: Events) -> None:
    found = {(line.name, line.depth): line for line in table.lines(events)}
    assert found["MMAs", 1].each.tolist() == pytest.approx([6, 6, 6, 6])
    assert found["waits for `A`", 2].each.tolist() == pytest.approx([2, 2, 2, 2])
    assert found["waits for `A`", 2].share == pytest.approx(2 / 9)
    assert found["waits for `left`", 1].each.tolist() == pytest.approx([0.5] * 4)
    assert found["MMAs", 1].first.tolist() == pytest.approx([1, 1.6, 1, 1.6])
    assert found["MMAs", 1].last.tolist() == pytest.approx([9, 9.6, 9, 9.6])
    for name in ("consumer", "storer"):
        place = [line.name for line in table.lines(events)].index(name)
        rows = list(table.lines(events))[place + 1 :]
        inside = rows[: next((n for n, line in enumerate(rows) if not line.depth), len(rows))]
        assert sum(line.share for line in inside) == pytest.approx(1)


def test_table(events: Events) -> None:
    assert table.text(events) == TABLE


def test_a_task_whose_end_has_no_record_lasts_until_the_last_one() -> None:
    """There was room for the begin of the second task and the wait in it, which ends 8.8 us after the first record."""
    cut = [*consumer(5000, 0)[:6], consumer(5000, 0)[-1]]
    found = {line.name: line for line in table.lines(decode(TRACE, [words([cut, []])]))}
    assert found["MMAs"].last == pytest.approx([10])
    assert found["MMAs"].each == pytest.approx([9 - 2])
    assert found["else"].share == pytest.approx(0)


def test_a_role_without_anything_long_says_so() -> None:
    none = np.zeros(1)
    role = table.Line(0, "communicator", "", 1, 1.0, none, none, none)
    assert list(table._sentences([role])) == ["communicator: nothing takes a hundredth of its time"]


def test_file_for_viewers(events: Events) -> None:
    file = io.StringIO()
    chrome.write(events, file, 1)
    read = json.loads(file.getvalue())["traceEvents"]
    names = {(event["pid"], event["tid"]): event["args"]["name"] for event in read if event["name"] == "thread_name"}
    assert names == {
        (rank, role): f"CTA 0 (SM 40) {name}" for rank in range(2) for role, name in enumerate(TRACE.roles)
    }
    durations = [event for event in read if event["ph"] == "X" and event["pid"] == 1]
    assert [(event["name"], event["ts"], event["dur"]) for event in durations] == [
        ("MMAs k.pk:2", 1.0, 4.0),
        ("MMAs k.pk:2", 5.0, 4.0),
        ("waits for `left` k.pk:4", 9.0, 0.5),
        ("stores k.pk:2", 2.0, 7.0),
        ("waits for `cast` k.pk:5", 2.0, 4.0),
        ("drains: complete k.pk:5", 6.5, 2.0),
    ]
    assert durations[0]["args"] == {"task": 7, "waits for `A`, us": 1.0}


def test_a_task_whose_end_is_not_recorded_has_no_length() -> None:
    cut = words([consumer(0, 0), storer(0)], [consumer(0, 0), storer(0)], records=4)
    file = io.StringIO()
    chrome.write(decode(TRACE, [cut]), file, 1)
    read = json.loads(file.getvalue())["traceEvents"]
    assert not [event for event in read if event.get("cat") == "task" and event["name"].startswith("stores")]


def test_rows_that_are_too_short_say_how_long_they_should_be() -> None:
    short = words([consumer(0, 0), storer(0)], [consumer(0, 0), []], records=2)
    assert longest(short) == 10
    assert decode(TRACE, [short]).lost == 8 + 6 + 8


def test_what_is_lost_is_counted_on_all_ranks() -> None:
    whole, short = words([consumer(0, 0), storer(0)]), words([consumer(0, 0), []], records=4)
    assert decode(TRACE, [words([consumer(0, 0), storer(0)], records=4), short]).lost == 6 + 4 + 6
    assert decode(TRACE, [whole, words([consumer(0, 0), storer(0)])]).lost == 0
