"""`pkc bench` without GPUs: what it prints, and what it does with measurements."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pkc.bench import kernels, record, run
from pkc.bench.peers import contest, ranks
from pkc.bench.peers.attention import Attention
from pkc.bench.peers.contest import Contestant, Entrant
from pkc.bench.peers.gemm import Matmul
from pkc.bench.peers.problem import Case
from pkc.bench.peers.ranks import Job
from pkc.cli.main import main
from pkc.targets import DEFAULT
from tests.targets.tiny import TINY

EXAMPLES = Path(__file__).parents[2] / "examples"
HEADER: dict[str, Any] = {
    "schema": 1,
    "time": "2026-01-02T03:04:05Z",
    "commit": "c",
    "machine": {"gpu": "NVIDIA H200"},
    "versions": {"torch": "2", "nccl": "2"},
}


class Machine:
    """In place of torch and GPUs: `found` has the measurements, and `mesh` records whether it was closed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
        self.found: Mapping[str, Any] = {"cublas": {"median_ms": 0.2}, "pkc": {"median_ms": 0.25}}
        self.closed = 0
        for times in self.found.values():
            times |= {"p5_ms": 0.1, "p95_ms": 0.9}
        monkeypatch.setattr(run.driver, "load", lambda: SimpleNamespace(devices=lambda: 8))
        monkeypatch.setattr(run.importlib.util, "find_spec", lambda name: object())
        monkeypatch.setattr(ranks, "join", lambda: Job(0, count, 0))
        monkeypatch.setattr(Job, "leave", lambda self: None)
        monkeypatch.setattr(record, "header", lambda *_: {**HEADER, "results": []})
        monkeypatch.setattr(record, "Clocks", lambda device: SimpleNamespace(stop=lambda: {"median": 1980}))
        monkeypatch.setattr(kernels, "make_mesh", lambda job: SimpleNamespace(close=self._close))
        monkeypatch.setattr(run._Run, "_entrants", lambda *_: [])
        monkeypatch.setattr(contest, "compete", self._compete)

    def _close(self) -> None:
        self.closed += 1

    def _compete(self, *_: Any, **__: Any) -> dict[str, Any]:
        return {name: dict(times) for name, times in self.found.items()}


def bench(*arguments: str, kernel: str = "gemm") -> int:
    return main(["bench", str(EXAMPLES / f"{kernel}.pk"), *arguments])


def test_without_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    run.driver.load.cache_clear()
    assert bench() == 1
    found = capsys.readouterr()
    # With a driver there is no GPU, without one there is no driver.
    assert found.err.startswith(("error[PK820]", "error[PK821]"))
    assert found.out == ""


