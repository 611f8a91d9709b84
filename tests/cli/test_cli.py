"""The command line: options, files, exit statuses, what goes where."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner

import pkc
from pkc.cli import run as cli_run
from pkc.cli.main import cli, main
from pkc.driver import builder
from pkc.driver.compiler import passes_to

EXAMPLES = Path(__file__).parents[2] / "examples"
ESCAPE = "\x1b"
DOUBLE = """\
kernel double(A: bf16[M, N].shard(0), C: bf16[M, N].shard(0), factor: f32, D: const = 2):
    for m, n in tasks(blocks(M, 4, of=rank), blocks(N, 8)):
        C[m, n] = A[m, n] * factor * D
"""
RUN = ["run", "double.pk", "--ranks", "2", "--set", "M=5,N=8,factor=1.0"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a kernel in it."""
    (tmp_path / "double.pk").write_text(DOUBLE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m pkc` as a separate process."""
    return subprocess.run(
        [sys.executable, "-m", "pkc", *arguments],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_version() -> None:
    result = CliRunner().invoke(cli, ["--version"])
    assert (result.exit_code, result.output) == (0, f"pkc {pkc.__version__}\n")


@pytest.mark.parametrize(
    "arguments", [[], ["compile"], ["run"], ["bench"], ["opt"]], ids=lambda a: "-".join(a) or "pkc"
)
def test_help_has_an_example_and_the_exit_statuses(arguments: list[str]) -> None:
    result = CliRunner().invoke(cli, [*arguments, "--help"])
    assert result.exit_code == 0
    assert "Example:\n" in result.output
    assert "  pkc " in result.output
    assert "Exit status:" in result.output


def test_help_imports_no_compiler() -> None:
    program = "import sys; from pkc.cli.main import main; main(['--help']); sys.exit('pkc.dialect' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["--speed"],
        ["bench"],
        ["run", "double.pk", "--ranks", "0"],
        ["run", "double.pk", "--ranks", "\u0662"],
        ["run", "double.pk", "--seed", "\uff11"],
        ["check", "double.pk", "--seeds", "\u00b2"],
        ["compile", "--emit", "cuda"],
    ],
    ids=" ".join,
)
def test_usage_is_status_2(arguments: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert not shown.out
    assert "Usage:" in shown.err


def test_compile_prints_what_opt_reads(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "double.pk", "--const", "D=3", "-o", "double.mlir"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["opt", "double.mlir"]) == 0
    assert capsys.readouterr().out == (folder / "double.mlir").read_text(encoding="utf-8")


def test_opt_gets_its_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["opt", "-h"]) == 0
    assert "usage: pkc opt" in capsys.readouterr().out


def test_run_reports_and_succeeds(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(RUN) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    first, *_, last = shown.out.splitlines()
    assert first == "double on 2 simulated ranks, M=5, N=8, factor=1.0, seed 0"
    assert "5 x 8  all" in shown.out
    assert last == "ok: C within the bound of the float64 reference"
    assert ESCAPE not in shown.out


def test_on_gpus_it_runs_what_is_compiled_for_these_sizes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[dict[str, object]] = []
    monkeypatch.setattr(builder, "artifact_for", lambda program, **given: asked.append(given))
    # Stands for GPUs.
    monkeypatch.setattr(cli_run, "_on_gpus", lambda artifact, ranks, dims, inputs, _: [{"C": 2 * inputs["A"]}])
    assert main([*RUN, "--target", "sm_90a", "--schedule", "stages=3"]) == 0
    expected = {"dims": {"M": 5, "N": 8}, "ranks": 2, "kernel": "double", "constants": {}, "schedule": {"stages": "3"}}
    assert main([*RUN, "--target", "sm_90a", "--schedule", "stages=3", "--debug"]) == 0
    assert asked == [expected | {"target": "sm_90a", "instruments": added} for added in ([], ["debug"])]
    assert capsys.readouterr().out.startswith("double on 2 GPUs, M=5, N=8")


def test_what_is_not_written_is_not_passed_over(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = DOUBLE.replace("blocks(N, 8)", "blocks(N, 8, stop=0)")
    (folder / "double.pk").write_text(text, encoding="utf-8")
    assert main(RUN) == 0
    assert capsys.readouterr().out.splitlines()[-2] == "warning: no element of `C` is written"


def test_an_output_that_is_none_is_found_before_the_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def simulated(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(cli_run, "simulate", simulated)
    assert main([*RUN, "--out", "A=a.npy"]) == 1
    assert "error[PK923]" in capsys.readouterr().err


def test_wrong_result_is_status_1(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = cli_run.compare

    def wrong(*arguments: Any) -> Any:
        return [
            dataclasses.replace(item, ok=False, where=(1, 2), problem="is 1, expected 2") for item in right(*arguments)
        ]

    monkeypatch.setattr(cli_run, "compare", wrong)
    assert main(RUN) == 1
    shown = capsys.readouterr().out
    assert "WRONG: [1, 2] is 1, expected 2\n" in shown
    assert shown.splitlines()[-1] == "WRONG: C outside the bound of the float64 reference"


@pytest.mark.parametrize("which", ["B", "C"])
def test_one_wrong_array_is_enough(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], which: str
) -> None:
    text = DOUBLE.replace("C: bf16", "B: bf16[M, N].shard(0), C: bf16") + "        B[m, n] = A[m, n]\n"
    (folder / "double.pk").write_text(text)
    right = cli_run.simulate

    def wrong(*arguments: Any, **options: Any) -> Any:
        found = right(*arguments, **options)
        return found | {which: found[which] + 1}

    assert main(RUN) == 0
    monkeypatch.setattr(cli_run, "simulate", wrong)
    assert main(RUN) == 1
    assert capsys.readouterr().out.splitlines()[-1] == f"WRONG: {which} outside the bound of the float64 reference"


def test_arrays_come_from_and_go_to_files(folder: Path) -> None:
    values = np.arange(40, dtype=np.float32).reshape(5, 8) + np.float32(1 / 512)
    np.save("a.npy", values)
    assert main([*RUN[:-1], "M=5,N=8,factor=2.0,D=3", "--in", "A=a.npy", "--out", "C=c.npy"]) == 0
    result = np.load("c.npy")
    assert result.dtype == np.float32
    rounded = values.astype(ml_dtypes.bfloat16).astype(np.float32)
    assert np.array_equal(result, (rounded * 6).astype(ml_dtypes.bfloat16).astype(np.float32))


def test_bytes_that_numpy_saves_for_bf16_are_read(folder: Path) -> None:
    values = np.arange(40).reshape(5, 8).astype(ml_dtypes.bfloat16)
    np.save("a.npy", values)
    assert main([*RUN, "--in", "A=a.npy", "--out", "C=c.npy"]) == 0
    assert np.array_equal(np.load("c.npy"), values.astype(np.float32) * 2)


def test_the_seed_draws_the_inputs(folder: Path) -> None:
    for seed, name in (("1", "first"), ("1", "again"), ("2", "other")):
        assert main([*RUN, "--seed", seed, "--out", f"C={name}.npy"]) == 0
    first, again, other = (np.load(f"{name}.npy") for name in ("first", "again", "other"))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_internal_error_is_a_diagnostic(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("lost a tile\nand more")

    monkeypatch.setattr("pkc.driver.programs.load_program", broken)
    monkeypatch.setattr("sys.argv", ["pkc", "compile", "two words.pk"])
    (folder / "reports").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder / "reports"))
    assert main(["compile", "double.pk"]) == 1
    (report,) = (folder / "reports").iterdir()
    assert capsys.readouterr().err == (
        "error[PK999]: internal error: RuntimeError: lost a tile\n"
        f"  = note: this is a mistake in pkc {pkc.__version__}, not in your program\n"
        f"  = help: please report it, with the program and `{report}`, which has the command and the traceback\n"
    )
    where, call, _, *trace = report.read_text(encoding="utf-8").splitlines()
    assert where.startswith(f"pkc {pkc.__version__}, Python 3.")
    assert call == "pkc compile 'two words.pk'"
    assert (trace[0], trace[-2:]) == (
        "Traceback (most recent call last):",
        ["RuntimeError: lost a tile", "and more"],
    )


def test_internal_error_without_room_for_a_report(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("lost a tile")

    monkeypatch.setattr("pkc.driver.programs.load_program", broken)
    monkeypatch.setattr("tempfile.tempdir", str(folder / "nowhere"))
    assert main(["compile", "double.pk"]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == (
        "  = help: please report it, with the program and the command;"
        " PKC_DEBUG=1 in the environment shows the traceback"
    )
    monkeypatch.setenv("PKC_DEBUG", "1")
    assert main(["compile", "double.pk"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_too_large_arrays_are_a_diagnostic(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 8.00 EiB")

    monkeypatch.setattr(cli_run, "draw_inputs", full)
    assert main(RUN) == 1
    assert "[PK930]" in capsys.readouterr().err


def test_interrupt(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pkc.driver.programs.load_program", interrupted)
    assert main(["compile", "double.pk"]) == 130
    assert capsys.readouterr().err.strip() == "interrupted"


def test_process_prints_results_alone(folder: Path) -> None:
    result = command(*RUN)
    assert (result.returncode, result.stderr) == (0, "")
    assert ESCAPE not in result.stdout
    assert not (folder / "double.mlir").exists()


def test_process_prints_errors_to_stderr(folder: Path) -> None:
    result = command("compile", "missing.pk", FORCE_COLOR="1")
    assert (result.returncode, result.stdout) == (1, "")
    assert "error[PK" in result.stderr
    assert ESCAPE not in result.stderr


def test_reader_that_leaves_early(folder: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "pkc", "compile", "double.pk"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


@pytest.mark.parametrize(("no_color", "painted"), [("", True), ("1", False)])
def test_colour_on_terminals_alone(folder: Path, no_color: str, painted: bool) -> None:
    import pty

    controller, terminal = pty.openpty()
    environment = {**os.environ, "NO_COLOR": no_color, "TERM": "xterm"}
    with subprocess.Popen(
        [sys.executable, "-m", "pkc", "compile", "missing.pk"], env=environment, stderr=terminal
    ) as process:
        os.close(terminal)
        shown = os.read(controller, 65536)
        process.wait(timeout=60)
    os.close(controller)
    assert (ESCAPE.encode() in shown) == painted


@pytest.mark.parametrize(
    ("example", "line"),
    [
        ("ag_gemm", "6: read of `A`: inter_sm (used again along n: fetched once, by a communicator)"),
        (
            "gemm_ar",
            "7: sum of `C`: inter_sm (every rank gets the sum: its owner adds it up and sends it back"
            " beside the tasks)",
        ),
    ],
)
@pytest.mark.parametrize("level", ["tile", "roles"])
def test_explains_on_stderr(example: str, line: str, level: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(EXAMPLES / f"{example}.pk")
    assert main(["compile", path, "--emit", level]) == 0
    alone = capsys.readouterr()
    assert alone.err == ""
    assert ("pk.role communicator" in alone.out) == (level == "roles")
    assert main(["compile", path, "--emit", level, "--explain"]) == 0
    explained = capsys.readouterr()
    assert explained.out == alone.out
    decided, remarks = explained.err.split("not optimised:\n")
    assert " has one stage: the next task waits for this one" in remarks
    first, order, *rest = decided.splitlines()
    assert first == f"{path}:{line}"
    communicators = [" communicator"]
    if example == "ag_gemm":
        communicators = [" communicator that loads `A`", " communicator that stores `A.fetched`"]
        fetched = "by all CTAs, tile by tile; one counter for 8 tiles; the local shard is read in place"
        assert order == f"{path}:6: fetch of `A`: {fetched}"
        order, *rest = rest
    assert order.split(":")[2] == " order of tasks"
    roles = [text for text in rest if ": by " not in text and ": MMA of " not in text]
    assert list(dict.fromkeys(text.split(":")[2] for text in roles)) == [
        *communicators,
        " loader",
        " consumer",
        " storer",
        " channel of A.fetched, B" if example == "ag_gemm" else " channel of A, B",
        " channel of cast",
    ]
    assert f"{path}:6: load of `B`: by tma (goes into its stage as it is)" in rest


def test_explains_warps(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(EXAMPLES / "gemm.pk")
    assert main(["compile", path, "--explain"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        f"{path}:2: order of tasks: natural (in no other order would anything come earlier)",
        f"{path}:6: load of `A`: by tma (goes into its stage as it is)",
        f"{path}:6: load of `B`: by tma (goes into its stage as it is)",
        f"{path}:7: store of `C`: by tma (leaves its stage as it is)",
        f"{path}:3: loader: 1 warp of the SMs that compute, 40 registers (it moves tiles, and computes none)",
        f"{path}:3: consumer: 8 warps of the SMs that compute, 232 registers (2 warpgroups for tiles of 128 rows)",
        f"{path}:3: storer: 1 warp of the SMs that compute, 40 registers (it moves tiles, and computes none)",
        f"{path}:6: channel of A, B: 3 stages of 49168 bytes (as many as there is room for)",
        f"{path}:7: channel of cast: 1 stage of 65552 bytes (no room for that of the next task)",
        f"{path}:6: MMA of `acc`: in flight while the next one is issued",
        "not optimised:",
        f"{path}:7: pk.channel: what goes to `C` has one stage: the next task waits for this one; shared memory has no"
        " room for 65552 bytes more [pk-plan-stages]",
    ]


def test_explains_what_the_target_has_no_instructions_for(capsys: pytest.CaptureFixture[str]) -> None:
    """The roles level and its plans are explained all the same."""
    path = str(EXAMPLES.parent / "tests" / "errors" / "PK510-store-add.pk")
    assert main(["compile", path, "--emit", "roles", "--explain"]) == 0
    _, remarks = capsys.readouterr().err.split("not optimised:\n")
    refused = "pk.kernel: cannot be compiled for sm_90a yet: `store_add` in a defined order"
    assert any(line.startswith(path) and f"{refused} [pk-lower-tiles]" in line for line in remarks.splitlines())


def test_says_nothing_of_ranks_on_one_rank(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sums of columns, which would have owners on several ranks."""
    path = tmp_path / "k.pk"
    text = "kernel k(X: f32[M, N], S: f32[N].replicate()):\n    for m, n in tasks(blocks(M, 64), blocks(N, 64)):\n"
    path.write_text(f"{text}        S[n] += rowsum(X[m, n].T)\n")
    for ranks, told in (("1", False), ("2", True)):
        assert main(["compile", str(path), "--explain", "--ranks", ranks, "--set", "M=4096,N=4096"]) == 0
        shown = capsys.readouterr().err
        assert ("owner" in shown, "order of tasks" in shown) == (told, told), shown


def test_explains_why_no_tiles_were_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(EXAMPLES / "ring_attention.pk")
    assert main(["compile", path, "--explain", "--set", "B=1,H=1,S=256"]) == 0
    _, remarks = capsys.readouterr().err.split("not optimised:\n")
    reason = "no other tiles were tried: its MMAs need one another, and it reaches other ranks"
    assert remarks.splitlines()[0] == f"{path}:2: pk.kernel: {reason} [autoschedule]"


def test_a_schedule_is_chosen_for_the_sizes_that_are_set(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(EXAMPLES / "gemm_rs.pk")
    sizes = ["--ranks", "4", "--set", "M=16,N=8192,K=2048"]
    assert main(["compile", path, "--explain", *sizes]) == 0
    shown = capsys.readouterr()
    first = shown.err.splitlines()[0]
    found = re.fullmatch(
        re.escape(f"{path}:2: schedule: ")
        + r"tile_M = (\d+), tile_N = (\d+), tile_K = (\d+), straddle = true \((\d+) tasks for 132 SMs"
        r" instead of 128; estimated [\d.]+ us against [\d.]+ us\)",
        first,
    )
    assert found is not None, first
    assert "pk.mma" in shown.out and f"!pk.tile<{found[1]}x{found[2]}xf32>" in shown.out
    assert main(["compile", path, "--explain", *sizes, "--schedule", "tile_M=64"]) == 0
    shown = capsys.readouterr()
    first = shown.err.splitlines()[0]
    assert re.fullmatch(
        r".*:2: schedule: as asked for, tile_M = 64 \(128 tasks for .*; the schedule sets tiles\)", first
    ), first
    assert "!pk.tile<64x256xf32>" in shown.out


def test_sizes_that_are_set_are_those_of_the_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(EXAMPLES / "gemm_rs.pk")
    assert main(["compile", path, "--set", "M=16,N=8192"]) == 1
    assert "error[PK601]: dimension `K` is not set" in capsys.readouterr().err
    assert main(["compile", path, "--set", "M=16,N=8192,K=64,L=3"]) == 1
    assert "`L`" in capsys.readouterr().err


def test_the_schedule_on_the_command_line_is_the_explanation(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(EXAMPLES / "ag_gemm.pk")
    assert main(["compile", path, "--emit", "roles", "--explain", "--schedule", "overlap=intra_sm"]) == 0
    shown = capsys.readouterr()
    assert shown.err.splitlines()[0] == f"{path}:6: read of `A`: intra_sm (the schedule says so)"
    assert "pk.role communicator" not in shown.out


def test_dumps_the_ir_after_each_pass(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(EXAMPLES / "ag_gemm.pk")
    assert main(["compile", path, "--emit", "roles", "--dump", "passes"]) == 0
    emitted = capsys.readouterr().out
    names = ["input", *(step.name for step in passes_to("roles"))]
    files = sorted((folder / "passes").iterdir())
    assert [file.name for file in files] == [f"{number:03}-{name}.mlir" for number, name in enumerate(names)]
    for file in files:
        assert main(["opt", str(file)]) == 0
        read = capsys.readouterr().out
    assert read == emitted


def test_sizes_that_are_not_set_are_small(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "copy.pk"
    path.write_text("kernel copy(A: f32[M], B: f32[M]):\n    for m in tasks(blocks(M, 128)):\n        B[m] = A[m]\n")
    assert main(["run", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "no size is set: small ones are taken, whose last blocks are short"
    assert lines[1] == "copy on 2 simulated ranks, M=129, seed 0"


def test_a_value_without_its_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "copy.pk", "--set", "M=1", "N=2"]) == 2
    assert "have commas between them: --set M=1024,N=512" in capsys.readouterr().err
