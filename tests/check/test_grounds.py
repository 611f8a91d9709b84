"""What `pkc check` says of how it knows: proved, checked or sampled, for each wait, counter and array."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Operation

from pkc.check.report import check_kernel
from pkc.cli.main import main
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes.roles.remote_accesses import array_name
from pkc.passes.roles.signal_counts import counted
from pkc.targets import DEFAULT
from tests.check.collected import ALL_RIGHT, ALL_WRONG
from tests.check.more_wrong import rounds
from tests.check.protocols import RIGHT, WRONG

GATHER = """
kernel k(X: f32[M].shard(0), Y: f32[M], G: f32[M].symmetric().scratch(), ready: signal[ranks]):
    with role(communicator):
        for m in tasks(blocks(M, 8, of=rank)):
            x = X[m]
            for r in ring():
                store(G.at(r)[m], x)
                signal(ready.at(r)[rank], 1)
    with role(consumer):
        for r in ring():
            for m in tasks(blocks(M, 8, of=r)):
                wait(ready[r], {count})
                Y[m] = G[m]
"""
OF_THE_SENDER = "len(blocks(M, 8, of=r))"


def grounds(text: str, folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, list[str]]:
    """What `pkc check` prints behind each word, but for the arrays that pkc adds."""
    path = folder / "k.pk"
    path.write_text(text.lstrip(), encoding="utf-8")
    assert main(["check", str(path), "--seeds", "2", *options]) == 0
    lines = [line.partition(" ") for line in capsys.readouterr().out.splitlines()]
    return {word: [rest for first, _, rest in lines if first == word] for word in ("proved", "checked", "sampled")}


ON_2 = ("--ranks", "2", "--set", "M=20")


def test_what_is_proved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The count of the sender's blocks, whatever the sizes, and on any number of ranks."""
    found = grounds(GATHER.format(count=OF_THE_SENDER), tmp_path, capsys, *ON_2)
    (proved,) = found["proved"]
    assert proved.startswith("for all sizes and numbers of ranks: stages, budgets and orders of tasks; counts of waits")
    assert "`ready` in line 11" in proved
    follows, explored = found["checked"]
    assert (
        follows == "in every order on 2 ranks, M = 20: tasks and cycles of waits; counters `ready`, `entered`, `left`"
    )
    start = "in every order on 2 ranks, M = 17, 1 and 2 CTAs for each role: accesses to `X`, `Y`, `G`; counters `ready`"
    assert explored.startswith(start)
    assert explored.endswith("results in `Y`, of drawn inputs")
    (sampled,) = found["sampled"]
    assert sampled.startswith("in 2 orders on 2 ranks, M = 20: accesses to `X`, `Y`, `G`")


def test_what_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A count that comes from a table: for the table that was drawn, in every order."""
    text = RIGHT["counts from a table as long as the user says"].text
    found = grounds(text, tmp_path, capsys, "--ranks", "2", "--set", "P=20,E=7", "--exhaustive", "0")
    assert "`s`" not in found["proved"][0]
    (follows,) = found["checked"]
    assert follows.startswith(
        "in every order on 2 ranks, P = 20, E = 7 with `count` as drawn: tasks and cycles of waits"
    )
    assert "counts of waits for `s` in line 5" in follows


def test_what_is_sampled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where a counter is taken down again, another order may end otherwise than the one that was followed."""
    text = RIGHT["a counter that its only waiter takes down again"].text
    found = grounds(text, tmp_path, capsys, *ON_2, "--exhaustive", "0")
    assert found["checked"] == []
    follows, simulated = found["sampled"]
    assert follows.startswith("in 1 order on 2 ranks, M = 20: tasks and cycles of waits; counters `s`")
    assert "counts of waits for" in follows and "`s` in line 6" in follows
    assert simulated.startswith("in 3 orders on 2 ranks, M = 20: accesses to `X`, `G`, `Y`")


