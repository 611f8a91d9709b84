"""The data files, and the arithmetic on them: figures worked by hand for 8 GPUs."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import get_args

import pytest

from pkc.bench.peers import moe
from pkc.bench.peers.attention import Attention
from pkc.bench.peers.collective import Collective, Exchange
from pkc.bench.peers.gemm import Collective as AroundGemm
from pkc.bench.peers.gemm import Matmul
from pkc.bench.suite import Entry, Machine, fitted, limit_ms, link_ms, machine, machines, suite
from pkc.diagnostics import PkcError
from pkc.dialect.types import PGLType, PrivateType, SignalType
from pkc.driver.compiler import load

EXAMPLES = Path(__file__).parents[2] / "examples"
TILES = Path(__file__).parents[2] / "bench" / "tiles"


def h200() -> Machine:
    found = machine("NVIDIA H200")
    assert found is not None
    return found


def square(collective: AroundGemm, size: int) -> Matmul:
    return Matmul(collective, size, size, size, 8)


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
def test_link_limit_on_8_gpus(collective: AroundGemm, size: int, expected: float) -> None:
    limit = link_ms(square(collective, size), h200().rate(collective, 8))
    assert limit is not None
    assert round(limit, 3) == expected


def test_link_bytes() -> None:
    # 7 other ranks own 1024 rows each, of 8192 columns in 2 bytes.
    assert square("reduce_scatter", 8192).link_bytes == 7 * 1024 * 8192 * 2
    assert square("all_gather", 8192).link_bytes == 7 * 1024 * 8192 * 2
    assert square("none", 8192).link_bytes == 0
    # Of rows it is N that is scattered, and K that is gathered.
    assert Matmul("reduce_scatter", 16, 100, 7, 4).link_bytes == 3 * 4 * 100 * 2
    assert Matmul("all_gather", 16, 100, 7, 4).link_bytes == 3 * 4 * 7 * 2


def test_link_bytes_in_8_bits() -> None:
    tensor, blocks = (suite()[f"ag_gemm_{name}"].problems("8192", 8)[0] for name in ("fp8", "fp8_blocks"))
    assert tensor.link_bytes == 7 * 1024 * 8192
    # With a scale in 4 bytes for 128 columns.
    assert blocks.link_bytes == 7 * 1024 * (8192 + 64 * 4)
    for name in ("fp8", "fp8_blocks"):
        (summed,) = suite()[f"gemm_rs_{name}"].problems("8192", 8)
        assert summed.link_bytes == 7 * 1024 * 8192 * 2
        assert [same.fields for same in summed.alone()] == [{"m": 8192, "n": 8192, "k": 1024}]


def test_blocks_are_whole() -> None:
    (problem,) = suite()["gemm_rs_fp8_blocks"].problems("256x256x640", 2)
    assert problem.uneven == ("K", 320, 128)


def test_flops() -> None:
    # 235 TFLOP/s on each of 8 GPUs are 0.585 ms.
    for collective in ("reduce_scatter", "all_gather"):
        assert round(square(collective, 8192).flops / 0.585e-3 / 1e12) == 235
    assert Matmul("none", 2, 3, 5, 8).flops == 2 * 2 * 3 * 5


def test_a_rank_without_rows() -> None:
    problem = Matmul("reduce_scatter", 10, 8, 8, 8)
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
    assert h200().published_ms("gemm_rs", Matmul("reduce_scatter", 16, 8192, 8192, 8)) is None
    assert h200().published_ms("gemm_rs", Matmul("reduce_scatter", 8192, 8192, 8192, 4)) is None
    assert h200().published_ms("gemm", square("none", 8192)) is None


def test_machines() -> None:
    assert machine("NVIDIA H100") is None
    for known in machines():
        assert known.source
        assert all(set(rates) == {"push", "pull", "reduce"} for rates in known.links.values())
        assert set(known.published) <= set(suite())


def example(kernel: str) -> Path:
    (path,) = EXAMPLES.rglob(f"{kernel}.pk")
    return path


@pytest.mark.parametrize("entry", suite().values(), ids=lambda entry: entry.kernel)
def test_entries_are_examples(entry: Entry) -> None:
    kernel = load(example(entry.kernel)).kernel
    kinds = {kernel.argument_name(arg): arg.type for arg in kernel.body.block.args}
    passed = [kernel.argument_name(arg) for arg in kernel.body.block.args if not kernel.is_scratch(arg)]
    kinds = {name: kinds[name] for name in passed}
    arrays = {name: kind for name, kind in kinds.items() if isinstance(kind, PGLType | PrivateType)}
    assert set(arrays) == {*entry.operands, entry.result}
    (problem,) = entry.problems(entry.sizes.partition(",")[0], ranks=2)
    signals = {name for name, kind in kinds.items() if isinstance(kind, SignalType)}
    assert set(kinds) == {*arrays, *problem.scalars, *signals}
    assert bool(signals) == (entry.derived is not None)
    assert [len(arrays[name].dimensions) for name in entry.operands] == [len(shape) for shape in problem.operands]
    sharded = {name: kind.shard_dim for name, kind in arrays.items() if isinstance(kind, PGLType)}
    positions = dict.fromkeys(arrays, 2)
    first = entry.operands[0]
    spread = {
        "none": {},
        "reduce_scatter": {entry.result: 0},
        "all_gather": {first: 0}
        | ({entry.result: None} if entry.family == "collective" else {})
        | ({"a_scale": 1} if entry.family == "fp8_blocks" else {}),
        "all_reduce": {entry.result: None},
        "ring": positions,
        "all_to_all": {first: 0, entry.result: 1} if entry.family == "collective" else positions,
        "dispatch": {entry.operands[0]: 0},
        "combine": {entry.result: 0},
        "gathered_combine": {entry.operands[0]: None},
        "both": {entry.operands[0]: 0, entry.operands[-1]: None},
    }
    # A protocol that is written out reads the memory of others.
    read = {first: None} if entry.derived and entry.exchange == "all_reduce" else {}
    assert sharded == spread[entry.exchange] | read


@pytest.mark.parametrize("entry", [e for e in suite().values() if e.alone], ids=lambda entry: entry.kernel)
def test_what_is_measured_alone_is_an_example(entry: Entry) -> None:
    assert entry.alone is not None
    kernel = load(example(entry.kernel).parent / entry.alone).kernel
    assert suite()[kernel.sym_name.data].exchange == "none"


@pytest.mark.parametrize("entry", [e for e in suite().values() if e.derived], ids=lambda entry: entry.kernel)
def test_what_a_written_protocol_is_beside_is_an_example(entry: Entry) -> None:
    assert entry.derived is not None
    derived = suite()[load(example(entry.kernel).parent / entry.derived).kernel.sym_name.data]
    assert (derived.family, derived.exchange, derived.derived) == (entry.family, entry.exchange, None)
    assert (derived.operands, derived.result, derived.alone) == (entry.operands, entry.result, entry.alone)


def test_the_limit_of_experts() -> None:
    """On 4 GPUs, 4 experts for each token of 8 experts: FLOPs, memory or the link, at the rates of the machine."""
    known = h200()
    assert (known.matmul, known.memory) == (780, 4227)
    cases: tuple[tuple[str, moe.Exchange, float], ...] = (
        # 4 x 2^13 rows of 2^12 x 2^11: 549.8 GFLOP.
        ("32768x8x4x4096x2048", "dispatch", 549.755813888 / 780),
        # 16 rows: 2 experts' weights of 2^23 elements, 16 x (4096 + 2048) of activations, in 2 bytes.
        ("16x8x4x4096x2048", "none", 2 * (2 * 2**23 + 16 * 6144) / 4227e6),
        ("16x8x4x4096x2048", "both", 2 * (6 * 2**23 + 2 * 16 * 4096 + 4 * 4096) / 4227e6),
    )
    for size, exchange, milliseconds in cases:
        problem = moe.parse(size, exchange, 4)
        assert problem is not None
        assert limit_ms(problem, known, 1e9, 0.0) == pytest.approx(milliseconds)
    problem = moe.parse("8192x8x4x4096x2048", "combine", 4)
    assert problem is not None
    link = link_ms(problem, known.rate("combine", 4))
    # Of 70 choices of 4 experts 15 are without the 2 of a rank: it sends the rows of 55 in 70 of the others' tokens.
    assert link == pytest.approx(2 * 4096 * 6144 * 55 / 70 / 343e6, rel=0.1)
    assert limit_ms(problem, known, None, link) == link
    assert limit_ms(problem, None, None, link) is None


def test_sizes_of_matmuls() -> None:
    found = suite()["gemm_rs"].problems("4096, 16x8192x512", 2)
    assert found == [Matmul("reduce_scatter", 4096, 4096, 4096, 2), Matmul("reduce_scatter", 16, 8192, 512, 2)]
    assert [problem.size for problem in found] == ["4096x4096x4096", "16x8192x512"]


@pytest.mark.parametrize("text", ["", "0", "-4", "4x4", "4x4x", "1x2x3x4", "x4", "4096,", "4k", "4+causal"])
def test_sizes_that_are_no_matmul(text: str) -> None:
    with pytest.raises(PkcError, match="PK942"):
        suite()["gemm"].problems(text, 1)


def test_sizes_of_attention() -> None:
    found = suite()["ring_attention"].problems("4x16x8192,1x2x3x64+causal,1x4x8+causal+zigzag", 4)
    assert found == [
        Attention("ring", 4, 16, 8192, 8192, 128, False, 4),
        Attention("ring", 1, 2, 3, 3, 64, True, 4),
        Attention("ring", 1, 4, 8, 8, 128, True, 4, zigzag=True),
    ]
    assert found[2].constants == {"D": 128, "causal": True, "zigzag": True}
    zigzag = found[2]
    assert isinstance(zigzag, Attention) and zigzag.positions(1) == [1, 6]
    assert [problem.size for problem in found] == ["4x16x8192x128", "1x2x3x64+causal", "1x4x8x128+causal+zigzag"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "4096",
        "4x16",
        "4x16x0",
        "1x2x3x4x5",
        "4x16x8192causal",
        "+causal",
        "1x2x3 +causal",
        "4x16x8+zigzag",
        "4x16x8+zigzag+causal",
    ],
)
def test_sizes_that_are_no_attention(text: str) -> None:
    with pytest.raises(PkcError, match="PK942"):
        suite()["attention"].problems(text, 1)


def test_flops_of_attention() -> None:
    # Q K^T and P V: 2 x 2 x 4 x 16 x 8192 x 8192 x 128. At 654 TFLOP/s that is 3.36 ms.
    (whole, causal) = suite()["attention"].problems("4x16x8192,4x16x8192+causal", 1)
    assert whole.flops == 4 * 4 * 16 * 8192 * 8192 * 128
    assert round(whole.flops / 654e12 * 1e3, 2) == 3.36
    assert causal.flops == whole.flops / 2
    # The ranks share the rows (ring) or the heads (all-to-all).
    for kernel in ("ring_attention", "ulysses_attention"):
        (spread,) = suite()[kernel].problems("4x16x8192", 4)
        assert spread.flops == whole.flops / 4


def test_link_bytes_of_attention() -> None:
    shard = 4 * 16 * (24576 // 4) * 128 * 2
    (ring,) = suite()["ring_attention"].problems("4x16x24576", 4)
    assert ring.link_bytes == 3 * 2 * shard
    # Of Q, K, V and O three quarters belong to heads of other ranks.
    (heads,) = suite()["ulysses_attention"].problems("4x16x24576", 4)
    assert heads.link_bytes == 4 * shard * 3 // 4
    (one,) = suite()["ring_attention"].problems("4x16x24576", 1)
    assert one.link_bytes == 0
    # 201 MB at 343 GB/s.
    limit = link_ms(heads, h200().rate(heads.exchange, 4))
    assert limit is not None
    assert round(limit, 3) == round(3 * shard / 343e6, 3)


def test_the_same_attention_alone() -> None:
    """As much work as a rank has, and no communication."""
    ring, causal = suite()["ring_attention"].problems("2x8x64,2x8x64+causal", 4)
    assert ring.alone() == (Attention("none", 2, 8, 16, 64, 128, False, 4),)
    # A rank's rows of a causal mask are not those of the others: a rank's share of heads is.
    assert causal.alone() == (Attention("none", 2, 2, 64, 64, 128, True, 4),)
    (heads,) = suite()["ulysses_attention"].problems("2x8x64", 4)
    assert heads.alone() == (Attention("none", 2, 2, 64, 64, 128, False, 4),)
    for problem in (ring, causal, heads):
        (alone,) = problem.alone()
        assert not alone.alone()
        assert (alone.flops, alone.link_bytes, alone.uneven) == (problem.flops, 0, None)
    (one,) = suite()["ring_attention"].problems("2x8x64", 1)
    assert not one.alone()


def test_sizes_of_collectives() -> None:
    (found,) = suite()["all_reduce"].problems("512x1024", 4)
    assert found == Collective("all_reduce", 512, 1024, 4)
    assert (found.size, found.fields, found.flops, found.alone()) == ("512x1024", {"m": 512, "n": 1024}, 0, ())
    for text in ("512", "512x1024x8", "0x8", "512x1024+causal"):
        with pytest.raises(PkcError, match="PK942"):
            suite()["all_reduce"].problems(text, 1)


def test_what_collectives_send() -> None:
    """A matrix of 1 MiB on 4 GPUs: three quarters of it to their owners, and each quarter's sum to three others."""
    quarter = 2**18
    assert Collective("reduce_scatter", 512, 1024, 4).link_bytes == 3 * quarter
    assert Collective("all_gather", 512, 1024, 4).link_bytes == 3 * quarter
    assert Collective("all_reduce", 512, 1024, 4).link_bytes == 6 * quarter
    assert Collective("all_to_all", 512, 1024, 4).link_bytes == 3 * quarter // 4
    assert Collective("all_reduce", 512, 1024, 1).link_bytes == 0


