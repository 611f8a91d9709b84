"""Python functions to the tree: the same as the `.pk` spelling, captures, and what is refused."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pkc.language
from pkc import Kernel
from pkc.diagnostics import PkcError
from pkc.frontend import errors, python_errors
from pkc.frontend.parse import parse_text
from pkc.frontend.python import load_python_file, read_captured
from pkc.frontend.tree import AugAssign, Call, For, If, Index, Keyword, Name, Number, Program
from pkc.location import NOWHERE, Source

HEADER = """\
from pkc.language import *
import pkc.language as pkc

M, N, K, B, H, S, D = dims("M N K B H S D")
"""

Load = Callable[[str], Kernel]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """The one kernel of a Python text that follows the usual imports."""

    def loaded(text: str) -> Kernel:
        path = tmp_path / "kernels.py"
        path.write_text(HEADER + text, encoding="utf-8")
        linecache.checkcache(str(path))
        (kernel,) = load_python_file(path)
        return kernel

    return loaded


def function(*body: str, params: str = "A: bf16[M]", before: str = "") -> str:
    """The text of a kernel `f` with these lines."""
    lines = "".join(f"    {line}\n" for line in body)
    return f"{before}\n@pkc.kernel\ndef f({params}):\n{lines}"


def parse(text: str) -> Program:
    return parse_text(Source("t.pk", text))


SAMPLES = {
    "gemm": """(A: bf16[M, K], B: bf16[K, N], C: bf16[M, N].shard(0)):
    schedule(overlap=intra_sm, stages=4, deterministic=False)
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64): acc += A[m, k] @ B[k, n]; acc -= 1
        C[m, n] += acc  # é
