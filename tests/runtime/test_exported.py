"""Kernels in files."""

from __future__ import annotations

from pathlib import Path

import pytest

from pkc.diagnostics import PkcError
from pkc.runtime import exported
from pkc.runtime.exported import load, pack
from tests.runtime.test_launch import REDUCE


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "kernel.pkx"
    path.write_bytes(pack(REDUCE))
    assert load(path) == REDUCE


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "No such file or directory"),
        (b"machine code", "it was not written by `pkc compile --emit artifact`"),
        (pack(REDUCE)[:-1], "it is damaged"),
        (pack(REDUCE)[:-1] + b"?", "it is damaged"),
        (pack(REDUCE).replace(exported.VERSION.encode(), b"0.0.0", 1), f"it is not of version {exported.VERSION}"),
    ],
    ids=["missing", "other", "short", "changed", "version"],
)
def test_files_that_are_none(tmp_path: Path, content: bytes | None, problem: str) -> None:
    path = tmp_path / "kernel.pkx"
    if content is not None:
        path.write_bytes(content)
    assert refused(path) == told(path, problem, path)


def told(path: Path, problem: str, written: Path) -> str:
    return f"""\
error[PK829]: `{path}` has no kernel to load: {problem}
  = help: `pkc compile FILE --emit artifact -o {written}` writes one"""


def refused(path: Path) -> str:
    with pytest.raises(PkcError) as raised:
        load(path)
    return str(raised.value)


def test_no_help_writes_over_a_program(tmp_path: Path) -> None:
    path = tmp_path / "gemm.pk"
    path.write_text("kernel", encoding="utf-8")
    assert refused(path) == told(path, "it was not written by `pkc compile --emit artifact`", tmp_path / "gemm.pkx")
    assert refused(tmp_path) == told(tmp_path, "Is a directory", tmp_path / "kernel.pkx")
