"""What `pkc check` is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pkc.cli import errors
from pkc.cli.arrays import Array, check_names, load_inputs, passed_arrays
from pkc.cli.program import Chosen
from pkc.cli.settings import assignments
from pkc.diagnostics import PkcError
from pkc.dialect.attributes import Role
from pkc.dialect.program import KernelOp
from pkc.dialect.types import dtype_name, i8, i32
from pkc.location import NOWHERE
from pkc.sim.orders import Delay


@dataclass(frozen=True)
class Request:
    """What is to be checked, in how many seeded and at most how many explored orders, with which roles delayed."""

    chosen: Chosen
    seeds: int
    exhaustive: int
    delays: tuple[Delay, ...]
    target: str
    other_ranks: bool = False
    """Whether other numbers of ranks are looked at too, as none was asked for."""
    tables: Mapping[str, str] = field(default_factory=dict[str, str])
    """Files of arrays of integers, which are not drawn then."""

    def given(self, kernel: KernelOp) -> dict[str, Array]:
        """These arrays. Raises `PkcError`."""
        check_names(kernel, "--in", self.tables)
        types = passed_arrays(kernel)
        for name in self.tables:
            if types[name] not in (i8, i32):
                raise PkcError(errors.NoTable(NOWHERE, name, dtype_name(types[name])))
        return load_inputs(kernel, self.tables)


def delays_of(texts: Sequence[str], ranks: int) -> tuple[Delay, ...]:
    """What `--delay` asks for. Raises `PkcError`."""
    return tuple(_delay(text, ranks) for text in texts)


def _delay(text: str, ranks: int) -> Delay:
    example = "rank=1,role=storer"
    given = assignments("--delay", (text,), example=example, split=True)
    rank, role = given.pop("rank", None), given.pop("role", None)
    if given or (rank is not None and not (rank.isascii() and rank.isdecimal() and int(rank) < ranks)):
        raise PkcError(errors.BadDelay(NOWHERE, text, f"a rank is a number from 0 to {ranks - 1}"))
    known = [str(role) for role in Role]
    if role is not None and role not in known:
        raise PkcError(errors.BadDelay(NOWHERE, text, f"the roles are {', '.join(known)}"))
    return Delay(None if rank is None else int(rank), role)
