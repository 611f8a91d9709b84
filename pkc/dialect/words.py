"""Names and numbers that the IR and launches agree on. Plain values: launches import no IR."""

from __future__ import annotations

RANKS = "ranks"
"""The dimension whose value is the number of ranks."""

LANES = 4
"""Streams on which a copy engine runs its tasks. A copy of 2 MB to a peer takes 6 us, and 15 us with the write of its
counter and the start of the next copy on the same stream: three streams fill a link, four leave some margin. With the
kernel's stream they stay below the 8 hardware queues that a GPU has by default."""

JOINED = 4
"""Tasks whose copies are merged into one where they are adjacent. It saves calls on the host: on 2 GPUs `ag_gemm` of
4096 x 2048 x 4096 took 0.115 ms with it and 0.139 without. Where the link is the limit, it costs 5 per cent."""

ROW = "row"
"""The place of a row of a table, which is left out if the array has none such."""

RANK = "rank"
"""The place of a rank that a table names."""

BEGINS, ENDS = "begins", "ends"
"""The places of the bounds of a list of blocks, which is clamped to its dimension."""


def every_shard(dim: object) -> str:
    """What all shards of a dimension are as long as."""
    return f"{dim}.shards"


def begin_of(dim: object) -> str:
    """A dimension as a size at whose multiples blocks of rows begin."""
    return f"{dim}.begin"
