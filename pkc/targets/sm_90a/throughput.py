"""What operations on tiles take of the threads of sm_90, for each element."""

from __future__ import annotations

_SPECIAL: dict[str, tuple[float, float]] = {
    "pk.exp2": (0, 1),
    "pk.exp": (8, 1),
    "pk.log2": (20, 0),
    "pk.log": (20, 0),
    "pk.tanh": (14, 2),
    "pk.erf": (26, 1),
    "pk.rsqrt": (2, 1),
    "pk.sqrt": (10, 1),
    "pk.sigmoid": (30, 3),
    "pk.div": (7, 1),
}
"""Counted in the machine code of their instructions, without slow paths."""

_HALF = {"pk.max": (2.0, 0.0), "pk.min": (2.0, 0.0), "pk.compare": (2.0, 0.0)}
"""CUDA C++ Programming Guide, Throughput of Native Arithmetic Instructions: 64 in a cycle of an SM. So are conversions
to 16 and 8 bits, but of two elements at once."""


def per_element(operation: str) -> tuple[float, float]:
    """Instructions of full throughput that take as long as those of an operation, for one element, and instructions of
    special-function units."""
    return _SPECIAL.get(operation) or _HALF.get(operation, (1.0, 0.0))
