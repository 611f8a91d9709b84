"""`pkc run --reference` and `@kernel(reference=...)`: what the user says that a program computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pkc.cli.main import main

DOUBLE = """\
kernel double(A: bf16[M, N].shard(0), C: bf16[M, N].shard(0), factor: f32, D: const = 2):
    for m, n in tasks(blocks(M, 4, of=rank), blocks(N, 8)):
        C[m, n] = A[m, n] * factor * D
"""
RUN = ["run", "double.pk", "--ranks", "2", "--set", "M=5,N=8,factor=1.5"]

BOTH = """\
kernel both(X: i32[M], Y: f32[M], Z: i32[M]):
    for m in tasks(blocks(M, 4)):
        Y[m] = 1.0 / cast(X[m], f32)
        Z[m] = X[m] * X[m]
"""

PYTHON = """\
from pkc.language import *

(M,) = dims("M")


def thrice(X, ranks):
    assert X.shape == (ranks, 6)
    return 3 * X


@kernel(reference=thrice)
def triple(X: bf16[M], Y: f32[M]):
    for m in tasks(blocks(M, 4)):
        Y[m] = cast(X[m], f32) * FACTOR


FACTOR = 3
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "double.pk").write_text(DOUBLE, encoding="utf-8")
    (tmp_path / "both.pk").write_text(BOTH, encoding="utf-8")
    (tmp_path / "triple.py").write_text(PYTHON, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def last(capsys: pytest.CaptureFixture[str]) -> str:
    shown = capsys.readouterr()
    assert shown.err == ""
    return shown.out.splitlines()[-1]


def test_an_expression(capsys: pytest.CaptureFixture[str]) -> None:
    """Of arrays, scalars, constants with defaults, dimensions, ranks and numpy."""
    text = "C = A * factor * D * np.full((M, N), ranks) / 2"
    assert main([*RUN, "--reference", text]) == 0
    assert last(capsys) == f"ok: C within the bound of the float64 reference and of {text}"


def test_another_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, "--reference", "A * factor", "--reference", "A * factor * D"]) == 1
    shown = capsys.readouterr().out
    assert "against A * factor:\n  array  shape  written  max error  bound there  error/bound\n" in shown
    assert shown.count("WRONG: [") == 1
    assert shown.splitlines()[-1] == "WRONG: C outside the bound of A * factor"


