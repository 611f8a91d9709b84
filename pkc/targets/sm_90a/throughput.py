"""What operations on tiles take of the threads of sm_90, for each element."""

from __future__ import annotations

from pkc.targets.arch import ANY, Rate

_COUNTED = 0.25
"""What slow paths and the compiler may add to what was counted in machine code."""

_ONE = Rate(1.0)
_HALF = Rate(2.0)
"""CUDA C++ Programming Guide, Throughput of Native Arithmetic Instructions: 64 in a cycle of an SM. So are conversions
to 16 and 8 bits, but of two elements at once."""

_AT_HALF = ("max", "min", "compare", "bit_and", "bit_or", "bit_xor", "shift_left", "shift_right")
_SINGLE = ("neg", "abs", "add", "sub", "mul", "not", "and", "or", "select", "cast", "clip")

_RATES: dict[str, Rate] = {
    **{f"pk.{name}": _ONE for name in _SINGLE},
    **{f"pk.{name}": _HALF for name in _AT_HALF},
    # Counted in the machine code of their instructions, without slow paths.
    "pk.exp2": Rate(0, 1, _COUNTED),
    "pk.exp": Rate(8, 1, _COUNTED),
    "pk.steep_exp": Rate(1, 1, _COUNTED),
    "pk.log2": Rate(20, 0, _COUNTED),
    "pk.log": Rate(20, 0, _COUNTED),
    "pk.tanh": Rate(14, 2, _COUNTED),
    "pk.erf": Rate(17, 1, _COUNTED),
    "pk.sin": Rate(22, 2, _COUNTED),
    "pk.cos": Rate(22, 2, _COUNTED),
    "pk.round": Rate(0, 1, _COUNTED),
    "pk.floor": Rate(0, 1, _COUNTED),
    "pk.rsqrt": Rate(2, 1, _COUNTED),
    "pk.sqrt": Rate(10, 1, _COUNTED),
    "pk.sigmoid": Rate(7, 2, _COUNTED),
    "pk.step_tanh": Rate(2, 2, _COUNTED),
    "pk.step_erf": Rate(9, 2, _COUNTED),
    "pk.div": Rate(7, 1, _COUNTED),
    # A step for each lane, and sums of what a thread has.
    "pk.cum_sum": Rate(6, 0, 0.5),
    # A division of integers is a subroutine with a reciprocal.
    "pk.floordiv": Rate(25, 1, 0.5),
    "pk.mod": Rate(27, 1, 0.5),
    # Of an entry that is looked at, and of an element that is added up.
    "pk.invert": Rate(12, 0, 0.5),
    "pk.sum_rows": Rate(3, 0, 0.5),
}


def per_element(operation: str) -> Rate:
    """Instructions of full throughput that take as long as those of an operation, for one element, and instructions of
    special-function units."""
    return _RATES.get(operation, ANY)
