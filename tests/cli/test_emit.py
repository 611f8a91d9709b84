"""`pkc compile --emit machine|cuda|ptx|cubin|artifact`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pkc.cli.main import main
from pkc.cli.opt import parse_ir
from pkc.passes.machine.check_machine import CheckMachine

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
COPY = """\
kernel one(X: bf16[M, N], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 64), blocks(N, 64)):
        Y[m, n] = X[m, n]

kernel two(X: bf16[M, N], Y: bf16[M, N]):
    for m, n in tasks(blocks(M, 128), blocks(N, 64)):
        Y[m, n] = X[m, n]
"""
LAUNCH = """
import sys
from pkc.runtime import tensor_map
from pkc.runtime.driver import Driver
from pkc.runtime.exported import load
from pkc.runtime.launch import LoadedKernel
from pkc.runtime.mesh import Mesh
from tests.runtime.fake import Api, Device, Tensor

api, columns = Api(gpus=2), int(sys.argv[2])
tensor_map._encode_tiled, tensor_map.replace_address = lambda: api.encode, lambda: api.replace
artifact = load(sys.argv[1])
kernel = LoadedKernel(artifact, Mesh.single_process(driver=Driver(api)))
x, y = ([Tensor((64, columns), device=Device(rank), address=at << 32) for rank in (0, 1)] for at in (1, 2))
kernel({"X": x, "Y": y})
compilers = ("pkc.passes", "pkc.frontend.parse", "pkc.driver.compiler", "pkc.codegen.nvrtc", "lark", "xdsl")
found = [name for name in compilers if name in sys.modules]
print(f"{len(api.launches)} launches of {artifact.name}, compiled by {found}")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PKC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "copy.pk").write_text(COPY)
    return tmp_path


def emit(capfdbinary: pytest.CaptureFixture[bytes], *arguments: str) -> tuple[bytes, str]:
    assert main(["compile", "copy.pk", *arguments]) == 0
    out, err = capfdbinary.readouterr()
    return out, err.decode()


@pytest.mark.usefixtures("folder")
def test_machine_level(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    out, err = emit(capfdbinary, "--emit", "machine")
    module = parse_ir(out.decode(), "out.mlir")
    assert CheckMachine().findings(module) == []
    assert out.count(b"tma_load_2d") == 2
    assert err == ""


@pytest.mark.usefixtures("folder")
def test_cuda(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    out, err = emit(capfdbinary, "--emit", "cuda", "--kernel", "two")
    assert out.startswith(b"// two\n")
    assert b'#line 6 "copy.pk"' in out
    assert err == ""


@pytest.mark.usefixtures("folder")
def test_ptx_and_what_it_takes(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    out, err = emit(capfdbinary, "--emit", "ptx", "--kernel", "one", "--explain", "--target", "sm_90a")
    assert b".target sm_90a" in out
    assert b".entry one(" in out
    *_, last = err.splitlines()
    assert last.startswith("one: 128 threads of ")
    assert "no spills" in last
    # Four stages of 8192, each with two barriers of 8, room to align.
    assert "34016 bytes of shared memory" in last


def test_machine_code_to_a_file(folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    out, err = emit(capfdbinary, "--emit", "cubin", "--kernel", "one", "-o", "one.cubin")
    assert (out, err) == (b"", "")
    assert (folder / "one.cubin").read_bytes().startswith(b"\x7fELF")
    piped, _ = emit(capfdbinary, "--emit", "cubin", "--kernel", "one")
    assert piped == (folder / "one.cubin").read_bytes()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("columns", [64, 12])
def test_an_artifact_is_launched_without_a_compiler(capfdbinary: pytest.CaptureFixture[bytes], columns: int) -> None:
    """Rows of 12 elements do not suit TMA: the file is for the sizes that it was written for."""
    sizes = f"M=64,N={columns}"
    emit(capfdbinary, "--emit", "artifact", "--kernel", "one", "--set", sizes, "--ranks", "2", "-o", "one.pkx")
    command = [sys.executable, "-c", LAUNCH, "one.pkx", str(columns)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (found.stdout, found.stderr) == ("2 launches of one, compiled by []\n", "")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("what", ["cuda", "ptx", "cubin", "artifact"])
def test_one_kernel_at_a_time(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "copy.pk", "--emit", what]) == 1
    assert "error[PK911]" in capsys.readouterr().err


def test_every_pass_is_dumped(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "copy.pk", "--emit", "cuda", "--kernel", "one", "--dump", "passes"]) == 0
    names = sorted(path.name for path in (folder / "passes").iterdir())
    assert names[-1].endswith("-pk-check-machine.mlir")
    lowered = next(name for name in names if name.endswith("-pk-lower-tiles.mlir"))
    assert 'loc("copy.pk":3:' in (folder / "passes" / lowered).read_text()
    assert capsys.readouterr().out.startswith("// one")
