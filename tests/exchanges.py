"""all_to_all for every pair of dimensions: what is sharded along one becomes sharded along another."""

from __future__ import annotations

from itertools import permutations

DIMS = "ABC"
_BLOCKS = {"A": "blocks(A, 1{of})", "B": "blocks(B, 16{of})", "C": "blocks(C, 32{of})"}
"""A tile has two axes; the first dimension is counted through."""


def exchange(before: int, after: int, kind: str = "bf16") -> str:
    lists = ", ".join(_BLOCKS[dim].format(of=", of=rank" * (place == before)) for place, dim in enumerate(DIMS))
    return (
        f"kernel exchange(X: {kind}[A, B, C].shard({before}), Y: {kind}[A, B, C].shard({after})):\n"
        f"    for a, b, c in tasks({lists}):\n"
        "        Y[a, b, c] = X[a, b, c]\n"
    )


PAIRS = tuple(permutations(range(len(DIMS)), 2))
