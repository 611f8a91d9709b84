"""Programs to machine code, without GPU: every example, what the compiler remarks on, the cache."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp

from pkc import cache
from pkc.codegen import build as building
from pkc.codegen import stored
from pkc.codegen.artifact import ArrayParameter, Artifact, TensorMaps
from pkc.codegen.build import Built, build, build_kernel, resources
from pkc.codegen.cuda import print_kernel
from pkc.codegen.nvrtc import Compiled, compile_cuda
from pkc.diagnostics import PkcError
from pkc.dialect.coordinates import EpochOp
from pkc.dialect.copies import CopyOp
from pkc.dialect.counters import RaiseOp, WaitOp
from pkc.dialect.engines import engines, parse_engines
from pkc.dialect.machine import InstructionOp
from pkc.driver import builder, kept
from pkc.driver import building as slow
from pkc.driver.autoschedule import autoschedule
from pkc.driver.chosen import Autoschedule
from pkc.driver.compiler import Number, compile_program, load, load_program
from pkc.driver.planned import planned
from pkc.frontend.parse import parse_text
from pkc.location import Source
from pkc.passes.machine.recompute_integers import recomputes
from pkc.targets import DEFAULT
from pkc.targets.sm_90a.instructions import instruction
from tests.clock import within
from tests.codegen.sass import FFMA, HGMMA, QGMMA, UTMALDG, UTMASTG, WARPGROUP, least, loops, opcodes, registers
from tests.matmuls import FORMS, matmul
from tests.sweeps import sweep

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
ACROSS = ("ag_gemm", "gemm_ar", "gemm_rs")
"""The GEMM families."""
MATMULS = {
    "gemm",
    *ACROSS,
    "ag_gemm_explicit",
    "attention",
    "attention_dkdv",
    "attention_dq",
    "conv2d",
    "decode_attention",
    "grouped_attention",
    "grouped_gemm",
    "grouped_ring_attention",
    "mlp",
    "moe_dispatch_gemm",
    "moe_mlp",
    "packed_attention",
    "ring_attention",
    "ring_attention_dkdv",
    "ring_attention_dq",
    "swiglu",
    "ulysses_attention",
    "window_attention",
}
"""Examples that multiply tiles of 16-bit floats."""
EVEN = {"moe_mlp"}
"""Of these, those whose threads all have what a CTA is launched with."""
IN_ANY_ORDER = {"moe_combine"}
"""Examples that are compiled otherwise if sums may be in any order."""
WRITTEN = {"ag_gemm_explicit", "all_reduce_explicit"}
"""Examples whose author wrote the roles, none of them for copy engines."""
SHORT_MOVERS = {"ring_attention_dkdv"}
"""Examples whose loader spills addresses, as its registers are the consumer's (`pk-give-registers`)."""
LOWERED = sorted(path.stem for path in EXAMPLES.glob("*.pk"))


@pytest.fixture
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PKC_CACHE_DIR", str(tmp_path / "cache"))


def built(name: str, **schedule: str) -> Built:
    return build_kernel(load(EXAMPLES / f"{name}.pk", level="machine", schedule=schedule).kernel)


@pytest.mark.parametrize("name", sorted(IN_ANY_ORDER))
def test_example_in_any_order(name: str) -> None:
    made = built(name, deterministic="False")
    assert UTMALDG in opcodes(made.artifact.cubin, made.artifact.name)
    assert not made.warnings
    _check_registers(made, name)


def check(made: Built, name: str) -> None:
    """The instructions of Hopper are there; nothing is spilled, no MMA waits for another."""
    found = opcodes(made.artifact.cubin, made.artifact.name)
    by_threads = ("all_reduce_explicit", "all_to_all")  # adds up what it loads; begins where a shard of columns does
    assert (UTMALDG in found) == (name not in by_threads)
    # Boxes do not end with two shards, and no launch says where rows begin.
    assert (UTMASTG in found) == (name not in (*by_threads, "attention_delta"))
    assert (HGMMA in found) == (name in MATMULS)
    assert (QGMMA in found) == name.startswith("gemm_fp8")
    assert not made.warnings or name in SHORT_MOVERS
    _check_registers(made, name)


def _check_registers(made: Built, name: str) -> None:
    """No role writes more registers than `setmaxnreg` leaves it."""
    found = registers(made.artifact.cubin, made.artifact.name)
    assert name not in {*MATMULS} - EVEN or (len(found) > 1 and found[0][1] > 0)
    assert all(written <= left for left, written in found)


@pytest.mark.parametrize("name", LOWERED)
def test_example(name: str) -> None:
    check(built(name), name)


