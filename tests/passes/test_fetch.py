"""Operands of other ranks in many shapes: what is decided of each transfer, why not more, and that the bits stay."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import pytest
from xdsl.dialects.builtin import ModuleOp

from pkc.check.run import TRIALS, baseline_of, check_roles
from pkc.check.static import check_statically
from pkc.diagnostics import PkcError
from pkc.dialect.program import KernelOp
from pkc.driver.compiler import Compiled, compile_program
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes import ROLES_PIPELINE
from pkc.passes.roles.expand_fetch import ExpandFetch
from pkc.passes.roles.fetches import fetches, read_of
from pkc.passes.roles.plan_fetch import PlanFetch
from pkc.passes.roles.remote_accesses import array_name
from pkc.passes.roles.stage_remote_reads import StageRemoteReads
from pkc.passes.run import run_pipeline
from pkc.sim.draw import draw_inputs
from pkc.sim.run import simulate
from tests.sweeps import sweep

SCHEDULES = (
    {},
    {"overlap": "none"},
    {"overlap": "inter_sm", "comm_sms": "20"},
    {"overlap": "copy_engine"},
    {"transfer": "push"},
    {"straddle": "true"},
    {"split_K": "2"},
    {"transfer": "push", "split_K": "2"},
)
DIMS = {"M": 50, "N": 20, "K": 36, "H": 3, "S": 70}
REFUSED = {"PK430", "PK432", "PK438", "PK442", "PK443", "PK464"}
ONE_BY_ONE = "awaited one by one: a copy engine brings each in one copy"


@dataclass(frozen=True)
class Case:
    text: str
    decided: list[tuple[str, str]]
    """Of each transfer: its arrays, and what is decided without a schedule."""
    remarks: list[str] = field(default_factory=list[str])
    dims: dict[str, int] = field(default_factory=dict[str, int])


CASES = {
    "both operands of a matmul": Case(
        """
