"""Functions of the program: what their calls become, what they see, and where they come from."""

from __future__ import annotations

import linecache
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import pkc
from pkc.diagnostics import PkcError
from pkc.frontend.elaborate import build_module
from pkc.frontend.parse import parse_file, parse_text
from pkc.frontend.python import load_python_file, read_captured
from pkc.kernels import FunctionKernel
from pkc.location import Source
from pkc.passes.run import print_ir

LANGUAGE = Path(__file__).parents[2] / "docs" / "language.md"
HEAD = "from pkc.language import *\n\nM, N = dims('M N')\n\n"
KERNEL = "kernel k(A: f32[M, N], B: f32[M, N], n: i32):\n    for m, j in tasks(blocks(M, 64), blocks(N, 64)):\n"


def ir(text: str) -> str:
    return print_ir(build_module(parse_text(Source("k.pk", text))))


def lines(*body: str) -> str:
    """A kernel with these lines for all blocks of A and B."""
    return KERNEL + "".join(f"        {line}\n" for line in body)


def in_python(text: str, folder: Path) -> str:
    """The IR of the same text as a Python file."""
    path = folder / "k.py"
    path.write_text(HEAD + text.replace("kernel k(", "@kernel\ndef k("), encoding="utf-8")
    linecache.checkcache(str(path))
    (found,) = load_python_file(path)
    return print_ir(build_module(found.tree))


