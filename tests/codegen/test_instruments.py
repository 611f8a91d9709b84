"""Instrumented kernels, run thread by thread: their records and reports mean what the tables beside the code say."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import chain

import numpy as np
import pytest

from pkc.codegen.artifact import Trace, Waits
from pkc.codegen.probes import trace_of, waits_of
from pkc.diagnostics import PkcError
from pkc.dialect.program import KernelOp
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes.machine.check_machine import CheckMachine
from pkc.runtime import reports
from pkc.sim.draw import draw_inputs
from pkc.sim.run import simulate
from pkc.timeline import table
from pkc.timeline.records import Words, decode, longest
from tests.codegen.threads import SHARES, Cta, Memory, warps

SUM = """\
kernel rs(X: bf16[M, N], Y: bf16[M, N].shard(0)):
    for m, n in tasks(blocks(M, 16), blocks(N, 64)):
        Y[m, n] += X[m, n]
"""
RANKS, CTAS = 2, 3
SIZES = {"M": 96, "N": 64, "trace_ctas": CTAS, "trace_records": 64, "report_ctas": CTAS}


@cache
def compiled(instrument: str, text: str = SUM) -> tuple[KernelOp, KernelOp]:
    """The roles level, and the machine level with an instrument."""
    program = parse_text(Source("rs.pk", text).remember())
    instruments = [instrument] if instrument else []
    lowered = compile_program(program, schedule=SHARES, level="machine", instruments=instruments)
    return compile_program(program, schedule=SHARES, level="roles").kernel, lowered.kernel


def run(instrument: str, sizes: dict[str, int], gives_up: str = "") -> tuple[KernelOp, Memory]:
    roles, kernel = compiled(instrument)
    memory = Memory(kernel, RANKS, sizes)
    for array in memory.arrays["X"]:
        array[...] = 1
    run_in(memory, roles, kernel, gives_up)
    return kernel, memory


def run_in(memory: Memory, roles: KernelOp, kernel: KernelOp, gives_up: str = "") -> None:
    ctas = [[Cta(memory, rank, cta, CTAS, gives_up=gives_up) for cta in range(CTAS)] for rank in range(RANKS)]
    for numbers, threads in warps(roles, CTAS):
        for of_rank in ctas:
            for number in numbers:
                of_rank[number].run(kernel.body.block, threads)
    for cta in chain(*ctas) if not gives_up else ():
        cta.barriers.check()


def words(memory: Memory, array: str) -> list[Words]:
    """What each rank has written; where nothing is, zeros."""
    return [np.nan_to_num(found).astype(np.int64).astype(np.int32) for found in memory.arrays[array]]


@cache
def traced(records: int) -> tuple[Trace, list[Words]]:
    kernel, memory = run("trace", SIZES | {"trace_records": records})
    trace = trace_of(kernel)
    assert trace is not None
    return trace, words(memory, trace.array)


def test_every_role_records_all_that_it_does() -> None:
    trace, written = traced(64)
    events = decode(trace, written)
    assert events.lost == 0
    assert events.sms.tolist() == [[100, 101, 102]] * RANKS
    points = [trace.points[point] for point in events.point]
    found = Counter((trace.roles[point.role], point.kind, point.what) for point in points)
    # Six blocks of rows, two of them for each CTA; three are of this rank.
    rows = RANKS * CTAS
    assert found == {
        **{(role, kind, ""): rows for role in trace.roles for kind in ("cta", "begin", "end")},
        ("loader", "task", "loads"): 2 * rows,
        ("loader", "wait", "room in `X`"): 2 * rows,
        ("loader", "over", "loads"): rows,
        ("storer", "wait", "`emptied`"): rows,
        ("storer", "task", "stores"): 2 * rows,
        ("storer", "wait", "`X`"): 2 * rows,
        ("storer", "drain", "read"): 2 * rows,
        ("storer", "drain", "complete"): 2 * rows,
        ("storer", "over", "stores"): rows,
        ("communicator", "task", "sums"): rows,
        ("communicator", "wait", "`Y.arrived`"): rows,
        ("communicator", "over", "sums"): rows,
    }
    assert {point.line for point in points if point.what in ("`Y.arrived`", "`X`")} == {"rs.pk:3"}
    waits = events.of_kind("wait", "drain")
    assert events.length[waits].tolist() == [32.0] * int(waits.sum())  # from one look at the clock to the next
    tasks = {"loader": [0, 3], "storer": [0, 3], "communicator": [0]}
    for number, role in enumerate(trace.roles):
        mine = (events.role == number) & (events.cta == 0) & (events.rank == 1) & events.of_kind("task")
        assert events.task[mine].tolist() == tasks[role]


def test_the_shares_of_a_role_add_up() -> None:
    trace, written = traced(64)
    found = list(table.lines(decode(trace, written)))
    heads = [place for place, line in enumerate(found) if not line.depth]
    assert [found[place].name for place in heads] == list(trace.roles)
    for start, end in zip(heads, [*heads[1:], len(found)], strict=True):
        assert sum(line.share for line in found[start + 1 : end]) == pytest.approx(1)


def test_what_has_no_room_is_counted() -> None:
    _, written = traced(64)
    trace, short = traced(4)
    assert max(map(longest, short)) == max(map(longest, written)) <= 64
    events = decode(trace, short)
    assert events.lost > 0
    assert len(events.point) + events.lost == len(decode(trace, written).point)


def given_up(instruction: str) -> tuple[Waits, list[reports.Report]]:
    kernel, memory = run("debug", SIZES, instruction)
    waits = waits_of(kernel)
    assert waits is not None

    def counter(rank: int, name: str, low: int) -> tuple[int, ...]:
        base = memory.base(name) + rank * (1 << 36)
        assert (low - base) % 2**32 < 1024
        return ((low - base) % 2**32 // 4,)

    return waits, reports.read(waits, dict(enumerate(words(memory, waits.reports))), counter)


def test_nobody_gives_up_who_does_not_wait_too_long() -> None:
    _, found = given_up("")
    assert found == []


def test_who_gives_up_says_what_for() -> None:
    waits, found = given_up("spin_bounded")
    assert waits.warps == 12
    # Warps 0 to 7 of each CTA are communicators, warp 9 is the storer, which waits before its first task.
    warps = (*range(8), 9)
    assert [(r.rank, r.cta, r.warp) for r in found] == [
        (rank, cta, warp) for rank in range(RANKS) for cta in range(CTAS) for warp in warps
    ]
    storer, communicator = found[8], found[CTAS * len(warps)]
    assert (storer.wait.role, storer.wait.awaits, storer.task) == ("storer", "emptied", -1)
    # Nothing was sent in a launch before the first one.
    assert (storer.seen, storer.wanted, storer.index) == (5, 0, (0,))
    assert (communicator.wait.role, communicator.wait.awaits) == ("communicator", "Y.arrived")
    assert (communicator.rank, communicator.task, communicator.wanted) == (1, 0, RANKS)
    # Blocks 0 to 2 are rank 0's; no block has number 3, between the shards, and each row has three counters.
    assert communicator.index == ((3 + 1) * 3 + 0,)


def test_a_stage_has_no_counter() -> None:
    _, found = given_up("mbarrier_wait_bounded")
    assert {(r.wait.role, r.wait.until, r.wait.awaits, r.index) for r in found} == {
        ("loader", "free", "X", ()),
        ("storer", "filled", "X", ()),
    }
    assert {r.task for r in found} == set(range(CTAS))


def test_who_gives_up_a_guarded_wait_goes_on() -> None:
    """All roles come to their end: every block is stored, and every phase of a barrier is complete."""
    kernel, memory = run("", SIZES, "spin_guarded")
    waits = waits_of(kernel)
    assert waits is not None
    found = reports.read(waits, dict(enumerate(words(memory, waits.reports))), lambda *_: (0,))
    assert {(r.wait.role, r.wait.awaits, r.wait.until) for r in found} == {
        ("storer", "emptied", "raised"),
        ("communicator", "Y.arrived", "raised"),
    }
    assert all(not np.isnan(shard[:3]).any() for shard in memory.arrays["Y"])


def test_both_leave_nothing_that_the_machine_has_not() -> None:
    program = parse_text(Source("rs.pk", SUM))
    module = compile_program(program, level="machine", instruments=["trace", "debug"]).module
    assert CheckMachine().findings(module) == []


OF_TABLES = {
    "rows": """\
