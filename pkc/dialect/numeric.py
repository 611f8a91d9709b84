"""Element types as numbers: the numpy arrays that tiles are computed in, and how values are rounded to a type.

A tile of any float type is an array of float32 (or float64), with values that the type can represent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt
from xdsl.ir import Attribute

from pkc.dialect.types import FLOATS, bf16, e4m3, e5m2, f16, f32, i1, i8

Values: TypeAlias = npt.NDArray[Any]

UNIT = 2.0**-24
"""The unit roundoff of f32: half the distance from 1 to the next number."""

LEAST = 2.0**-149
"""The least positive f32; numbers below the normal ones are kept, unless an operation flushes them to zero."""

NORMAL = 2.0**-126
"""The least positive normal f32."""


@dataclass(frozen=True, slots=True)
class Format:
    """A float type: its numpy form, unit roundoff, half its least step, and what rounds to more than its maximum."""

    numpy: np.dtype[Any]
    unit: float
    half_step: float
    overflow: float


FORMATS: dict[Attribute, Format] = {
    f32: Format(np.dtype(np.float32), UNIT, 2.0**-150, 2.0**128 - 2.0**103),
    bf16: Format(np.dtype(ml_dtypes.bfloat16), 2.0**-8, 2.0**-134, 2.0**128 - 2.0**119),
    f16: Format(np.dtype(np.float16), 2.0**-11, 2.0**-25, 65520.0),
    e5m2: Format(np.dtype(ml_dtypes.float8_e5m2), 2.0**-3, 2.0**-17, 61440.0),
    e4m3: Format(np.dtype(ml_dtypes.float8_e4m3fn), 2.0**-4, 2.0**-10, 464.0),
}


def numpy_dtype(element: Attribute) -> np.dtype[Any]:
    """The numpy type with the same values as an element type."""
    if element in FLOATS:
        return FORMATS[element].numpy
    return np.dtype(np.int8 if element == i8 else np.bool_ if element == i1 else np.int32)


def compute_dtype(element: Attribute, real: type[np.floating[Any]] = np.float32) -> np.dtype[Any]:
    """The numpy type that tiles of an element type are computed in."""
    if element in FLOATS:
        return np.dtype(real)
    return np.dtype(np.bool_ if element == i1 else np.int32)


def round_to(values: Values, element: Attribute) -> Values:
    """float32 values, rounded to a float type: to nearest, ties to even."""
    if element == f32:
        return values
    return values.astype(FORMATS[element].numpy).astype(np.float32)


def overflowed(values: Values, element: Attribute) -> Values:
    """Values that are too large for a type replaced by what they round to: NaN in e4m3, infinity in the others."""
    over = np.abs(values) >= FORMATS[element].overflow
    # 464 is a tie that goes to 448, the even neighbour; in the other types the tie goes to infinity.
    if element == e4m3:
        return np.where(np.abs(values) > FORMATS[element].overflow, np.nan, values)
    return np.where(over, np.copysign(np.inf, values), values)


def int_to_float(values: Values, element: Attribute) -> Values:
    """Integers as a float type, rounded once; the result is an array of float32."""
    if element == f32:
        return values.astype(np.float32)
    return round_to(_to_odd(values.astype(np.float64)), element)


def _float_to_int(values: Values) -> Values:
    """Toward zero, saturating; NaN gives 0."""
    with np.errstate(invalid="ignore"):
        wide = values.astype(np.float64)
    whole = np.trunc(np.nan_to_num(wide, nan=0.0, posinf=2.0**31, neginf=-(2.0**31)))
    return np.clip(whole, -(2.0**31), 2.0**31 - 1).astype(np.int32)


def as_integer(values: Values, element: Attribute) -> Values:
    """Numbers as an integer type, the nearest one of it where they are beyond its range; an array of int32."""
    whole = _float_to_int(values) if values.dtype.kind == "f" else values.astype(np.int32)
    return np.clip(whole, -128, 127) if element == i8 else whole


TF32_UNIT = 2.0**-10
"""What a number loses at most, relative to it, that tensor cores cut to 10 bits behind the leading one."""


def to_tf32(values: Values) -> Values:
    """f32 as tensor cores read it: without the last 13 bits."""
    cut = (np.ascontiguousarray(values, np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return np.where(np.isnan(values), values, cut)


def wrap_i32(value: int) -> int:
    """An integer modulo 2**32, with a sign."""
    return ((value + 2**31) & 0xFFFFFFFF) - 2**31


def _to_odd(values: Values) -> Values:
    """float64 to float32, inexact values to the neighbour whose last bit is 1, so that a second rounding is right."""
    near = np.atleast_1d(values.astype(np.float32))
    bits = near.view(np.int32).copy()
    bits[np.abs(near.astype(np.float64)) > np.abs(values)] -= 1
    bits[near != values] |= 1
    return bits.view(np.float32).reshape(values.shape)
