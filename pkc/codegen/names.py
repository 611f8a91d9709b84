"""Names of a program as C++ names: plain letters, no reserved words, none twice."""

from __future__ import annotations

import re
from collections.abc import Iterable

_CPP = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t class compl const
const_cast constexpr continue decltype default delete do double dynamic_cast else enum explicit export extern false
float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private
protected public register reinterpret_cast return short signed sizeof static static_assert static_cast struct switch
template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t
while xor xor_eq
"""
_USED = "min max abs args shared main Args TensorMap threadIdx blockIdx blockDim gridDim warpSize"

RESERVED = frozenset(f"{_CPP} {_USED} NULL".split())
"""The words of C++17, and names that the generated text uses or finds defined."""

_OF_FLOATS = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh cospi cyl_bessel_i0 cyl_bessel_i1 erf erfc erfcinv
erfcx erfinv exp exp10 exp2 expm1 fabs fdim fdivide floor fma fmax fmin fmod frexp hypot ilogb j0 j1 jn ldexp lgamma
llrint llround log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter norm norm3d norm4d normcdf
normcdfinv pow rcbrt remainder remquo rhypot rint rnorm rnorm3d rnorm4d round rsqrt scalbln scalbn sin sincos sincospi
sinh sinpi sqrt tan tanh tgamma trunc y0 y1 yn
"""
_OTHERS = """
assert clock64 clock_t dim3 free labs llabs llmax llmin malloc printf ptrdiff_t size_t std ullmax ullmin umax umin
va_list
"""

DECLARED = frozenset(f"{_OF_FLOATS} {_OTHERS}".split()) | {f"{name}f" for name in _OF_FLOATS.split()}
"""What NVRTC declares before the text, without C++ linkage or as no function: a kernel cannot have such a name. C++
tells its other functions from a kernel by their parameters."""


class Names:
    """Gives names, each once. A name that is taken gets a number, a reserved word an underscore."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}

    def new(self, wish: str, *, numbered: bool = False) -> str:
        """A name like `wish`; with `numbered`, always with a number."""
        stem = re.sub(r"[^0-9A-Za-z_]", "_", wish) or "v"
        if stem[0].isdigit():
            stem = f"_{stem}"
        if re.match("__|_[A-Z]", stem):  # C++ keeps these for the compiler
            stem = f"v{stem}"
        if stem in RESERVED:
            stem = f"{stem}_"
        name = f"{stem}0" if numbered else stem
        number = self._numbers.get(stem, 0)
        while name in self._taken:
            number += 1
            name = f"{stem}{number}"
        self._numbers[stem] = number
        self._taken.add(name)
        return name
