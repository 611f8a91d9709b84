"""Rows that lie in the CTAs of a cluster: each has its part, and all have what the row reduces to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pkc.codegen.build import build_kernel, machine_level
from pkc.driver.compiler import Compiled, compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes.analysis.row_lanes import shared_words
from tests.codegen.clustered import Cluster
from tests.codegen.threads import Cta, Memory, warps

ROWS = 2
"""No more than channels have stages; each has two reductions, so that the places of exchanges come again."""


def program(length: int) -> str:
    return (
        f"kernel k(X: f32[M, {length}], w: f32[{length}], Y: f32[M, {length}], Z: f32[M]):\n"
        "    for m in tasks(M):\n"
        "        c = X[m, :] - rowmax(X[m, :])\n"
        "        Z[m] = rowsum(c)\n"
        "        Y[m, :] = c * w[:] + rowsum(c)\n"
    )


def of_blocks(length: int) -> str:
    """What rows of a block reduce to is reduced in each CTA: warps have other rows."""
    return (
        f"kernel k(X: f32[M, {length}], Y: f32[M, {length}]):\n"
        "    for m in tasks(blocks(M, 4)):\n"
        "        x = X[m, :]\n"
        "        Y[m, :] = x * rowmax(rowsum(x)) + rowmin(rowmax(x))\n"
    )


def compiled(text: str, cluster: int) -> Compiled:
    schedule = {"cluster": str(cluster), "consumers": "1"}
    return compile_program(parse_text(Source("k.pk", text)), level="roles", schedule=schedule)


def run(roles: Compiled, cluster: int, given: dict[str, np.ndarray[Any, Any]], rows: int) -> Memory:
    """What is in memory after one cluster has done everything, its loaders first."""
    lowered = machine_level(roles.kernel)
    memory = Memory(lowered, 1, {"M": rows})
    for name, content in given.items():
        memory.arrays[name][0][...] = content
    ctas = [Cta(memory, 0, number, cluster) for number in range(cluster)]
    memory.ctas = ctas
    for role, (_, threads) in zip(("loader", "consumer", "storer"), warps(roles.kernel, 1), strict=True):
        if role == "consumer":
            Cluster(ctas).run(lowered.body.block, threads)
        else:
            for cta in ctas:
                cta.run(lowered.body.block, threads)
    return memory


def test_every_cta_has_what_the_whole_row_reduces_to() -> None:
    """Of parts that no box divides evenly, and that are copied as they lie in memory."""
    length, cluster = 2 * 1096, 2
    roles = compiled(program(length), cluster)
    assert "tma_load_row" in str(machine_level(roles.kernel))
    draw = np.random.default_rng(1)
    given: dict[str, np.ndarray[Any, Any]] = {
        "X": draw.integers(-500, 500, (ROWS, length)),
        "w": draw.integers(1, 9, length),
    }
    memory = run(roles, cluster, given, ROWS)
    c = given["X"] - given["X"].max(axis=1, keepdims=True)
    total = c.sum(axis=1)
    np.testing.assert_array_equal(memory.arrays["Z"][0], total)
    np.testing.assert_array_equal(memory.arrays["Y"][0], c * given["w"] + total[:, None])


@pytest.mark.parametrize("tasks", ["tasks(M)", "tasks(blocks(M, 4))"])
def test_loops_carry_parts_of_rows(tasks: str) -> None:
    """Each CTA has its part of what a loop leaves of a row, which is reduced over all of them in each iteration."""
    length, cluster = 2 * 1096, 2
    text = (
        f"kernel k(X: f32[M, {length}], Y: f32[M, {length}], Z: f32[M]):\n"
        f"    for m in {tasks}:\n"
        "        x = X[m, :]\n"
        "        rest = x; t = rowmax(x)\n"
        "        for k in range(3):\n"
        "            t = rowmax(rest)\n"
        "            rest = where(rest >= t, -9999.0, rest)\n"
        "        Z[m] = t\n"
        "        Y[m, :] = where(x >= t, x, 0.0) + rest\n"
    )
    roles = compiled(text, cluster)
    x = np.array([np.random.default_rng(3 + row).permutation(length) for row in range(ROWS)]) - 1000
    memory = run(roles, cluster, {"X": x}, ROWS)
    top = length - 1000
    np.testing.assert_array_equal(memory.arrays["Z"][0], [top - 3] * ROWS)
    np.testing.assert_array_equal(memory.arrays["Y"][0], np.where(x >= top - 3, x - 9999, x))


def test_words_of_other_warps_lie_behind_those_of_other_ctas() -> None:
    """One word for each warp where the barriers of the cluster are would end every wait for its CTAs."""
    length, rows = 1024, 4
    x = np.random.default_rng(2).integers(-9, 9, (rows, length))
    roles = compiled(of_blocks(length), 2)
    assert "send_cluster_b32" in str(machine_level(roles.kernel))
    memory = run(roles, 2, {"X": x}, rows)
    wanted = x * x.sum(axis=1).max() + x.max(axis=1).min()
    np.testing.assert_array_equal(memory.arrays["Y"][0], wanted)


def test_words_are_as_many_as_are_sent() -> None:
    """In two places one from each CTA, for the one row that all warps have; two mbarriers of two words; and for each
    warp one in front of what is sent, and one for what has nothing to do with the cluster."""
    roles, cluster = compiled(program(4096), 8), 8
    (words, warps) = next((shared_words(role, 32), role.warps) for role in roles.kernel.roles if shared_words(role, 32))
    assert warps is not None
    assert words == 2 * 2 + 2 * cluster + 2 * warps.value.data


def test_a_launch_has_the_clusters_of_its_kernel() -> None:
    built = build_kernel(compiled(program(4096), 4).kernel)
    assert built.artifact.cluster == 4
    assert "barrier.cluster" in built.source and "st.async" in built.source