UNEVEN = itertools.product(ACROSS, ["", "none", "intra_sm"])


@pytest.mark.parametrize(("name", "overlap"), sweep(UNEVEN, lambda name, overlap: name == "ag_gemm" and not overlap))
def test_rows_that_tma_does_not_move(name: str, overlap: str) -> None:
    """Threads carry the tiles of all arrays, and have the registers for it."""
    schedule = {"overlap": overlap} if overlap else {}
    divisors = {"K": 1, "N": 1}
    program = parse_text(Source(name, (EXAMPLES / f"{name}.pk").read_text(encoding="utf-8")))
    made = build_kernel(compile_program(program, level="roles", schedule=schedule, divisors=divisors).kernel)
    assert not made.warnings
    _check_registers(made, name)


INSTRUMENTED = itertools.product(
    ["gemm_rs", "ag_gemm", "attention", "ring_attention"], ["trace", "debug", "trace,debug"]
)


@pytest.mark.parametrize(
    ("name", "which"),
    sweep(INSTRUMENTED, lambda *case: case in (("gemm_rs", "trace,debug"), ("attention", "trace"))),
)
def test_instrumented(name: str, which: str) -> None:
    """It compiles, and what its records and reports mean survives the cache."""
    instruments = which.split(",")
    made = build_kernel(load(EXAMPLES / f"{name}.pk", level="machine", instruments=instruments).kernel)
    artifact = made.artifact
    kept = stored.unpack(stored.pack(artifact))
    assert (kept, kept.cubin) == (artifact, artifact.cubin)
    assert ("trace" in instruments) == (artifact.trace is not None)
    assert (name == "attention" and "debug" not in instruments) == (artifact.waits is None)
    # Bounded waits end threads, which MMAs in flight do not survive; else nothing but a few registers changes.
    assert {warning.code for warning in made.warnings} <= {"PK803", *(["PK805"] if "debug" in instruments else [])}


def test_every_wait_of_a_role_has_a_probe() -> None:
    machine = load(EXAMPLES / "gemm_rs.pk", level="machine", instruments=["debug"]).kernel
    waits = build_kernel(machine).artifact.waits
    assert waits is not None
    assert [(wait.role, wait.until, wait.awaits, wait.line) for wait in waits.points] == [
        ("consumer", "filled", "A, B", 6),
        ("consumer", "free", "cast", 7),
        ("consumer", "raised", "C.arrived", 7),
        ("communicator", "raised", "C.arrived", 7),
        ("loader", "free", "A, B", 6),
        ("storer", "raised", "entered", 3),
        ("storer", "filled", "cast", 7),
    ]
    calls = {op.instruction_name.data for op in machine.walk() if isinstance(op, InstructionOp)}
    assert not calls & {"spin", "mbarrier_wait"}


GEMMS = ("gemm", *ACROSS)
TILES = ((8, 128, 64), (16, 16, 128), (32, 256, 32), (64, 32, 128), (128, 64, 64), (256, 128, 32))
ROTATED = {(GEMMS[number % len(GEMMS)], tile) for number, tile in enumerate(TILES)}


@pytest.mark.parametrize(
    ("name", "tile"), sweep(itertools.product(GEMMS, TILES), lambda *case: case in ROTATED), ids=str
)
def test_gemm_with_other_tiles(name: str, tile: tuple[int, int, int]) -> None:
    m, n, k = tile
    made = built(name, tile_M=str(m), tile_N=str(n), tile_K=str(k))
    assert {UTMALDG, UTMASTG, HGMMA} <= opcodes(made.artifact.cubin, made.artifact.name)
    # With one warpgroup a thread may have 255 registers, and sums over ranks take a few more.
    assert {warning.code for warning in made.warnings} <= ({"PK803"} if name == "gemm_ar" else set())


@pytest.mark.parametrize(
    ("name", "size"),
    sweep(
        itertools.product(["attention", "ring_attention"], [16, 64]),
        lambda *case: case in (("attention", 16), ("ring_attention", 64)),
    ),
)
def test_attention_with_other_tiles(name: str, size: int) -> None:
    check(built(name, tile_S=str(size)), name)


SHAPES = (
    (64, {"tile_S": "192", "consumers": "3"}, 160, 32),
    (128, {"tile_S": "192", "consumers": "3", "tile_T": "80"}, 160, 32),
    (128, {"tile_S": "192", "consumers": "3", "tile_T": "96"}, 160, 32),  # too large to be pipelined
    (128, {"tile_T": "160"}, 232, 40),
    (256, {"tile_T": "80"}, 232, 40),
)


