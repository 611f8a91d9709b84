"""The smallest run that fails, in source lines."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from pkc.check.counterexample import Counterexample, Search, counterexample, explore_small
from pkc.check.run import TRIALS, Trials, baseline_of
from pkc.cli.main import main
from pkc.dialect import access, counters
from pkc.driver.compiler import Compiled, compile_program, load
from pkc.frontend.parse import parse_text
from pkc.location import Source
from tests.check.collected import ALL_WRONG
from tests.sweeps import sweep
from tools.mutant_changes import COUNT, number
from tools.mutant_instances import OVERLAPS, constants_of
from tools.mutants import at_roles_level

EXAMPLES = Path(__file__).parents[2] / "examples"
DIMS = {"M": 300, "N": 300, "K": 100}


def roles(example: str) -> Compiled:
    return load(EXAMPLES / f"{example}.pk", level="roles")


def waits(compiled: Compiled, name: str) -> list[counters.WaitOp]:
    """All waits for a counter."""
    ops = [op for op in compiled.kernel.walk() if isinstance(op, counters.WaitOp)]
    return [op for op in ops if op.signal is compiled.kernel.arguments[name]]


def failing(example: str, broken: Compiled, most: int = 200) -> Counterexample:
    tile = load(EXAMPLES / f"{example}.pk")
    found = counterexample(tile, broken, most, baseline_of(tile, ranks=4, dims=DIMS), None, lambda _: True)
    assert found is not None
    return found


OFTEN = {"gemm_rs", "all_to_all", "ag_gemm_explicit", "moe_dispatch_gemm"}
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.pk"))


@pytest.mark.parametrize("name", sweep(NAMES, lambda name: name in OFTEN))
def test_every_order_of_every_example(name: str) -> None:
    path = EXAMPLES / f"{name}.pk"
    for overlap, compiled in at_roles_level(path, [overlap for overlap in OVERLAPS if overlap != "packets"]):
        exploration = explore_small(load(path, constants=constants_of(name, overlap)), compiled, 2, 50)
        assert (exploration.complete, exploration.found) == (True, []), overlap


ALIKE = """
kernel k(X: f32[4, M].symmetric(), Y: f32[4, M], Z: f32[4, M], G: f32[M].symmetric().scratch(), full: signal[1],
         free: signal[1]):
    with role(communicator):
        for i in range(4):
            wait(free[0], 2 * i)
            for m in tasks(blocks(M, 8)):
                store(G.at((rank + 1) % ranks)[m], X[i, m])
            signal(full.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        for i in range(4):
            wait(full[0], i + 1)
            for m in tasks(blocks(M, 8)):
                Y[i, m] = G[m]
            signal(free.at((rank + ranks - 1) % ranks)[0], 1)
    with role(storer):
        for i in range(4):
            wait(full[0], i + 1)
            for m in tasks(blocks(M, 8)):
                Z[i, m] = G[m] * 2.0
            signal(free.at((rank + ranks - 1) % ranks)[0], 1)
"""


def test_channels_that_are_labelled_alike_do_not_depend_on_each_other() -> None:
    """Two roles of a CTA have one each for tiles of G."""
    program = parse_text(Source("k.pk", ALIKE.lstrip()))
    tile, compiled = (compile_program(program, level=level) for level in ("tile", "roles"))
    exploration = explore_small(tile, compiled, 2, 50)
    assert (exploration.complete, exploration.runs) == (True, 2)


def test_a_search_without_time_finds_nothing_smaller() -> None:
    """What fails on the instance that was asked for is shown; the search says that it was stopped."""
    broken = roles("gemm_rs")
    for wait in waits(broken, "C.arrived"):
        wait.detach()
        wait.erase()
    tile, search = load(EXAMPLES / "gemm_rs.pk"), Search(seconds=0.0)
    asked = baseline_of(tile, ranks=4, dims=DIMS)
    trial = next(trial for trial in TRIALS if Trials(broken.kernel, asked).check(trial))
    found = counterexample(tile, broken, 200, asked, trial, lambda _: True, search)
    assert found is not None and found.size.startswith("4 ranks, ") and search.stopped


@pytest.mark.long
@pytest.mark.parametrize("name", ["all_gather", "all_reduce", "reduce_scatter"])
def test_some_orders_of_packets(name: str) -> None:
    """Ranks may be a launch ahead of others, so that there are more orders than can be gone through."""
    path = EXAMPLES / f"{name}.pk"
    ((_, compiled),) = at_roles_level(path, ["packets"])
    assert explore_small(load(path), compiled, 2, 50).found == []


def test_a_wait_for_one_signal_less() -> None:
    """The communicator adds up the first row of blocks of a rank; the consumer, who waits alike, the last one."""
    compiled = roles("gemm_rs")
    for wait in waits(compiled, "C.arrived"):
        number(wait, COUNT, -1)
    example = failing("gemm_rs", compiled)
    assert example.size == "2 ranks, 1 CTA for each role, M = 257, K = 65, N = 257"
    assert example.found[0].code == "PK705"
    assert example.lines == [
        "rank 0 storer        gemm_rs.pk:7  C[m, n] += acc  signals `C.arrived[0, 0]` of rank 0: now 1",
        "rank 0 communicator  gemm_rs.pk:7  C[m, n] += acc  waits for `C.arrived[0, 0]` to be 1: is 1",
        "rank 0 communicator  gemm_rs.pk:7  C[m, n] += acc  reads C.slots, from [1, 0, 0] on",
        "rank 1 storer        gemm_rs.pk:7  C[m, n] += acc  has not begun",
    ]


def test_a_store_over_what_is_not_read() -> None:
    compiled = roles("gemm_rs")
    store = next(
        op
        for op in compiled.kernel.walk()
        if isinstance(op, access.StoreOp) and op.array is compiled.kernel.arguments["C.slots"]
    )
    again = store.clone()
    again.location = store.location
    block = store.parent
    assert block is not None
    block.insert_op_after(again, store)
    example = failing("gemm_rs", compiled)
    assert example.found[0].fill(example.found[0].title) == (
        "`C.slots` is stored again before it is read at [0, 129, 0]"
    )


def checked(program: str, folder: Path, *arguments: str) -> int:
    path = folder / "program.pk"
    path.write_text(program, encoding="utf-8")
    return main(["check", str(path), *arguments])


COUNTS = """\
kernel exchange(X: bf16[P, D].symmetric(), counts: i32[E].replicate(), Y: bf16[P, D].symmetric(), \
G: bf16[P, D].symmetric().scratch(), sent: signal[1]):
    with role(communicator, sms=16):
        for p in tasks(blocks(P, 8, stop=counts[rank])):
            for d in blocks(D, 128):
                store(G.at((rank + 1) % ranks)[p, d], X[p, d])
            signal(sent.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(sent[0], len(blocks(P, 8, stop=counts[(rank + ranks - 1) % ranks])))
        for p in tasks(blocks(P, 8, stop=counts[(rank + ranks - 1) % ranks])):
            for d in blocks(D, 128):
                Y[p, d] = G[p, d]
"""


def test_a_small_instance_is_not_held_against_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a count for each rank, and not every third one, the last rank's index is wrong; the user has asked for
    nine."""
    before = "(rank + ranks - 1) % ranks"
    text = COUNTS.replace("[rank]", "[6 * rank // 2]").replace(f"[{before}]", f"[6 * ({before}) // 2]")
    assert checked(text, tmp_path, "--ranks", "3", "--set", "P=64,D=70,E=9", "--seeds", "2") == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert "no order on 3 ranks, P = 9, D = 129, E = 1: it is too small (PK706: index 6 is outside" in shown.out


def test_an_index_that_is_wrong_for_the_sizes_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(COUNTS, tmp_path, "--ranks", "3", "--set", "P=64,D=70,E=2", "--seeds", "2") == 1
    assert "error[PK706]: index 2 is outside dimension 0 of `counts`\n" in capsys.readouterr().err


PARTS = """\
kernel total(X: f32[N], part: f32[B].scratch(), Y: f32[N]):
    for n in tasks(blocks(N, 64)):
        part[start(n) // 64] = rowsum(X[n])
    for n in tasks(blocks(N, 64)):
        s = zeros(f32)
        for b in blocks(B, 64):
            s += rowsum(part[b])
        Y[n] = X[n] / s
"""


def test_dimensions_that_depend_on_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """B is the number of blocks of N, which small sizes are not."""
    assert checked(PARTS, tmp_path, "--ranks", "1", "--set", "N=200,B=4", "--seeds", "2") == 0
    shown = capsys.readouterr()
    assert shown.err == "" and "it is too small (PK705: `part` is read before it is written" in shown.out
    assert checked(PARTS, tmp_path, "--ranks", "1", "--set", "N=200,B=5", "--seeds", "2") == 1
    assert "error[PK705]: `part` is read before it is written at" in capsys.readouterr().err


RELAY = """\
kernel relay(X: bf16[M].symmetric(), Y: bf16[M].symmetric(), G: bf16[M].symmetric().scratch(), sent: signal[1], \
begin: signal[1]):
    with role(communicator, sms=16):
        if rank == 1:
            signal(begin.at(2)[0], 1)
            for m in tasks(blocks(M, 128)):
                store(G.at(0)[m], X[m])
            signal(sent.at(0)[0], 1)
        if rank == 2:
            wait(begin[0], 1)
            signal(sent.at(0)[0], 1)
        if rank == 0:
            wait(sent[0], 1)
            for m in tasks(blocks(M, 128)):
                store(Y[m], G[m])
            wait(sent[0], 2)
        else:
            for m in tasks(blocks(M, 128)):
                store(Y[m], X[m])
"""


def test_a_run_on_fewer_ranks_fails_for_another_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On two ranks the relay addresses rank 2, which is no mistake of a program for four."""
    assert checked(RELAY, tmp_path, "--ranks", "4", "--set", "M=64") == 1
    shown = capsys.readouterr().err
    assert "error[PK730]: nothing orders two accesses to `G`" in shown
    assert "PK707" not in shown
    assert "  a run with 3 ranks, 1 CTA for each role" in shown


EQUALS = """\
kernel equals(X: f32[M, N].symmetric(), Y: f32[M, N].symmetric().scratch(), Z: f32[M, N].symmetric(), met: signal[1]):
    with role(communicator, sms=16):
        for m, n in tasks(blocks(M, 128), blocks(N, 256)):
            store(Y.at((rank + 1) % ranks)[m, n], zeros(f32, m, n))
        barrier(met[0])
        for m, n in tasks(blocks(M, 128), blocks(N, 256)):
            store(Y.at((rank + 1) % ranks)[m, n], X[m, n] - X[m, n])
        for m, n in tasks(blocks(M, 128), blocks(N, 256)):
            store(Z[m, n], Y[m, n])
"""


def test_a_race_that_only_terms_show_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of numbers X - X is the zero that is there already; of an infinity it is not."""
    assert checked(EQUALS, tmp_path, "--ranks", "2", "--set", "M=64,N=64") == 1
    shown = capsys.readouterr().err
    assert "error[PK730]: nothing orders two accesses to `Y`" in shown
    assert "  a run with 2 ranks, 1 CTA for each role" in shown


OVERRUN = """\
kernel overrun(X: bf16[2, M].symmetric(), Y: f32[2, M].symmetric(), G: bf16[M].symmetric().scratch(), full: signal[2]):
    with role(communicator, sms=16):
        for s in range(2):
            for m in tasks(blocks(M, 128)):
                store(G.at((rank + 1) % ranks)[m], X[s, m])
                signal(full.at((rank + 1) % ranks)[s], 1)
    with role(consumer):
        for s in range(2):
            wait(full[s], len(blocks(M, 128)))
            for m in tasks(blocks(M, 128)):
                store(Y[s, m], cast(G[m], f32))
"""


def test_what_the_program_itself_shows_has_a_run_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A race of roles that an author wrote, with the run in which it shows."""
    assert checked(OVERRUN, tmp_path, "--ranks", "3", "--set", "M=200") == 1
    shown = capsys.readouterr().err
    assert "error[PK730]: nothing orders two accesses to `G`" in shown
    assert "  a run with 2 ranks, 1 CTA for each role" in shown


def test_sizes_at_which_a_wait_never_ends_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No smaller run shows the same: with two blocks of which the second has one position, the count is right."""
    text = ALL_WRONG["whole blocks and one more, for sizes that have no rest"].text
    assert checked(text, tmp_path, "--ranks", "2") == 1
    said = capsys.readouterr().err
    assert said.startswith("error[PK481]") and said.rstrip().endswith("on 2 ranks, M = 16")


_NEIGHBOURS = """
kernel k(X: f32[4, M].symmetric(), Y: f32[4, M], G: f32[M].symmetric().scratch(), s: signal[1]):
    with role(communicator):
        for i in range(4):
            for m in tasks(blocks(M, 64)):
                store(G.at((rank + 1) % ranks)[m], X[i, m])
            signal(s.at((rank + 1) % ranks)[0], 1)
            wait(s[0], 2 * i + 1)
            for m in tasks(blocks(M, 64)):
                Y[i, m] = G[m]
            signal(s.at((rank + ranks - 1) % ranks)[0], 1)
            wait(s[0], 2 * i + 2)
"""


def test_the_wait_of_the_text_is_shown_and_who_ended_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A credit, not the flag: behind the wait comes one of pkc's own, for the CTAs of the role."""
    path = tmp_path / "k.pk"
    path.write_text(_NEIGHBOURS.lstrip(), encoding="utf-8")
    assert main(["check", str(path), "--ranks", "3"]) == 1
    run = capsys.readouterr().err.partition("a run with 3 ranks")[2]
    assert re.search(r"rank 1 .*k.pk:10 .* signals `s\[0\]` of rank 0: now 1", run)
    assert re.search(r"rank 0 .*k.pk:7 .* waits for `s\[0\]` to be 1: is 1", run)
    assert "joined" in run


UNEVEN = """\
kernel a2a_v(X: bf16[P, H], count: i32[ranks], off: i32[ranks], to: i32[ranks], Y: bf16[Q, H].symmetric()):
    for r in tasks(ranks):
        for p, h in tasks(blocks(P, 32, start=min(off[r], P), stop=min(off[r] + count[r], P)), blocks(H, 256)):
            Y.at(r)[positions(p) - off[r] + to[r], h] = X[p, h]
"""


def test_a_promise_of_the_caller_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Drawn rows overlap; with what callers pass, as the help says, nothing does."""
    path = tmp_path / "k.pk"
    path.write_text(UNEVEN)
    assert main(["check", str(path), "--ranks", "2"]) == 1
    shown = capsys.readouterr()
    assert "error[PK730]" in shown.err
    names = ("count", "off", "to")
    said = " ".join(f"--in {name}={name}.npy" for name in names)
    assert (
        f"= help: `count`, `off`, `to` are drawn: if callers promise more, as that rows do not overlap, `{said}`"
        in (shown.err)
    )
    count = np.array([[3, 5], [4, 2]], np.int32)  # of each rank, to each rank
    starts = np.cumsum(count, axis=1) - count, np.cumsum(count, axis=0) - count
    options = []
    for name, table in zip(names, (count, *starts), strict=True):
        np.save(tmp_path / f"{name}.npy", table.astype(np.int32))
        options += ["--in", f"{name}={tmp_path / f'{name}.npy'}"]
    assert main(["check", str(path), "--ranks", "2", *options, "--set", "P=8,Q=8,H=64"]) == 0, capsys.readouterr().err
