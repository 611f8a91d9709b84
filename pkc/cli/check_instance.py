"""An instance of a kernel that `pkc check` looks at, in both levels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pkc.check.counterexample import instance
from pkc.check.grounds import Ground, instance_text
from pkc.check.run import Baseline, Trial, baseline_until_reuse
from pkc.check.unwritten import Unwritten
from pkc.cli.check_request import Request
from pkc.diagnostics import Diagnostic
from pkc.driver.compiler import Compiled
from pkc.sim.orders import Delay


@dataclass(frozen=True)
class Checked:
    """Both levels of a kernel, and the instance that is asked for."""

    tile: Compiled
    roles: Compiled
    request: Request
    dims: Mapping[str, int]
    grounds: list[Ground]
    """Of what was found right so far."""
    warned: set[str] = field(default_factory=set[str])
    """The arrays that an instance before has left unwritten."""
    seed: int = 0
    """Of the first inputs that are drawn."""

    def warn(self, found: Iterable[Unwritten]) -> list[Diagnostic]:
        """Those about other arrays than before."""
        new = [each for each in found if each.array not in self.warned]
        self.warned.update(each.array for each in new)
        return [*new]

    @property
    def where(self) -> str:
        """The instance, in words."""
        return instance_text(self.ranks, self.dims)

    @property
    def ranks(self) -> int:
        return self.request.chosen.ranks

    @cached_property
    def baseline(self) -> Baseline:
        """Inputs and right outputs of the instance. Raises `PkcError`."""
        return baseline_until_reuse(self.tile, self.roles, ranks=self.ranks, dims=self.dims, seed=self.seed)

    def mean(self) -> Baseline:
        """The same, as a call."""
        return self.baseline

    def instance(self) -> Baseline:
        return instance(self.tile, self.ranks, self.dims, self.seed)


def trial_of(seed: int, delays: tuple[Delay, ...] = ()) -> Trial:
    return Trial(1 + seed % 2, seed, delays)