def test_too_many_orders_are_a_sample(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = ALL_RIGHT["two memories in turn and one barrier for each round"].text
    found = grounds(text, tmp_path, capsys, *ON_2, "--exhaustive", "2", "--seeds", "1")
    explored, asked = found["sampled"]
    assert explored.startswith("in 2 orders on 2 ranks, M = 9, 1 and 2 CTAs for each role: accesses to `X`, `Y`, `S`")
    assert asked.startswith("in 2 orders on 2 ranks, M = 20")


def shown(text: str) -> dict[tuple[str, int], bool]:
    """By counter and line, whether a wait is shown to count right for all sizes."""
    program = parse_text(Source("k.pk", text.lstrip("\n")))
    kernel = compile_program(program, level="roles").kernel
    found = counted(kernel)
    places = [(array_name(each.wait.signal), _line(each.wait)) for each in found]
    return {
        place: all(each.shown for each, at in zip(found, places, strict=True) if at == place)
        for place in places
        if place[0] in kernel.arguments and not place[0].startswith(("entered", "left", "joined"))
    }


def _line(op: Operation) -> int:
    assert isinstance(op.location, FileLineColLoc)
    return op.location.line.data


PASSED_ON = """
kernel k(X: f32[M].symmetric(), G: f32[M].symmetric().scratch(), Y: f32[M].symmetric(), s: signal[{counters}]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
            {signal}
    with role(consumer):
        wait(s[{at}], {count})
        for m in tasks(blocks(M, 8)):
            store(Y[m], G[m])
"""
NEXT = "signal(s.at((rank + 1) % ranks)[0], 1)"


@pytest.mark.parametrize(
    ("signal", "at", "count", "right"),
    [
        (NEXT, "0", "len(blocks(M, 8))", True),
        (NEXT, "0", "len(blocks(M, 8)) + 1", False),
        (NEXT, "1", "len(blocks(M, 8))", False),
        (NEXT.replace("[0], 1)", "[0], 2)"), "0", "2 * len(blocks(M, 8))", True),
        ("signal_all(s[1], 1)", "1", "ranks * len(blocks(M, 8))", True),
        ("signal_all(s[1], 1)", "1", "len(blocks(M, 8))", False),
        (NEXT.replace("+ 1", "* 2"), "0", "len(blocks(M, 8))", False),
        (f"if rank > 0:\n                {NEXT}", "0", "len(blocks(M, 8))", False),
        (f"for i in range(3):\n                {NEXT}", "0", "3 * len(blocks(M, 8))", True),
        (f"for i in range(1, 3):\n                {NEXT}", "0", "2 * len(blocks(M, 8))", False),
        ("signal(s.at(0)[0], 1)", "0", "len(blocks(M, 8))", False),
    ],
)
def test_counts_of_what_an_author_wrote(signal: str, at: str, count: str, right: bool) -> None:
    """Shown is what holds for all sizes: not what is wrong, nor what the polynomials do not say."""
    text = PASSED_ON.format(counters=2, signal=signal, at=at, count=count)
    assert set(shown(text).values()) == {right}


@pytest.mark.parametrize(
    "name",
    [
        "the count of its own blocks in place of the sender's",
        "a count that is right unless a rank has nothing",
        "one signal fewer",
        "one signal more",
        "a signal to another rank than the store",
        "a counter that is not there",
        "a signal that only some data sends",
    ],
)
def test_no_wrong_count_is_shown_right(name: str) -> None:
    assert not any(shown(WRONG[name].text).values())


def test_a_wait_for_credits_is_left_to_the_simulation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is for fewer signals than come; the last come only after it."""
    found = grounds(rounds(1, "i"), tmp_path, capsys, *ON_2, "--exhaustive", "0")
    assert not [line for line in found["checked"] if "counts of waits for `free` in line 5" in line]
    assert "counters `full`, `free`" in found["sampled"][0]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("pairs of tasks that wait for each other", "PK487"),
        ("rows stored at half of what a table says, where two meet", "PK730"),
        ("a count that is right unless a rank has nothing", "PK481"),
        ("the blocks of the other dimension", "PK481"),
        ("tasks that announce what the tasks before them have stored", "PK705"),
    ],
)
def test_what_python_is_told_has_the_same_cause(name: str, code: str) -> None:
    wrong = ALL_WRONG[name]
    given = wrong.options[1].split(",") if wrong.options else []
    sizes = {key: int(size) for key, _, size in (one.partition("=") for one in given)}
    program = parse_text(Source("k.pk", wrong.text.lstrip()))
    schedule: dict[str, str] = {}
    checked = check_kernel(program, sizes, ranks=wrong.ranks, orders=4, explored=0, schedule=schedule, target=DEFAULT)
    assert [found.code for found in checked.findings] == [code]
