"""Where output cannot be written: a full disk, a closed stream."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pkc.cli.main import main

ROOT = Path(__file__).parents[2]
GEMM = str(ROOT / "examples" / "gemm.pk")
IR = str(ROOT / "tests" / "passes" / "dce.mlir")
FULL = "error[PK924]: cannot write `<stdout>`\n  = note: No space left on device\n"
COMMANDS = {
    "help": ["--help"],
    "compile": ["compile", GEMM],
    "machine code": ["compile", GEMM, "--emit", "cubin"],
    "opt": ["opt", IR],
    "run": ["run", GEMM, "--ranks", "1", "--set", "M=64,N=64,K=64"],
}


def command(arguments: list[str], *, out: str = os.devnull, err: str | None = None, shell: str = "") -> tuple[int, str]:
    """The exit status of a process with its own streams, and what it says on stderr."""
    argv = [sys.executable, "-m", "pkc", *arguments]
    with Path(out).open("w") as stdout, Path(err or os.devnull).open("w") as stderr:
        done = subprocess.run(
            ["sh", "-c", f'exec "$@" {shell}', "sh", *argv],
            cwd=ROOT,
            stdout=stdout,
            stderr=stderr if err else subprocess.PIPE,
            timeout=120,
            check=False,
        )
    return done.returncode, (done.stderr or b"").decode()


@pytest.mark.parametrize("name", COMMANDS)
def test_stdout_is_full(name: str) -> None:
    assert command(COMMANDS[name], out="/dev/full") == (1, FULL)


def test_stderr_is_full() -> None:
    """Nobody can be told; the exit status says it."""
    assert command(["compile", "missing.pk"], err="/dev/full") == (1, "")
    assert command([*COMMANDS["compile"], "--explain"], err="/dev/full") == (1, "")
    assert command(COMMANDS["compile"], out="/dev/full", err="/dev/full") == (1, "")


def test_a_stream_is_closed() -> None:
    assert command(COMMANDS["compile"], shell=">&-") == (0, "")
    assert command(["compile", "missing.pk"], shell="2>&-") == (1, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compile", GEMM, "-o", "/dev/full"], "error[PK924]: cannot write `/dev/full`\n  = note: No space left"),
        ([*COMMANDS["run"], "--out", "C=/dev/full"], "error[PK924]: cannot write `/dev/full`\n  = note: No space left"),
        (["opt", IR, "-o", "/dev/full"], "error[PK453]: cannot write `/dev/full`: No space left on device"),
        (["compile", GEMM, "--dump", "/dev/full"], "error[PK924]: cannot write `/dev/full`\n  = note: File exists"),
        (["opt", IR, "--dump", "/dev/full"], "error[PK453]: cannot write `/dev/full`: File exists"),
    ],
    ids=["compile", "run", "opt", "dump", "dump of opt"],
)
def test_a_file_is_full(arguments: list[str], message: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 1
    assert capfd.readouterr().err.startswith(message)
