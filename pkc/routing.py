"""Tables of a mixture of experts: which rows of which ranks go to which expert, and where they come back from.

Experts are numbered through all ranks; each rank has as many, one after the other. A token is a row of an array that is
sharded over the ranks, so its number says who owns it. All arrays are of numpy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Tables:
    """What one rank's experts get.

    `rows` [experts of a rank, most] has the tokens of each expert, first the rank's own, then those of the next rank
    and so on, -1 behind the last; `choice`, of the same shape, which of its token's choices each is; `count` [experts
    of a rank] how many there are. `most` is the same on all ranks.
    """

    rows: Integers
    choice: Integers
    count: Integers


def top_experts(logits: npt.NDArray[np.floating], top: int) -> tuple[Integers, npt.NDArray[np.float32]]:
    """The `top` experts of each token by the router's logits [tokens, experts], the first one first, and their weights:
    the softmax over these. Both are [tokens, top]."""
    chosen = np.argsort(-logits, axis=1, kind="stable")[:, :top]
    picked = np.take_along_axis(logits, chosen, 1).astype(np.float64)
    weights = np.exp(picked - picked.max(1, keepdims=True))
    return chosen.astype(np.int32), (weights / weights.sum(1, keepdims=True)).astype(np.float32)


def tables(choices: Integers, experts: int, *, rank: int = 0, ranks: int = 1, step: int = 128) -> Tables:
    """The tables of one rank, of the experts that each token has chosen: `choices` [tokens, top], -1 for none.

    `most` of `Tables` is a multiple of `step`, and at least that. Raises `ValueError` if experts do not divide evenly.
    """
    if experts % ranks:
        raise ValueError(f"{experts} experts do not divide evenly among {ranks} ranks")
    tokens = len(choices)
    local = experts // ranks
    counts = np.bincount(choices[choices >= 0], minlength=experts)
    most = max(-(-int(counts.max(initial=0)) // step), 1) * step
    token, choice = (each.reshape(-1) for each in np.indices(choices.shape))
    shard = max(-(-tokens // ranks), 1)
    turn = (token // shard - rank) % ranks
    expert = choices.reshape(-1) - rank * local
    mine = np.flatnonzero((expert >= 0) & (expert < local) & (choices.reshape(-1) >= 0))
    mine = mine[np.lexsort((token[mine], turn[mine], expert[mine]))]
    count = counts[rank * local : (rank + 1) * local]
    place = np.arange(len(mine)) - np.repeat(np.cumsum(count) - count, count)
    found = np.full((2, local, most), -1, np.int32)
    found[0, expert[mine], place] = token[mine]
    found[1, expert[mine], place] = choice[mine]
    return Tables(found[0], found[1], count.astype(np.int32))


def places(choices: Integers, experts: int, *, ranks: int = 1, step: int = 128) -> Integers:
    """Where each choice of each token is among the experts' rows: [top, tokens, 2], rank and row of [experts of a rank
    x most, ...]; -1 where a token has no such choice."""
    tokens, top = choices.shape
    found = np.full((top, tokens, 2), -1, np.int32)
    for rank in range(ranks):
        own = tables(choices, experts, rank=rank, ranks=ranks, step=step)
        expert, place = np.nonzero(own.rows >= 0)
        token, choice = own.rows[expert, place], own.choice[expert, place]
        found[choice, token, 0] = rank
        found[choice, token, 1] = expert * own.rows.shape[1] + place
    return found