def test_without_torch(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    Machine(monkeypatch, 1)
    monkeypatch.setattr(run.importlib.util, "find_spec", lambda name: None)
    assert bench() == 1
    assert capsys.readouterr().err.startswith("error[PK940]: `pkc bench` needs torch\n")


def test_result(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    machine = Machine(monkeypatch, 1)
    path = tmp_path / "x.json"
    assert bench("--sizes", "4096,8192", "--json", str(path)) == 0
    found = capsys.readouterr()
    assert found.err == ""
    # 2 x 4096^3 operations in 0.25 ms.
    assert "gemm 4096x4096x4096 on 1\n  cublas: 0.2000 ms" in found.out
    assert "|      4096 | 0.250 |     550 |  0.200 (0.80) | 0.200 (0.80) |" in found.out
    first, second = json.loads(path.read_text(encoding="utf-8"))["results"]
    assert (first["m"], second["m"]) == (4096, 8192)
    assert first["limit_ms"] == 0.2
    assert first["link_ms"] is None
    assert first["sm_mhz"] == {"median": 1980}
    assert machine.closed == 2


def test_attention(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    machine = Machine(monkeypatch, 4)
    times = {"cudnn_alone": 5.0, "flash_alone": 7.0, "all_gather_cudnn": 6.6, "pkc": 6.0}
    machine.found = {name: {"median_ms": ms, "p5_ms": ms, "p95_ms": ms} for name, ms in times.items()}
    path = tmp_path / "x.json"
    assert bench("--sizes", "4x16x24576", "--json", str(path), kernel="ring_attention") == 0
    found = capsys.readouterr().out
    assert "ring_attention 4x16x24576x128 on 4\n" in found
    # 4 * 4 * 16 * 6144 * 24576 * 128 operations in 6 ms; three shards of K and V at 343 GB/s need 1.76 ms.
    assert "| 4 x 16 x 24576 x 128 | 6.00 |     825 |   5.00 (0.83) |            6.60 (1.10) |" in found
    (result,) = json.loads(path.read_text(encoding="utf-8"))["results"]
    assert (result["b"], result["h"], result["s"], result["d"], result["causal"]) == (4, 16, 24576, 128, False)
    assert (round(result["link_ms"], 2), result["limit_ms"], result["schedule"]) == (1.76, 5.0, {})


def test_sizes_of_the_suite_unless_others_are_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Machine(monkeypatch, 1)
    path = tmp_path / "x.json"
    assert bench("--json", str(path), kernel="attention") == 0
    results = json.loads(path.read_text(encoding="utf-8"))["results"]
    sizes = [(r["b"], r["h"], r["s"], r["d"], r["causal"]) for r in results]
    assert sizes[0] == (4, 16, 8192, 128, False)
    assert [r["schedule"] for r in results] == [{}] * 6
    assert sizes[3:] == [(4, 16, 8192, 128, True), (4, 32, 4096, 64, False), (2, 16, 8192, 256, False)]


def test_quick_is_pkc_and_the_work_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """On 4 ranks, where all peers communicate: of these none, and no schedule but those that are asked for."""
    inside = run._Run._entrants
    Machine(monkeypatch, 4)
    made: list[list[str]] = []

    def entrants(self: Any, problem: Any, mesh: Any, broken: Any) -> list[Any]:
        found = inside(self, problem, mesh, broken)
        made.append([entrant.name for entrant in found])
        return []

    def draw(self: Attention, job: Job) -> Case:
        names = ("all_gather_cudnn", "all_to_all_cudnn") if self.spread else ("cudnn", "flash")
        return Case(self, (), Any, [Contestant(name, lambda: None) for name in names])  # type: ignore[arg-type]

    monkeypatch.setattr(Attention, "draw", draw)
    monkeypatch.setattr(run._Run, "_entrants", entrants)
    monkeypatch.setattr(run._Run, "_build", lambda self, source, case, mesh: (source.name, _entrant(source.name)))
    monkeypatch.setattr(run._Run, "_shares", lambda self, source, case: source.writes)
    assert bench("--sizes", "1x8x64", "--variant", "stages=1", kernel="ring_attention") == 0
    assert bench("--sizes", "1x8x64", "--variant", "stages=1", "--quick", kernel="ring_attention") == 0
    spread, alone, ours = (
        ["all_gather_cudnn", "all_to_all_cudnn"],
        ["cudnn_alone", "flash_alone"],
        ["pkc", "pkc stages=1"],
    )
    assert made == [[*spread, *alone, *ours, "pkc_written", "pkc_alone"], ["cudnn_alone", *ours]]


def test_a_written_protocol_is_beside_what_is_derived(monkeypatch: pytest.MonkeyPatch) -> None:
    inside = run._Run._entrants
    Machine(monkeypatch, 4)
    made: list[tuple[str, str]] = []

    def build(_: run._Run, source: Any, cases: Any, mesh: Any) -> tuple[str, Entrant]:
        made.append((source.name, source.program.kernels[0].name))
        return source.name, _entrant(source.name)

    def entrants(self: Any, problem: Any, mesh: Any, broken: Any) -> list[Any]:
        inside(self, problem, mesh, broken)
        return []

    monkeypatch.setattr(Matmul, "draw", lambda self, job: Case(self, (), Any, []))  # type: ignore[arg-type]
    monkeypatch.setattr(run._Run, "_entrants", entrants)
    monkeypatch.setattr(run._Run, "_build", build)
    monkeypatch.setattr(run._Run, "_shares", lambda self, source, case: False)
    assert bench("--sizes", "4096", kernel="ag_gemm_explicit") == 0
    assert made == [("pkc", "ag_gemm_explicit"), ("pkc_alone", "gemm"), ("pkc_derived", "ag_gemm")]


def _entrant(name: str) -> Entrant:
    return Entrant(name, [])


def test_limit_is_the_link_where_that_takes_longer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine = Machine(monkeypatch, 8)
    machine.found = {"cublas_alone": {"median_ms": 0.2, "p5_ms": 0.2, "p95_ms": 0.2}}
    path = tmp_path / "x.json"
    assert bench("--sizes", "8192", "--json", str(path), kernel="gemm_rs") == 0
    (result,) = json.loads(path.read_text(encoding="utf-8"))["results"]
    assert round(result["limit_ms"], 3) == 0.378
    assert result["published_ms"] == 0.478


def test_a_wrong_result_is_an_error_and_no_number(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Machine(monkeypatch, 1)
    machine.found = {"pkc": {"error": "the result is wrong: 3 times the error bound"}}
    assert bench("--sizes", "4096") == 1
    found = capsys.readouterr()
    assert "pkc: ERROR the result is wrong" in found.out
    assert "| failed [1] |" in found.out
    assert found.err.startswith("error[PK945]: pkc has no time for pkc at 4096x4096x4096\n")


@pytest.mark.parametrize(
    ("kernel", "size", "dim"),
    [
        ("gemm_rs", "64x64x60", "K = 60"),
        ("ag_gemm", "64x60x64", "N = 60"),
        ("ring_attention", "1x3x60", "S = 60"),
        ("ring_attention", "1x3x64+causal", "H = 3"),
        ("ring_attention", "1x8x72+causal+zigzag", "S = 72"),
        ("ulysses_attention", "1x3x64", "H = 3"),
    ],
)
def test_uneven_sizes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kernel: str, size: str, dim: str
) -> None:
    Machine(monkeypatch, 8)
    monkeypatch.setattr(run.os, "_exit", _exit)
    with pytest.raises(SystemExit):
        run_directly(kernel, size)
    found = capsys.readouterr()
    assert found.err.startswith(f"error[PK943]: {dim} is not a multiple of {16 if 'zigzag' in size else 8}\n")
    # Before anything is measured.
    assert found.out == ""


def test_rows_need_not_divide(monkeypatch: pytest.MonkeyPatch) -> None:
    Machine(monkeypatch, 8)
    assert bench("--sizes", "1x64x64", kernel="gemm_rs") == 0


def test_a_gpu_that_hangs_ends_the_process(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    machine = Machine(monkeypatch, 1)

    def hang(*_: Any, **__: Any) -> Any:
        raise contest.Hung("the GPU has not finished within 120 s")

    monkeypatch.setattr(contest, "compete", hang)
    monkeypatch.setattr(run.os, "_exit", _exit)
    with pytest.raises(SystemExit):
        run_directly("gemm", "64")
    text = "error[PK944]: a measurement does not end: the GPU has not finished within 120 s\n"
    assert capsys.readouterr().err.startswith(text)
    # Giving back memory would wait for the kernel.
    assert machine.closed == 0


def test_a_file_that_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    Machine(monkeypatch, 1)
    assert bench("--json", str(tmp_path / "none" / "x.json")) == 1
    found = capsys.readouterr()
    assert found.err.startswith("error[PK924]")
    assert found.out == ""


def test_variants_are_contestants(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[run.Request] = []
    monkeypatch.setattr(run, "execute", lambda program, request: requests.append(request) or True)
    options = ["--overlap", "none,intra_sm", "--variant", "overlap=inter_sm,comm_sms=8", "--schedule", "stages=3"]
    assert bench(*options, kernel="gemm_rs") == 0
    (request,) = requests
    names = [run.variant_name(variant) for variant in request.variants]
    assert names == ["pkc overlap=none", "pkc overlap=intra_sm", "pkc overlap=inter_sm,comm_sms=8"]
    assert request.schedule == {"stages": "3"}


def test_what_a_kernel_is_compiled_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dimensions of the local matmul of a rank, or of all ranks' sequence."""
    calls: list[dict[str, Any]] = []
    monkeypatch.setattr(kernels, "artifact_for", lambda program, **given: calls.append(given))
    for name, problem in (
        ("gemm_rs", Matmul("reduce_scatter", 64, 128, 256, 4)),
        ("ag_gemm", Matmul("all_gather", 64, 128, 256, 4)),
        ("attention", Attention("none", 2, 3, 16, 48, 64, True, 4)),
        ("ring_attention", Attention("ring", 2, 3, 16, 16, 128, False, 4)),
        ("ulysses_attention", Attention("all_to_all", 2, 4, 16, 16, 128, False, 4)),
    ):
        program = run.load_program(EXAMPLES / f"{name}.pk")
        kernels.compile_kernel(program, run.entry_of(name), problem, {"stages": "3"}, "tiny")
    assert [call["dims"] for call in calls] == [
        {"M": 64, "K": 64, "N": 128},
        {"M": 64, "K": 256, "N": 32},
        {"B": 2, "H": 3, "S": 16, "T": 48},
        {"B": 2, "H": 3, "S": 16},
        {"B": 2, "H": 4, "S": 16},
    ]
    assert [call["constants"] for call in calls] == [{}, {}, {"D": 64, "causal": True}, {"D": 128}, {"D": 128}]
    assert [(call["ranks"], call["schedule"], call["target"]) for call in calls] == [(4, {"stages": "3"}, "tiny")] * 5


def test_operands_are_written_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the symmetric heap, before each launch, if that is asked for."""
    order: list[str] = []
    monkeypatch.setattr(kernels, "LoadedKernel", lambda *_: lambda *_, **__: order.append("launch"))
    monkeypatch.setattr(kernels, "torch", lambda: SimpleNamespace(cuda=SimpleNamespace(current_stream=lambda: 0)))
    given = kernels.Operands({}, "result", [(SimpleNamespace(copy_=order.append), "A")])
    launched: list[Any] = []
    for writes in (False, True):
        launched.append(kernels.launches(Any, given, Any, writes=writes))  # type: ignore[arg-type]
    assert [run() for run in launched] == ["result", "result"]
    assert order == ["launch", "A", "launch"]


def test_the_target(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A name that no target has is refused before anything is measured; the others get to the compiler."""
    Machine(monkeypatch, 1)
    asked: list[str] = []
    monkeypatch.setattr(run._Run, "_entrants", lambda self, *_: asked.append(self._request.target) or [])
    assert bench("--sizes", "4096", "--target", "sm_1") == 1
    assert capsys.readouterr().err.startswith("error[PK520]")
    assert bench("--sizes", "4096", "--target", TINY.name) == 0
    assert asked == [TINY.name]


def run_directly(kernel: str, size: str) -> None:
    """As the command, but exceptions are not handled."""
    program = run.load_program(EXAMPLES / f"{kernel}.pk")
    run.execute(program, run.Request("x.pk", kernel, size, {}, [], 20, None, DEFAULT))


def _exit(status: int) -> None:
    raise SystemExit(status)
