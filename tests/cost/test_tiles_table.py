"""The table of measured tiles, made from what `pkc bench` writes."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tools import tiles_table


def test_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    contestants = {
        "cublas_nccl": {"median_ms": 0.05},
        "pkc": {"median_ms": 0.044},
        "pkc tile_M=64,tile_N=64,tile_K=64": {"median_ms": 0.04},
        "pkc tile_M=16,tile_N=64,tile_K=64": {"error": "it hangs\nand more"},
        "pkc stages=4": {"median_ms": 0.01},
    }
    result = {"kernel": "gemm_rs", "ranks": 4, "m": 16, "n": 8192, "k": 8192, "contestants": contestants}
    source, target = tmp_path / "r.json", tmp_path / "t.toml"
    source.write_text(json.dumps({"results": [result]}), encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["tiles_table", str(source), "--toml", str(target)])
    tiles_table.main()
    head, choice, line, failed, summary = capsys.readouterr().out.splitlines()
    assert head == "gemm_rs 16x8192x8192 on 4: cublas_nccl 50.0, pkc 44.0 us"
    assert choice.startswith("  gemm_rs.pk:2: schedule: tile_M = ")
    guess = tiles_table.estimated(result, (64, 64, 64))
    assert line == f"  {'64x64x64':>12}     40.0 us, estimated {guess * 1000:8.1f} ({guess / 0.04:.2f})"
    assert failed == "  FAILED pkc tile_M=16,tile_N=64,tile_K=64: it hangs"
    assert "1 times;" in summary and "1.100 times as long as the best" in summary
    assert tomllib.loads(target.read_text(encoding="utf-8")) == {
        "measured": [{"kernel": "gemm_rs", "size": [16, 8192, 8192], "ms": {"64x64x64": 0.04}}]
    }
