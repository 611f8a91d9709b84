"""What compiling takes grows as the program does, by the count of calls of Python functions: clocks differ."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source


def _stores(count: int) -> str:
    """Stores of one task, each with a channel of its own."""
    arrays = ", ".join(f"Y{i}: f32[M, N]" for i in range(4))
    lines = "".join(f"        Y{i % 4}[m, n] = A[m, n] * {i}.5\n" for i in range(count))
    return f"kernel k(A: f32[M, N], {arrays}):\n    for m, n in tasks(blocks(M, 8), blocks(N, 8)):\n{lines}"


def _loops(count: int) -> str:
    """Loops of one task."""
    lines = "".join(f"        for n in blocks(N, 8):\n            t += rowsum(A[m, n]) * {i}.5\n" for i in range(count))
    tasks = f"    for m in tasks(blocks(M, 8)):\n        t = zeros(f32, m)\n{lines}        Y[m] = t\n"
    return f"kernel k(A: f32[M, N], Y: f32[M]):\n{tasks}"


def _phases(count: int) -> str:
    """Tasks, one after the other."""
    arrays = ", ".join(f"Y{i}: f32[M]" for i in range(4))
    lines = "".join(f"    for m in tasks(blocks(M, 8)):\n        Y{i % 4}[m] = A[m] * {i}.5\n" for i in range(count))
    return f"kernel k(A: f32[M], {arrays}):\n{lines}"


def _calls(text: str) -> int:
    """How many Python functions and generators are entered to make the roles of a kernel."""
    program, count = parse_text(Source("k.pk", text)), 0

    def called(_frame: object, event: str, _arg: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        compile_program(program, level="roles")
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("program", [_stores, _loops, _phases])
def test_twice_the_lines_take_about_twice_as_much(program: Callable[[int], str]) -> None:
    few, more, most = (_calls(program(count)) for count in (2, 5, 8))
    assert most - more < 1.15 * (more - few)