@pytest.mark.parametrize(
    ("head", "schedule", "left", "rest"),
    sweep(SHAPES, lambda head, schedule, *_: "consumers" in schedule or head == 256),
)
def test_consumers_have_what_movers_leave(head: int, schedule: dict[str, str], left: int, rest: int) -> None:
    """Registers are given in eights to 128 threads: what that leaves goes to those that move tiles."""
    found = load(EXAMPLES / "attention.pk", level="machine", constants={"D": head}, schedule=schedule)
    made = build_kernel(found.kernel)
    check(made, "attention")
    (consumer, written), (mover, few) = registers(made.artifact.cubin, made.artifact.name)
    assert (consumer, mover) == (left, rest)
    assert few < rest < left // 2 < written


Case = tuple[str, dict[str, int], int, dict[str, Number]]


def attention(b: int, h: int, s: int, d: int = 128, **more: bool) -> Case:
    return "attention", {"B": b, "H": h, "S": s, "T": s}, 1, {"D": d, **more}


def ring(b: int, s: int, **more: bool) -> Case:
    return "ring_attention", {"B": b, "H": 16, "S": s}, 4, dict(more)


AT_SIZES: tuple[Case, ...] = (
    attention(4, 16, 8192),
    attention(16, 16, 2048),
    attention(4, 16, 8192, causal=True),
    attention(4, 32, 4096, 64, causal=True),
    attention(2, 16, 8192, 256),
    attention(2, 16, 8192, 256, causal=True),
    ring(4, 24576),
    ring(16, 6144),
    ring(4, 24576, causal=True),
    ring(4, 24576, causal=True, zigzag=True),
    ("ulysses_attention", {"B": 1, "H": 32, "S": 32768}, 4, {}),
    ("ulysses_attention", {"B": 2, "H": 128, "S": 8192}, 4, {}),
    *(
        ("grouped_attention", {"B": 4, "H": 16, "G": 4, "S": 8192, "T": 8192}, 1, {"causal": mask})
        for mask in (False, True)
    ),
    ("window_attention", {"B": 4, "H": 16, "S": 8192, "T": 8192}, 1, {}),
    *(
        ("packed_attention", {"S": 32768, "T": 32768, "H": 16, "G": 16, "N": 17}, 1, {"causal": mask})
        for mask in (False, True)
    ),
    ("decode_attention", {"H": 128, "R": 8, "T": 8192}, 1, {}),
)
"""Sizes of attention that are measured (`pkc/bench/suite.toml`, `tools/lengths.py`), on so many ranks."""
SPILLED = (
    ring(4, 24576, causal=True),
    ring(4, 24576, causal=True, zigzag=True),
    attention(2, 16, 8192, 256, causal=True),
)
"""Those that spill unless integers are computed again."""


@pytest.mark.parametrize(
    ("name", "dims", "ranks", "constants"), sweep(AT_SIZES, lambda *case: case == SPILLED[1]), ids=str
)
def test_attention_spills_nothing(name: str, dims: dict[str, int], ranks: int, constants: dict[str, Number]) -> None:
    """With the schedule that is chosen."""
    program = load_program(EXAMPLES / f"{name}.pk")
    chosen = autoschedule(program, dims=dims, ranks=ranks, constants=constants).schedule
    kernel = compile_program(program, level="machine", constants=constants, schedule=chosen).kernel
    assert recomputes(kernel) == ((name, dims, ranks, constants) in SPILLED), "foreseen, or it is compiled twice"
    made = build_kernel(kernel)
    assert not made.warnings
    assert " no spills," in resources(made)
    assert ("unknown(" in made.source) == recomputes(kernel)


def test_what_spills_finds_its_stages_again() -> None:
    """Integers that are computed again are not enough for the gradient of Q under a mask, over two ranks."""
    given = {"B": 4, "H": 16, "G": 16, "S": 16384, "T": 16384, "group": 1, "causal": True, "zigzag": True}
    schedule = {"overlap": "inter_sm", "comm_sms": "4", "tile_T": "96"}
    program = load_program(EXAMPLES / "ring_attention_dq.pk")
    kernel = planned(program, given, ranks=2, schedule=schedule, target=DEFAULT, level="machine").compiled.kernel
    made = build_kernel(kernel)
    assert recomputes(kernel)
    assert " no spills," in resources(made)
    assert made.source.count("unknown(shared") > print_kernel(kernel).count("unknown(shared"), "as it spilled else"


