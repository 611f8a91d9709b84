"""Why rows stay in one CTA although the schedule asks for clusters."""

from __future__ import annotations

import pytest

from pkc.driver.compiler import compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes.roles.plan_clusters import PlanClusters
from pkc.passes.run import run_pipeline
from pkc.remarks import collecting

ROWS = "    for m in tasks(M):\n"
SUM = ROWS + "        Z[m] = rowsum(X[m, :])\n"
PRIVATE = "kernel k(X: f32[M, 4096], Z: f32[M]):\n"
REASONS = {
    "no rows are reduced": "kernel k(X: f32[M, 4096]):\n" + ROWS + "        X[m, :] = X[m, :] * 2.0\n",
    "rows of 512 elements are too short": PRIVATE.replace("4096", "512") + SUM,
    "other ranks or an author's roles count on single CTAs": "kernel k(X: f32[M, 4096], Z: f32[M].symmetric()):\n"
    + SUM,
    "each CTA would carry out `pk.store_add`": PRIVATE + ROWS + "        store_add(Z[m], rowsum(X[m, :]))\n",
    "blocks of 4096 elements are not a whole dimension": "kernel k(X: f32[M, 8192], Z: f32[M, 8192]):\n"
    "    for m, n in tasks(M, blocks(8192, 4096)):\n        Z[m, n] = X[m, n] - rowsum(X[m, n])\n",
    "`pk.mma` needs rows whole": "kernel k(A: bf16[M, 64], B: bf16[64, 4096], Z: f32[M]):\n"
    "    for m in tasks(blocks(M, 64)):\n        Z[m] = rowsum(A[m, :] @ B[:, :])\n",
    "another axis of a tile is as long": "kernel k(X: f32[4096, 4096], Z: f32[4096]):\n    Z[:] = rowsum(X[:, :])\n",
    "a part of a row is no multiple of 16 bytes": "kernel k(X: e4m3[M, 4112], Z: f32[M]):\n"
    + ROWS
    + "        Z[m] = rowsum(cast(X[m, :], f32))\n",
}


@pytest.mark.parametrize("reason", REASONS)
def test_what_stays_in_one_cta_says_why(reason: str) -> None:
    compiled = compile_program(parse_text(Source("k.pk", REASONS[reason])), level="tile", schedule={"cluster": "2"})
    with collecting() as remarks:
        run_pipeline(compiled.module, [PlanClusters()], verify_each=False)
    assert [remark.reason for remark in remarks] == [f"CTAs form no clusters of 2: {reason}"]
    assert not {"cluster", "spread"} & compiled.kernel.attributes.keys()
