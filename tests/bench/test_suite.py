"""The data files, and the arithmetic on them: figures worked by hand for 8 GPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

from pkc.bench.peers import Collective, Problem
from pkc.bench.suite import Entry, Machine, link_ms, machine, machines, suite
from pkc.dialect.types import PGLType, PrivateType
from pkc.driver.compiler import load

EXAMPLES = Path(__file__).parents[2] / "examples"


def h200() -> Machine:
    found = machine("NVIDIA H200")
    assert found is not None
    return found


def square(collective: Collective, size: int) -> Problem:
    return Problem(collective, size, size, size, 8)


@pytest.mark.parametrize(
    ("collective", "size", "expected"),
    [
        ("reduce_scatter", 2048, 0.024),
        ("reduce_scatter", 4096, 0.094),
        ("reduce_scatter", 8192, 0.378),
        ("reduce_scatter", 16384, 1.510),
        ("reduce_scatter", 32768, 6.042),
        ("all_gather", 2048, 0.021),
        ("all_gather", 4096, 0.086),
        ("all_gather", 8192, 0.342),
        ("all_gather", 16384, 1.370),
        ("all_gather", 32768, 5.478),
    ],
)
def test_link_limit_on_8_gpus(collective: Collective, size: int, expected: float) -> None:
    limit = link_ms(square(collective, size), h200().rate(collective, 8))
    assert limit is not None
    assert round(limit, 3) == expected


def test_link_bytes() -> None:
    # 7 other ranks own 1024 rows each, of 8192 columns in 2 bytes.
    assert square("reduce_scatter", 8192).link_bytes == 7 * 1024 * 8192 * 2
    assert square("all_gather", 8192).link_bytes == 7 * 1024 * 8192 * 2
    assert square("none", 8192).link_bytes == 0
    # Of rows it is N that is scattered, and K that is gathered.
    assert Problem("reduce_scatter", 16, 100, 7, 4).link_bytes == 3 * 4 * 100 * 2
    assert Problem("all_gather", 16, 100, 7, 4).link_bytes == 3 * 4 * 7 * 2


def test_flops() -> None:
    # 235 TFLOP/s on each of 8 GPUs are 0.585 ms.
    for collective in ("reduce_scatter", "all_gather"):
        assert round(square(collective, 8192).flops / 0.585e-3 / 1e12) == 235
    assert Problem("none", 2, 3, 5, 8).flops == 2 * 2 * 3 * 5


def test_a_rank_without_rows() -> None:
    problem = Problem("reduce_scatter", 10, 8, 8, 8)
    assert [problem.owned(rank) for rank in range(8)] == [2, 2, 2, 2, 2, 0, 0, 0]
    assert problem.link_bytes == 7 * 2 * 8 * 2


def test_rates_of_other_numbers_of_gpus() -> None:
    assert h200().rate("reduce_scatter", 2) == 316
    assert h200().rate("all_gather", 2) == 352
    assert h200().rate("all_gather", 4) == 343
    assert h200().rate("all_gather", 16) is None
    assert h200().rate("all_gather", 1) is None
    assert h200().rate("none", 8) is None
    assert link_ms(square("none", 8), None) is None


def test_published_figures() -> None:
    assert h200().published_ms("gemm_rs", square("reduce_scatter", 8192)) == 0.478
    assert h200().published_ms("ag_gemm", square("all_gather", 2048)) is None
    assert h200().published_ms("gemm_rs", Problem("reduce_scatter", 16, 8192, 8192, 8)) is None
    assert h200().published_ms("gemm_rs", Problem("reduce_scatter", 8192, 8192, 8192, 4)) is None
    assert h200().published_ms("gemm", square("none", 8192)) is None


def test_machines() -> None:
    assert machine("NVIDIA H100") is None
    for known in machines():
        assert known.source
        assert all(set(rates) == {"push", "pull", "reduce"} for rates in known.links.values())
        assert set(known.published) <= set(suite())


@pytest.mark.parametrize("entry", suite().values(), ids=lambda entry: entry.kernel)
def test_entries_are_examples(entry: Entry) -> None:
    kernel = load(EXAMPLES / f"{entry.kernel}.pk").kernel
    kinds = {kernel.argument_name(arg): arg.type for arg in kernel.body.block.args}
    assert set(kinds) == {*entry.operands, entry.result}
    sharded = {name for name, kind in kinds.items() if isinstance(kind, PGLType) and kind.shard_dim == 0}
    spread = {"none": set[str](), "reduce_scatter": {entry.result}, "all_gather": {entry.operands[0]}}
    assert sharded == spread[entry.collective]
    assert all(isinstance(kinds[name], PrivateType) for name in set(kinds) - sharded)


@pytest.mark.parametrize("entry", [e for e in suite().values() if e.alone], ids=lambda entry: entry.kernel)
def test_what_is_measured_alone_is_an_example(entry: Entry) -> None:
    assert entry.alone is not None
    kernel = load(EXAMPLES / entry.alone).kernel
    assert suite()[kernel.sym_name.data].collective == "none"