kernel k(A: bf16[M, K].shard(0), B: bf16[K, N].shard(1), C: bf16[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 16):
            acc += A[m, k] @ B[k, n]
        C[m, n] = acc
""",
        [("A", "local spread 1 group 256"), ("B", "local spread 1 group 256")],
    ),
    "operands that shard what is summed": Case(
        """
kernel k(A: bf16[M, K].shard(1), B: bf16[K, N].shard(0), C: bf16[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 16):
            acc += A[m, k] @ B[k, n]
        C[m, n] = acc
""",
        [("A", "local spread 1 group 256"), ("B", "local spread 1 group 256")],
    ),
    "blocks that are skipped in front, in parts of a loop too": Case(
        """
kernel k(A: f32[M, K].shard(0), B: f32[K, N], C: f32[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 16):
            acc += where(positions(m) <= positions(k), A[m, k], 0.0) @ B[k, n]
        C[m, n] = acc
""",
        [("A", "local spread 1 group 128")],
        ["what no task of a rank visits of `A` is fetched too: it lies in front of what tasks need"],
    ),
    "one operand in two loops": Case(
        """
kernel k(A: bf16[M, K].shard(0), B: bf16[K, N], D: bf16[K, N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 16)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 128):
            acc += A[m, k] @ B[k, n]
        gate = zeros(f32, m, n)
        for k in blocks(K, 128):
            gate += A[m, k] @ D[k, n]
        C[m, n] = acc * gate
""",
        [("A A", "local spread 1 group 8")],
        dims={"M": 150, "N": 24, "K": 2300},
    ),
    "one operand in two loops over other tiles": Case(
        """
kernel k(A: bf16[M, K].shard(0), B: bf16[K, N], D: bf16[K, N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 16):
            acc += A[m, k] @ B[k, n]
        for j in blocks(K, 32):
            acc += A[m, j] @ D[j, n]
        C[m, n] = acc
""",
        [("A", "local spread 1 group 256"), ("A", "local spread 1 group 128")],
        ["`A` is fetched once more: its tiles here are others, or for another phase"],
    ),
    "a matmul of a matmul": Case(
        """
kernel k(A: bf16[M, K].shard(0), B: bf16[M, N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        acc = zeros(f32, m, n)
        for i in blocks(M, 16):
            s = zeros(f32, m, i)
            for k in blocks(K, 16):
                s += A[m, k] @ A[i, k].T
            acc += cast(s, bf16) @ B[i, n]
        C[m, n] = acc
""",
        [("A A", "local spread 1")],
        ["tiles of `A` are awaited all at once: they are read in a loop inside of another one"],
    ),
    "two passes over keys and values": Case(
        """
kernel k(Q: bf16[S, D].shard(0), K: bf16[S, D].shard(0), V: bf16[S, D].shard(0), O: bf16[S, D].shard(0),
         D: const = 16):
    for q in tasks(blocks(S, 16, of=rank)):
        top = full(f32, -inf, q)
        for r in ring():
            for kv in blocks(S, 16, of=r):
                top = max(top, rowmax(Q[q] @ K[kv].T))
        o = zeros(f32, q, D)
        for r in ring():
            for kv in blocks(S, 16, of=r):
                o = o + cast(exp2(Q[q] @ K[kv].T - top), bf16) @ V[kv]
        O[q] = o
""",
        [("K K", "local spread 2 group 256"), ("V", "local spread 2 group 256")],
    ),
    "blocks that tasks skip": Case(
        """
kernel k(Q: bf16[S, D].shard(0), K: bf16[S, D].shard(0), V: bf16[S, D].shard(0), O: bf16[S, D].shard(0),
         D: const = 16):
    for q in tasks(blocks(S, 16, of=rank)):
        o = zeros(f32, q, D)
        for r in ring():
            for kv in blocks(S, 16, of=r):
                s = where(positions(q) >= positions(kv), Q[q] @ K[kv].T, 0.0)
                o = o + cast(s, bf16) @ V[kv]
        O[q] = o
""",
        [("K V", "local spread 2 group 128 visited")],
    ),
    "blocks that tasks skip, in zigzag order": Case(
        """
kernel k(Q: bf16[S, D].shard(0, zigzag=True), K: bf16[S, D].shard(0, zigzag=True), O: bf16[S, D].shard(0, zigzag=True),
         D: const = 16):
    for q in tasks(blocks(S, 16, of=rank)):
        o = zeros(f32, q, D)
        for r in ring():
            for kv in blocks(S, 16, of=r):
                s = where(positions(q) >= positions(kv), Q[q] @ K[kv].T, 0.0)
                o = o + cast(s, bf16) @ K[kv]
        O[q] = o
""",
        [("K", "local spread 2 group 256 visited")],
    ),
    "a window of all shards in one list": Case(
        """
kernel k(Q: bf16[S, 128].shard(0), K: bf16[S, 128].shard(0), Y: f32[S].shard(0)):
    for q in tasks(blocks(S, 64, of=rank)):
        top = full(f32, -inf, q)
        for kv in blocks(S, 64):
            s = where(positions(q) >= positions(kv) and positions(q) - positions(kv) < 200, Q[q] @ K[kv].T, -inf)
            top = max(top, rowmax(s))
        Y[q] = top
""",
        [("K", "local spread 1 group 8 visited")],
        dims={"S": 1400},  # of which no shard has a multiple of 8 blocks
    ),
    "blocks that tasks skip, in groups": Case(
        """
kernel k(Q: bf16[S, D].shard(0), K: bf16[S, D].shard(0), V: bf16[S, D].shard(0), O: bf16[S, D].shard(0),
         D: const = 64):
    for q in tasks(blocks(S, 64, of=rank)):
        o = zeros(f32, q, D)
        for r in ring():
            for kv in blocks(S, 64, of=r):
                s = where(positions(q) >= positions(kv), Q[q] @ K[kv].T, 0.0)
                o = o + cast(s, bf16) @ V[kv]
        O[q] = o
""",
        [("K V", "local spread 2 group 8 visited")],
        dims={"S": 1500},
    ),
    "blocks that tasks skip in front, in groups": Case(
        """
kernel k(Q: bf16[S, D].shard(0, zigzag=True), K: bf16[S, D].shard(0, zigzag=True), O: bf16[S, D].shard(0, zigzag=True),
         D: const = 128):
    for kv in tasks(blocks(S, 32, of=rank)):
        o = zeros(f32, kv, D)
        for r in ring():
            for q in blocks(S, 64, of=r):
                s = where(positions(kv) <= positions(q), K[kv] @ Q[q].T, 0.0)
                o = o + cast(s, bf16) @ Q[q]
        O[kv] = o
""",
        [("Q", "local spread 2 group 8")],
        ["what no task of a rank visits of `Q` is fetched too: it lies in front of what tasks need"],
        dims={"S": 1500},
    ),
    "blocks that tasks skip, at two places": Case(
        """
kernel k(Q: bf16[S, D].shard(0), K: bf16[S, D].shard(0), O: bf16[S, D].shard(0), D: const = 16):
    for q in tasks(blocks(S, 16, of=rank)):
        o = zeros(f32, q, D)
        for r in ring():
            for kv in blocks(S, 16, of=r):
                s = where(positions(q) >= positions(kv), Q[q] @ K[kv].T, 0.0)
                o = o + cast(s, bf16) @ K[kv]
        for r in ring():
            for kv in blocks(S, 16, of=r):
                s = where(positions(q) > positions(kv), Q[q] @ K[kv].T, 0.0)
                o = o + cast(s, bf16) @ K[kv]
        O[q] = o
""",
        [("K K", "local spread 2 group 256")],
        ["what no task of a rank visits of `K` is fetched too: they are read at several places"],
    ),
    "keys and values of heads that a rank has": Case(
        """
kernel k(Q: bf16[H, S, D].shard(1), K: bf16[H, S, D].shard(1), V: bf16[H, S, D].shard(1), O: bf16[H, S, D].shard(1),
         D: const = 16):
    for h, q in tasks(blocks(H, 1, of=rank), blocks(S, 16)):
        o = zeros(f32, q, D)
        for kv in blocks(S, 16):
            o = o + cast(Q[h, q] @ K[h, kv].T, bf16) @ V[h, kv]
        O[h, q] = o
""",
        [("K V", "local spread 1 group 128")],
    ),
    "rows of several matrices": Case(
        """
kernel k(A: bf16[H, M, K].shard(1), B: bf16[K, N], C: bf16[H, M, N]):
    for h, m, n in tasks(H, blocks(M, 16), blocks(N, 16)):
        acc = zeros(f32, m, n)
        for k in blocks(K, 16):
            acc += A[h, m, k] @ B[k, n]
        C[h, m, n] = acc
""",
        [("A", "local spread 1 group 256")],
    ),
    "two loops through the tiles of a row": Case(
        """
kernel k(A: bf16[M, H, K].shard(0), B: bf16[H, K, N], C: bf16[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        acc = zeros(f32, m, n)
        for h in range(H):
            for k in blocks(K, 16):
                acc += A[m, h, k] @ B[h, k, n]
        C[m, n] = acc
""",
        [("A", "local spread 2")],
        ["tiles of `A` are awaited all at once: they are no list of blocks that one loop goes through"],
    ),
    "a loop whose length another one says": Case(
        """
kernel k(A: f32[M, K, H].shard(0), C: f32[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        acc = zeros(f32, m, n)
        for i in range(3):
            for j in range(i + 1):
                acc = acc + A[m, i, j]
        C[m, n] = acc
""",
        [("A", "local spread 1")],
        [
            "only the outer loops of copies of `A` are spread over CTAs: another index says how many iterations a loop"
            " over its tiles has",
            "tiles of `A` are awaited all at once: one CTA fetches all tiles of a counter's last loops",
        ],
    ),
    "columns that no block picks": Case(
        """
kernel k(X: f32[H, M].shard(0), Y: f32[M, N]):
    for m, n in tasks(blocks(M, 16), blocks(N, 16)):
        acc = zeros(f32, m, n)
        for j in range(1, 3):
            acc = acc + X[j, m]
        Y[m, n] = acc
""",
        [("X", "")],
        [
            "the local shard of `X` is copied too: no counter is for blocks of one rank alone",
            "copies of `X` are not spread over CTAs: a loop over its tiles does not go up from 0 in steps of 1",
            "tiles of `X` are awaited one by one: one CTA fetches them",
        ],
    ),
}


def loaded(case: Case, schedule: dict[str, str], level: str = "roles") -> Compiled:
    program = parse_text(Source("k.pk", case.text.strip() + "\n"))
    return compile_program(program, schedule=schedule, level=level)


def sizes(case: Case) -> dict[str, int]:
    tile = loaded(case, {}, "tile")
    used = {dim for arg in tile.kernel.body.block.args for dim in getattr(arg.type, "dimensions", ())}
    return {dim: size for dim, size in {**DIMS, **case.dims}.items() if dim in used}


@cache
def legal(name: str) -> list[tuple[str, Compiled]]:
    """The roles level as it comes, and with every other schedule that a kernel can have."""
    found: list[tuple[str, Compiled]] = []
    for schedule in (SCHEDULES[0], *SCHEDULES[1 + list(CASES).index(name) % 2 :: 2]):
        try:
            found.append((str(schedule), loaded(CASES[name], schedule)))
        except PkcError as error:
            # Refused with a reason, which other tests are about.
            assert {finding.code for finding in error.diagnostics} <= REFUSED
    return found


def decisions(module: ModuleOp) -> list[tuple[str, str]]:
    run_pipeline(
        module, ROLES_PIPELINE[: [type(step) for step in ROLES_PIPELINE].index(ExpandFetch)], verify_each=False
    )
    found: list[tuple[str, str]] = []
    for kernel in module.ops:
        assert isinstance(kernel, KernelOp)
        for fetch in fetches(kernel):
            names = " ".join(array_name(read_of(op).array) for op in fetch.ops)
            numbers = {"spread": len(fetch.spread), "group": fetch.group}
            words = ["local"] if fetch.first.local is not None else []
            words += [f"{word} {number}" for word, number in numbers.items() if number]
            words += ["visited"] if fetch.first.visited is not None else []
            found.append((names, " ".join(words)))
    return found


@pytest.mark.parametrize("name", CASES)
def test_what_is_decided_and_why_not_more(name: str) -> None:
    case = CASES[name]
    assert decisions(loaded(case, {}, "tile").module) == case.decided
    passes = (StageRemoteReads.name, PlanFetch.name)
    assert [remark.reason for remark in loaded(case, {}).remarks if remark.step in passes] == case.remarks


@pytest.mark.parametrize("name", CASES)
def test_copy_engines_bring_all_of_a_counter(name: str) -> None:
    """Which is said of each, as CTAs would have brought less or awaited more at once."""
    case = CASES[name]
    try:
        remarks = loaded(case, {"overlap": "copy_engine"}).remarks
    except PkcError as error:
        assert {finding.code for finding in error.diagnostics} <= REFUSED
        return
    found = [remark.reason for remark in remarks if remark.step == PlanFetch.name]
    alone = [reason for reason in found if ONE_BY_ONE in reason]
    rest = [reason for reason in found if "all at once: a copy engine brings all tiles of a counter in" in reason]
    said = "; ".join((*alone, *rest))
    assert all(f"tiles of `{arrays[0]}`" in said for arrays, _ in case.decided)
    assert not any("spread over CTAs" in reason for reason in found)


@pytest.mark.parametrize("name", sweep(CASES, lambda name: list(CASES).index(name) % 2 == 0))
def test_the_bits_are_those_of_the_tile_level(name: str) -> None:
    dims = sizes(CASES[name])
    wrong: list[str] = []
    for round_, ranks in enumerate((1, 2, 3, 5)):
        inputs = draw_inputs(loaded(CASES[name], {}, "tile").module, ranks=ranks, dims=dims, seed=ranks)
        expected: dict[bool, dict[str, bytes]] = {}
        for number, (schedule, compiled) in enumerate(legal(name)):
            if number and (number + round_) % 2:
                continue  # schedules alternate
            added = "split_K" in schedule  # another order of additions, at both levels
            if added not in expected:
                tile = loaded(CASES[name], {"split_K": "2"} if added else {}, "tile").module
                outputs = simulate(tile, ranks=ranks, dims=dims, inputs=inputs)
                expected[added] = {array: values.tobytes() for array, values in outputs.items()}
            ctas, seed = (number + ranks) % 3 + 1, number + 10 * ranks
            outputs = simulate(compiled.module, ranks=ranks, dims=dims, inputs=inputs, seed=seed, ctas=ctas)
            if {array: values.tobytes() for array, values in outputs.items()} != expected[added]:
                wrong.append(f"{schedule} ranks={ranks} ctas={ctas} seed={seed}")
    assert not wrong


@pytest.mark.parametrize("name", sweep(CASES, lambda name: list(CASES).index(name) % 2 == 1))
def test_the_protocol_holds_for_launch_after_launch(name: str) -> None:
    """In the simulator, which finds races too; and for more ranks in the static layer."""
    dims = sizes(CASES[name])
    meaning = baseline_of(loaded(CASES[name], {}, "tile"), ranks=2, dims=dims, launches=2)
    wrong: list[str] = []
    for number, (schedule, compiled) in enumerate(legal(name)):
        if schedule == "{}":
            wrong += [f"{schedule}: {found}" for found in check_roles(compiled, meaning, TRIALS[:3])]
        ranks = (4, 3, 2, 5, 1)[number % 5]
        found = check_statically(compiled.kernel, ranks=ranks, dims=dims)
        assert not found.undecided
        wrong += [f"{schedule}, {ranks} ranks: {finding}" for finding in found.findings]
    assert not wrong


HEADS = """
kernel k(Q: bf16[H, S, 16], K: bf16[G, S, 16].shard(1), Y: f32[H, S]):
    for {tasks}:
        {named}
        top = full(f32, -inf, q)
        for kv in blocks(S, 16):
            top = max(top, rowmax(Q[h, q] @ K[g, kv].T))
        Y[h, q] = top
"""


def test_a_tile_that_several_tasks_share_comes_once_if_an_index_names_it() -> None:
    """What the remark says, and that it helps."""
    shared = HEADS.format(tasks="h, q in tasks(H, blocks(S, 16))", named="g = h // (H // G)")
    apart = HEADS.format(tasks="g, i, q in tasks(G, H // G, blocks(S, 16))", named="h = g * (H // G) + i")
    found, helped = (
        compile_program(parse_text(Source("k.pk", text)), level="roles").remarks for text in (shared, apart)
    )
    reason = "with an index for it, and one for those tasks, it comes once"
    assert [reason in remark.reason for remark in found if remark.step == "pk-plan-overlap"] == [True]
    assert not any(remark.step == "pk-plan-overlap" for remark in helped)
