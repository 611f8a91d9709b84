"""What all tests share: FileCheck tests run in process, golden texts, and a marker-free default set.

A `.mlir` file with lines `// RUN: pkc-opt %s ... | filecheck %s` is a test. The commands of a line are joined by pipes
and run inside this process; the spelling is that of `lit`, which can run the same files.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from filecheck.parser import Parser

from pkc.cli.opt import main as pkc_opt
from tests.sweeps import spread

_RUN = "// RUN:"

_SLOW = Path(__file__).parent / "slow.txt"
"""Functions whose cases take long, and the share of these that `make test` runs; `python -m tools.slow` writes it."""

_TESTS_BETWEEN_COLLECTIONS = 500
"""They leave one or two gigabytes of garbage."""
_since_collection = 0


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the expected texts")


def pytest_collection_finish() -> None:
    """What stands for the whole run is not looked through for garbage; the rest is from time to time alone."""
    gc.freeze()
    gc.disable()


def pytest_runtest_logfinish() -> None:
    """Looks for garbage between tests; what is left, caches for the most part, is not looked through again."""
    global _since_collection  # noqa: PLW0603
    _since_collection += 1
    if _since_collection == _TESTS_BETWEEN_COLLECTIONS:
        _since_collection = 0
        gc.collect()
        gc.freeze()


@pytest.hookimpl(tryfirst=True)  # before those with a mark are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks `slow` what `make test` leaves out: of the functions in `slow.txt` all cases but a share, evenly spread."""
    shares = {name: Fraction(share) for share, name in map(str.split, _SLOW.read_text(encoding="utf-8").splitlines())}
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        function = item.nodeid.partition("[")[0]
        if function in shares and not any(item.get_closest_marker(mark) for mark in ("long", "gpu")):
            cases.setdefault(function, []).append(item)
    for function, several in cases.items():
        kept = ceil(shares[function] * len(several))
        for item, stays in zip(several, spread(kept, len(several)), strict=True):
            if not stays:
                item.add_marker("slow")


@pytest.fixture(scope="session", autouse=True)
def _compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One empty cache for all tests of a run, whichever process they are in; that of the user stays out of it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with pytest.MonkeyPatch.context() as patch:
        if "PKC_CACHE_DIR" not in os.environ:  # as it is where a test is run in a process of its own
            patch.setenv("PKC_CACHE_DIR", str(shared / "cache"))
        patch.setenv("PKC_TUNED", str(shared / "tuned.json"))  # not what was measured on this machine
        yield


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compares a text with the one in a file; with `--update-golden` writes it there instead."""

    def compare(path: Path, text: str) -> None:
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path} is missing: run pytest --update-golden and read what it wrote"
        assert text == path.read_text(encoding="utf-8")

    return compare


def pytest_collect_file(parent: pytest.Collector, file_path: Path) -> pytest.File | None:
    if file_path.suffix != ".mlir" or _RUN not in file_path.read_text(encoding="utf-8"):
        return None
    return FileCheckFile.from_parent(parent, path=file_path)  # pyright: ignore[reportUnknownMemberType]


class FileCheckFile(pytest.File):
    """One `.mlir` file; each of its RUN lines is a test."""

    def collect(self) -> Iterator[pytest.Item]:
        lines = self.path.read_text(encoding="utf-8").splitlines()
        commands = [line.removeprefix(_RUN).strip() for line in lines if line.startswith(_RUN)]
        for number, command in enumerate(commands, start=1):
            yield FileCheckItem.from_parent(self, name=f"RUN{number}", command=command)  # pyright: ignore[reportUnknownMemberType]


class FileCheckItem(pytest.Item):
    """One RUN line."""

    def __init__(self, *, command: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)  # pyright: ignore[reportUnknownMemberType]
        self.command = command

    def runtest(self) -> None:
        text = ""
        for step in self.command.split(" | "):
            text = _run_step(shlex.split(step.replace("%s", shlex.quote(str(self.path)))), text)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        del style
        if isinstance(excinfo.value, FileCheckFailure):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"{self.path.name}: {self.command}"


class FileCheckFailure(Exception):
    """A command of a RUN line failed; holds what it printed."""


def _run_step(argv: list[str], text: str) -> str:
    """The output of one command on `text`."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "stdin", io.StringIO(text)),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = _TOOLS[argv[0]](argv, text)
    if code:
        raise FileCheckFailure(f"{shlex.join(argv)}\nexit status {code}\n{out.getvalue()}{err.getvalue()}")
    return out.getvalue()


def _filecheck(argv: list[str], text: str) -> int:
    options = parse_argv_options(list(argv))
    return Matcher(options, FInput("-", text), Parser.from_opts(options)).run()


_TOOLS: dict[str, Callable[[list[str], str], int]] = {
    "pkc-opt": lambda argv, _: pkc_opt(argv[1:]),
    "filecheck": _filecheck,
}
