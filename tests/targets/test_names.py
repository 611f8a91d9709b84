"""What belongs to one kind of GPU is said in `pkc/targets` alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PKC = Path(__file__).parents[2] / "pkc"
OTHERS = sorted(path for path in PKC.rglob("*.py") if PKC / "targets" not in path.parents)

NAMES = re.compile(
    r"\b(sm|compute)_\d+|\b[AHBL]\d+0S?\b|hopper|blackwell|ampere"  # architectures and boards
    r"|\b132\b"  # SMs
    r"|232.?448|\b22[78] ?(\* ?1024|KB|KiB)"  # bytes of shared memory
    r"|\b\d+ GB/s"  # what was measured on one of them
    r"|\b65.?536\b.*regist|regist.*\b65.?536\b|\b2(55|40) regist",
    re.IGNORECASE,
)


@pytest.mark.parametrize(
    "text",
    [
        "for `sm_90a`",
        "on 4 H200",
        "B200",
        "ctas = 132",
        "232448",
        "232_448",
        "227 * 1024",
        "228 KB",
        "65536 registers",
        "at 40 GB/s",
    ],
)
def test_the_pattern_finds_them(text: str) -> None:
    assert NAMES.search(text)


def test_nothing_else_names_a_gpu() -> None:
    """Say it in pkc/targets, and ask the `Target`."""
    found: list[str] = []
    for path in OTHERS:
        lines = path.read_text(encoding="utf-8").splitlines()
        found += [f"{path}:{number}: {line}" for number, line in enumerate(lines, start=1) if NAMES.search(line)]
    assert len(OTHERS) > 100
    assert not found
