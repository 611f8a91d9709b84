"""The first call of a process, of programs that another process has compiled: it imports no compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pkc
from pkc.frontend.parse import parse_text
from pkc.location import Source
from tests.calls.helpers import tensor

ROOT = Path(__file__).parents[2]
PROGRAM = """\
kernel doubled(X: bf16[M, N], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        Y[m, n] = X[m, n] + X[m, n]
"""
GATHERED = """\
kernel gathered(X: bf16[M, N].shard(0), Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        Y[m, n] = X[m, n]
"""
FUNCTION = """\
import pkc
from pkc.language import *

M, N = dims("M N")
ROWS = 64

@pkc.kernel(stages=2)
def copied(X: bf16[M, N], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, ROWS), blocks(N, 64)):
        Y[m, n] = X[m, n]
"""
CALLS = """
import sys
import pkc
from pkc.runtime import mesh, tensor_map
from pkc.runtime.driver import Driver
from tests.runtime.fake import Api, Device, Tensor

api = Api(gpus=4)
tensor_map._encode_tiled, tensor_map.replace_address = lambda: api.encode, lambda: api.replace
mesh.load = lambda: Driver(api)
x, y = Tensor((64, 64)), Tensor((64, 64), address=1 << 40)
pkc.load("doubled.pk")(x, y)
pkc.load("copied.py")(x, y)
gathered = pkc.load("gathered.pk").with_schedule(overlap="copy_engine")
gathered(gathered.empty("X", M=64, N=64), [Tensor((64, 64), device=Device(rank)) for rank in range(4)])
try:
    pkc.load("doubled.pk")(x)
except pkc.PkcError as error:
    print(str(error).split("\\n")[0])
compilers = ("lark", "xdsl", "ml_dtypes", "pkc.passes", "pkc.frontend.elaborate", "pkc.codegen.build")
print(len(api.launches), *(name for name in compilers if name in sys.modules))
"""


def test_it_imports_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "doubled.pk").write_text(PROGRAM)
    (tmp_path / "copied.py").write_text(FUNCTION)
    (tmp_path / "gathered.pk").write_text(GATHERED)
    (tmp_path / "calls.py").write_text(CALLS)
    for name in ("doubled.pk", "copied.py"):
        pkc.load(name)(tensor(64, 64), tensor(64, 64, at=100))
    gathered = pkc.load("gathered.pk").with_schedule(overlap="copy_engine")
    mesh = pkc.mesh()
    gathered(mesh.empty((64, 64), "bf16", "shard", 0), [tensor(64, 64, device=rank.rank) for rank in mesh.local])

    command, environment = [sys.executable, "calls.py"], {**os.environ, "PYTHONPATH": str(ROOT)}
    told = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert told == "error[PK863]: `doubled` is called without `Y`\n6\n"


def test_a_text_that_changes_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path, other = tmp_path / "doubled.pk", PROGRAM.replace("+", "*")
    trees: list[object] = []
    for text in (PROGRAM, other, other, PROGRAM):
        path.write_text(text)
        trees.append(pkc.load("doubled.pk").tree)
    assert trees == [parse_text(Source("doubled.pk", text)) for text in (PROGRAM, other, other, PROGRAM)]
    assert trees[0] != trees[1]


def test_imported_functions_that_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    functions, calls = (
        tmp_path / "functions.pk",
        "from functions import twice\n" + PROGRAM.replace("X[m, n] + X[m, n]", "twice(X[m, n])"),
    )
    (tmp_path / "doubled.pk").write_text(calls)
    bodies: list[str] = []
    for factor in ("2.0", "3.0"):
        functions.write_text(f"def twice(x):\n    return x * {factor}\n")
        bodies.append(repr(pkc.load("doubled.pk").tree))
    assert "value=3.0" in bodies[1]
    assert bodies[0] == bodies[1].replace("value=3.0", "value=2.0")
