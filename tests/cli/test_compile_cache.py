"""What `pkc compile` has made before comes from the cache: the same bytes and words, and only if nothing changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from pkc import cache
from pkc.cli import compile as compiling
from pkc.cli.main import main

PROGRAM = """\
kernel twice(X: bf16[M, N], Y: bf16[M, N], D: const = 64):
    for m, n in tasks(blocks(M, D), blocks(N, 64)):
        Y[m, n] = X[m, n] + X[m, n]
"""
UNUSED = PROGRAM.replace("D: const", "Z: bf16[M, N], D: const")


@dataclass
class Counted:
    """A folder with `twice.pk`, a cache of its own, and how often the compiler ran."""

    folder: Path
    capfd: pytest.CaptureFixture[bytes]
    runs: int = 0

    def compile(self, *arguments: str, file: str = "twice.pk", status: int = 0) -> tuple[bytes, bytes]:
        """What `pkc compile` writes to stdout and stderr."""
        assert main(["compile", file, *arguments]) == status
        return self.capfd.readouterr()

    @property
    def entries(self) -> list[Path]:
        return sorted((self.folder / "cache").iterdir())


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Counted:
    monkeypatch.setenv("PKC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "twice.pk").write_text(PROGRAM)
    found = Counted(tmp_path, capfdbinary)
    long_way = compiling._compile

    def count(request: compiling.Request) -> object:
        found.runs += 1
        return long_way(request)

    monkeypatch.setattr(compiling, "_compile", count)
    return found


@pytest.mark.parametrize("explain", [(), ("--explain",)], ids=["", "explain"])
@pytest.mark.parametrize("what", ["tile", "roles", "machine", "cuda", "ptx", "cubin"])
def test_the_same_again(counted: Counted, what: str, explain: tuple[str, ...]) -> None:
    sizes = ("--set", "M=512,N=512", "--ranks", "2")
    first = counted.compile("--emit", what, *explain, *sizes)
    assert counted.compile("--emit", what, *explain, *sizes) == first
    assert counted.runs == 1
    assert bool(first[1]) == bool(explain)
    # A cache that was never used gives the same, too.
    shutil.rmtree(counted.folder / "cache")
    assert counted.compile("--emit", what, *explain, *sizes) == first
    assert counted.runs == 2


def test_what_a_compilation_depends_on(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each change is compiled; going back finds what is kept."""
    (counted.folder / "other.pk").write_text(PROGRAM)
    changes: list[tuple[str, ...]] = [
        (),
        ("--const", "D=128"),
        ("--schedule", "stages=2"),
        ("--kernel", "twice"),
        ("--set", "M=512,N=512"),
        ("--set", "M=512,N=512", "--ranks", "4"),
        ("--explain",),
        ("--emit", "cuda"),
    ]
    made = [counted.compile("--emit", "roles", *change) for change in changes]
    assert counted.runs == len(changes)
    assert made[0] != made[1]
    assert [counted.compile("--emit", "roles", *change) for change in changes] == made
    assert counted.runs == len(changes)
    # The name of the file is in line information and diagnostics.
    assert b'#line 1 "other.pk"' in counted.compile("--emit", "cuda", file="other.pk")[0]
    assert b'#line 1 "twice.pk"' in counted.compile("--emit", "cuda")[0]
    assert counted.runs == len(changes) + 1
    # How many copies of copy engines can run at the same time.
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "3")
    counted.compile("--emit", "roles")
    assert counted.runs == len(changes) + 2


def test_another_text(counted: Counted) -> None:
    first = counted.compile()
    (counted.folder / "twice.pk").write_text(PROGRAM.replace("X[m, n] + X[m, n]", "X[m, n]"))
    second = counted.compile()
    assert counted.runs == 2
    assert first != second
    (counted.folder / "twice.pk").write_text(PROGRAM)
    assert counted.compile() == first
    assert counted.runs == 2


def test_another_text_of_an_imported_file(counted: Counted) -> None:
    """Of the file that is named in the program, and of one that this file imports from."""
    (counted.folder / "more").mkdir()
    near, far = counted.folder / "near.pk", counted.folder / "more" / "far.pk"
    far.write_text("def add(x, y):\n    return x + y\n")
    near.write_text("from more . far import add  # for `double`\n\ndef double(x):\n    return add(x, x)\n")
    program = PROGRAM.replace("X[m, n] + X[m, n]", "double(X[m, n])")
    (counted.folder / "twice.pk").write_text(f"# Twice.\n\nfrom  near\timport double\n\n{program}")
    made = [counted.compile(), counted.compile()]
    assert (counted.runs, made[0]) == (1, made[1])
    far.write_text("def add(x, y):\n    return x * y\n")
    assert b"pk.mul" in counted.compile()[0]
    near.write_text(near.read_text().replace("add(x, x)", "add(x, 3.0)"))
    assert b"3.000000e+00" in counted.compile()[0]
    assert counted.runs == 3
    far.unlink()
    counted.compile(status=1)
    counted.compile(status=1)
    assert counted.runs == 5


