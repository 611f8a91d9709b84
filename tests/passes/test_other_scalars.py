"""Launches one behind the other with other scalars, which decide how many tiles are fetched: counters keep up."""

from __future__ import annotations

import pytest

from pkc.check.run import TRIALS
from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes.roles.plan_fetch import PlanFetch
from pkc.sim.draw import draw_inputs
from pkc.sim.launches import launches_of
from pkc.sim.run import simulate

PROGRAMS: dict[str, tuple[str, dict[str, int], str]] = {
    "where a row of tiles ends": (
        """
kernel k(A: bf16[M, K].shard(0), B: bf16[K, N], C: bf16[M, N], w: i32):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 16, stop=w):
            acc += A[m, k] @ B[k, n]
        C[m, n] = acc
""",
        {"M": 48, "K": 64, "N": 16},
        "a scalar says how many come",
    ),
    "what a mask hides": (
        """
kernel k(Q: bf16[T, D].shard(0), K: bf16[S, D].shard(0), O: bf16[T, D].shard(0), w: i32, D: const = 16):
    for q in tasks(blocks(T, 16, of=rank)):
        o = zeros(f32, q, D)
        for r in ring():
            for kv in blocks(S, 16, of=r):
                s = where(positions(q) + w >= positions(kv), Q[q] @ K[kv].T, 0.0)
                o = o + cast(s, bf16) @ K[kv]
        O[q] = o
""",
        {"S": 96, "T": 48},
        "a scalar says which of them tasks visit",
    ),
}


@pytest.mark.parametrize("given", [(16, 64), (64, 16), (32, 64, 16)])
@pytest.mark.parametrize("overlap", ["inter_sm", "copy_engine"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_launch_has_its_own(name: str, overlap: str, given: tuple[int, ...]) -> None:
    text, dims, reason = PROGRAMS[name]
    program = parse_text(Source("k.pk", text))
    tile, roles = (compile_program(program, schedule={"overlap": overlap}, level=level) for level in ("tile", "roles"))
    if overlap == "inter_sm":
        assert any(reason in remark.reason for remark in roles.remarks if remark.step == PlanFetch.name)
    for ranks in (2, 3):
        inputs = draw_inputs(tile.module, ranks=ranks, dims=dims, seed=ranks)
        each = [{**inputs, "w": scalar} for scalar in given]
        launches = launches_of(roles.module, ranks=ranks, dims=dims, launches=each)
        expected = [simulate(tile.module, ranks=ranks, dims=dims, inputs=one) for one in each]
        for trial in TRIALS[:2]:
            found = launches.run(trial.order()).outputs()
            assert [{name: values.tobytes() for name, values in one.items()} for one in found] == [
                {name: values.tobytes() for name, values in one.items()} for one in expected
            ]
