"""`pkc check` of protocols that an author wrote: each wrong one is found for its reason, no right one is accused."""

from __future__ import annotations

from pathlib import Path

import pytest

from pkc.cli.main import main
from pkc.codegen.build import build_kernel
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from tests.check import unasked
from tests.check.collected import ALL_RIGHT, ALL_WRONG
from tests.check.protocols import RIGHT
from tests.sweeps import sweep

_EFFORT = ("--seeds", "3", "--exhaustive", "20")


def checked(text: str, ranks: int, options: tuple[str, ...], folder: Path) -> int:
    path = folder / "k.pk"
    path.write_text(text.lstrip(), encoding="utf-8")
    return main(["check", str(path), "--ranks", str(ranks), *_EFFORT, *options])


_OFTEN = {
    "the count of its own blocks in place of the sender's",
    "a count that is right unless a rank has nothing",
    "more than a counter of 32 bits holds",
    "an output of which one rank alone writes its copy",
    "an output of which the last block is not written",
    "tasks that wait for later ones, more than fit",
    "two roles at one barrier",
    "two buffers, taken again one round too early",
    "tasks that wait for those of a neighbour in the other order",
    "rows stored at half of what a table says, where two meet",
    "tasks that announce what the tasks before them have stored",
    "tasks of SMs of their own that announce what those before them have stored",
    "the blocks of the other dimension",
    "counters of heads that count heads",
    "whole blocks and one more, for sizes that have no rest",
    "each block but the first counted twice",
    "groups of four, awaited by groups of eight",
    "block five is not stored in time",
    "seven blocks exactly",
    "what lies behind position forty, not awaited",
    "sequences that overlap by one",
    "signals above forty, waits from forty on",
    "a rest of three behind groups of four",
    "as many flags as another dimension is long",
    "rows that 8 bits name",
    "a row left free behind each four",
    "two hundred flags in turn",
    "a credit of the expert before the last",
    "nothing is announced if no row is kept",
    "eleven slots, without one credit that is awaited",
    "ten slots for the blocks of a rank, one credit too few",
}
"""What no other test is about."""


@pytest.mark.parametrize("name", sweep(ALL_WRONG, _OFTEN.__contains__))
def test_a_wrong_one_is_found(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = ALL_WRONG[name]
    status = checked(wrong.text, wrong.ranks, wrong.options, tmp_path)
    said = capsys.readouterr().err
    first = next((line for line in said.splitlines() if line.startswith(("error", "warning"))), "")
    assert any(f"[{code}]" in first for code in wrong.codes), said
    assert status == (1 if first.startswith("error") else 0)


_EVERY = [(name, ranks) for name, right in ALL_RIGHT.items() for ranks in right.ranks]
_ONCE = {
    *((name, right.ranks[number % len(right.ranks)]) for number, (name, right) in enumerate(RIGHT.items())),
    ("two buffers with credits", 2),
    ("experts shared out, as evenly as they go", 3),
    ("two lists of blocks inside of tasks", 2),
    ("sequences by offsets, cut off at the end", 1),
    ("a counter with a number, of a dimension", 2),
    ("a number from the caller, in blocks", 2),
    ("8-bit cache: append", 1),
    ("8-bit cache: lengths, window", 1),
    ("8-bit cache: decode", 1),
    ("all wait for the root", 3),
    ("a table of rows that an earlier phase has made, stored by", 2),
    ("credits of experts that may have nothing", 2),
    ("three additions to each block", 2),
    ("a semaphore of a communicator", 2),
    ("a semaphore of a consumer", 2),
    ("slots that double, of which the first is its own (Bruck)", 2),
    ("a tree of steps that double, each in a branch", 3),
}


@pytest.mark.parametrize(("name", "ranks"), sweep(_EVERY, lambda *case: case in _ONCE))
def test_a_right_one_is_not_accused(name: str, ranks: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = checked(ALL_RIGHT[name].text, ranks, ALL_RIGHT[name].options, tmp_path)
    assert (status, capsys.readouterr().err) == (0, "")


@pytest.mark.parametrize("ranks", sweep((1, 2, 3), lambda ranks: ranks == 2))
def test_any_order_of_additions_is_within_the_bound(
    ranks: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reference adds in one order, the kernel in another."""
    path = tmp_path / "k.pk"
    text = RIGHT["sums that are added to in any order"].text
    for kind in ("f16", "f32"):
        path.write_text(text.replace("f16", kind).lstrip(), encoding="utf-8")
        assert main(["run", str(path), "--ranks", str(ranks), "--set", "M=500", "--seed", "3"]) == 0
    assert "ok" in capsys.readouterr().out


@pytest.mark.parametrize("name", unasked.RIGHT)
def test_tasks_in_branches_of_loops_are_shared_out(name: str) -> None:
    """The CTAs of a role wait for each other there, as often as loops and branches say."""
    build_kernel(compile_program(parse_text(Source("k.pk", unasked.RIGHT[name].text.lstrip())), level="roles").kernel)