ORDINARY: dict[str, tuple[str, dict[str, int], int, dict[str, Number]]] = {
    "the backward of layernorm, which sums rows and columns": (
        """
kernel k(DY: bf16[M, N], X: bf16[M, N], w: f32[N], mean: f32[M], rstd: f32[M], DX: bf16[M, N],
         dw: f32[N].replicate(), db: f32[N].replicate(), N: const = 4096):
    for m in tasks(blocks(M, 16)):
        x = (X[m, :] - mean[m]) * rstd[m]
        dy = cast(DY[m, :], f32)
        g = dy * w[:]
        c1 = rowsum(g * x) / cast(N, f32)
        c2 = rowsum(g) / cast(N, f32)
        DX[m, :] = (g - x * c1 - c2) * rstd[m]
        dw[:] += rowsum((dy * x).T)
        db[:] += rowsum(dy.T)
""",
        {"M": 1000},
        2,
        {"N": 2730},
    ),
    "a state space, step by step, whose loader moves five tiles": (
        """
kernel k(X: f32[T, D], Delta: f32[T, D], A: f32[D, S], Bm: f32[T, S], Cm: f32[T, S], Y: f32[T, D], S: const = 16):
    for d in tasks(blocks(D, 64)):
        h = zeros(f32, d, S)
        for t in range(T):
            dt = Delta[t, d]
            h = h * exp(min(A[d, :] * dt, 0.0)) + (dt * X[t, d]) * Bm[t, :]
            Y[t, d] = rowsum(h * Cm[t, :])
""",
        {"T": 1009, "D": 260},
        1,
        {},
    ),
    "a cell of a GRU, whose loader moves twelve": (
        """
kernel k(X: bf16[M, K], H: bf16[M, D], W: bf16[3, K, D], U: bf16[3, D, D], b: f32[3, D], Y: bf16[M, D]):
    schedule(tile_M=128)
    for m, d in tasks(blocks(M, 64), blocks(D, 64)):
        r = zeros(f32, m, d)
        z = zeros(f32, m, d)
        n = zeros(f32, m, d)
        for k in blocks(K, 64):
            r += X[m, k] @ W[0, k, d]
            z += X[m, k] @ W[1, k, d]
            n += X[m, k] @ W[2, k, d]
        hn = zeros(f32, m, d)
        for e in blocks(D, 64):
            r += H[m, e] @ U[0, e, d]
            z += H[m, e] @ U[1, e, d]
            hn += H[m, e] @ U[2, e, d]
        z = sigmoid(z + b[1, d])
        Y[m, d] = (1.0 - z) * tanh(n + b[2, d] + sigmoid(r + b[0, d]) * hn) + z * H[m, d]
""",
        {"M": 1000, "K": 260, "D": 260},
        1,
        {},
    ),
    "what follows the largest element of all ranks, whose loader ends phases with 32 stages": (
        """
kernel k(X: bf16[M, N], Q: e4m3[M, N], part: f32[64].symmetric().scratch(), amax: f32[1].symmetric()):
    for i in tasks(64):
        t = zeros(f32)
        for m in blocks(M, 1, start=i * M // 64, stop=(i + 1) * M // 64):
            for n in blocks(N, 2048):
                t = max(t, rowmax(abs(cast(X[m, n], f32))))
        part[i] = t
    for i in tasks(1):
        amax[0] = rowmax(part[:])
    for i in tasks(1):
        if rank == 0:
            all_reduce(amax[0], max)
    for m, n in tasks(blocks(M, 64), blocks(N, 128)):
        Q[m, n] = cast(X[m, n] * (448.0 / max(amax[0], 0.000001)), e4m3)
""",
        {"M": 1000, "N": 1009},
        2,
        {},
    ),
    "a product that is added to a bias": (
        """
kernel k(X: bf16[M, 64], W: bf16[N, 64], bias: f32[N], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 128)):
        Y[m, n] = X[m, :] @ W[n, :].T + bias[n]
""",
        {"M": 8192, "N": 8192},
        1,
        {},
    ),
    "Sinkhorn's normalisation, which divides by rows and by columns": (
        """
kernel k(X: f32[B, N, N], Y: f32[B, N, N], N: const = 96):
    for b in tasks(B):
        p = exp(X[b])
        for i in range(5):
            p = p / rowsum(p)
            p = p / rowsum(p.T).T
        Y[b] = p
""",
        {"B": 10},
        1,
        {},
    ),
}
"""Kernels of which the compiler had something to say: the program, sizes, ranks, constants."""


