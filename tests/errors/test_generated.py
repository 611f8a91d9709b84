"""Diagnostics whose files cannot be kept: too large, not text, not readable. They are made in a temporary folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.errors.golden import HERE, check

KERNEL = """\
kernel copy(A: f32[M], count: i32[M], B: f32[M]):
    for m in tasks(blocks(M, 4)):
        B[m] = A[m]
"""
RUN = ("run", "--ranks", "2", "--set", "M=4")
TIMELINE = ("timeline", "--ranks", "2", "--set", "M=4", "--measured")


@dataclass(frozen=True)
class Case:
    """`name` is that of the expected text; `prepare` puts files into the current folder."""

    name: str
    argv: tuple[str, ...]
    prepare: Callable[[], object] = lambda: None

    @property
    def code(self) -> str:
        return self.name[:5]


def _save(name: str, array: object) -> Callable[[], None]:
    return lambda: np.save(name, np.asarray(array))


def _zip() -> None:
    np.savez("a.npz", A=np.zeros(4))


def _directory() -> None:
    Path("a.npy").mkdir()


def _truncated() -> None:
    np.save("a.npy", np.zeros(4))
    Path("a.npy").write_bytes(Path("a.npy").read_bytes()[:-8])


def _fifo() -> None:
    os.mkfifo("pipe.pk")


def _write(name: str, data: bytes) -> Callable[[], object]:
    return lambda: Path(name).write_bytes(data)


def _gather_row(row: int) -> Callable[[], None]:
    def prepare() -> None:
        Path("gather.pk").write_text(KERNEL.replace("A[m]", "gather(A, count[m])"), encoding="utf-8")
        np.save("a.npy", np.full((2, 4), row))

    return prepare


def _with_bytes() -> None:
    Path("bytes.pk").write_text(KERNEL.replace("f32", "i8"), encoding="utf-8")
    np.save("a.npy", np.full((2, 4), 128))


CASES = [
    Case("PK131-missing", ("compile", "missing.pk")),
    Case("PK131-missing-python", ("compile", "missing.py")),
    Case("PK132-directory", ("compile", "kernels.pk"), lambda: Path("kernels.pk").mkdir()),
    Case("PK133-fifo", ("compile", "pipe.pk"), _fifo),
    Case("PK134-text", ("compile", "copy.txt"), _write("copy.txt", KERNEL.encode())),
    Case("PK134-no-extension", ("compile", "copy"), _write("copy", KERNEL.encode())),
    Case("PK135-zero-byte", ("compile", "binary.pk"), _write("binary.pk", b"\x7fELF\0\0")),
    Case("PK136-latin-1", ("compile", "latin.pk"), _write("latin.pk", b"# copy\n# " + "für".encode("latin-1"))),
    Case("PK137-large", ("compile", "large.pk"), _write("large.pk", b"#" * (10 << 20))),
    Case("PK453-not-text", ("opt", "binary.mlir"), _write("binary.mlir", b"\xff\xfe")),
    Case("PK453-missing", ("opt", "missing.mlir")),
    Case("PK602-setting", (*RUN, "--in", "A=a.npy", "copy.pk"), _save("a.npy", np.zeros((2, 5)))),
    Case("PK605-output", (*RUN, "--in", "B=b.npy", "copy.pk"), _save("b.npy", np.zeros((2, 4)))),
    Case("PK606-no-ranks", (*RUN, "--in", "A=a.npy", "copy.pk"), _save("a.npy", np.zeros(4))),
    Case("PK606-other-ranks", (*RUN, "--in", "A=a.npy", "copy.pk"), _save("a.npy", np.zeros((3, 4)))),
    Case("PK706-row", (*RUN, "--in", "count=a.npy", "gather.pk"), _gather_row(10**6)),
    Case("PK921-missing", (*RUN, "--in", "A=a.npy", "copy.pk")),
    Case("PK921-directory", (*RUN, "--in", "A=a.npy", "copy.pk"), _directory),
    Case("PK921-truncated", (*RUN, "--in", "A=a.npy", "copy.pk"), _truncated),
    Case("PK921-objects", (*RUN, "--in", "A=a.npy", "copy.pk"), _save("a.npy", np.array([{}], dtype=object))),
    Case("PK921-zip", (*RUN, "--in", "A=a.npz", "copy.pk"), _zip),
    Case("PK607-complex", (*RUN, "--in", "A=a.npy", "copy.pk"), _save("a.npy", np.zeros((2, 4), complex))),
    Case("PK607-floats-for-i32", (*RUN, "--in", "count=a.npy", "copy.pk"), _save("a.npy", np.zeros((2, 4)))),
    Case("PK607-too-large-for-i8", (*RUN, "--in", "A=a.npy", "bytes.pk"), _with_bytes),
    Case("PK607-too-large-for-i32", (*RUN, "--in", "count=a.npy", "copy.pk"), _save("a.npy", np.full((2, 4), 1 << 40))),
    Case("PK924-no-folder", (*RUN, "--out", "B=missing/b.npy", "copy.pk")),
    Case("PK924-compile", ("compile", "-o", "missing/copy.mlir", "copy.pk")),
    Case("PK924-program", (*RUN, "--out", "B=copy.pk", "copy.pk")),
    Case("PK918-damaged", (*TIMELINE, "a.json", "copy.pk"), _write("a.json", b'{"traceEvents": [{"ph": "X"}]}')),
    Case("PK918-program", (*TIMELINE, "copy.pk", "copy.pk")),
    Case("PK918-folder", (*TIMELINE, "folder", "copy.pk"), lambda: Path("folder").mkdir()),
    Case("PK614-too-large", (*RUN, "--in", "A=a.npy", "copy.pk"), _save("a.npy", np.full((2, 4), 1e39))),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_generated(
    case: Case,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    golden: Callable[[Path, str], None],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("copy.pk").write_text(KERNEL, encoding="utf-8")
    case.prepare()
    check(case.code, case.argv, HERE / "generated" / f"{case.name}.err", capsys, golden)
