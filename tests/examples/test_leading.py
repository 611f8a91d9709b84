"""Lists of tasks that begin with rows of their rank: right whatever the tables name, and as early as that allows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pkc.check.run import TRIALS, Baseline, check_roles
from pkc.dialect.counters import WaitOp
from pkc.driver.compiler import Compiled, load
from pkc.sim.draw import draw_inputs
from pkc.sim.program import Program
from pkc.sim.reference import compare, reference
from pkc.sim.run import simulate

TEXT = """
kernel k(X: f32[T, H].shard(0), W: f32[E, H, N], rows: i32[E, P], count: i32[E], Y: f32[E, P, N]):
    for e in tasks(E):
        for p, n in tasks(blocks(P, 16, stop=count[e]), blocks(N, 16)):
            acc = zeros(f32, p, n)
            for h in blocks(H, 16):
                acc += gather(X, rows[e, p], h) @ W[e, h, n]
            Y[e, p, n] = acc
"""
T, E, P = 101, 3, 150
DIMS = {"T": T, "H": 17, "E": E, "P": P, "N": 17}


def compiled(folder: Path, overlap: str = "") -> Compiled:
    """The tile level, or roles with an overlap."""
    path = folder / "k.pk"
    path.write_text(TEXT, encoding="utf-8")
    sms = {"comm_sms": "2"} if overlap == "inter_sm" else {}
    return load(path, level="roles", schedule={"overlap": overlap, **sms}) if overlap else load(path)


def tables(kind: str, ranks: int) -> dict[str, np.ndarray]:
    """Rows of experts as they are meant, or others."""
    rng = np.random.default_rng(3)
    rows = rng.integers(0, T, (ranks, E, P)).astype(np.int32)
    if kind == "in order":
        rows.sort(axis=-1)
    elif kind == "of others":
        shard = -(-T // ranks)
        for rank in range(ranks):
            rows[rank] = (rows[rank] % max(T - shard, 1) + shard * (rank + 1)) % T
    elif kind == "in order but one":
        shard, blocks = -(-T // ranks), -(-P // 16)
        rows[:] = np.arange(P) * ranks // P * shard
        for rank in range(ranks):
            rows[rank, :, -(-blocks * rank // ranks) * 16 + 5] = (rank + 1) % ranks * shard
    elif kind == "some none":
        rows[rng.random(rows.shape) < 0.3] = -1
    count = rng.integers(0, P + 1, (ranks, E)).astype(np.int32)
    count[:, 0] = P
    return {"rows": rows, "count": count}


@pytest.mark.parametrize("overlap", ["inter_sm", "copy_engine"])
@pytest.mark.parametrize("kind", ["in order", "in order but one", "in no order", "of others", "some none"])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_any_table(ranks: int, kind: str, overlap: str, tmp_path: Path) -> None:
    tile = compiled(tmp_path)
    inputs = draw_inputs(tile.module, ranks=ranks, dims=DIMS, seed=1) | tables(kind, ranks)
    expected = reference(tile.module, ranks=ranks, dims=DIMS, inputs=inputs)
    roles = compiled(tmp_path, overlap)
    leads = any(isinstance(op, WaitOp) and op.rows is not None for op in roles.module.walk())
    assert leads == (overlap == "copy_engine")
    outputs = simulate(roles.module, ranks=ranks, dims=DIMS, inputs=inputs)
    found = compare({array: outputs[array] for array in Program(tile.kernel).outputs}, expected)
    assert found and all(each.ok for each in found)


@pytest.mark.parametrize(("which", "kind"), [("in tasks", "in order but one"), ("before the last round", "in order")])
def test_each_wait_is_needed(which: str, kind: str, tmp_path: Path) -> None:
    tile, roles = compiled(tmp_path), compiled(tmp_path, "copy_engine")
    inputs = [draw_inputs(tile.module, ranks=2, dims=DIMS, seed=seed) for seed in range(2)]
    inputs = [drawn | tables(kind, 2) for drawn in inputs]
    outputs = [simulate(tile.module, ranks=2, dims=DIMS, inputs=given) for given in inputs]
    right = Baseline(2, DIMS, inputs, outputs)
    assert check_roles(roles, right, TRIALS) == []
    waits = [op for op in roles.module.walk() if isinstance(op, WaitOp) and op.signal.name_hint == "X_ready"]
    assert len(waits) == 2
    for wait in waits:
        if (wait.rows is not None) == (which == "in tasks"):
            _without(wait)
    assert check_roles(roles, right, TRIALS) != []


def test_rows_that_come_list_by_list_are_awaited(tmp_path: Path) -> None:
    """By the tasks, whatever the first ones have waited for."""
    tile, roles = compiled(tmp_path), compiled(tmp_path, "inter_sm")
    inputs = [draw_inputs(tile.module, ranks=2, dims=DIMS, seed=seed) | tables("in no order", 2) for seed in range(2)]
    outputs = [simulate(tile.module, ranks=2, dims=DIMS, inputs=given) for given in inputs]
    right = Baseline(2, DIMS, inputs, outputs)
    waits = [op for op in roles.module.walk() if isinstance(op, WaitOp) and op.signal.name_hint == "X_ready"]
    together, in_tasks = waits
    _without(together)
    assert check_roles(roles, right, TRIALS) == []
    _without(in_tasks)
    assert check_roles(roles, right, TRIALS) != []


def _without(wait: WaitOp) -> None:
    wait.detach()
    wait.erase()
