"""The sdist, the wheel that is made of it, and that in an environment of its own: no compiler, no torch, no CUDA."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from pkc.version import VERSION

ROOT = Path(__file__).parents[1]
MOST_MEGABYTES = 200
"""Of the environment, the installer included."""


def run(*command: str | Path, folder: Path) -> str:
    done = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_a_wheel_in_a_clean_environment(tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "env", folder=tmp_path)
    run(sys.executable, "-m", "venv", tmp_path / "builder", folder=tmp_path)
    builder, commands = tmp_path / "builder" / "bin", tmp_path / "env" / "bin"
    run(builder / "pip", "install", "-q", "hatchling>=1.27", folder=tmp_path)
    run(builder / "hatchling", "build", "-t", "sdist", "-d", tmp_path / "built", folder=ROOT)
    sdist = tmp_path / "built" / f"pkc-{VERSION}.tar.gz"
    with tarfile.open(sdist) as packed:
        kept = {name.partition("/")[2] for name in packed.getnames()}
    tracked = set(run("git", "ls-files", "pkc", "docs", "examples", "tests", folder=ROOT).splitlines())
    assert tracked | {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml"} <= kept
    run(builder / "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, sdist, folder=tmp_path)
    (wheel,) = tmp_path.glob(f"pkc-{VERSION}-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name for name in tracked if name.startswith("pkc/")} <= set(names)
    assert not [name for name in names if name.startswith(("tests/", "tools/", "docs/"))]
    run(commands / "pip", "install", "-q", wheel, folder=tmp_path)
    shown = run(commands / "pkc", "run", ROOT / "examples" / "gemm_rs.pk", "--ranks", "8", folder=tmp_path)
    assert shown.splitlines()[-1].startswith("ok: ")
    program = (
        "import pkc, sys; pkc.load(sys.argv[1]).timeline(ranks=2, M=512, N=512, K=256); print(sorted(sys.modules))"
    )
    modules = run(commands / "python", "-c", program, ROOT / "examples" / "gemm_rs.pk", folder=tmp_path)
    assert "'torch'" not in modules and "'cuda'" not in modules
    size = sum(path.stat().st_size for path in (tmp_path / "env").rglob("*") if path.is_file())
    assert size < MOST_MEGABYTES * 2**20
