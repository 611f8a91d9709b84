"""The peers of fused layers on the host: torch for CPUs. Collected where there is torch."""

from __future__ import annotations

import pytest

from pkc.bench.peers import contest
from pkc.bench.peers.gemm import Matmul
from pkc.bench.peers.layers import Layers, Mlp, Swiglu
from pkc.bench.peers.problem import field
from pkc.bench.peers.ranks import Job, torch
from pkc.bench.peers.reference import Wrong

HOST = Job(0, 1, -1)


@pytest.mark.parametrize("problem", [Swiglu(70, 96, 200, 1), Mlp(70, 96, 200, 1)], ids=lambda p: type(p).__name__)
def test_torch_is_within_the_bound_and_a_missing_addend_is_not(problem: Layers) -> None:
    case = problem.draw(HOST)
    x, w, v = case.inputs
    (peer,) = case.peers
    assert 0 < case.reference.check(peer.run()) <= 1
    with pytest.raises(Wrong):
        case.reference.check(problem._unfused(x[:, :-1], w[:-1], v if isinstance(problem, Mlp) else v[:-1]))


def test_the_gemms_alone_run_one_after_the_other() -> None:
    problem = Mlp(70, 96, 200, 1)
    assert problem.alone() == (Matmul("none", 70, 96, 200, 1), Matmul("none", 70, 200, 96, 1))
    assert sum(gemm.flops for gemm in problem.alone()) == problem.flops
    fused, gemms = field(problem.draw(HOST), [gemm.draw(HOST) for gemm in problem.alone()])
    assert (fused.name, gemms.name) == ("cublas_torch", "cublas_alone")
    assert [tuple(step.run().shape) for step in gemms.steps] == [(70, 96), (70, 200)]


def test_each_step_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contest, "finish", lambda: None)
    problem = Swiglu(70, 96, 200, 1)
    _, gemms = field(problem.draw(HOST), [gemm.draw(HOST) for gemm in problem.alone()])
    assert contest._try_out(gemms, HOST)["error_over_bound"] <= 1
    first, second = gemms.steps
    wrong = contest.Step(lambda: torch().zeros(70, 96), second.reference)
    assert "is wrong" in contest._try_out(contest.Entrant("wrong", [first, wrong]), HOST)["error"]
