"""What launches and `pkc compile` say of their sizes: blocks that begin at no multiple of 16 bytes do not go by TMA."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from xdsl.dialects.builtin import DictionaryAttr

from pkc.cli.compile import Request, output
from pkc.dialect.access import LoadOp
from pkc.dialect.transfers import TRANSFER
from pkc.driver.building import lengths
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source

TASKS = "    for m, n in tasks(blocks(M, 16), blocks(N, 64)):\n"
HEADS = f"kernel f(X: bf16[M, L], b: f32[H], Y: bf16[M, N]):\n{TASKS}        Y[m, n] = X[m, n + H]\n"
TWICE = f"kernel f(X: bf16[M, L], b: f32[H], Y: bf16[M, N]):\n{TASKS}        Y[m, n] = X[m, n + 2 * H]\n"
STORED = f"kernel f(X: f32[M, N], b: i32[H], Y: f32[M, L]):\n{TASKS}        Y[m, n + H] = X[m, n]\n"
BYTES = f"kernel f(X: e4m3[M, L], Y: bf16[M, N]):\n{TASKS}        Y[m, n] = cast(X[m, n + N], bf16)\n"
HALF = f"kernel f(X: bf16[M, L], Y: bf16[M, N]):\n{TASKS}        Y[m, n] = X[m, n + L // 2]\n"
WORDS = f"kernel f(X: f32[M, L], Y: f32[M, N]):\n{TASKS}        Y[m, n] = X[m, n + N]\n"
SINGLE = """kernel f(X: f32[L], Y: f32[N]):
    for n in tasks(blocks(N, 64)):
        Y[n] = X[n + N]
"""
WRITTEN = """kernel f(X: bf16[M, L], b: f32[H], Y: bf16[M, L]):
    for m in tasks(blocks(M, 16)):
        for n in blocks(L, 64, start=H):
            Y[m, n] = X[m, n]
"""
SIZES = {"M": 64, "N": 136, "L": 272}


@pytest.mark.parametrize(
    ("text", "op", "sizes", "by"),
    [
        (HEADS, "pk.load", {"H": 130}, "register"),
        (HEADS, "pk.load", {"H": 136}, "tma"),
        (TWICE, "pk.load", {"H": 130}, "register"),
        (TWICE, "pk.load", {"H": 132}, "tma"),
        (STORED, "pk.store", {"H": 130}, "register"),
        (STORED, "pk.store", {"H": 132}, "tma"),
        (BYTES, "pk.load", {}, "register"),
        (BYTES, "pk.load", {"N": 144}, "tma"),
        (HALF, "pk.load", {"L": 264}, "register"),
        (HALF, "pk.load", {"L": 272}, "tma"),
        (WORDS, "pk.load", {"N": 130}, "async"),
        (WORDS, "pk.load", {"N": 132}, "tma"),
        (SINGLE, "pk.load", {"N": 130, "L": 260}, "async"),
        (SINGLE, "pk.load", {"N": 132, "L": 264}, "tma"),
        (WRITTEN, "pk.load", {"H": 130}, "register"),
        (WRITTEN, "pk.load", {"H": 136}, "tma"),
    ],
)
def test_where_shifted_blocks_begin(text: str, op: str, sizes: Mapping[str, int], by: str) -> None:
    program = parse_text(Source("f.pk", text))
    used = {dim: size for dim, size in {**SIZES, **sizes}.items() if f"{dim}]" in text or f"{dim}," in text}
    divisors = lengths(program, "f", None, None).divisors(used, 1)
    assert _by(text, op, divisors) == by
    # What nothing is known of is taken to be odd: machine code for all sizes has nothing that checks them.
    assert _by(text, op, {}) == ("async" if text in (SINGLE, WORDS) else "register")


def test_columns_that_owners_of_a_sum_share() -> None:
    """Blocks follow the owners' shards of a sum that all ranks get: 512 and 500 columns each."""
    text = """kernel f(X: bf16[M, N], s: f32[N].replicate()):
    for m, n in tasks(blocks(M, 16), blocks(N, 64)):
        s[n] += rowsum(X[m, n].T)
"""
    program = parse_text(Source("f.pk", text))
    for columns, by in ((1024, "tma"), (1000, "register")):
        divisors = lengths(program, "f", None, None).divisors({"M": 64, "N": columns}, 2)
        kernel = compile_program(program, level="roles", divisors=divisors).kernel
        loads = [op for op in kernel.walk() if isinstance(op, LoadOp) and kernel.argument_name(op.array) == "X"]
        assert [str(op.attributes[TRANSFER]).split('"')[1] for op in loads] == [by]


def _by(text: str, op: str, divisors: Mapping[str, int]) -> str:
    """How the tile of an access moves; of a store that threads carry out at the end of an array, all other blocks."""
    kernel = compile_program(parse_text(Source("f.pk", text)), level="roles", divisors=divisors).kernel
    moves = [found.attributes[TRANSFER] for found in kernel.walk() if found.name == op]
    found = {str(move.data["by"]).strip('"') for move in moves if isinstance(move, DictionaryAttr)}
    return "tma" if "tma" in found else found.pop()


@pytest.mark.parametrize(("emit", "by_tma"), [("roles", True), ("artifact", False)])
def test_an_artifact_serves_other_sizes_too(
    emit: str, by_tma: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("pkc.console.explanations", lambda found: said.extend(map(str, found)))
    monkeypatch.setenv("PKC_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "f.pk").write_text(HEADS, encoding="utf-8")
    file, settings = str(tmp_path / "f.pk"), ["M=64,N=136,L=272,H=136"]
    output(Request(file, emit, None, (), (), settings, 1, None, "sm_90a", explain=True))
    assert any("load of `X`: by tma" in line for line in said) == by_tma, said
