"""Problems, hover and completion of a text, without a server."""

from __future__ import annotations

import builtins

import pytest

from pkc import language
from pkc.cli.main import main
from pkc.dialect.types import DTYPES
from pkc.editor import analyse as editor
from pkc.editor.words import meanings
from pkc.frontend.expressions import SIGNATURES
from pkc.frontend.schedule import KEYS

GEMM = """\
kernel gemm(A: bf16[M, K], B: bf16[K, N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 256)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 64):
            acc += A[m, k] @ B[k, n]
        C[m, n] = acc
"""


def place(text: str, mark: str, behind: int = 0) -> tuple[int, int]:
    before = text[: text.index(mark)]
    return before.count("\n"), len(before) - before.rfind("\n") - 1 + behind


def test_a_right_program_has_no_problems() -> None:
    assert editor.analyse(GEMM, "gemm.pk").problems == ()


@pytest.mark.parametrize(
    ("old", "new", "code", "marked"),
    [
        ("zeros(f32, m, n)", "zeros(f32, m, q)", "PK201", "q"),
        ("for k in", "fork in", "PK107", "in"),
        ("A[m, k] @", "A[m, k] +", "PK3", "A[m, k] + B[k, n]"),
    ],
)
def test_mistakes_are_where_they_are_written(old: str, new: str, code: str, marked: str) -> None:
    text = GEMM.replace(old, new)
    (problem, *_) = editor.analyse(text, "gemm.pk").problems
    (line, first), (last_line, last) = problem.first, problem.last
    assert problem.error and problem.code.startswith(code)
    assert line == last_line and text.split("\n")[line][first:last] == marked


def test_what_a_gpu_refuses_is_a_warning() -> None:
    text = """\
kernel add(B: f32[M].symmetric()):
    with role(communicator):
        for m in tasks(blocks(M, 8)):
            store_add(B.at((rank + 1) % ranks)[m], zeros(f32, m))
"""
    (found,) = editor.analyse(text, "add.pk").problems
    assert not found.error and found.code == "PK510"


def test_hover() -> None:
    accumulator = editor.hover(GEMM, "gemm.pk", *place(GEMM, "acc +="))
    assert "`acc`: tile 128 x 256, f32" in accumulator
    assert "roles: loader, consumer" in accumulator
    assert "- load of `A`: by tma (goes into its stage as it is)" in accumulator
    assert "array `!pk.private<[M, K], bf16>`" in editor.hover(GEMM, "gemm.pk", *place(GEMM, "A[m, k]"))
    assert "block of at most 64 positions of K" in editor.hover(GEMM, "gemm.pk", *place(GEMM, "k in blocks"))
    text = GEMM.replace("= acc\n", "= exp(acc)\n")
    assert "`exp(x)`: e to the power x" in editor.hover(text, "gemm.pk", *place(text, "exp("))
    assert "`zeros(f32, m, n)`: a tile of zeros" in editor.hover(GEMM, "gemm.pk", *place(GEMM, "zeros("))
    assert editor.hover(GEMM, "gemm.pk", 99, 0) == ""


def test_words_have_a_name_and_a_meaning() -> None:
    """In `pkc.language`, where editors find them; Python's own functions are there already."""
    values = {value for kind in KEYS.values() if isinstance(kind, tuple) for value in kind}
    words = {*SIGNATURES, *DTYPES, *values} - set(dir(builtins))
    assert words - {"f64"} <= set(language.__all__)
    assert set(editor.WORDS) - {"True", "False"} <= set(meanings())


def test_completion() -> None:
    def names(text: str, mark: str, behind: int = 0) -> list[str]:
        return [name for name, _ in editor.completions(text, *place(text, mark, behind))]

    assert {"acc", "A", "m", "rowsum", "for"} <= set(names(GEMM, "C[m, n] = acc"))
    assert "acc" not in names(GEMM, "for m, n")
    assert names(GEMM.replace("N]):", "N].s):"), ".s)", 2) == list(editor.MODIFIERS)
    scheduled = GEMM.replace("    for m, n", "    schedule(over)\n    for m, n")
    assert "overlap=" in names(scheduled, "over)", 4)


def test_without_the_extra(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pkc.editor.server", None)
    assert main(["lsp"]) == 1
    assert "error[PK947]" in capsys.readouterr().err