@pytest.mark.parametrize("name", ORDINARY)
def test_the_compiler_has_nothing_to_say_of_ordinary_kernels(name: str) -> None:
    text, dims, ranks, constants = ORDINARY[name]
    program = parse_text(Source("k.pk", text.lstrip()))
    chosen = autoschedule(program, dims=dims, ranks=ranks, constants=constants).schedule
    made = build_kernel(compile_program(program, level="roles", constants=constants, schedule=chosen).kernel)
    assert not made.warnings
    assert " no spills," in resources(made)


SCHEDULES = ("none", "intra_sm", "inter_sm", "inter_sm,comm_sms=8")


OFTEN = (
    *itertools.product(["gemm_rs"], ("none", "intra_sm", "inter_sm")),
    ("ring_attention", "none"),
    ("ulysses_attention", "inter_sm,comm_sms=8"),
    ("ag_gemm", "inter_sm,transfer=push"),
    ("gemm_ar", "inter_sm,comm_sms=8,tile_M=16,tile_N=64"),
)


@pytest.mark.parametrize(
    ("name", "schedule"),
    sweep(
        [
            *itertools.product([*ACROSS, "ring_attention", "ulysses_attention"], SCHEDULES),
            ("ag_gemm", "inter_sm,transfer=push"),
            ("gemm_ar", "inter_sm,comm_sms=8,tile_M=16,tile_N=64"),
        ],
        lambda *case: case in OFTEN,
    ),
)
def test_overlaps(name: str, schedule: str) -> None:
    wanted = dict(setting.split("=") for setting in f"overlap={schedule}".split(","))
    made = built(name, **wanted)
    check(made, name)
    assert made.artifact.comm_sms == int(wanted.get("comm_sms", 0))


def built_matmul(form: str, a: str, b: str) -> tuple[Built, str]:
    """A matmul of operands of two element types; its text in CUDA C++."""
    kernel = compile_program(parse_text(Source("matmul.pk", matmul(form, a, b))), level="machine").kernel
    return build_kernel(kernel), print_kernel(kernel)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["bf16", "f16"])
def test_matmuls_of_16_bits(form: str, kind: str) -> None:
    made, text = built_matmul(form, kind, kind)
    assert HGMMA in opcodes(made.artifact.cubin, "matmul")
    assert set(re.findall(r"m64n128k16\.f32\.(\w+\.\w+) ", text)) == {f"{kind}.{kind}"}
    assert not made.warnings


@pytest.mark.parametrize(("a", "b"), list(itertools.product(["e4m3", "e5m2"], repeat=2)))
def test_matmuls_of_8_bits(a: str, b: str) -> None:
    made, text = built_matmul("nt", a, b)
    assert QGMMA in opcodes(made.artifact.cubin, "matmul")
    assert set(re.findall(r"m64n128k32\.f32\.(\w+\.\w+) ", text)) == {f"{a}.{b}"}
    assert not made.warnings


ON_ONE_GPU = {
    "gemm",
    "gemm_fp8",
    "mlp",
    "swiglu",
    "gemm_fp8_blocks",
    "attention",
    "attention_delta",
    "attention_dkdv",
    "attention_dq",
    "conv2d",
    "grouped_attention",
    "grouped_gemm",
    "packed_attention",
    "window_attention",
}
"""Examples in which nothing goes from rank to rank."""
NO_ENGINES = {"moe_combine", "moe_gather_combine"}
"""Examples of which copy engines can do nothing: a table says which rank has a row."""

OF_PHASES = {"decode_attention"}
"""Examples of several phases: copy engines cannot tell other ranks that one is over."""


WITH_ENGINES_OFTEN = {"gemm_rs", "ag_gemm", "moe_dispatch_gemm", "all_reduce", "ring_attention"}
"""Those left to test-long do nothing by copy engines that none of these does."""


@pytest.mark.parametrize(
    "name",
    sweep(sorted({*LOWERED} - WRITTEN - ON_ONE_GPU - NO_ENGINES - OF_PHASES), lambda name: name in WITH_ENGINES_OFTEN),
)
def test_example_with_copy_engines(name: str) -> None:
    """SMs do nothing of what copy engines do; counters that both touch restart with each launch."""
    made = built(name, overlap="copy_engine")
    check(made, name)
    kernel = parse_engines(made.artifact.engines)
    copies = [op for engine in engines(kernel) for op in engine.walk() if isinstance(op, CopyOp)]
    assert copies
    assert not any(isinstance(op, EpochOp) for op in kernel.walk())
    waiting = {kernel.argument_name(op.signal) for op in kernel.walk() if isinstance(op, WaitOp | RaiseOp)}
    meeting = {name for name in waiting if name.startswith(("began", "copied"))}
    restarting = {signal.name for signal in made.artifact.signals if signal.restarts}
    assert len(meeting) == 2 * len(engines(kernel))
    assert restarting == waiting - meeting
    kept = stored.unpack(stored.pack(made.artifact))
    assert (kept, kept.cubin) == (made.artifact, made.artifact.cubin)
    assert replace(kept, source="") != kept


