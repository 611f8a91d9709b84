"""Kernels in Python, as README, the examples and the pages spell them, pass type checkers; without `no_type_check`
they do not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import blocks

ROOT = Path(__file__).parents[2]


def told(folder: Path, *command: str) -> str:
    """What a type checker says of the programs of a folder."""
    given = {**os.environ, "MYPYPATH": str(ROOT)}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, cwd=folder, env=given, check=False
    ).stdout


def pyright(folder: Path) -> str:
    (folder / "pyrightconfig.json").write_text(
        f'{{"typeCheckingMode": "standard", "extraPaths": ["{ROOT}"]}}', encoding="utf-8"
    )
    return told(folder, sys.executable, "-m", "basedpyright", "-p", str(folder), "--pythonpath", sys.executable)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All examples, and the kernel of the README."""
    folder = tmp_path_factory.mktemp("programs")
    for path in (ROOT / "examples").glob("*.py"):
        shutil.copy(path, folder)
    first = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)[0]
    (folder / "readme.py").write_text(first, encoding="utf-8")
    return folder


@pytest.mark.long
def test_examples_and_the_readme_pass_pyright(programs: Path) -> None:
    assert "\n0 errors" in f"\n{pyright(programs)}"


@pytest.mark.long
def test_examples_and_the_readme_pass_mypy(programs: Path) -> None:
    files = sorted(path.name for path in programs.glob("*.py"))
    command = ["-m", "mypy", "--follow-imports=silent", "--cache-dir", str(programs / "cache"), *files]
    found = told(programs, sys.executable, *command)
    assert found.startswith("Success"), found


@pytest.mark.long
def test_a_kernel_passes_pyright(tmp_path: Path) -> None:
    ((_, program),) = blocks("editors.md", "python")
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    assert "\n0 errors" in f"\n{pyright(tmp_path)}"
    wrong = program.replace("@no_type_check\n", "").replace("twice.simulate", "twice.simulated")
    (tmp_path / "program.py").write_text(wrong, encoding="utf-8")
    found = pyright(tmp_path)
    assert "reportInvalidTypeForm" in found
    assert "simulated" in found and "Kernel" in found


def test_kernels_are_spelled_so() -> None:
    for path in [ROOT / "README.md", *(ROOT / "examples").glob("*.py")]:
        text = path.read_text(encoding="utf-8")
        assert re.search(r"^@pkc\.kernel.*\n@no_type_check", text, re.MULTILINE), path