def test_a_little_more_than_the_bound(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A third in bf16 is 0.333984375, three times that 1.001953125, and 1 in bf16: as far off as the bound allows."""
    np.save("a.npy", np.full((5, 8), 1 / 3, np.float32))
    arguments = [*RUN, "--in", "A=a.npy", "--reference"]
    assert main([*arguments, "A * 3 - 1e-6"]) == 0
    assert main([*arguments, "A * 3"]) == 0
    capsys.readouterr()
    assert main([*arguments, "A * 3 + 1e-6"]) == 1
    assert last(capsys) == "WRONG: C outside the bound of A * 3 + 1e-6"


def test_an_exact_result_has_room_for_the_rounding_of_float64_alone() -> None:
    arguments = ["run", "both.pk", "--ranks", "1", "--set", "M=6", "--reference"]
    assert main([*arguments, "Z = X * X"]) == 0
    assert main([*arguments, "Z = X * X + 1e-13"]) == 0
    assert main([*arguments, "Z = X * X + 1e-3"]) == 1


def test_several_arrays(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By a function that gives a dict, changes what it gets, and takes what it likes."""
    (folder / "ref.py").write_text(
        "def both(X, M=0, other=5):\n    assert (M, other) == (4, 5)\n    X *= X\n    return dict(Z=X, Y=X**-0.5)\n"
    )
    np.save("x.npy", np.array([[1, 2, 3, 7]], np.int32))
    assert main(["run", "both.pk", "--ranks", "1", "--in", "X=x.npy", "--reference", "ref.py:both"]) == 0
    assert last(capsys) == "ok: Y, Z within the bound of the float64 reference and of ref.py:both"


@pytest.mark.parametrize("text", ["dict(Y=1 / X, Z=X * X)", "{'Z': X * X, 'Y': 1 / X}", "dict(Z=X * X)"])
def test_an_expression_of_several_arrays(folder: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    np.save("x.npy", np.array([[1, 2, 3, 7]], np.int32))
    arguments = ["run", "both.pk", "--ranks", "1", "--in", "X=x.npy", "--reference"]
    assert main([*arguments, text]) == 0
    assert last(capsys) == f"ok: Y, Z within the bound of the float64 reference and of {text}"
    assert main([*arguments, text.replace("X * X", "X + X")]) == 1


def test_a_decorator_names_several_arrays(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "both.py").write_text(
        "from pkc.language import *\n\n(M,) = dims('M')\n\n\n@kernel(reference='dict(Y=2 * X, Z=X - 1)')\n"
        "def both(X: f32[M], Y: f32[M], Z: f32[M]):\n    for m in tasks(blocks(M, 4)):\n"
        "        Y[m] = X[m] * 2.0\n        Z[m] = X[m] - 1.0\n",
        encoding="utf-8",
    )
    assert main(["run", "both.py", "--ranks", "1", "--set", "M=6"]) == 0
    assert last(capsys) == "ok: Y, Z within the bound of the float64 reference and of dict(Y=2 * X, Z=X - 1)"


def test_an_infinity(capsys: pytest.CaptureFixture[str]) -> None:
    np.save("x.npy", np.array([[0, 1]], np.int32))
    arguments = ["run", "both.pk", "--ranks", "1", "--in", "X=x.npy", "--reference"]
    assert main([*arguments, "Y = 1 / X"]) == 0
    assert main([*arguments, "Y = -1 / X"]) == 1
    assert main([*arguments, "Y = np.array([[1e38, 1]])"]) == 1
    capsys.readouterr()
    assert main([*arguments, "Y = np.array([[np.inf, np.inf]])"]) == 1
    assert last(capsys) == "WRONG: Y outside the bound of Y = np.array([[np.inf, np.inf]])"


def test_the_largest_number_of_eight_bits(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All between 432 and 464 is 448: a reference that rounds nothing is right there, and elements that the kernel does
    not write are not compared."""
    (folder / "quantised.pk").write_text(
        "kernel quantised(X: f32[M], Q: e4m3[M]):\n"
        "    for m in tasks(blocks(M, 4, stop=4)):\n        Q[m] = X[m] / 3.0\n"
    )
    np.save("q.npy", np.array([[1344, 1299, -1296.5, 3, 8]], np.float32))
    arguments = ["run", "quantised.pk", "--ranks", "1", "--in", "X=q.npy", "--reference"]
    assert main([*arguments, "X / 3"]) == 0
    assert main([*arguments, "X / 3.2"]) == 1


def test_a_program_names_its_reference(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", "triple.py", "--ranks", "2", "--set", "M=6"]
    assert main(arguments) == 0
    assert last(capsys) == "ok: Y within the bound of the float64 reference and of thrice"
    assert main([*arguments, "--reference", "X + X + X"]) == 0
    assert last(capsys) == "ok: Y within the bound of the float64 reference and of X + X + X"
    (folder / "triple.py").write_text(PYTHON.replace("FACTOR = 3", "FACTOR = 4"), encoding="utf-8")
    assert main(arguments) == 1
    assert last(capsys) == "WRONG: Y outside the bound of thrice"


def test_a_mask_by_a_large_number(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An f32 rounds -1e30; where it masks, the reference is compared as closely as without it."""
    (folder / "masked.pk").write_text(
        "kernel masked(X: f32[M, N], Y: f32[M], Z: f32[M, N]):\n"
        "    for m in tasks(blocks(M, 16)):\n"
        "        top = full(f32, -1e30, m); total = zeros(f32, m)\n"
        "        for n in blocks(N, 16):\n"
        "            x = where(positions(m) <= positions(n), X[m, n], -1e30)\n"
        "            new = max(top, rowmax(x))\n"
        "            total = total * exp(top - new) + rowsum(exp(x - new)); top = new\n"
        "            Z[m, n] = x\n"
        "        Y[m] = total\n"
    )
    arguments = ["run", "masked.pk", "--ranks", "1", "--set", "M=40,N=40", "--reference"]
    x = "np.where(np.arange(M)[:, None] <= np.arange(N), X{}, -1e30)"
    softmax = "(lambda x: np.exp(x - x.max(-1, keepdims=True)).sum(-1))({})"
    assert main([*arguments, f"Y = {softmax.format(x.format(''))}", "--reference", f"Z = {x.format('')}"]) == 0
    assert main([*arguments, f"Y = {softmax.format(x.format(''))} * 1.001"]) == 1
    assert main([*arguments, f"Z = {x.format(' + 1e-9')}"]) == 1


def test_constants_as_they_are_written(folder: Path) -> None:
    """The kernel has 0.9 as an f32, up to half a step off, and rounds the product. Of 0.75 an f32 rounds nothing."""
    (folder / "decay.pk").write_text(
        "kernel decay(m: f32[N], v: f32[N], Y: f32[N], Z: f32[N]):\n"
        "    for n in tasks(blocks(N, 64)):\n"
        "        Y[n] = m[n] * 0.9\n"
        "        Z[n] = v[n] * 0.75\n"
    )
    m = np.random.default_rng(0).standard_normal((1, 1000)).astype(np.float32)
    np.save("m.npy", m)
    np.save("v.npy", np.full((1, 1000), 2**-20, np.float32))
    arguments = ["run", "decay.pk", "--ranks", "1", "--in", "m=m.npy", "--in", "v=v.npy", "--reference"]
    assert main([*arguments, "Y = m * 0.9"]) == 0
    assert main([*arguments, "Y = m * 0.9 * (1 + 2**-22)"]) == 1
    assert main([*arguments, "Z = v * 0.75"]) == 0
    assert main([*arguments, "Z = v * 0.75 * (1 + 2**-24)"]) == 1