def test_opcodes_are_those_of_their_instructions() -> None:
    def used(name: str, call: str) -> set[int]:
        entry = instruction(name)
        assert entry is not None
        text = f"""
            struct alignas(128) TensorMap {{ char bytes[128]; }};
            struct Args {{ TensorMap map; float* p; int n; }};
            __device__ void {name}({PARAMETERS[name]}) {{ {entry.body} }}
            extern "C" __global__ void __launch_bounds__(128, 1) k(const __grid_constant__ Args args) {{
                float acc[4] = {{}};
                if (args.n) {{ {call} }}
                for (int i = 0; i < 4; ++i) args.p[i + threadIdx.x] = acc[i];
            }}"""
        return opcodes(compile_cuda(text, "sm_90a", "k").cubin, "k")

    calls = {
        "wgmma_n8_bf16_ss_kk": ("wgmma_n8_bf16_ss_kk(acc, 1ull, 2ull, args.n);", HGMMA),
        "wgmma_n8_e4m3_ss_kk": ("wgmma_n8_e4m3_ss_kk(acc, 1ull, 2ull, args.n);", QGMMA),
        "wgmma_n8_f32_ss_kk": ("wgmma_n8_f32_ss_kk(acc, 1ull, 2ull, args.n);", HGMMA),
        "wgmma_wait_1": ("wgmma_wait_1();", WARPGROUP),
        "tma_load_2d": ("tma_load_2d(0, args.map, 8, 0, 0);", UTMALDG),
        "tma_store_2d": ("tma_store_2d(0, args.map, 0, 0);", UTMASTG),
    }
    for name, (call, opcode) in calls.items():
        assert opcode not in used(name, "")
        assert opcode in used(name, call)


def test_loops_of_machine_code() -> None:
    """A loop is as many instructions longer as its body has more; one that surrounds it has them too."""

    def found(fmas: int) -> list[list[int]]:
        body = 'asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(x) : "f"(y));' * fmas
        text = f"""
            extern "C" __global__ void k(float* p, int n) {{
                float x = p[0], y = p[1];
                #pragma unroll 1
                for (int i = 0; i < n; ++i) {{
                    #pragma unroll 1
                    for (int j = 0; j < n; ++j) {{ {body} }}
                    p[i] = x;
                }}
            }}"""
        return [loop for loop in loops(compile_cuda(text, "sm_90a", "k").cubin, "k") if FFMA in loop]

    (inner, outer), (longer, further) = found(3), found(303)
    assert len(longer) == len(inner) + 300
    assert len(further) == len(outer) + 300
    assert len(inner) < len(outer)
    assert [loop.count(FFMA) for loop in (inner, outer, longer, further)] == [3, 3, 303, 303]


@pytest.mark.parametrize(("name", "most"), [("attention", 500), ("ring_attention", 500), ("ulysses_attention", 520)])
def test_instructions_of_an_iteration_of_attention(name: str, most: int) -> None:
    """Each element of a block of scores takes one multiply-add on its way into `exp2`. No register is copied or set to
    zero; a fifth of the instructions are the mask of the last block, which a branch leaves out elsewhere: 500 at most
    are left for 64 rows, 128 keys and heads of 128, and a division where the blocks of one loop end with shards."""
    made = built(name).artifact
    inner = min((loop for loop in loops(made.cubin, name) if HGMMA in loop), key=len)
    assert len(inner) <= 640
    whole = min((loop for loop in least(made.cubin, name) if HGMMA in loop), key=len)
    assert whole.count(HGMMA) == inner.count(HGMMA) == 16
    assert 64 <= whole.count(FFMA) <= 70
    assert len(whole) <= most


PARAMETERS = {
    "wgmma_n8_bf16_ss_kk": "float (&a)[4], unsigned long long b, unsigned long long c, int d",
    "wgmma_n8_e4m3_ss_kk": "float (&a)[4], unsigned long long b, unsigned long long c, int d",
    "wgmma_n8_f32_ss_kk": "float (&a)[4], unsigned long long b, unsigned long long c, int d",
    "wgmma_wait_1": "",
    "tma_load_2d": "int a, const TensorMap& b, int c, int d, int e",
    "tma_store_2d": "int a, const TensorMap& b, int c, int d",
}


