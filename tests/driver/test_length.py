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


def _positions(count: int) -> str:
    """Positions, of which each line takes those before it twice, along rows and along columns."""
    lines = "        p = p + p\n" * count
    tasks = f"    for q in tasks(blocks(S, 8)):\n        p = positions(q)\n{lines}"
    return f"kernel k(X: f32[S, S], Y: f32[S, S]):\n{tasks}        Y[q, q] = where(p >= p.T, X[q, q], 0.0)\n"


def _powers(count: int) -> str:
    """The exponentials of a softmax, of which each line takes those before it twice."""
    lines = "        e = e * e\n" * count
    tasks = f"    for m in tasks(blocks(M, 8)):\n        x = X[m]\n        e = exp(x - rowmax(x))\n{lines}"
    return f"kernel k(X: f32[M, 64], Y: bf16[M, 64]):\n{tasks}        Y[m] = cast(e, bf16)\n"


def _calls(text: str, level: str) -> int:
    """How many Python functions and generators are entered to make a level of a kernel."""
    program, count = parse_text(Source("k.pk", text)), 0

    def called(_frame: object, event: str, _arg: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        compile_program(program, level=level)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("program", [_stores, _loops, _phases])
def test_twice_the_lines_take_about_twice_as_much(program: Callable[[int], str]) -> None:
    few, more, most = (_calls(program(count), "roles") for count in (2, 5, 8))
    assert most - more < 1.15 * (more - few)


@pytest.mark.parametrize("program", [_positions, _powers])
def test_what_lines_take_twice_is_not_looked_at_twice(program: Callable[[int], str]) -> None:
    few, more, most = (_calls(program(count), "machine") for count in (2, 8, 14))
    assert most - more < 2 * (more - few)
