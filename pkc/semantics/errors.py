"""What can be wrong with an index while a kernel runs, on the simulator or, in debug builds, on GPUs."""

from __future__ import annotations

from pkc.diagnostics import Diagnostic

ZEROS = (
    "; a block in arithmetic reads zeros outside: `m - 1` with m of `blocks(M, 64)`,"
    " and so does a negative entry of a table: `rows[m]`"
)
"""What helps beside an integer."""


class IndexOutOfRange(Diagnostic):
    """Raised when an index is not a position of the dimension it addresses."""

    code = "PK706"
    title = "index {index} is outside dimension {axis} of `{array}`"
    label = "rank {rank} addresses it here"
    help = "its positions are 0 to {last}{outside}"
    index: int
    axis: int
    array: str
    rank: int
    last: int
    outside: str = ""
    """What gives zeros outside, where the program reads."""


class RankOutOfRange(Diagnostic):
    """Raised when something is addressed at a rank that does not exist."""

    code = "PK707"
    title = "there is no rank {found}"
    label = "rank {rank} addresses it here"
    help = "the ranks are 0 to {last}"
    found: int
    rank: int
    last: int


class BoundOutOfRange(Diagnostic):
    """Raised when an element of an array bounds a list of blocks, and is no position of the dimension, nor its end."""

    code = "PK709"
    title = "a list of blocks {does} at {bound}: `{dim}` is {size} long"
    label = "rank {rank} counts them here"
    help = "what an array says must be 0 to {size}; `min(..., {dim})` and `max(..., 0)` of it clamp the list"
    does: str
    bound: int
    dim: str
    size: int
    rank: int
