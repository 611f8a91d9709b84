"""Programs in files, and the kernels that they have. Imports no compiler."""

from __future__ import annotations

from pathlib import Path

from pkc.diagnostics import PkcError, listing, near
from pkc.driver import errors
from pkc.frontend import tree
from pkc.frontend.construct import check_kernels
from pkc.location import NOWHERE


def load_program(path: str | Path, *, imports: bool = True, known: bool = False) -> tree.Program:
    """The tree of a `.pk` file, or of the kernels that a `.py` file defines. Raises `PkcError`.

    A `.py` file is imported, and so executed; without `imports` it is only read. With `known` the tree of a `.pk` file
    may come from the cache.
    """
    if str(path).endswith(".py") and not imports:
        from pkc.frontend.python_unimported import read_python_file

        return read_python_file(path)
    if str(path).endswith(".py"):
        from pkc.frontend.python import load_python_file

        kernels = load_python_file(path)
        first = kernels[0].tree
        return tree.Program(first.span, tuple(k for kernel in kernels for k in kernel.tree.kernels))
    if known:
        from pkc.frontend.known import read_file

        return read_file(path)
    from pkc.frontend.parse import parse_file

    return parse_file(path)


def find_kernel(program: tree.Program, path: str, name: str | None) -> tree.Kernel:
    """The kernel called `name`, or the only one of the file. Raises `PkcError`."""
    check_kernels(program.kernels)
    names = [kernel.name for kernel in program.kernels]
    if name is None and len(names) > 1:
        raise PkcError(errors.KernelNotChosen(NOWHERE, path, len(names), listing(names)))
    if name is not None and name not in names:
        raise PkcError(errors.UnknownKernel(NOWHERE, path, name, near(name, names, "it has ")))
    return program.kernels[names.index(name) if name else 0]
