"""Runs without arithmetic find what runs with elements find."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pkc.check.run import Baseline, Trial, Trials, baseline_of
from pkc.driver.compiler import load
from pkc.sim.launches import Launches, launches_of
from pkc.sim.order import MemoryOrder
from pkc.sim.orders import order_of
from pkc.sim.terms import Cuts, NeedsElements, with_cuts, with_terms
from tools.mutants import mutants

EXAMPLES = Path(__file__).parents[2] / "examples"
SIZES = {
    "gemm_rs": {"M": 300, "N": 300, "K": 100},
    "moe_dispatch_gemm": {"T": 40, "H": 70, "E": 2, "P": 150, "N": 30},
    "moe_combine": {"T": 40, "E": 2, "P": 150, "N": 30},
    "ring_attention": {"B": 1, "H": 2, "S": 300},
    "all_reduce_explicit": {"M": 150, "N": 300},
    "all_gather": {"M": 300, "N": 300},
}


def meaning(example: str) -> Baseline:
    return baseline_of(load(EXAMPLES / f"{example}.pk"), ranks=2, dims=SIZES[example])


def launched(example: str) -> Launches:
    compiled = load(EXAMPLES / f"{example}.pk", level="roles")
    return launches_of(compiled.module, ranks=2, dims=SIZES[example], launches=meaning(example).inputs)


@pytest.mark.parametrize("overlap", ["none", "intra_sm", "inter_sm"])
@pytest.mark.parametrize("example", ["gemm_rs", "moe_dispatch_gemm", "ring_attention"])
def test_equal_terms_in_every_order(example: str, overlap: str) -> None:
    compiled = load(EXAMPLES / f"{example}.pk", level="roles", schedule={"overlap": overlap})
    launches = launches_of(compiled.module, ranks=2, dims=SIZES[example], launches=meaning(example).inputs)
    cuts = Cuts()
    launches.run(order_of(0), with_cuts(cuts))
    first, *others = (launches.run(order_of(seed), with_terms(cuts)).memories for seed in range(5))
    for memories in others:
        for memory, want in zip(memories, first, strict=True):
            assert all(np.array_equal(memory[name], want[name]) for name in want)


@pytest.mark.parametrize("example", SIZES)
def test_other_inputs_give_other_terms(example: str) -> None:
    """Each launch has its own inputs, so no output may be that of another launch."""
    launches, cuts = launched(example), Cuts()
    launches.run(order_of(0), with_cuts(cuts))
    first, second = launches.run(order_of(0), with_terms(cuts)).memories
    for name in first:
        assert first[name].dtype == np.int64
        assert (first[name] != second[name]).any()


def test_another_access_than_in_the_first_run_needs_elements() -> None:
    launches, cuts = launched("gemm_rs"), Cuts()
    with pytest.raises(NeedsElements):
        launches.run(order_of(0), with_terms(cuts))


def test_mutants_are_judged_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the checks of memory order, so that only values tell."""
    for name in ("read", "store", "add", "end_launch"):
        monkeypatch.setattr(MemoryOrder, name, lambda *_: None)
    compiled = load(EXAMPLES / "gemm_rs.pk", level="roles")
    known = meaning("gemm_rs")
    trials = [Trial(1, seed) for seed in range(1, 4)]
    right = Trials(compiled.kernel, known)
    assert right.check(Trial(1, 0)) == []
    differed = 0
    for operator, where, broken in mutants(compiled.kernel):
        if operator.name not in ("wait dropped", "wait for one less", "signal sent twice", "epoch left out"):
            continue
        for trial in trials:
            elements = Trials(broken, known).check(trial)
            assert Trials(broken, known, like=right).check(trial) == elements, f"{operator.name}, {where}"
            differed += bool(elements)
    assert differed
