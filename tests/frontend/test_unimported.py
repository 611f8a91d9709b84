"""Python files that are read without being imported: the same trees, and nothing is executed."""

from __future__ import annotations

from pathlib import Path

import pytest

from pkc.cli.main import main
from pkc.diagnostics import PkcError
from pkc.driver.compiler import load_program

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
BODY = """
    for m in tasks(blocks(M, SIZE)):
        B[m] = A[m] * FACTOR
"""
HEAD = "import pkc\nfrom pkc.language import *\n\nM, = dims('M')\nSIZE = 64\nFACTOR: float = -0.5\n"
KERNEL = "@pkc.kernel\ndef k(A: f32[M], B: f32[M]):" + BODY


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_read_alike(path: Path) -> None:
    assert load_program(path, imports=False) == load_program(path)


@pytest.mark.parametrize(
    "text",
    [
        HEAD + KERNEL,
        HEAD + KERNEL.replace("@pkc.kernel", "@pkc.kernel(stages=2, overlap='none')"),
        HEAD + "OTHER = SIZE\n" + KERNEL.replace("SIZE", "OTHER"),
        HEAD.replace("import pkc", "from pkc import kernel as made\nimport pkc as p")
        + KERNEL.replace("pkc.kernel", "made"),
        HEAD + KERNEL.replace("B: f32[M])", "B: f32[M], D: const = SIZE)"),
        HEAD + KERNEL + "\n\n" + KERNEL.replace("SIZE", "32"),
        HEAD + KERNEL + "\n\n" + KERNEL.replace("def k", "def l"),
        HEAD + KERNEL + "\nSIZE = 128\n",
    ],
    ids=["plain", "schedule", "name", "renamed", "default", "twice", "two", "later"],
)
def test_files_read_alike(tmp_path: Path, text: str) -> None:
    path = tmp_path / "k.py"
    path.write_text(text, encoding="utf-8")
    assert load_program(path, imports=False) == load_program(path)


def test_nothing_is_executed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, mark = tmp_path / "k.py", tmp_path / "mark"
    path.write_text(f"{HEAD}\nopen({str(mark)!r}, 'w')\n@print\ndef other(x=open({str(mark)!r}, 'w')): ...\n{KERNEL}")
    assert main(["compile", "--no-import", str(path)]) == 0
    assert not mark.exists()
    assert "pk.kernel @k(" in capsys.readouterr().out
    assert main(["compile", str(path)]) == 0
    assert mark.exists()


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("SIZE = 64", "SIZE = 4 * 16", "PK162 SIZE"),
        ("SIZE = 64", "SIZE = len('x' * 64)", "PK162 SIZE"),
        ("SIZE = 64", "from os import SIZE", "PK162 SIZE"),
        ("SIZE = 64", "if M:\n    SIZE = 64", "PK162 SIZE"),
        ("SIZE = 64", "SIZE = 64\nfor SIZE in (): ...", "PK162 SIZE"),
        ("SIZE = 64", "SIZE = 64\ndef blocks(): ...", "PK162 blocks"),
        ("@pkc.kernel", "@pkc.kernel(stages=print())", "PK162 print()"),
        ("import pkc", "import os as pkc", "PK121 "),
        ("@pkc.kernel", "@open('x')", "PK121 "),
        ("def k(", "def k(:", "PK160 :"),
    ],
)
def test_what_only_python_knows_is_refused(tmp_path: Path, old: str, new: str, found: str) -> None:
    path = tmp_path / "k.py"
    path.write_text((HEAD + KERNEL).replace(old, new), encoding="utf-8")
    with pytest.raises(PkcError) as raised:
        load_program(path, imports=False)
    (finding,) = raised.value.diagnostics
    assert f"{finding.code} {finding.span.text}" == found