TWICE = "def twice(x):\n    y = x + x\n    return y\n\n"
CASES = {
    "one call": (TWICE, ["B[m, j] = twice(A[m, j])"], ["x = A[m, j]", "y = x + x", "B[m, j] = y"]),
    "several calls": (
        TWICE,
        ["a = A[m, j]", "B[m, j] = twice(a) * twice(a * 3.0)"],
        ["a = A[m, j]", "y = a + a", "x = a * 3.0", "z = x + x", "B[m, j] = y * z"],
    ),
    "nested calls": (
        TWICE + "def fourfold(x):\n    return twice(twice(x))\n\n",
        ["B[m, j] = fourfold(A[m, j])"],
        ["x = A[m, j]", "y = x + x", "z = y + y", "B[m, j] = z"],
    ),
    "a name that the kernel has too": (
        TWICE,
        ["y = A[m, j]", "x = y * 2.0", "B[m, j] = twice(x) + y"],
        ["y = A[m, j]", "x = y * 2.0", "z = x + x", "B[m, j] = z + y"],
    ),
    "an assigned parameter": (
        "def grown(x):\n    x += 1.0\n    return x\n\n",
        ["a = A[m, j]", "b = grown(a)", "B[m, j] = a * b"],
        ["a = A[m, j]", "b = a + 1.0", "B[m, j] = a * b"],
    ),
    "a loop and a branch": (
        "def power(x, n):\n    y = x\n    for i in range(n):\n        if i > 3:\n            y *= x\n    return y\n\n",
        ["B[m, j] = power(A[m, j], n)"],
        ["x = A[m, j]", "y = x", "for i in range(n):", "    if i > 3:", "        y *= x", "B[m, j] = y"],
    ),
    "blocks and dimensions": (
        "def mean(x, j, N):\n    return where(positions(j) < N, x, 0.0) / cast(N, f32)\n\n",
        ["B[m, j] = mean(A[m, j], j, N)"],
        ["B[m, j] = where(positions(j) < N, A[m, j], 0.0) / cast(N, f32)"],
    ),
    "a constant that decides": (
        "def act(x, n):\n    if n == 0:\n        y = max(x, 0.0)\n    else:\n        y = tanh(x)\n    return y\n\n",
        ["B[m, j] = act(A[m, j], 1)"],
        ["B[m, j] = tanh(A[m, j])"],
    ),
    "an argument of an argument": (
        "def less(x, y):\n    return x - y\n\n",
        ["a = A[m, j]", "B[m, j] = less(less(a, 1.0), rowmax(a))"],
        ["a = A[m, j]", "b = a - 1.0", "B[m, j] = b - rowmax(a)"],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_call_is_what_it_computes(case: tuple[str, list[str], list[str]], tmp_path: Path) -> None:
    functions, called, written = case
    with_functions = ir(functions + lines(*called))
    assert sorted_ops(with_functions) == sorted_ops(ir(lines(*written)))
    assert in_python(functions + lines(*called), tmp_path) == with_functions


def sorted_ops(text: str) -> list[str]:
    """What the lines of IR do, whatever values are called; the order of independent operations may differ."""
    return sorted(re.sub(r"%\w+", "%", line) for line in text.splitlines())


def test_a_constant_keeps_its_name_in_functions() -> None:
    """It names the same axis there, and under another name of the kernel."""
    head = "kernel k(X: f32[M, H], Y: f32[M, H], H: const = 64):\n    for m in tasks(blocks(M, 8)):\n"
    of = "def center(x, n):\n    return x - rowsum(x * cast(positions(n), f32))\n\n"
    written = "        x = X[m, :]\n        n = H\n        Y[m, :] = x - rowsum(x * cast(positions(n), f32))\n"
    for text in (of + head + "        Y[m, :] = center(X[m, :], H)\n", head + written):
        assert set(re.findall(r"tile<([\dx]+)xf32", ir(text))) == {"8x64", "64", "8"}


def test_the_result_is_the_functions(tmp_path: Path) -> None:
    path = tmp_path / "k.pk"
    path.write_text(CASES["nested calls"][0] + lines(*CASES["nested calls"][1]), encoding="utf-8")
    a = np.arange(2 * 70 * 65, dtype=np.float32).reshape(2, 70, 65)
    assert np.array_equal(pkc.simulate(path, ranks=2, A=a, n=1)["B"], 4 * a)


def test_functions_may_follow_the_kernel() -> None:
    assert ir(lines("B[m, j] = twice(A[m, j])") + "\n" + TWICE) == ir(TWICE + lines("B[m, j] = twice(A[m, j])"))


def test_an_error_in_a_function_is_told_once() -> None:
    text = "def bad(x):\n    y = x + unknown\n    return y\n\n" + lines("a = A[m, j]", "B[m, j] = bad(a) + bad(a)")
    with pytest.raises(PkcError) as caught:
        ir(text)
    (found,) = caught.value.diagnostics
    assert (found.code, found.span.text, [also.span.text for also in found.also]) == ("PK201", "unknown", ["bad(a)"])


def test_every_error_in_a_function_is_told() -> None:
    body = "".join(f"    y{i} = x + unknown{i}\n" for i in range(30))
    with pytest.raises(PkcError) as caught:
        ir(f"def bad(x):\n{body}    return x\n\n" + lines("B[m, j] = bad(A[m, j])"))
    assert len(caught.value.diagnostics) == 20
    assert len({found.span for found in caught.value.diagnostics}) == 20


def test_programs_with_other_functions_are_others() -> None:
    """What is kept for a program is found by its tree."""
    kernel = lines("B[m, j] = twice(A[m, j])")
    one, other = (parse_text(Source("k.pk", text + kernel)) for text in (TWICE, TWICE.replace("x + x", "x * 2.0")))
    assert one != other and repr(one) != repr(other)


# Python


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], pkc.Kernel]:
    """The kernel of a Python text."""

    def loaded(text: str) -> pkc.Kernel:
        path = tmp_path / "k.py"
        path.write_text(HEAD + text, encoding="utf-8")
        linecache.checkcache(str(path))
        (kernel,) = load_python_file(path)
        assert isinstance(kernel, pkc.Kernel)
        return kernel

    return loaded


SCALED = """
scale = 2.0

def inner(x: object) -> object:
    "Types and this text mean nothing."
    return x * scale

def scaled(x):
    return inner(x)

@kernel
def k(A: f32[M], B: f32[M]):
    for m in tasks(blocks(M, 64)):
        B[m] = scaled(A[m])
"""


