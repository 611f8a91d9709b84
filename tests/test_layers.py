"""Which part of pkc may import which; each package's ruff.toml says the same to the linter."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BASE = {"cache", "diagnostics", "location", "remarks"}
SEES = {
    "cache": set(),
    "diagnostics": BASE,
    "location": BASE,
    "remarks": BASE,
    "targets": BASE | {"dialect"},
    "dialect": BASE,
    "frontend": BASE | {"dialect", "language"},
    "language": BASE | {"frontend", "calls", "runtime"},
    "sim": BASE | {"dialect"},
    "passes": BASE | {"dialect", "targets"},
    "static": BASE | {"dialect", "targets", "passes", "sim"},
    "cost": BASE | {"dialect", "targets", "passes"},
    "codegen": BASE | {"dialect", "targets", "passes"},
    "runtime": BASE | {"dialect", "targets", "passes", "codegen"},
    "compiler": BASE | {"dialect", "frontend", "passes", "targets"},
}
"""Parts that are not named here, such as the command line, see everything."""

PACKAGES = ["dialect", "targets", "frontend", "sim", "passes", "static", "cost", "codegen", "runtime"]


def imports(path: Path) -> set[str]:
    """The parts of pkc that a module imports anywhere, functions included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "pkc":
            found |= {f"pkc.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            found.add(node.module or "")
    return {name.split(".")[1] for name in found if name.startswith("pkc.")} - {"__version__"}


@pytest.mark.parametrize("path", sorted((ROOT / "pkc").rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_module_sees_only_its_layers(path: Path) -> None:
    part = path.relative_to(ROOT / "pkc").with_suffix("").parts[0]
    if part in SEES:
        assert imports(path) <= SEES[part] | {part}


@pytest.mark.parametrize("package", PACKAGES)
def test_the_linter_bans_the_same(package: str) -> None:
    config = tomllib.loads((ROOT / "pkc" / package / "ruff.toml").read_text(encoding="utf-8"))
    banned = config["lint"]["flake8-tidy-imports"]["banned-api"]
    parts = {*PACKAGES, "compiler", "cli", "opt"} - {package}
    assert set(banned) == {f"pkc.{part}" for part in parts - SEES[package]}