def test_what_the_runtime_gets() -> None:
    artifact = built("gemm").artifact
    assert (artifact.name, artifact.target, artifact.threads, artifact.cluster, artifact.comm_sms) == (
        "gemm",
        "sm_90a",
        384,
        1,
        0,
    )
    assert artifact.arrays == (
        ArrayParameter("A", "bf16", ("M", "K"), "private", None, False),
        ArrayParameter("B", "bf16", ("K", "N"), "private", None, False),
        ArrayParameter("C", "bf16", ("M", "N"), "private", None, False),
    )
    assert artifact.signals == ()
    boxes = {
        field.array: (field.box, field.swizzle, field.split)
        for field in artifact.fields
        if isinstance(field, TensorMaps)
    }
    assert boxes["A"] == ((64, 128), 128, None)
    assert boxes["B"] == ((64, 64), 128, None)


def test_a_module_is_not_changed_by_being_built() -> None:
    module = load(EXAMPLES / "all_gather.pk", level="roles").module
    before = str(module)
    artifact = build(module)
    assert str(module) == before
    assert artifact.cubin == build(load(EXAMPLES / "all_gather.pk", level="machine").module).cubin


def test_a_kernel_of_the_tile_level_is_refused() -> None:
    with pytest.raises(PkcError, match="compile it to the roles level first"):
        build(load(EXAMPLES / "gemm.pk").module)


def artifact_of(path: Path, schedule: dict[str, str] | None = None, **dims: int) -> Artifact:
    sizes = dims or {"M": 8192, "N": 8192, "K": 2048}
    return builder.artifact_for(load_program(path), dims=sizes, ranks=4, schedule=schedule)


@pytest.mark.usefixtures("_own_cache")
def test_the_second_time_it_comes_from_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    path = EXAMPLES / "gemm_rs.pk"
    first = artifact_of(path)
    monkeypatch.setattr(slow, "compile_program", lambda *_, **__: pytest.fail("compiled again"))
    assert within(0.1, lambda: artifact_of(path)) == first


@pytest.mark.usefixtures("_own_cache")
def test_what_the_cache_tells_apart(tmp_path: Path) -> None:
    path = tmp_path / "copy.pk"
    text = (
        "kernel copy(X: bf16[M, N], Y: bf16[M, N]):\n    for m in tasks(blocks(M, 64)):\n"
        "        for n in blocks(N, 64):\n            Y[m, n] = X[m, n]\n"
    )
    path.write_text(text)
    made = [artifact_of(path, M=64, N=64), artifact_of(path, {"stages": "2"}, M=64, N=64)]
    path.write_text(text.replace("= X[m, n]", "= -X[m, n]"))
    made.append(artifact_of(path, M=64, N=64))
    assert len({artifact.cubin for artifact in made}) == 3


class CompiledAgainError(Exception):
    """It is not from the cache."""


@pytest.mark.usefixtures("_own_cache")
@pytest.mark.parametrize("change", ["instruments", "passes", "target", "nvrtc"])
def test_what_machine_code_depends_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, change: str) -> None:
    """Instruments, pkc's sources, the target and NVRTC; what was compiled before is still there."""
    program = load_program(EXAMPLES / "all_gather.pk")

    def made(**options: Any) -> Artifact:
        return builder.build_program(program, **options)

    first = made()

    def again(*_: object, **__: object) -> None:
        raise CompiledAgainError

    monkeypatch.setattr(slow, "compile_program", again)
    assert made() == first
    options: dict[str, Any] = {}
    with monkeypatch.context() as changed, pytest.raises(CompiledAgainError):
        if change == "instruments":
            options = {"instruments": ["trace"]}
        elif change == "passes":
            (tmp_path / "passes").mkdir()
            (tmp_path / "passes" / "one.py").write_text("1")
            changed.setattr(cache, "ROOT", tmp_path)
        elif change == "target":
            changed.setattr(kept, "BUILT_IN", ("sm_90a", "tiny"))
            options = {"target": "tiny"}
        else:
            changed.setattr(builder, "release", lambda: "12.9")
            changed.setattr(slow, "release", lambda: "12.9")
        made(**options)
    assert made() == first


