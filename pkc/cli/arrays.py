"""Arrays of a kernel in `.npy` files.

numpy has no names for bf16 and the 8-bit floats: such arrays are written as float32, which holds
every value of theirs, and read from any float file, rounded to nearest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute

from pkc import console
from pkc.cli import errors
from pkc.diagnostics import PkcError, listing, near
from pkc.dialect.program import KernelOp
from pkc.dialect.types import PGLType, PrivateType, f16, f32, i8, i32
from pkc.driver.errors import NotWritten
from pkc.location import NOWHERE
from pkc.sim.conversion import convert

Array = NDArray[Any]


def passed_arrays(kernel: KernelOp) -> dict[str, Attribute]:
    """The element types of the arrays that a caller passes, by name."""
    return {
        name: arg.type.element_type
        for name, arg in kernel.arguments.items()
        if isinstance(arg.type, PrivateType | PGLType) and not kernel.is_scratch(arg)
    }


def check_names(kernel: KernelOp, option: str, files: Mapping[str, str]) -> None:
    """Refuse names that are not arrays of the kernel, before anything slow begins."""
    known = passed_arrays(kernel)
    for name in files:
        if name not in known:
            hint = near(name, known, "it has ")
            raise PkcError(errors.UnknownArray(NOWHERE, option, kernel.sym_name.data, name, hint))


def check_written(kernel: KernelOp, files: Mapping[str, str], written: Collection[str]) -> None:
    """Refuse an `--out` of an array that the kernel does not write, before anything slow begins."""
    for name in files:
        if name not in written:
            raise PkcError(NotWritten(NOWHERE, kernel.sym_name.data, name, listing(written) or "nothing"))


def load_inputs(kernel: KernelOp, files: Mapping[str, str]) -> dict[str, Array]:
    """The arrays of `--in`, in the element types of the kernel."""
    types = passed_arrays(kernel)
    return {name: convert(_read(name, path), name, types[name], f"`{path}`") for name, path in files.items()}


def _read(name: str, path: str) -> Array:
    try:
        # Pickled objects are refused: they could run any code.
        with Path(path).open("rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False)
    except OSError as error:
        reason = error.strerror or str(error)
    except MemoryError:
        reason = "the array does not fit into memory"
    except (ValueError, TypeError, OverflowError, EOFError, SyntaxError):
        reason = "it is not a complete .npy file of numbers"
    raise PkcError(errors.InputUnreadable(NOWHERE, name, path, reason))


def save_outputs(kernel: KernelOp, files: Mapping[str, str], outputs: Mapping[str, Array]) -> None:
    """Write the arrays of `--out`."""
    types = passed_arrays(kernel)
    for name, path in files.items():
        native = types[name] in (f16, f32, i32, i8)
        data = outputs[name] if native else outputs[name].astype(np.float32)
        with console.writing(path), Path(path).open("wb") as file:
            np.lib.format.write_array(file, data, allow_pickle=False)
