"""What a caller of `pkc check` says, and does not say: numbers, and how many ranks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pkc.check.other_ranks import other_ranks
from pkc.cli.main import main
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from tests.check.collected import ALL_RIGHT, ALL_WRONG
from tests.check.unasked import ON_OTHER_RANKS
from tests.sweeps import sweep

_ONE_NUMBER = """
kernel k(X: f32[M].symmetric(), Y: f32[M], G: f32[M].symmetric().scratch(), n: i32, s: signal[1]):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store(G.at((rank + 1) % ranks)[m], X[m])
        if n * n != 1369:
            signal(s.at((rank + 1) % ranks)[0], 1)
    with role(consumer):
        wait(s[0], 1)
        for m in tasks(blocks(M, 8)):
            Y[m] = G[m]
"""
_BUTTERFLY = """
kernel k(X: f32[64].symmetric(), Y: f32[64].symmetric(), G: f32[2, 64].symmetric().scratch(), s: signal[2]):
    with role(communicator):
        t = X[:] * 1.0
        d = 1
        for i in range(2):
            if d < ranks and ranks // (2 * d) * (2 * d) == ranks:
                p = rank + d - 2 * d * (rank // d % 2)
                store(G.at(p)[i, :], t)
                signal({}, 1)
                {}
                t = t + G[i, :]
            d = d * 2
        store(Y[:], t)
"""
_EFFORT = ("--seeds", "2", "--exhaustive", "10")


def checked(text: str, folder: Path, *options: str) -> int:
    path = folder / "k.pk"
    path.write_text(text.lstrip(), encoding="utf-8")
    return main(["check", str(path), *_EFFORT, *options])


def test_a_number_is_what_the_caller_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(_ONE_NUMBER, tmp_path, "--ranks", "2", "--set", "n=36") == 0
    capsys.readouterr()
    assert checked(_ONE_NUMBER, tmp_path, "--ranks", "2", "--set", "n=37") == 1
    assert "PK481" in capsys.readouterr().err


def test_other_numbers_of_ranks_are_looked_at_unless_one_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On two ranks the next one is the one before."""
    text = ALL_WRONG["a credit for the next rank, not for the one before"].text
    assert checked(text, tmp_path) == 1
    said = capsys.readouterr()
    assert "on 2 ranks nothing was found; `--ranks 2` checks these alone" in said.out
    assert "PK730" in said.err
    assert checked(text, tmp_path, "--ranks", "2") == 0
    assert "3 ranks" not in capsys.readouterr().out


def test_a_rank_that_is_not_there_on_so_few_is_no_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two ranks that each send to the other one, which is 1 - rank."""
    text = _ONE_NUMBER.replace("(rank + 1) % ranks", "1 - rank").replace("n * n != 1369", "n == n")
    assert checked(text, tmp_path) == 0
    out = capsys.readouterr().out
    for asked in ("3 ranks", "4 ranks", "5 ranks", "1 rank"):
        assert f"no order on {asked}, M = " in out
    assert "what a number names is not there (PK707: " in out


def test_a_position_that_is_not_there_on_so_few_is_no_rank(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As many rows as a power of two, of which there are as many as ranks."""
    wrong = ALL_RIGHT["slots that double, of which the first is its own (Bruck)"].text
    assert checked(wrong.replace("min(d, ranks - d)", "d"), tmp_path) == 1
    assert "PK706" in capsys.readouterr().err


def test_what_shows_on_four_ranks_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Partners at one and at two ranks: with two counted on one flag, the second may stand for the first."""
    assert checked(_BUTTERFLY.format("s.at(p)[0]", "wait(s[0], i + 1)"), tmp_path) == 1
    assert "4 ranks" in capsys.readouterr().err
    assert checked(_BUTTERFLY.format("s.at(p)[i]", "wait(s[i], 1)"), tmp_path) == 0


_OFTEN = {
    "two slots of a ring, without a credit",
    "a tree whose last level may be one past the end",
    "seven signals awaited on eight ranks",
}


@pytest.mark.parametrize("name", sweep(ON_OTHER_RANKS, _OFTEN.__contains__))
def test_what_shows_on_other_ranks_alone_is_found(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    codes, text = ON_OTHER_RANKS[name]
    assert checked(text, tmp_path) == 1
    said = capsys.readouterr()
    assert "on 2 ranks nothing was found" in said.out
    assert any(f"error[{code}]" in said.err for code in codes)


def test_numbers_of_ranks_that_a_program_names() -> None:
    """Beside those at which two differ from more: those that it compares its ranks with, and the next ones; one more
    than it divides them by, and the double; two more than rounds for each rank have slots."""
    names = {
        "two slots of a ring, without a credit": [],
        "seven signals awaited on eight ranks": [8, 9],
        "four slots of a ring of as many rounds as ranks, without a credit": [6],
        "nodes of four ranks, of which the sixth is not held": [6, 8],
    }
    for name, named in names.items():
        kernel = compile_program(parse_text(Source("k.pk", ON_OTHER_RANKS[name][1].lstrip()))).kernel
        assert other_ranks(kernel) == [3, 4, 5, 1, *named]


def test_right_ones_are_right_on_those_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(ALL_RIGHT["a semaphore of a communicator"].text, tmp_path) == 0
    out = capsys.readouterr().out
    for asked in ("8 orders on 3 ranks", "9 orders on 4 ranks", "10 orders on 5 ranks", "5 orders on 1 rank"):
        assert f"{asked}, " in out
    assert "1 order on each of 9 sizes more, from 3 ranks" in out


_PLACED = """
kernel k(X: f32[E, P, 64], first: i32[E], count: i32[E], Y: f32[R, 64]):
    with role(communicator):
        for e in tasks(E):
            for p in range(count[e]):
                Y[first[e] + p, :] = X[e, p, :]
"""


@pytest.mark.parametrize(("second", "code"), [(3, ""), (2, "PK733")])
def test_tables_that_are_given(second: int, code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A caller promises that rows of lists do not overlap: drawn ones do, or lie outside."""
    sizes = ("--ranks", "2", "--set", "P=4,R=8")
    assert checked(_PLACED, tmp_path, *sizes) == 1
    assert "PK706" in capsys.readouterr().err
    for name, lists in (("first", [[0, second, 4], [1, 1, 5]]), ("count", [[3, 1, 2], [0, 4, 2]])):
        np.save(tmp_path / f"{name}.npy", np.array(lists, np.int32))
    files = [word for name in ("first", "count") for word in ("--in", f"{name}={tmp_path / name}.npy")]
    assert checked(_PLACED, tmp_path, *sizes, *files) == bool(code)
    said = capsys.readouterr()
    assert "`first`, `count` as given: no other sizes" in said.out
    if code:
        assert f"error[{code}]: `Y` is stored at [{second}, 0] of rank 0" in said.err
        assert "E = 3, P = 4, R = 8" in said.err
    else:
        assert "on 2 ranks, E = 3, P = 4, R = 8 with `count` as given: tasks" in said.out


def test_a_table_that_is_only_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "count.npy", np.zeros((2, 3), np.int32))
    text = "kernel k(X: i32[E], count: i32[E]):\n    for e in tasks(blocks(E, 4)):\n        count[e] = X[e]\n"
    assert checked(text, tmp_path, "--in", f"count={tmp_path / 'count.npy'}") == 1
    assert "error[PK605]" in capsys.readouterr().err