def test_another_compiler(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was compiled by other sources is made again: each folder is that of another process."""
    for number, files in enumerate(({"one.py": "1"}, {"one.py": "2"}, {"two.py": "2"}, {"two.py": "2", "a.lark": ""})):
        sources = counted.folder / str(number)
        (sources / "passes").mkdir(parents=True)
        for name, content in files.items():
            (sources / "passes" / name).write_text(content)
        monkeypatch.setattr(cache, "ROOT", sources)
        counted.compile()
        counted.compile()
        assert counted.runs == 1 + number


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data[:40], lambda _: b""])
def test_a_damaged_entry_is_made_again(counted: Counted, damage: object) -> None:
    first = counted.compile("--explain")
    (entry,) = counted.entries
    whole = entry.read_bytes()
    entry.write_bytes(damage(whole))  # pyright: ignore
    assert counted.compile("--explain") == first
    assert counted.runs == 2
    assert entry.read_bytes() == whole


def test_an_entry_of_another_program_is_made_again(counted: Counted) -> None:
    first = counted.compile("--emit", "cuda")
    (own,) = counted.entries
    right = own.read_bytes()
    (counted.folder / "twice.pk").write_text(PROGRAM.replace("X[m, n] + X[m, n]", "X[m, n]"))
    other = counted.compile("--emit", "cuda")
    (foreign,) = set(counted.entries) - {own}
    own.write_bytes(foreign.read_bytes())
    (counted.folder / "twice.pk").write_text(PROGRAM)
    assert counted.compile("--emit", "cuda") == first != other
    assert counted.runs == 3
    assert own.read_bytes() == right


def test_errors_are_not_kept(counted: Counted) -> None:
    (counted.folder / "twice.pk").write_text(PROGRAM.replace("X[m, n] +", "Z[m, n] +"))
    _, first = counted.compile(status=1)
    assert b"error[PK" in first
    assert counted.compile(status=1) == (b"", first)
    assert counted.runs == 2
    assert not (counted.folder / "cache").exists()


def test_warnings_are_said_again(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    (counted.folder / "twice.pk").write_text(UNUSED)
    _, first = counted.compile()
    assert b"warning[PK" in first
    assert counted.compile()[1] == first
    # In colours, if it is a terminal that asks again.
    monkeypatch.setattr("pkc.console.coloured", lambda _: True)
    _, coloured = counted.compile()
    assert b"\x1b[1;33mwarning[PK" in coloured
    assert counted.runs == 1


def test_the_ir_after_each_pass_is_written_each_time(counted: Counted) -> None:
    for folder in ("one", "two"):
        counted.compile("--dump", folder)
        assert list((counted.folder / folder).iterdir())
    assert counted.runs == 2


def test_a_program_that_changes_meanwhile(counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read last counts, and is not kept for the text that was read first."""
    other = PROGRAM.replace("X[m, n] + X[m, n]", "X[m, n]")
    key = compiling._key
    monkeypatch.setattr(
        compiling, "_key", lambda *given: (key(*given), (counted.folder / "twice.pk").write_text(other))[0]
    )
    counted.compile()
    assert not (counted.folder / "cache").exists()


def run(folder: Path, *arguments: str) -> set[str]:
    """Compile in a process of its own; the modules that it has imported."""
    program = "import sys; from pkc.cli.main import main; assert main(sys.argv[1:]) == 0; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program, "compile", "twice.pk", "-o", "out", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def test_a_compilation_from_the_cache_imports_no_compiler(counted: Counted) -> None:
    slow = {"xdsl", "lark", "numpy", "pkc.dialect", "pkc.passes", "pkc.frontend.parse"}
    assert slow <= run(counted.folder, "--emit", "cubin")
    assert not slow & run(counted.folder, "--emit", "cubin")


def test_importing_pkc_is_fast(counted: Counted) -> None:
    program = "import sys, pkc; sys.exit(any(name in sys.modules for name in ('xdsl', 'lark', 'numpy', 'cuda')))"
    assert subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[2], check=False).returncode == 0