""",
    "attention": """(
    Q: bf16[B, H, S, D], O: bf16[B, H, S, D].symmetric().scratch(), count: i32[N], scale: f32,
    D: const = 128, E: const = -1, flag: const = True,
):
    for b, h, q in tasks(B, H, blocks(S, 2 * D, of=rank)):
        top = full(f32, -inf, q)
        for e in range(1, count[b]):
            s = Q[b, h, q] @ Q[b, h, :].T * scale
            s = where(positions(q) >= positions(e) and not flag or E != 1 or s < 0x10, s, -1.5e-3)
            top = max(top, rowmax(s - top % 2 // 3 / 4))
        if flag:
            O[b, h, q] = cast(top, bf16)
        elif (E == 1):
            O.at((rank + 1) % ranks)[b, h, q, :] = -(top + 1)
        elif D > 2:
            wait(count[b], len(blocks(S, 1, start=count[0], stop=1_000,)))
        else:
            O[b, h, q] *= 2
            O[b, h, q] = top
""",
    "roles": """(C: f32[M].symmetric(), ready: signal[ranks, 2]):
    with role(communicator, sms=16):
        for r in ring():
            signal(ready.at(r)[0, 1], 1)
            t = reduce(C[
                blocks(M, 1)  # one
            ])
    with role(consumer): all_reduce(C[0])
""",
}


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_both_spellings_agree(load: Load, sample: str) -> None:
    # The `const` parameter D of a sample stands for itself, as in `.pk`, and not for the dimension around it.
    assert load(f"@pkc.kernel\ndef f{sample}").tree == parse(f"kernel f{sample}")


def test_docstring_and_future_annotations() -> None:
    text = "from __future__ import annotations\n" + HEADER + function('"""What it does."""', "x = A[0]")
    kernel = load_text(text)
    assert kernel.__doc__ == "What it does."
    assert (kernel.name, kernel.schedule) == ("f", {})
    assert kernel.tree == parse("kernel f(A: bf16[M]):\n    x = A[0]")


def load_text(text: str) -> Kernel:
    """A kernel of a text that exists in the line cache only."""
    name = "<kernel text>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope: dict[str, Any] = {}
    exec(compile(text, name, "exec", dont_inherit=True), scope)
    return scope["f"]


def first_value(kernel: Kernel) -> Any:
    return kernel.tree.kernels[0].body[0].value  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("before", "text", "value"),
    [
        ("X = 3", "X", Number(NOWHERE, 3)),
        ("X = -3", "X", Number(NOWHERE, -3)),
        ("X = 0.5", "X", Number(NOWHERE, 0.5)),
        ("X = True", "X", Number(NOWHERE, True)),
        ("import numpy\nX = numpy.float64(2)", "X", Number(NOWHERE, 2.0)),
        ("import math\nX = math.inf", "X", Number(NOWHERE, float("inf"))),
        ("from math import inf", "inf", Number(NOWHERE, float("inf"))),
        ("", "nowhere", Name(NOWHERE, "nowhere")),
        ("", "M", Name(NOWHERE, "M")),
        ("", "ranks", Name(NOWHERE, "ranks")),
        ("", "intra_sm", Name(NOWHERE, "intra_sm")),
        ("X = [1]", "A", Name(NOWHERE, "A")),
        ("A = [1]", "A", Name(NOWHERE, "A")),
        ("x = 3", "x", Name(NOWHERE, "x")),
        ("", "max(A, 1)", Call(NOWHERE, "max", (Name(NOWHERE, "A"), Number(NOWHERE, 1)), (), NOWHERE)),
        ("", "unknown()", Call(NOWHERE, "unknown", (), (), NOWHERE)),
    ],
)
def test_captures(load: Load, before: str, text: str, value: object) -> None:
    found = first_value(load(function(f"x = {text}", before=before)))
    assert found == value
    assert type(getattr(found, "value", None)) is type(getattr(value, "value", None))


def test_captures_have_their_present_value(load: Load) -> None:
    kernel = load(function("x = X", before="X = 1"))
    assert first_value(kernel) == Number(NOWHERE, 1)
    kernel.function.__globals__["X"] = 2
    assert first_value(kernel) == Number(NOWHERE, 2)


FACTORY = """
X = Y = 1
def make(X, Y):
    T, = dims("T")
    @pkc.kernel
    def f(A: bf16[X, 2 * X, T, Y], Z: const = X, V: const = Y + 1):
        x = Y
    return f
f = make(8, 9)
"""


def test_scopes_around_a_nested_function(load: Load) -> None:
    kernel = load(FACTORY)
    first, second, third = kernel.tree.kernels[0].params
    dims = (Number(NOWHERE, 8), Number(NOWHERE, 16), Name(NOWHERE, "T"), Number(NOWHERE, 9))
    assert first.annotation.dims == dims
    assert (second.default, third.default) == (Number(NOWHERE, 8), Number(NOWHERE, 10))
    assert first_value(kernel) == Number(NOWHERE, 9)


def test_schedule(load: Load) -> None:
    text = '@pkc.kernel(\n    overlap="intra_sm", stages=4, deterministic=False, order=ring)\n'
    kernel = load(text + "def f(A: bf16[M]): g()\n")
    values = (Name(NOWHERE, "intra_sm"), Number(NOWHERE, 4), Number(NOWHERE, False), Name(NOWHERE, "ring"))
    keys = ("overlap", "stages", "deterministic", "order")
    found = kernel.tree.kernels[0].schedule
    assert found == tuple(Keyword(NOWHERE, key, value) for key, value in zip(keys, values, strict=True))
    assert (found[0].span.text, found[0].span.line) == ('overlap="intra_sm"', 6)
    elsewhere = read_captured(kernel.function, {"comm_sms": 8}).program.kernels[0].schedule
    assert elsewhere[0].span.text.startswith("pkc.kernel(")


def test_spans(load: Load) -> None:
    text = function(
        "x = A.at(r)[m, :]",
        "for m, n in (tasks(x)) :  # ü",
        "    C[m] += h(y, k=1)",
        "if (a):",
        "    h()",
        "elif b:",
        "    h()",
        params="Ab: bf16[M].shard(0), D: const = 3",
    )
    kernel = load("# ünïcode\n" + text).tree.kernels[0]
    assign, loop, branch = kernel.body
    assert isinstance(loop, For) and isinstance(branch, If)
    store, other = loop.body[0], branch.orelse[0]
    assert isinstance(store, AugAssign) and isinstance(store.target, Index) and isinstance(store.value, Call)
    param = kernel.params[0]
    found = [kernel, param, param.annotation, param.annotation.modifiers[0], kernel.params[1].default, assign, loop,
             loop.targets[1], store, store.target, *store.value.keywords, branch, other]  # fmt: skip
    assert [node.span.text for node in found if node] == [
        "f", "Ab", "bf16[M].shard(0)", "shard(0)", "3", "x = A.at(r)[m, :]", "for m, n in (tasks(x)) :",
        "n", "C[m] += h(y, k=1)", "C[m]", "k=1", "if (a):", "elif b:",
    ]  # fmt: skip
    assert store.value.func_span.text == "h"
    lines = HEADER.count("\n") + 1
    assert (store.span.line, store.span.column) == (lines + 6, 9)


def test_columns_after_wide_characters() -> None:
    text = "from pkc.language import *\n@kernel\ndef f(A: bf16[1]):\n    g('é', A) \n"
    with pytest.raises(PkcError) as caught:
        _ = load_text(text.replace("'é', A", "A, 'éé', A")).tree
    assert caught.value.diagnostics[0].span.text == "'éé'"
    with pytest.raises(PkcError) as caught:
        _ = load_text(text.replace("g('é', A)", "'éé'; g(lambda: 0)", 1).replace("    'éé'", "    g(A); 'éé'")).tree
    assert caught.value.diagnostics[0].span.text == "'éé'"


REFUSED = [
    "pass", "while A: g()", "import os", "x = lambda: 0", "x = [1]", "x = [a for a in A]", "x = f'{A}'",
    "x = 'a'", "x = None", "x = ...", "x = 1j", "a, b = A", "a = b = A", "x: f32 = A", "x @= A", "x **= A",
    "x = a ** b",
    "x = a is b", "x = a in b", "x = +a", "x = ~a", "x = a if b else A", "(x := A)", "g(*A)", "g(**A)",
    "x = A[*a]", "x = A[a:b]", "x = A[::]", "x = A[()]", "x = A.at(r)", "x = A.at(r, s)[0]", "A.copy()", "x = g()()",
    "x = kernel", "g(kernel=1)", "kernel = 1", "inf = 1", "é = 1", "for A[0] in g(): h()",
    "for a in g():\n        h()\n    else: h()",
    "with g() as x: h()", "with g(), h(): i()", "assert A", "del A", "global M", "class C: pass",
    "def g(): pass", "try: g()\n    finally: g()", "raise A", "yield A", "x = a, b", "x = {}", "x = {1}",
    "g(a for a in A)",
    "match A:\n        case 1: g()",
]  # fmt: skip


@pytest.mark.parametrize("line", REFUSED)
def test_python_that_is_not_in_the_language(line: str) -> None:
    with pytest.raises(PkcError) as caught:
        _ = load_text(HEADER + function(line)).tree
    (found,) = caught.value.diagnostics
    assert isinstance(found, python_errors.NotInLanguage)
    assert found.construct.isascii() or "é" in found.construct
    assert "Python's" not in found.construct
    assert found.span.source is not NOWHERE.source


def test_orders_of_shards() -> None:
    params, line = "A: bf16[M].shard(0, zigzag={})", "g()"
    (constant,), (literal,) = (
        load_text(
            "from __future__ import annotations\n" + HEADER + before + function(line, params=params.format(value))
        )
        .tree.kernels[0]
        .params
        for before, value in (("X = True\n", "X"), ("", "True"))
    )
    assert constant.annotation.modifiers == literal.annotation.modifiers
    assert constant.annotation.modifiers[0].keywords[0].name == "zigzag"


@pytest.mark.parametrize(
    "params",
    ["*a", "**a", "a: f32, /", "*, a: f32", "a: 'f32'", "a: pkc.f32", "a: f32 | i32", "kernel: f32",
     "a: bf16[M].shard(0, **a)"],
)  # fmt: skip
def test_parameters_that_are_not_in_the_language(params: str) -> None:
    text = "from __future__ import annotations\n" + HEADER + function("g()", params=params)
    with pytest.raises(PkcError) as caught:
        _ = load_text(text).tree
    assert isinstance(caught.value.diagnostics[0], python_errors.NotInLanguage)


@pytest.mark.parametrize(
    ("text", "error", "at"),
    [
        (function("x = X", before="X = [1]"), python_errors.CapturedObject, "X"),
        (function("x = pkc", before=""), python_errors.CapturedObject, "pkc"),
        (function("x = h(A)", before="h = max, min"), python_errors.CapturedObject, "h"),
        (function("x = h(A)", before="def h(a): pass"), python_errors.NotInLanguage, "pass"),
        (function("x = h(A)", before="def h(*a): return a"), python_errors.NotInLanguage, "a"),
        (function("x = h", before="def h(a): return a"), python_errors.CapturedObject, "h"),
        (function("x = X(A)", before="X = 1"), python_errors.CapturedObject, "X"),
        (function("x = exp(A)", before="from math import exp"), python_errors.CapturedObject, "exp"),
        (function("X[0] = A", before="X = [1]"), python_errors.CapturedObject, "X"),
        (function("x = A", before="X = [1]", params="A: bf16[X]"), python_errors.CapturedObject, "X"),
        (function("x = X", before="X = M"), python_errors.CapturedUnderOtherName, "X"),
        (function("x = A", before="X = M", params="A: bf16[X]"), python_errors.CapturedUnderOtherName, "X"),
        (function("x = X(A)", before="X = exp"), python_errors.CapturedUnderOtherName, "X"),
        (function("x = A", before="X = bf16", params="A: X[M]"), python_errors.CapturedUnderOtherName, "X"),
        (function("x = X", before="X = float('nan')"), python_errors.CapturedNaN, "X"),
        (function("x = X", before="X = 2 ** 70"), errors.NumberTooLarge, "X"),
        (function("x = 2e999"), errors.NumberTooLarge, "2e999"),
        (function("x = 9223372036854775808"), errors.NumberTooLarge, "9223372036854775808"),
        (function("x = A", params="A"), python_errors.MissingAnnotation, "A"),
        (function('"""Nothing."""'), errors.MissingBlock, "f"),
        (function("x = a < b < c"), errors.ChainedComparison, "c"),
        (function("A.T = a"), errors.NotAssignable, "A.T"),
        (function("A"), errors.NotAStatement, "A"),
        (function("for a in A: g()"), errors.NotALoopList, "A"),
        (function("with A: g()"), errors.NotARole, "A"),
        (function("x = g()[0]"), errors.NotIndexable, "g()"),
        (function("x = A.foo"), errors.UnknownAttribute, "foo"),
        (function("x = A.foo(1)[0]"), errors.UnknownAttribute, "foo"),
        (function("x = " + "not " * 99 + "A and A"), errors.NestedTooDeep, "A"),
        (function("x = " + " and ".join("A" * 101)), errors.NestedTooDeep, "A"),
        (function("x = " + "+".join("A" * 101)), errors.NestedTooDeep, "A"),
        (function("if A: g()", *["elif A: g()"] * 31), errors.NestedTooDeep, "g()"),
        ("@pkc.kernel\nasync def f(A: bf16[M]): g()\n", python_errors.NotInLanguage, "async def f(A: bf16[M]): g()"),
        ("@pkc.kernel\ndef f(A: bf16[M]) -> f32: g()\n", python_errors.NotInLanguage, "f32"),
        ("@pkc.kernel(stages=1.5)\ndef f(A: bf16[M]): g()\n", python_errors.InvalidScheduleValue, "stages=1.5"),
        ("@pkc.kernel(order='a b')\ndef f(A: bf16[M]): g()\n", python_errors.InvalidScheduleValue, "order='a b'"),
    ],
)
def test_errors(text: str, error: type, at: str) -> None:
    with pytest.raises(PkcError) as caught:
        _ = load_text(HEADER + text).tree
    (found,) = caught.value.diagnostics
    assert (type(found), found.span.text) == (error, at)
    assert found.render()


@pytest.mark.parametrize("good", ["x = " + "not " * 99 + "A", "x = " + " or ".join("A" * 100), "x = A" + ".T" * 99])
def test_nesting_limit_is_that_of_the_grammar(good: str) -> None:
    assert load_text(HEADER + function(good)).tree == parse(f"kernel f(A: bf16[M]):\n    {good}")


def test_functions_without_source() -> None:
    scope: dict[str, Any] = {}
    exec("def f(A): g()", scope)
    for candidate in (scope["f"], lambda: 0):
        with pytest.raises(PkcError) as caught:
            read_captured(candidate)
        assert isinstance(caught.value.diagnostics[0], python_errors.NoSource)
    with pytest.raises(PkcError) as caught:
        pkc.language.kernel(print)
    assert isinstance(caught.value.diagnostics[0], python_errors.NotAFunction)


def test_changed_source(load: Load, tmp_path: Path) -> None:
    kernel = load(function("g()"))
    for text in ("x = 1\n", "def f(:\n"):
        (tmp_path / "kernels.py").write_text(text)
        with pytest.raises(PkcError) as caught:
            _ = kernel.tree
        assert isinstance(caught.value.diagnostics[0], python_errors.NoSource)


@pytest.mark.parametrize(
    ("file", "text", "error", "at"),
    [
        ("a.py", "import pkc\n\nx = 1 / 0  # no\n", python_errors.ImportFailed, "x = 1 / 0  # no"),
        ("a.py", "raise SystemExit(2)\n", python_errors.ImportFailed, "raise SystemExit(2)"),
        ("a.py", "x = (\n", python_errors.PythonSyntax, "("),
        ("a.py", "x = " + "-" * 100_000 + "1", None, None),
        ("a.py", "from pkc.language import *\nblocks(1, 2)\n", python_errors.OutsideKernel, "blocks(1, 2)"),
        ("a.py", "from pkc.language import *\ndims('1')\n", python_errors.InvalidDimension, "dims('1')"),
        ("a.py", "x = 1\n", errors.NoKernel, ""),
        ("a.pk", "x = 1\n", errors.WrongExtension, ""),
    ],
)
def test_files_that_fail(tmp_path: Path, file: str, text: str, error: type | None, at: str | None) -> None:
    path = tmp_path / file
    path.write_text(text)
    with pytest.raises(PkcError) as caught:
        load_python_file(path)
    (found,) = caught.value.diagnostics
    assert error is None or (type(found), found.span.text) == (error, at)
    assert len(found.render()) < 2000


def test_file_order(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    definition = "@pkc.kernel\ndef {}(A: bf16[M]): g()\n"
    path.write_text(HEADER + definition.format("b") + definition.format("a") + "again = b\n")
    assert [kernel.name for kernel in load_python_file(path)] == ["b", "a"]


# pkc.language


def test_every_word_is_exported() -> None:
    words = {key for key, value in vars(pkc.language).items() if isinstance(value, pkc.language.Word)}
    assert words | {"dims", "kernel", "inf", "rank", "ranks"} == set(pkc.language.__all__)
    assert not {"max", "min", "abs", "range", "len"} & set(pkc.language.__all__)


def test_dims() -> None:
    assert [d.name for d in pkc.language.dims("M, N K")] == ["M", "N", "K"]
    (only,) = pkc.language.dims("M")
    assert only.name == "M"
    for wrong in ("", "1", "M-N", "é"):
        with pytest.raises(PkcError):
            pkc.language.dims(wrong)
