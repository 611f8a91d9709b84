"""What can be wrong with an index while a kernel runs, on the simulator or, in debug builds, on GPUs."""

from __future__ import annotations

from pkc.diagnostics import Diagnostic


class IndexOutOfRange(Diagnostic):
    """Raised when an index is not a position of the dimension it addresses."""

    code = "PK706"
    title = "index {index} is outside dimension {axis} of `{array}`"
    label = "rank {rank} addresses it here"
    help = "its positions are 0 to {last}"
    index: int
    axis: int
    array: str
    rank: int
    last: int


class RankOutOfRange(Diagnostic):
    """Raised when something is addressed at a rank that does not exist."""

    code = "PK707"
    title = "there is no rank {found}"
    label = "rank {rank} addresses it here"
    help = "the ranks are 0 to {last}"
    found: int
    rank: int
    last: int