@pytest.mark.usefixtures("_own_cache")
@pytest.mark.parametrize("change", ["sizes", "ranks", "constants", "schedule", "passes", "target", "queues"])
def test_what_a_chosen_schedule_depends_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, change: str) -> None:
    chosen: list[str] = []
    program = load_program(EXAMPLES / "gemm_rs.pk")

    def choose(*_: object, target: str, **__: object) -> Autoschedule:
        chosen.append(target)
        return Autoschedule({"stages": "3"})

    monkeypatch.setattr(slow, "autoschedule", choose)
    monkeypatch.setattr(builder, "build_program", lambda *_, **given: given["schedule"])
    given: dict[str, Any] = {"dims": {"M": 512, "N": 512, "K": 512}, "ranks": 4}
    made = builder.artifact_for(program, **given)
    assert builder.artifact_for(program, **given) == made == {"stages": "3"}
    assert chosen == ["sm_90a"]
    with monkeypatch.context() as changed:
        if change == "passes":
            (tmp_path / "passes.py").write_text("1")
            changed.setattr(cache, "ROOT", tmp_path)
        elif change == "queues":
            changed.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "3")
        changed.setattr(kept, "BUILT_IN", ("sm_90a", "tiny"))
        other: dict[str, dict[str, Any]] = {
            "sizes": {"dims": {"M": 512, "N": 512, "K": 256}},
            "ranks": {"ranks": 2},
            "constants": {"constants": {"D": 1}},
            "schedule": {"schedule": {"tile_K": "32"}},
            "target": {"target": "tiny"},
        }
        builder.artifact_for(program, **given | other.get(change, {}))
    assert len(chosen) == 2
    builder.artifact_for(program, **given)
    assert len(chosen) == 2


# Remarks


def remarks(monkeypatch: pytest.MonkeyPatch, log: str) -> Built:
    """The GEMM, if NVRTC printed this log."""
    module: ModuleOp = load(EXAMPLES / "gemm.pk", level="machine").module
    cubin = compile_cuda('extern "C" __global__ void gemm() {}', "sm_90a", "gemm").cubin
    monkeypatch.setattr(building, "compile_cuda", lambda *_: Compiled(cubin, "", log))
    return build_kernel(next(op for op in module.ops))


COMPILING = "ptxas info    : Compiling entry function 'gemm' for 'sm_90a'"


def test_spills(monkeypatch: pytest.MonkeyPatch) -> None:
    log = f"{COMPILING}\n    8 bytes stack frame, 16 bytes spill stores, 8 bytes spill loads"
    made = remarks(monkeypatch, log)
    (warning,) = made.warnings
    # The accumulator, which the loop carries.
    assert (warning.code, warning.severity, warning.span.line) == ("PK803", "warning", 5)
    assert "16 bytes spill stores" in resources(made)
    assert "`--schedule tile_M=64`; `pkc tune` measures" in warning.fill(warning.help)


def test_smaller_tiles_do_not_spill_as_the_help_of_spills_says() -> None:
    text = """\
kernel embed_ln(W: bf16[V, H], P: bf16[L, H], ids: i32[B, S], w: bf16[H], b: bf16[H], Y: bf16[B, S, H],
                H: const = 1024):
    for i, s in tasks(B, blocks(S, 16)):
        x = W[ids[i, s], :] + P[s + 0, :]
        c = x - rowsum(x) / cast(H, f32)
        Y[i, s, :] = c * rsqrt(rowsum(c * c) / cast(H, f32) + 0.00001) * w[:] + b[:]
"""
    program = parse_text(Source("k.pk", text))

    def codes(**schedule: str) -> set[str]:
        kernel = compile_program(program, schedule=schedule, level="machine").kernel
        return {warning.code for warning in build_kernel(kernel).warnings}

    assert codes(tile_S="32") == {"PK803"}
    assert codes(tile_S="16") == set()


def test_registers_that_stay_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = "'setmaxnreg' ignored to maintain minimum register requirements"
    with pytest.raises(PkcError, match=r"PK804.*keep the registers") as raised:
        remarks(monkeypatch, f"ptxas info    : (C7508) {reason} in function 'gemm'")
    assert raised.value.diagnostics[0].span.line == 2


def test_one_mma_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = "wgmma.mma_async instructions are serialized due to ..."
    line = f"ptxas info    : (C7510) Potential Performance Loss: {reason} in the function 'gemm'"
    (warning,) = remarks(monkeypatch, f"{line}\n{line}").warnings
    assert (warning.code, warning.span.line) == ("PK805", 6)
    assert "C7510" not in str(warning) and "serialized due to" in str(warning)


def test_all_barriers(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PkcError, match=r"PK806.*takes all barriers"):
        remarks(monkeypatch, f"{COMPILING}\nptxas info    : Used 40 registers, used 16 barriers")


def test_any_other_remark(monkeypatch: pytest.MonkeyPatch) -> None:
    log = 'gemm.cu(3): warning #177-D: variable "x" was declared but never referenced'
    (warning,) = remarks(monkeypatch, log).warnings
    assert (warning.code, warning.severity) == ("PK807", "warning")
