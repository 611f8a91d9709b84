"""The peers of attention on the host: torch for CPUs, ranks that exchange by gloo. Collected where there is torch."""

from __future__ import annotations

import math
import socket
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from pkc.bench.peers import attention
from pkc.bench.peers.attention import Attention
from pkc.bench.peers.gemm import Matmul
from pkc.bench.peers.ranks import Job, dist, torch
from pkc.bench.peers.reference import Wrong
from pkc.bench.tables import PEERS

ROOT = Path(__file__).parents[2]
MATH = "MATH"
HOST = Job(0, 1, -1)


def by_hand(problem: Attention, q: Any, k: Any, v: Any) -> Any:
    """Row by row, with as many keys as a row sees, of all positions in order."""
    out = torch().empty_like(q.double())
    for b, h, row in product(range(problem.b), range(problem.h), range(q.shape[2])):
        seen = row + 1 if problem.causal else k.shape[2]
        scores = k[b, h, :seen].double() @ q[b, h, row].double() / math.sqrt(problem.d)
        weights = (scores - scores.max()).exp()
        out[b, h, row] = weights / weights.sum() @ v[b, h, :seen].double()
    return out


@pytest.mark.parametrize("causal", [False, True])
def test_reference(causal: bool) -> None:
    problem = Attention("none", 2, 3, 37, 37 if causal else 53, 16, causal, 1)
    case = problem.draw(HOST)
    q, k, v = case.inputs
    exact = by_hand(problem, q, k, v)
    rows = case.reference.rows
    assert rows.at[0] == 0 and rows.at[-1] == 36
    torch().testing.assert_close(rows.exact, exact[:, :, rows.at], rtol=1e-12, atol=1e-12)
    assert case.reference.check(exact.bfloat16()) < 1
    rounded = attention.attend(MATH, q, k, v, causal)
    assert case.reference.check(rounded) < 1


def flawed(q: Any, k: Any, v: Any, causal: bool) -> Iterator[tuple[str, Any]]:
    """Results with one thing wrong."""
    count = k.shape[2]
    seen = torch().ones(q.shape[2], count, dtype=torch().bool)
    seen = seen.tril() if causal else seen

    def masked(name: str, mask: Any) -> tuple[str, Any]:
        return name, attention.attend(MATH, q, k, v, mask=mask)

    last = seen.clone()
    last[count // 2 :, count // 2] = False
    yield masked("one key of many is missing", last)
    if causal:
        yield masked("one key too many is seen", seen | seen.roll(1, dims=1).triu(1).tril(1))
        yield masked("nothing is hidden", torch().ones_like(seen))
    right = attention.attend(MATH, q, k, v, causal)
    yield "one row is not written", right.index_fill(2, torch().tensor([q.shape[2] - 1]), math.nan)
    yield "scale", attention.attend(MATH, (q.float() * 1.02).bfloat16(), k, v, causal)
    yield "sequences are exchanged", right.flip(0)
    yield "shape", right[:, :, 1:]


@pytest.mark.parametrize("causal", [False, True])
def test_what_is_wrong_is_found(causal: bool) -> None:
    problem = Attention("none", 2, 4, 256, 256, 64, causal, 1)
    case = problem.draw(HOST)
    for name, result in flawed(*case.inputs, causal):
        with pytest.raises(Wrong):
            pytest.fail(f"{name}: {case.reference.check(result):.3g} of the bound")


def test_a_matmul_without_one_column_is_wrong() -> None:
    case = Matmul("none", 40, 24, 512, 1).draw(HOST)
    a, b = case.inputs
    assert case.reference.check(a @ b) < 1
    with pytest.raises(Wrong):
        case.reference.check(a[:, 1:] @ b[1:])


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks(ranks: int) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", "from tests.bench.test_attention import rank; rank()"]
    started = [
        subprocess.Popen([*command, str(number), str(ranks), str(port)], cwd=ROOT, stderr=subprocess.PIPE, text=True)
        for number in range(ranks)
    ]
    ends = [(process.communicate(timeout=120)[1], process.returncode) for process in started]
    assert all(code == 0 for _, code in ends), "\n".join(text for text, _ in ends)


def rank() -> None:
    """What each process does: peers over ranks give what one rank gives for the whole sequence."""
    number, ranks, port = map(int, sys.argv[1:])
    dist().init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=number, world_size=ranks)
    job = Job(number, ranks, -1)
    for b, causal in product((1, 2), (False, True)):
        for exchange in ("ring", "all_to_all"):
            _check(Attention(exchange, b, 2 * ranks, 24 * ranks, 24 * ranks, 16, causal, ranks), job)
        if causal:
            _check(Attention("ring", b, 2 * ranks, 24 * ranks, 24 * ranks, 16, causal, ranks, zigzag=True), job)
    matmul = Matmul("all_gather", 7 * ranks - 1, 8 * ranks, 64, ranks).draw(job)
    assert matmul.reference.check(next(peer.run() for peer in matmul.peers if peer.name == "cublas_nccl")) < 1
    job.leave()


def _check(problem: Attention, job: Job) -> None:
    case = problem.draw(job)
    q, k, v = case.inputs
    assert q.shape == (problem.b, problem.h, 24, 16)
    whole = [_in_order(_by_gathering(x, job), problem) for x in (q, k, v)]
    exact = by_hand(problem, *whole)[:, :, _held(problem, job.rank)]
    rows = case.reference.rows
    torch().testing.assert_close(rows.exact, exact[:, :, rows.at], rtol=1e-12, atol=1e-12)
    for run in (
        attention.gather_then_attend(MATH, problem, q, k, v, job),
        attention.exchange_then_attend(MATH, problem, q, k, v, job),
    ):
        found = run()
        torch().testing.assert_close(found.double(), exact, rtol=0.02, atol=0.02)
        assert case.reference.check(found) < 1
    heads = attention.to_heads(k, job)
    share = problem.h // job.ranks
    gathered = _by_gathering(k, job)
    assert torch().equal(heads, gathered[:, share * job.rank : share * (job.rank + 1)])
    assert torch().equal(attention.to_positions(heads, job), k)
    names = {peer.name for peer in case.peers}
    assert names == {"all_gather_flash" if problem.causal else "all_gather_cudnn", "all_to_all_cudnn"}
    assert names <= set(PEERS)
    # A rank with another's result is found on all ranks.
    try:
        case.reference.check(found if job.rank else found.roll(1, 2))
    except Wrong:
        return
    raise AssertionError("rows at other positions were taken for right")


def _held(problem: Attention, rank: int) -> list[int]:
    """The positions of a rank with 24 of them: docs/language.md says which pieces it has in zigzag order."""
    if not problem.zigzag:
        return list(range(24 * rank, 24 * (rank + 1)))
    return [12 * piece + row for piece in (rank, 2 * problem.ranks - 1 - rank) for row in range(12)]


def _in_order(gathered: Any, problem: Attention) -> Any:
    out = torch().empty_like(gathered)
    for rank in range(problem.ranks):
        out[:, :, _held(problem, rank)] = gathered[:, :, 24 * rank : 24 * (rank + 1)]
    return out


def _by_gathering(local: Any, job: Job) -> Any:
    parts = [torch().empty_like(local) for _ in range(job.ranks)]
    dist().all_gather(parts, local)
    return torch().cat(parts, dim=2)
