"""What somebody meets who tries pkc for the first time."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from pkc.cli.main import main

ROOT = Path(__file__).parents[2]
TOOLS = sorted(path.stem for path in (ROOT / "tools").glob("*.py") if "__main__" in path.read_text(encoding="utf-8"))
BESIDE = "def twice(x):\n    return x {} x\n"
KERNEL = """\
import pkc
from pkc.language import *
from beside_it import twice

(M,) = dims("M")


@pkc.kernel
def k(A: f32[M], B: f32[M]):
    for m in tasks(blocks(M, 64)):
        B[m] = twice(A[m])
"""


def test_a_file_finds_those_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "beside_it", raising=False)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "beside_it.py").write_text(BESIDE.format("+"), encoding="utf-8")
    (tmp_path / "sub" / "k.py").write_text(KERNEL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    assert main(["compile", "sub/k.py"]) == 0
    assert "pk.add" in capsys.readouterr().out
    assert sys.path == before
    # In the next process, which imports it again.
    monkeypatch.delitem(sys.modules, "beside_it")
    (tmp_path / "sub" / "beside_it.py").write_text(BESIDE.format("*"), encoding="utf-8")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for cached in (tmp_path / "sub").rglob("*.pyc"):
        cached.unlink()
    assert main(["compile", "sub/k.py"]) == 0
    assert "pk.mul" in capsys.readouterr().out


def test_every_mistake_is_shown_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = """\
kernel k(C: f32[M], D: f32[M, N]):
    for m in tasks(blocks(M, 64)):
        x = silu(C[m])
        print(x, x)
        for n in blocks(N, 64):
            acc = acc + rowsum(D[m, n])
        C[m] = acc
        C[m] = cast(C[m], bfloat16)
"""
    path = tmp_path / "k.pk"
    path.write_text(program, encoding="utf-8")
    assert main(["compile", str(path)]) == 1
    told = capsys.readouterr().err
    assert [line for line in told.splitlines() if line.startswith("error")] == [
        "error[PK205]: unknown function `silu`",
        "error[PK206]: wrong arguments for `print`",
        "error[PK201]: unknown name `acc`",
        "error[PK210]: unknown type `bfloat16`",
    ]


@pytest.mark.parametrize("tool", TOOLS)
def test_tools_say_what_they_do_and_do_nothing(
    tool: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [f"{tool}.py", "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "tools" / f"{tool}.py"), run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: {tool}.py [-h]")
