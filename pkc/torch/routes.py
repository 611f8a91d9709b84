"""Tables of a mixture of experts made where the choices are: of shapes that follow from theirs, so that nothing waits
for the host and a CUDA graph can hold it.

Numbers are those of `pkc.routing`, with one difference: a rank's experts lie in one list of rows, each in whole blocks,
so that there is room for any choices without as many rows for each expert as there are tokens.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

torch: Any = importlib.import_module("torch")

BLOCK = 128
"""Each expert's rows begin at a multiple of this."""


@dataclass(frozen=True)
class Routes:
    """Of one rank: `rows` [room] has the tokens of its experts, `first` and `count` [experts of a rank] say which rows
    are whose, and `places` [top, tokens of a rank, 2] in which rank and row each choice of its own tokens is, -1 where
    it has none. All are of int32."""

    rows: Any
    first: Any
    count: Any
    places: Any


def room(tokens: int, top: int, local: int) -> int:
    """Rows that a rank with `local` experts needs, whatever `tokens` choose `top` times."""
    return -(-tokens * top // BLOCK) * BLOCK + local * BLOCK


def routes(choices: Any, local: int, *, rank: int, ranks: int) -> Routes:
    """The tables of one rank with `local` experts, of the experts that the tokens of all ranks have chosen: `choices`
    [tokens, top] of int32, -1 for none, tokens a multiple of `ranks`. An expert that there is not is none, too."""
    tokens, top = choices.shape
    shard, experts = tokens // ranks, local * ranks
    place = torch.arange(tokens * top, device=choices.device)
    expert = choices.reshape(-1).long()
    chosen = (expert >= 0) & (expert < experts)
    turn = (place // (top * shard) - expert // local) % ranks
    keys, order = torch.where(chosen, expert * ranks + turn, experts * ranks).int().sort(stable=True)
    begins = torch.arange(0, (experts + 1) * ranks, ranks, device=keys.device, dtype=torch.int32)
    ends = torch.searchsorted(keys, begins)
    count = ends.diff()
    blocks = ((count + BLOCK - 1) // BLOCK * BLOCK).view(ranks, local)
    first = (blocks.cumsum(1) - blocks).view(-1)
    of = torch.clamp(keys // ranks, max=experts - 1)
    row = torch.empty_like(place).scatter_(0, order, first[of] + place - ends[of])
    size = room(tokens, top, local)
    mine = chosen & (expert // local == rank)
    rows = torch.full((size + 1,), -1, device=choices.device, dtype=torch.int32)
    rows.scatter_(0, torch.where(mine, row, size), (place // top).int())
    found = torch.stack([torch.where(chosen, expert // local, -1), torch.where(chosen, row, -1)], 1)
    own = found.view(ranks, shard, top, 2)[rank].transpose(0, 1)
    experts_of = slice(rank * local, (rank + 1) * local)
    begin, many = first[experts_of].int(), count[experts_of].int()
    return Routes(rows[:size], begin, many, own.int().contiguous())
