"""Rows that ranks do not divide, as torch's operators and NCCL get them. Collected where there is torch."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from pkc.bench.peers import gemm, scaled
from pkc.bench.peers.gemm import Matmul, Refused
from pkc.bench.peers.ranks import Job, torch

HOST = Job(2, 3, -1)
"""The last of three, which owns 2 of 10 rows, as a shard has 4."""


class Operators:
    """In place of torch's fused operators: they keep what they get, and return numbered rows."""

    def __init__(self) -> None:
        self.given: list[Any] = []
        self.native: list[bool] = []

    def fused_matmul_reduce_scatter(self, a: Any, b: Any, *_: Any) -> Any:
        self.given.append(a)
        return torch().arange(len(a) // 3)[:, None]

    def fused_scaled_matmul_reduce_scatter(self, a: Any, b: Any, *more: Any) -> Any:
        assert more[6][0] == len(a)
        return self.fused_matmul_reduce_scatter(a, b)

    def fused_all_gather_matmul(self, a: Any, bs: Any, *_: Any) -> tuple[None, list[Any]]:
        self.given.append(a)
        self.native.append(gemm._NATIVE in os.environ)
        return None, [torch().arange(3 * len(a))[:, None]]


@pytest.fixture
def operators(monkeypatch: pytest.MonkeyPatch) -> Operators:
    made, real = Operators(), torch()
    stand_in = SimpleNamespace(ops=SimpleNamespace(symm_mem=made))
    for module in (gemm, scaled):
        monkeypatch.setattr(module, "torch", lambda: SimpleNamespace(**{**vars(real), "ops": stand_in.ops}))
    monkeypatch.setattr(gemm, "symmetric_group", lambda: "all")
    return made


def test_rows_behind_the_last_are_zeros(operators: Operators) -> None:
    a, b = torch().ones(10, 6), torch().ones(6, 5)
    out = gemm._fused_scatter(Matmul("reduce_scatter", 10, 5, 18, 3), a, b, HOST)()
    (given,) = operators.given
    assert out[:, 0].tolist() == [0, 1]
    assert (tuple(given.shape), given.sum().item()) == ((12, 6), 60)


def test_even_rows_are_not_copied(operators: Operators) -> None:
    a = torch().ones(12, 6)
    gemm._fused_scatter(Matmul("reduce_scatter", 12, 5, 18, 3), a, torch().ones(6, 5), HOST)()
    assert operators.given[0] is a


def test_gathered_rows_behind_the_last_are_left_out(operators: Operators) -> None:
    out = gemm._fused_gather(Matmul("all_gather", 10, 15, 6, 3), torch().ones(4, 6), torch().ones(6, 5))()
    assert out[:, 0].tolist() == list(range(10))


def test_eight_bit_rows_and_scales(operators: Operators) -> None:
    kind = torch().float8_e4m3fn
    a, b = torch().ones(10, 128).to(kind), torch().ones(5, 128).to(kind)
    one = torch().tensor(1.0)
    out = scaled.PerTensor("reduce_scatter", 10, 5, 384, 3)._fused(a, b, (one, one), HOST)()
    assert (len(operators.given[0]), len(out)) == (12, 2)
    scales = torch().arange(20.0).view(2, 10)
    padded = scaled.Blocks("reduce_scatter", 10, 128, 768, 3)._padded_scales(scales, 12)
    assert padded.tolist() == [[*range(10), 0, 0], [*range(10, 20), 0, 0]]


def test_the_native_kernel_is_asked_for_in_its_call_alone(
    operators: Operators, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, a, b = Matmul("all_gather", 12, 15, 6, 3), torch().ones(4, 6), torch().ones(6, 5)
    shared = torch().zeros(4, 6)
    monkeypatch.setattr(gemm, "symmetric", lambda like, shape: (shared, "all"))
    for native in (True, False):
        monkeypatch.setattr(gemm, "_is_native", lambda *_, native=native: native)
        run = gemm._native_gather(problem, a, b)
        if native:
            assert len(run()) == 12
        else:
            with pytest.raises(Refused, match="no native kernel for 12 rows over 3 ranks"):
                run()
        assert gemm._NATIVE not in os.environ
    assert operators.native == [True]
    assert operators.given[0] is shared
    assert shared.sum().item() == 24
