"""Runs a pipeline, with one hook after each pass that verifies, dumps and times."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.printer import Printer
from xdsl.utils.exceptions import DiagnosticException

from pkc.diagnostics import PkcError
from pkc.dialect.pk import context
from pkc.location import NOWHERE
from pkc.passes.errors import PassFailed
from pkc.passes.verify import verify as verify_module


@dataclass(frozen=True)
class PassTime:
    """How long one pass took, its verification aside."""

    name: str
    seconds: float


@contextmanager
def _no_collection() -> Generator[None]:
    """Passes make many objects, of which most live to their end: looking for garbage meanwhile costs a sixth of the
    time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def run_pipeline(
    module: ModuleOp,
    passes: Sequence[ModulePass],
    *,
    ctx: Context | None = None,
    verify: bool = True,
    verify_each: bool = True,
    dump: Path | None = None,
    after: Callable[[ModulePass, ModuleOp], None] | None = None,
) -> list[PassTime]:
    """Run `passes` over `module` in place.

    `verify` checks the module before the first pass and after each, unless `verify_each` is off: then after the last
    alone. `dump` is a directory that gets `00-input.mlir` and one `NN-name.mlir` for each pass, which `pkc opt` can
    read back; `after` sees the module after each pass. Mistakes are raised as `PkcError`.
    """
    ctx = ctx or context()
    times: list[PassTime] = []
    with _no_collection():
        if verify:
            verify_module(module)
        _dump(module, dump, 0, "input")
        for number, step in enumerate(passes, start=1):
            begin = time.perf_counter()
            _apply(step, ctx, module)
            times.append(PassTime(step.name, time.perf_counter() - begin))
            _dump(module, dump, number, step.name)
            if verify and (verify_each or number == len(passes)):
                verify_module(module)
            if after is not None:
                after(step, module)
    return times


def print_ir(module: ModuleOp, *, generic: bool = False, locations: bool = False) -> str:
    """A module as text that `pkc opt` reads."""
    stream = StringIO()
    Printer(stream=stream, print_generic_format=generic, print_debuginfo=locations).print_op(module)
    return f"{stream.getvalue()}\n"


def pipeline_text(passes: Sequence[ModulePass]) -> str:
    """The passes as `pkc opt -p` takes them."""
    return ",".join(str(step.spec()) for step in passes)


def _apply(step: ModulePass, ctx: Context, module: ModuleOp) -> None:
    try:
        step.apply(ctx, module)
    except DiagnosticException as error:
        raise PkcError(PassFailed(NOWHERE, step.name, str(error))) from error


def _dump(module: ModuleOp, directory: Path | None, number: int, name: str) -> None:
    if directory is None:
        return
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{number:03}-{name}.mlir").write_text(print_ir(module, locations=True), encoding="utf-8")
