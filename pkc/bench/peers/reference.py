"""What results must be: some rows in float64, and how far a result may be from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pkc.bench.peers.ranks import Job, torch

SAMPLED_ROWS = 8
UNIT = 2.0**-8
"""The largest relative error of rounding to bf16."""
ACCUMULATION = 2.0**-10
"""Allowed of the root mean square of the result, for sums in float32."""


class Wrong(Exception):
    """The result of a contestant differs from the reference by more than the bound."""


@dataclass(frozen=True)
class Rows:
    """`exact` has some rows of a result: its positions `at` along dimension `axis`.

    `bound` is the largest error of each element by rounding to bf16. Roundings are independent, so the error of many
    elements together is far below it, and what tells a few wrong terms of a sum from roundings: of all together, or of
    each row if `each`, the relative error must be below UNIT sqrt(`roundings`). Sums in tensor cores may have `lost` so
    much beside that, of the root mean square.
    """

    axis: int
    at: Sequence[int]
    exact: Any
    bound: Any
    roundings: int
    each: bool = False
    lost: float = 0.0

    def worst(self, result: Any) -> float:
        """The largest error over its bound."""
        if not self.at:
            return 0.0
        found = result.index_select(self.axis, torch().tensor(self.at, device=result.device))
        error = (found.double() - self.exact).abs()
        among = [dim for dim in range(error.dim()) if not (self.each and dim == self.axis)]
        mean = self.exact.square().mean(dim=among, keepdim=True).sqrt()
        overall = error.square().mean(dim=among, keepdim=True).sqrt() / mean
        overall /= UNIT * math.sqrt(self.roundings) + self.lost
        worst = torch().maximum((error / (self.bound + (ACCUMULATION + self.lost) * mean)).max(), overall.max())
        return math.inf if bool(worst.isnan()) else float(worst)


@dataclass(frozen=True)
class Reference:
    """What the local shard of a result must be: its shape, and some of its rows."""

    job: Job
    shape: tuple[int, ...]
    rows: Rows

    def check(self, result: Any) -> float:
        """The largest error over its bound, over all ranks. Raises `Wrong` on all ranks if it is above 1 on any."""
        fits = tuple(result.shape) == self.shape
        mine = self.rows.worst(result) if fits else math.inf
        worst = torch().tensor([mine], device=self.job.place, dtype=torch().float64)
        found = float(self.job.largest(worst).item())
        if found > 1:
            raise Wrong(f"the result is wrong: {found:.3g} times the error bound")
        return found


def sample(rows: int) -> list[int]:
    """Some rows, the first and the last among them; no two in a row fall on the same place of a tile."""
    steps = min(SAMPLED_ROWS, rows) - 1
    return sorted({round(step * (rows - 1) / steps) for step in range(steps + 1)}) if steps else [0]
