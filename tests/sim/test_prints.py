"""`print`: what is shown of values, where, and that it changes nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pkc
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes.run import print_ir
from pkc.sim.run import simulate

TEXT = """\
def half(x):
    y = x * 0.5
    print(y)
    return y

kernel k(A: f32[M, N], B: f32[M, N], n: i32):
    print(n + 1)
    for m, j in tasks(blocks(M, 2), blocks(N, 4)):
        B[m, j] = half(A[m, j])
        for i in range(n):
            print(start(j) > i)
            print(rowsum(A[m, j]))
        print(2.5)
        print(cast(A[m, j], bf16).T)
"""
A = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
SHOWN = """\
k.pk:7: rank 0: n + 1 = 2
k.pk:3: rank 0, task (m = block 0, j = block 0): y = f32 2 x 4
[[0.  0.5 1.  1.5]
 [2.  2.5 3.  3.5]]
k.pk:11: rank 0, task (m = block 0, j = block 0): start(j) > i = False
k.pk:12: rank 0, task (m = block 0, j = block 0): rowsum(A[m, j]) = f32 2 [ 6. 22.]
k.pk:13: rank 0, task (m = block 0, j = block 0): 2.5 = 2.5 (f32)
k.pk:14: rank 0, task (m = block 0, j = block 0): cast(A[m, j], bf16).T = bf16 4 x 2
[[0. 4.]
 [1. 5.]
 [2. 6.]
 [3. 7.]]
"""
LAST = """\
k.pk:14: rank 1, task (m = block 1, j = block 0): cast(A[m, j], bf16).T = bf16 4 x 1
[[20.]
 [21.]
 [22.]
 [23.]]
"""


def lines(text: str, level: str = "tile") -> tuple[list[str], np.ndarray]:
    said: list[str] = []
    module = compile_program(parse_text(Source("k.pk", text)), level=level).module
    inputs = {"A": A, "n": 1}
    result = simulate(module, ranks=2, dims={"M": 3, "N": 4}, inputs=inputs, say=said.append)
    return said, result["B"]


def test_values_are_printed_with_rank_task_and_line() -> None:
    said, result = lines(TEXT)
    text = "".join(f"{line}\n" for line in said)
    assert text.startswith(SHOWN)
    # A block at the edge has one row.
    assert text.endswith(LAST)
    assert np.array_equal(result, A / 2)


def test_large_tiles_are_shown_in_part() -> None:
    (line,) = (line for line in lines(TEXT.replace("print(y)", "print(full(f32, 1.0, 64, 64))"))[0][1:2])
    assert "f32 64 x 64" in line and "..." in line and len(line.splitlines()) < 10


def test_without_listener_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    module = compile_program(parse_text(Source("k.pk", TEXT))).module
    simulate(module, ranks=1, dims={"M": 3, "N": 4}, inputs={"A": A[:1], "n": 1})
    assert capsys.readouterr().out == ""


def test_roles_do_not_print() -> None:
    """The same program without prints is left; remarks say what was dropped."""
    said, result = lines(TEXT, level="roles")
    assert said == [] and np.array_equal(result, A / 2)
    without = "".join(f"{line}\n" if "print(" not in line else "\n" for line in TEXT.splitlines())
    without = without.replace("        for i in range(n):\n\n\n", "\n\n\n")
    compiled = compile_program(parse_text(Source("k.pk", TEXT)), level="roles")
    assert print_ir(compiled.module) == print_ir(
        compile_program(parse_text(Source("k.pk", without)), level="roles").module
    )
    dropped = [remark for remark in compiled.remarks if remark.step == "pk-drop-prints"]
    assert len(dropped) == TEXT.count("print(")


def test_both_spellings_print(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    python = TEXT.replace("kernel k(", "@kernel\ndef k(").replace("print(n + 1)", "print(n + 1)  # as in the other")
    files = {"k.pk": TEXT, "k.py": f"from pkc.language import *\n\nM, N = dims('M N')\n\n\n{python}"}
    shown: list[str] = []
    for name, text in files.items():
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        pkc.simulate(path, ranks=2, A=A, n=1)
        shown.append(capsys.readouterr().out)
    without_place = ["".join(part.partition(": ")[2] for part in text.splitlines(keepends=True)) for text in shown]
    assert without_place[0] == without_place[1] != ""


def test_what_is_printed_is_not_merged_or_dropped() -> None:
    text = "kernel k(A: f32[M, N], B: f32[M, N], n: i32):\n    for m in tasks(M):\n        print(1)\n        print(1)\n"
    said, _ = lines(text + "        B[m, 0] = A[m, 0]\n")
    assert said[:2] == ["k.pk:3: rank 0, task (m = 0): 1 = 1", "k.pk:4: rank 0, task (m = 0): 1 = 1"]
