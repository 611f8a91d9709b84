"""Owners divide a replicated sum among them: blocks follow their shards only where no result shows it."""

from __future__ import annotations

from functools import cache

import pytest

from pkc.check.run import TRIALS, Baseline, baseline_of, check_roles
from pkc.driver.compiler import Compiled, compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes.roles import straddle_shards
from tests.sweeps import sweep

_ROWS = """
kernel k(X: f32[M, N], G: f32[N].replicate(), Y: f32[M]):
    for m in tasks(blocks(M, 8)):
        t = zeros(f32, m)
        for n in blocks(N, 8):
            t += rowsum(X[m, n])
        Y[m] = t
    for n in tasks(blocks(N, 8)):
        s = zeros(f32, n)
        for m in blocks(M, 8):
            s += rowsum(X[m, n].T)
        G[n] += s
"""
_TOTAL = """
kernel k(X: f32[M, N], S: f32[1].replicate(), C: f32[M, N].shard(0), G: f32[N].replicate()):
    for m, n in tasks(blocks(M, 8), blocks(N, 8)):
        S[0] += rowsum(rowsum(X[m, n]))
        C[m, n] += X[m, n]
        G[n] += rowsum(X[m, n].T)
"""
_PRODUCT = """
kernel k(A: bf16[M, M], W: bf16[M, N], G: f32[M, N].replicate()):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        t = zeros(f32, m, n)
        for k in blocks(M, 16):
            t += A[m, k] @ W[k, n]
        G[m, n] += t
"""
_WITHIN = """
kernel k(X: f32[M, N], G: f32[N].replicate()):
    for n in tasks(blocks(N, 8)):
        s = zeros(f32, n)
        for m in blocks(M, 8):
            s += rowsum(X[m, n].T)
        G[n] += s - rowmax(s)
"""
_CASES = {"rows": _ROWS, "total": _TOTAL, "product": _PRODUCT, "within": _WITHIN}
_GATHERED = {
    "by a table along columns": """
kernel k(X: f32[M, N], t: i32[M], Y: f32[M].replicate()):
    for m in tasks(blocks(M, 8)):
        Y[m] += X[m, t[m] % N]
""",
    "of blocks both ways": """
kernel k(X: f32[M, N], t: i32[M], Y: f32[M, N].replicate()):
    for m, n in tasks(blocks(M, 8), blocks(N, 8)):
        Y[m, n] += X[m, n] * X[m, t[m] % N]
""",
    "beside the block": """
kernel k(X: f32[M, N], Y: f32[M, N].replicate()):
    for m, n in tasks(blocks(M, 8), blocks(N, 8)):
        Y[m, n] += X[m, n] + X[m, n - 1]
""",
}


def _compiled(text: str, level: str) -> Compiled:
    return compile_program(parse_text(Source("k.pk", text.lstrip())), level=level)


@cache
def _meaning(name: str, ranks: int) -> Baseline:
    return baseline_of(_compiled(_CASES[name], "tile"), ranks=ranks, dims={"M": 17, "N": 19})


_EVERY = [(name, ranks) for name in _CASES for ranks in (1, 2, 3, 5, 8)]
_ONCE = {("rows", 3), ("total", 2), ("product", 1), ("within", 5)}


@pytest.mark.parametrize(("name", "ranks"), sweep(_EVERY, lambda *case: case in _ONCE))
def test_only_lists_that_no_result_shows_follow_the_owners(
    name: str, ranks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    meaning = _meaning(name, ranks)
    assert check_roles(_compiled(_CASES[name], "roles"), meaning, TRIALS[:1]) == []
    monkeypatch.setattr(straddle_shards, "divides_freely", lambda _: True)
    found = check_roles(_compiled(_CASES[name], "roles"), meaning, TRIALS[:1])
    assert {type(finding).__name__ for finding in found} == (set() if ranks == 1 else {"ResultDiffers"})


@pytest.mark.parametrize("form", _GATHERED)
def test_lists_of_what_tables_name_follow_the_owners(form: str) -> None:
    text, dims = _GATHERED[form], {"M": 17, "N": 19}
    meaning = baseline_of(_compiled(text, "tile"), ranks=3, dims=dims)
    assert check_roles(_compiled(text, "roles"), meaning, TRIALS[:1]) == []