def test_what_collectives_begin_and_end_with() -> None:
    shapes = {
        "all_reduce": ((8, 6), (8, 6)),
        "reduce_scatter": ((8, 6), (4, 6)),
        "all_gather": ((4, 6), (8, 6)),
        "all_to_all": ((4, 6), (8, 3)),
    }
    for exchange in get_args(Exchange):
        found = Collective(exchange, 8, 6, 2)
        assert (found.local, found.local_result) == shapes[exchange]
        assert Collective(exchange, 9, 6, 2).uneven == ("M", 9, 2)
    assert Collective("all_to_all", 8, 7, 2).uneven == ("N", 7, 2)
    assert Collective("all_gather", 8, 7, 2).uneven is None


def test_fitted_sizes_are_those_of_the_times_that_are_kept() -> None:
    kept: dict[str, dict[str, set[str]]] = {"attention": {"1": set()}}
    for name in ("h200_x4", "h200_x4_slices"):
        for entry in tomllib.loads((TILES / f"{name}.toml").read_text(encoding="utf-8"))["measured"]:
            kept.setdefault(entry["kernel"], {"4": set()})["4"].add("x".join(map(str, entry["size"])))
    for entry in tomllib.loads((TILES / "h200_attention.toml").read_text(encoding="utf-8"))["measured"]:
        sizes = (*(entry["dims"][dim] for dim in "BHS"), entry["constants"]["D"])
        kept["attention"]["1"].add("x".join(map(str, sizes)))
    assert {name: {ranks: set(sizes) for ranks, sizes in known.items()} for name, known in fitted().items()} == kept
