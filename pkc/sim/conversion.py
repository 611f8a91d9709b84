"""What is passed for an array, in the type of its elements."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Attribute

from pkc.diagnostics import PkcError
from pkc.dialect.numeric import Values, numpy_dtype
from pkc.dialect.ranges import INTEGER_RANGES, LARGEST
from pkc.dialect.types import dtype_bytes, dtype_name
from pkc.location import NOWHERE, Span
from pkc.sim import errors

_RAW = "V"
"""The kind as which numpy saves bf16 and the 8-bit floats, of which it has no names: bytes."""


def convert(data: Values, name: str, element: Attribute, source: str, span: Span = NOWHERE) -> Values:
    """The data for the parameter `name`, whose elements are of a type: floats are rounded to nearest.

    Raises `PkcError` for numbers that do not fit, in which `source` is where the data comes from.
    """
    dtype, is_float = numpy_dtype(element), _is_float(data.dtype)
    is_raw = data.dtype.kind == _RAW and data.dtype.names is None and not is_float
    if data.dtype == dtype or (is_raw and data.dtype.itemsize == dtype.itemsize):
        return data.view(dtype)
    expected = dtype_name(element)
    rule = ""
    integers = INTEGER_RANGES.get(element)
    if integers is not None and data.dtype.kind not in "iu":
        rule = f"{expected} is read from integers"
    elif not is_float and data.dtype.kind not in "iu":
        rule = f"{expected} is read from floats or integers, rounded to nearest"
    elif integers and data.size and (int(data.min()) not in integers or int(data.max()) not in integers):
        rule = f"its values need more than {8 * dtype_bytes(element)} bits"
    if rule:
        raise PkcError(errors.WrongInputType(span, source, str(data.dtype), name, expected, rule))
    with np.errstate(over="ignore"):
        rounded = data.astype(dtype)
    if integers is None:
        _check_range(data, rounded, name, element, source, span)
    return rounded


def _is_float(dtype: np.dtype) -> bool:
    """Whether the elements are floats, of numpy or of a package for it."""
    return dtype.kind == "f" or (dtype.kind == _RAW and np.can_cast(dtype, np.float64, "safe"))


def _check_range(data: Values, rounded: Values, name: str, element: Attribute, source: str, span: Span) -> None:
    """Refuse numbers that became infinities, or NaN in a type that has none."""
    wide = data.astype(np.float64)
    lost = np.isfinite(wide) & ~np.isfinite(rounded.astype(np.float32))
    if lost.any():
        value, largest = f"{float(wide[lost][0]):g}", f"{LARGEST[element]:g}"
        raise PkcError(errors.InputBeyondRange(span, source, value, name, dtype_name(element), largest))
