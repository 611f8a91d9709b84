"""Builds C++ programs with pkc's loader of kernels."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from pkc.native import FOLDER


def build_program(sources: Sequence[Path], program: Path, *libraries: str) -> None:
    """`program` from the loader's sources and these."""
    # As one file, so that the headers are read once.
    together = program.with_suffix(".cpp")
    together.write_text("".join(f'#include "{source}"\n' for source in [*FOLDER.glob("*.cpp"), *sources]))
    includes = [FOLDER, _include("nlohmann_json", "include"), _include("nvidia.cu13", "include")]
    flags = ["-std=c++20", "-O0", "-Wall", "-Wextra", "-Werror", *(f"-I{folder}" for folder in includes)]
    subprocess.run(["g++", *flags, str(together), "-o", str(program), *libraries], check=True)


def _include(package: str, folder: str) -> Path:
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(next(iter(spec.submodule_search_locations)), folder)
