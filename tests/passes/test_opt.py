"""The pass tool: what goes in and out, and that every mistake is a diagnostic."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest

from pkc.cli.opt import main
from pkc.passes import PASSES

VALID = "%r = pk.rank\n"


@pytest.fixture
def valid(tmp_path: Path) -> str:
    path = tmp_path / "valid.mlir"
    path.write_text(VALID, encoding="utf-8")
    return str(path)


def test_writes_to_a_file(valid: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "out.mlir"
    assert main([valid, "-o", str(output)]) == 0
    assert output.read_text(encoding="utf-8") == "builtin.module {\n  %r = pk.rank\n}\n"
    assert capsys.readouterr().out == ""


def test_reads_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(VALID))
    assert main(["--print-generic"]) == 0
    assert '"pk.rank"() : () -> index' in capsys.readouterr().out


def test_prints_locations_and_times(valid: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([valid, "-p", "pk-cse", "--print-debuginfo", "--time-passes"]) == 0
    printed = capsys.readouterr()
    assert printed.err.endswith("ms  pk-cse\n")


def test_dumps(valid: str, tmp_path: Path) -> None:
    assert main([valid, "-p", "pk-cse,pk-dce", "--dump", str(tmp_path / "d")]) == 0
    assert [path.name for path in sorted((tmp_path / "d").iterdir())] == [
        "000-input.mlir",
        "001-pk-cse.mlir",
        "002-pk-dce.mlir",
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["-p", "pk-canonicalise"], "PK450", "did you mean `pk-canonicalize`?"),
        (["-p", "zzz"], "PK450", "passes of pkc: pk-check-program, "),
        (["-p", "pk-cse{width=3}"], "PK451", "options: none"),
        (["-p", "pk-cse{"], "PK452", "Expected argument name"),
        (["-p", "pk-cse,,"], "PK452", "Expected pass name"),
        (["-o", "/nonexistent/x"], "PK453", "cannot write `/nonexistent/x`: No such file or directory"),
    ],
)
def test_bad_arguments(
    valid: str, arguments: list[str], code: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([valid, *arguments]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith(f"error[{code}]: ")
    assert words in printed


def test_unknown_option_shows_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--nonsense"]) == 2
    assert "usage: pkc opt" in capsys.readouterr().err


def test_help_names_the_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    printed = capsys.readouterr().out
    assert all(re.search(rf"{name}\b", printed) for name in PASSES)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "Could not parse entire input"),
        (b"pk.rank_of", "Operation pk.rank_of is not registered"),
        (b"%a = pk.ring_peer %b", "values used but not defined: [%b]"),
        (b"pk.kernel @k() {\n^bb0:\n^bb1:\n}", "a kernel has one block"),
        (b"pk.kernel @k(%x: !pk.tile<0xf32>) {}", "tile extents must be positive, got [0]"),
        (b'"t.v"() : () -> !pk.tile<8xf64>', "is not an element type of tiles"),
        (b'%a = "pk.rank() : () -> index // ' + b"x" * 400 + b"\n", "a string has no end or an unknown escape"),
        (b'%a = "' + b"x" * 400 + b'\\q"', "a string has no end or an unknown escape"),
        (b"\xff\xfe", "PK453"),
        (b"\x00", "Unexpected character"),
        (b'"a.b"() ({' * 2000, "PK455"),
        (b'"builtin.module"() ({\n  "pk.tasks"() : () -> ()\n}) : () -> ()', "PK440"),
    ],
)
def test_bad_ir(text: bytes, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.mlir"
    path.write_bytes(text)
    arguments = ["--allow-unregistered-dialect"] if text.startswith(b'"') else []
    assert main([str(path), *arguments]) == 1
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.out == ""


def test_a_missing_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["missing.mlir"]) == 1
    assert capsys.readouterr().err == "error[PK453]: cannot read `missing.mlir`: No such file or directory\n"


def test_modules_fail_separately(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "modules.mlir"
    path.write_text(f"{VALID}// -----\n%a = pk.ring_peer 3\n// -----\n{VALID}", encoding="utf-8")
    assert main([str(path), "--split-input-file"]) == 1
    printed = capsys.readouterr()
    assert printed.out.count("pk.rank") == 2
    assert f"{path}:3:" in printed.err