def test_what_functions_capture_is_looked_at_again(load: Callable[[str], pkc.Kernel]) -> None:
    kernel = load(SCALED)
    assert isinstance(kernel, FunctionKernel)
    names = kernel.function.__globals__
    for name, other in (("scale", 3.0), ("inner", names["scaled"]), ("scaled", names["inner"])):
        reading = read_captured(kernel.function)
        assert reading.current()
        before, names[name] = names[name], other
        assert not reading.current()
        names[name] = before
        assert reading.current()


def test_a_function_of_another_module_under_another_name(
    load: Callable[[str], pkc.Kernel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    other = "factor = 4.0\n\ndef enlarged(x):\n    return x * factor\n"
    (tmp_path / "functions_elsewhere.py").write_text(other, encoding="utf-8")
    text = SCALED.replace("scaled(A[m])", "larger(scaled(A[m]))")
    kernel = load(f"from functions_elsewhere import enlarged as larger\n{text}")
    a = np.arange(100, dtype=np.float32)
    assert np.array_equal(pkc.simulate(kernel, ranks=1, A=a[None])["B"][0], 8 * a)


# Imports


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.pk").write_text(text, encoding="utf-8")
    return folder / "k.pk"


def test_functions_of_other_files_keep_what_their_file_means(tmp_path: Path) -> None:
    """Both files have a `half`, and `quarter` calls the one of its own."""
    (tmp_path / "shared").mkdir()
    write(tmp_path / "shared", more="def half(x):\n    return x * 0.5\n")
    path = write(
        tmp_path,
        base="from shared.more import half\n\ndef quarter(x):\n    return half(half(x))\n",
        k="from base import quarter\n\ndef half(x):\n    return x * 100.0\n\n"
        + lines("B[m, j] = quarter(half(A[m, j]))"),
    )
    a = np.arange(64 * 64, dtype=np.float32).reshape(1, 64, 64)
    assert np.array_equal(pkc.simulate(path, ranks=1, A=a, n=1)["B"], 25 * a)


def test_a_file_may_pass_on_what_it_imports(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        base=TWICE,
        middle="from base import twice\n",
        k="from middle import twice\n" + lines("B[m, j] = twice(A[m, j])"),
    )
    assert print_ir(build_module(parse_file(path))) == ir(TWICE + lines("B[m, j] = twice(A[m, j])"))


def test_two_ways_to_one_file_are_no_circle(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        base=TWICE,
        left="from base import twice\n\ndef left(x):\n    return twice(x)\n",
        right="from base import twice\n\ndef right(x):\n    return twice(x)\n",
        k="from left import left\nfrom right import right\n\n" + lines("B[m, j] = left(A[m, j]) + right(A[m, j])"),
    )
    assert print_ir(build_module(parse_file(path))).count("pk.add") == 3


def test_the_functions_of_the_language_page(tmp_path: Path) -> None:
    """The files of section 10, as written there."""
    section = LANGUAGE.read_text(encoding="utf-8").partition("## 10.")[2].partition("## 11.")[0]
    for text in re.findall(r"```\n(.*?)```", section, re.DOTALL):
        name = re.match(r"# (\w+\.pk)\n", text)
        assert name is not None
        (tmp_path / name[1]).write_text(text, encoding="utf-8")
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal((1, *shape)).astype(ml_dtypes.bfloat16) for shape in ((40, 64), (64, 70)))
    bias = rng.standard_normal((1, 70)).astype(np.float32)
    found = pkc.simulate(tmp_path / "mlp_up.pk", ranks=1, X=x, W=w, bias=bias)["Y"]
    h = x.astype(np.float64) @ w.astype(np.float64) + bias[:, None]
    exact = 0.5 * h * (1 + np.vectorize(math.erf)(h / math.sqrt(2)))
    assert np.abs(found.astype(np.float64) - exact).max() < 2**-8 * np.abs(exact).max()