kernel picked(X: bf16[M, N].shard(0), T: i32[M], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 64)):
        Y[m, n] = gather(X, T[m], n)
""",
    "ranks and rows": """\
kernel picked(X: bf16[M, N].symmetric(), T: i32[M, 2], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 64)):
        Y[m, n] = gather(X, T[m], n)
""",
    "an index": """\
kernel picked(X: bf16[M, N], T: i32[M], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 1), blocks(N, 64)):
        Y[m, n] = X[T[m], n]
""",
    "a bound": """\
kernel picked(X: bf16[M, N], T: i32[M], Y: bf16[40, M, N]):
    for e in tasks(40):
        for m, n in tasks(blocks(M, 64, stop=T[e]), blocks(N, 64)): Y[e, m, n] = X[m, n]
""",
}


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("rows", 96),
        ("rows", 2**31 - 1),
        ("ranks and rows", (1, 96)),
        ("ranks and rows", (2, 3)),
        ("an index", -1),
        *(("a bound", bound) for bound in (97, -1)),
    ],
)
def test_an_index_out_of_range_is_what_the_simulator_says(name: str, wrong: int | tuple[int, int]) -> None:
    """One entry of rank 1 is none, and another one, which is negative, names no row."""
    text, sizes = OF_TABLES[name], {"M": 96, "N": 64}
    roles, kernel = compiled("debug", text)
    memory = Memory(kernel, RANKS, sizes | {"report_ctas": CTAS}, again=frozenset({"reports"}))
    table = np.zeros(memory.arrays["T"][0].shape, np.int32)
    table[..., -1 if table.ndim > 1 else slice(None)] = np.arange(96)
    tables = np.stack([table, table])
    tables[1, 37] = wrong
    if name in ("rows", "ranks and rows"):
        tables[1, 4] = -1
    for rank in range(RANKS):
        memory.arrays["T"][rank][...] = tables[rank]
        memory.arrays["X"][rank][...] = 1
    run_in(memory, roles, kernel, "spin_bounded" if name == "an index" else "")
    waits = waits_of(kernel)
    assert waits is not None
    found = reports.read(waits, dict(enumerate(words(memory, waits.reports))), lambda *_: ())
    said = reports.diagnose("picked", found, 1.0)
    module = compile_program(parse_text(Source("rs.pk", text).remember())).module
    inputs = draw_inputs(module, ranks=RANKS, dims=sizes, seed=0) | {"T": tables}
    with pytest.raises(PkcError) as raised:
        simulate(module, ranks=RANKS, dims=sizes, inputs=inputs)
    assert (said,) == tuple(raised.value.diagnostics)
    assert said.code == ("PK709" if name == "a bound" else "PK707" if wrong == (2, 3) else "PK706")
    assert said.span.line == 3
    assert getattr(said, "rank", None) == 1
