"""Kernels in Python, as README and the pages spell them, pass a type checker; without `no_type_check` they do not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import blocks

ROOT = Path(__file__).parents[2]


def errors(folder: Path, program: str) -> str:
    (folder / "program.py").write_text(program, encoding="utf-8")
    (folder / "pyrightconfig.json").write_text(
        f'{{"typeCheckingMode": "standard", "extraPaths": ["{ROOT}"]}}', encoding="utf-8"
    )
    command = [sys.executable, "-m", "basedpyright", "-p", str(folder), "--pythonpath", sys.executable]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder, check=False).stdout


@pytest.mark.long
def test_a_kernel_passes_pyright(tmp_path: Path) -> None:
    ((_, program),) = blocks("editors.md", "python")
    assert "0 errors" in errors(tmp_path, program)
    found = errors(tmp_path, program.replace("@no_type_check\n", "").replace("twice.simulate", "twice.simulated"))
    assert "reportInvalidTypeForm" in found
    assert "simulated" in found and "Kernel" in found


def test_the_kernel_of_the_readme_is_spelled_so() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "@pkc.kernel\n@no_type_check" in readme
