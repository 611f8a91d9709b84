"""Damaged IR and command lines: whatever is given, a diagnostic comes out, and no traceback.

`PKC_FUZZ` sets how many are tried: of texts of IR a tenth as many, of command lines a sixth.
"""

from __future__ import annotations

import io
import random
from itertools import islice
from pathlib import Path

import pytest

from pkc.cli import opt
from pkc.cli.main import main
from pkc.driver.compiler import load
from pkc.passes.run import print_ir
from tests.frontend.test_fuzz import COUNT, mutations

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
IR = {
    f"{name} {level}": print_ir(load(EXAMPLES / f"{name}.pk", level=level).module)
    for name, level in (("gemm", "tile"), ("moe_combine", "tile"), ("all_gather", "roles"), ("all_gather", "machine"))
}
PASSES = "pk-canonicalize,pk-cse,pk-dce,pk-hoist-loads"


@pytest.mark.parametrize("name", IR)
def test_damaged_ir(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.mlir"
    for text in islice(mutations(name, IR[name]), COUNT // 10 // len(IR)):
        path.write_text(text, encoding="utf-8")
        status = opt.main(["-p", PASSES, str(path)])
        said = capsys.readouterr().err
        assert (status, said == "") in ((0, True), (1, False)), said
        assert "Traceback" not in said


FILES = ("k.py", "k.mlir", "folder", "missing.pk", "", "-", "k.pk/x", "\u00e9.pk", "x" * 300)
NUMBERS = (
    "0",
    "1",
    "2",
    "-1",
    "1e9",
    "9" * 40,
    "0x10",
    "1_0",
    "nan",
    "inf",
    "-inf",
    "True",
    "two",
    "2.5",
    "2**3",
    "",
    " ",
)
SETTINGS = ("M", "N", "D", "s", "X", "what", "", "=", "M=5,N")
KEYS = ("stages", "overlap", "comm_sms", "tile_M", "tile_N", "tile_what", "split_N", "consumers", "straddle", "what")
WORDS = (
    *NUMBERS,
    "inter_sm",
    "copy_engine",
    "none",
    "tile",
    "roles",
    "machine",
    "cuda",
    "sm_90a",
    "sim",
    "tiny",
    "copy",
)
OPTIONS = {
    "compile": (
        "--emit",
        "--const",
        "--schedule",
        "--set",
        "--ranks",
        "--kernel",
        "--target",
        "--dump",
        "-o",
        "--explain",
    ),
    "run": ("--set", "--schedule", "--kernel", "--seed", "--in", "--out", "--target"),
    "check": ("--set", "--schedule", "--kernel", "--seeds", "--exhaustive", "--delay", "--target"),
    "opt": ("-p", "-o", "--dump", "--split-input-file", "--remarks", "--print-generic"),
    "trace": ("--set", "--launches", "-o"),
    "help": ("--help", "--what", "--"),
}
FLAGS = ("--explain", "--split-input-file", "--remarks", "--print-generic", "--help", "--what", "--")


def value_of(option: str, chance: random.Random) -> str:
    """Mostly what the option takes: a number, a word, `NAME=VALUE`, passes, a file."""
    name, number, word = chance.choice(SETTINGS), chance.choice(NUMBERS), chance.choice(WORDS)
    match option:
        case "--set" | "--const":
            return f"{name}={number}"
        case "--schedule":
            return f"{chance.choice(KEYS)}={word}"
        case "--delay":
            return f"{chance.choice(('rank', 'role', 'what'))}={chance.choice((number, 'loader', 'what'))}"
        case "--in" | "--out":
            return f"{name}={chance.choice(('x.npy', 'k.pk', 'folder', 'folder/x.npy'))}"
        case "-p":
            return chance.choice(("pk-cse", "pk-cse,", "pk-nothing", "pk-cse{a=1}", "licm", "{", ",", "pk-dce,pk-cse"))
        case "-o" | "--dump":
            return chance.choice(("out", "folder", "folder/out", "k.pk/x", "", "missing/x"))
        case "--ranks" | "--seed" | "--seeds" | "--exhaustive" | "--launches":
            return number
        case _:
            return word


COPY = """\
kernel copy(X: f32[M, N], Y: f32[M, N], s: f32 = 1.0, D: const = 64):
    for m, n in tasks(blocks(M, D), blocks(N, 16)):
        Y[m, n] = X[m, n] * s
"""


def command_line(chance: random.Random) -> list[str]:
    """Mostly a command, its file, and some of its options with values."""
    command = chance.choice((*OPTIONS, *("compile", "run", "check") * 3))
    file = "k.mlir" if command == "opt" else "k.pk"
    words = [command, chance.choice(FILES) if chance.random() < 0.1 else file]
    if command in ("run", "check", "trace"):
        words += ["--ranks", chance.choice(NUMBERS) if chance.random() < 0.1 else "2"]
    if chance.random() < 0.7 and command != "opt":
        words += ["--set", chance.choice(("M=5,N=6", "M=70", "N=6", "M=5,N=6,s=0.5"))]
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        option = chance.choice(OPTIONS[command])
        words += [option] if option in FLAGS else [option, value_of(option, chance)]
    return words


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_command_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    chance = random.Random(7)
    (tmp_path / "folder").mkdir()
    for _ in range(COUNT // 6):
        (tmp_path / "k.pk").write_text(COPY)
        (tmp_path / "k.py").write_text("import pkc\n")
        (tmp_path / "k.mlir").write_text(IR["gemm tile"])
        arguments = command_line(chance)
        status = main(arguments)
        said = capfd.readouterr().err
        assert status in (0, 1, 2), arguments
        assert status == 0 or said, arguments
        assert "PK999" not in said, (arguments, said)
        assert "Traceback" not in said, (arguments, said)
