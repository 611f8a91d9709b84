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
from pkc.dialect.numeric import numpy_dtype
from pkc.dialect.program import KernelOp
from pkc.dialect.ranges import LARGEST
from pkc.dialect.types import PGLType, PrivateType, dtype_name, f16, f32, i32
from pkc.location import NOWHERE

Array = NDArray[Any]

_I32 = range(-(2**31), 2**31)


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
            raise PkcError(errors.NotWritten(NOWHERE, kernel.sym_name.data, name, listing(written) or "nothing"))


def load_inputs(kernel: KernelOp, files: Mapping[str, str]) -> dict[str, Array]:
    """The arrays of `--in`, in the element types of the kernel."""
    types = passed_arrays(kernel)
    return {name: _convert(name, path, _read(name, path), types[name]) for name, path in files.items()}


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


def _convert(name: str, path: str, data: Array, element: Attribute) -> Array:
    dtype = numpy_dtype(element)
    # numpy saves bf16 and the 8-bit floats as raw bytes.
    if data.dtype.kind == "V" and data.dtype.names is None and data.dtype.itemsize == dtype.itemsize:
        return data.view(dtype)
    expected = dtype_name(element)
    allowed, rule = ("iu", "integers") if element == i32 else ("fiu", "floats or integers, rounded to nearest")
    if data.dtype.kind not in allowed:
        rule = f"{expected} is read from {rule}"
        raise PkcError(errors.InputWrongType(NOWHERE, name, path, str(data.dtype), expected, rule))
    if element == i32 and data.size and (int(data.min()) not in _I32 or int(data.max()) not in _I32):
        rule = "its values need more than 32 bits"
        raise PkcError(errors.InputWrongType(NOWHERE, name, path, str(data.dtype), expected, rule))
    with np.errstate(over="ignore"):
        rounded = data.astype(dtype)
    if element != i32:
        _check_range(name, path, data, rounded, element)
    return rounded


def _check_range(name: str, path: str, data: Array, rounded: Array, element: Attribute) -> None:
    """Refuse numbers that became infinities, or NaN in a type that has none."""
    lost = np.isfinite(data) & ~np.isfinite(rounded.astype(np.float32))
    if lost.any():
        value, largest = f"{float(data[lost][0]):g}", f"{LARGEST[element]:g}"
        raise PkcError(errors.InputBeyondRange(NOWHERE, name, path, value, dtype_name(element), largest))


def save_outputs(kernel: KernelOp, files: Mapping[str, str], outputs: Mapping[str, Array]) -> None:
    """Write the arrays of `--out`."""
    types = passed_arrays(kernel)
    for name, path in files.items():
        native = types[name] in (f16, f32, i32)
        data = outputs[name] if native else outputs[name].astype(np.float32)
        with console.writing(path), Path(path).open("wb") as file:
            np.lib.format.write_array(file, data, allow_pickle=False)
