"""No command writes over the program that it reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from pkc.cli.main import cli, main
from pkc.cli.options import OnFile

PROGRAM = """\
kernel copy(A: f32[M], B: f32[M]):
    for m in tasks(blocks(M, 4)):
        B[m] = A[m]
"""
SIZES = ["--ranks", "1", "--set", "M=4"]
COMMANDS: dict[str, tuple[list[str], str, str]] = {
    "compile": ([], "-o", ""),
    "run": (SIZES, "--out", "B="),
    "timeline": (SIZES, "-o", ""),
    "explain": (SIZES, "--html", ""),
    "trace": (SIZES, "-o", ""),
    "bench": ([], "--json", ""),
}
"""Of each command that writes files: what else it takes, the option, and what stands before the file's name."""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("copy.pk").write_text(PROGRAM, encoding="utf-8")


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("first", [True, False], ids=["option first", "file first"])
def test_the_program_stays(name: str, first: bool, capsys: pytest.CaptureFixture[str]) -> None:
    more, option, before = COMMANDS[name]
    written = [option, f"{before}copy.pk"]
    assert main([name, *more, *(written if first else []), "copy.pk", *([] if first else written)]) == 1
    assert capsys.readouterr() == (
        "",
        "error[PK924]: cannot write `copy.pk`\n"
        "  = note: it is the program that the command reads\n"
        "  = help: name another file for what the command writes\n",
    )
    assert Path("copy.pk").read_text(encoding="utf-8") == PROGRAM


def test_under_another_name(capsys: pytest.CaptureFixture[str]) -> None:
    Path("link.mlir").symlink_to("copy.pk")
    for name in ("./copy.pk", str(Path("copy.pk").absolute()), "link.mlir"):
        assert main(["compile", "copy.pk", "-o", name]) == 1
        assert f"cannot write `{name}`" in capsys.readouterr().err
    assert Path("copy.pk").read_text(encoding="utf-8") == PROGRAM


def test_another_file_may_be_there() -> None:
    Path("copy.mlir").write_text("before", encoding="utf-8")
    assert main(["compile", "copy.pk", "-o", "copy.mlir"]) == 0
    assert "pk.kernel @copy" in Path("copy.mlir").read_text(encoding="utf-8")


def test_no_command_is_overlooked() -> None:
    """Files that a command writes have the names that `OnFile` looks at."""
    writing = {
        name
        for name, command in cli.commands.items()
        if {"output", "outputs"} & {parameter.name for parameter in command.params}
    }
    assert writing == set(COMMANDS)
    assert all(isinstance(cli.commands[name], OnFile) for name in writing)
