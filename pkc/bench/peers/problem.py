"""What a family of kernels says of itself: sizes, shapes, the work, the inputs and the peers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from pkc.bench.peers.contest import Contestant, Entrant
from pkc.bench.peers.ranks import Job
from pkc.bench.peers.reference import Reference

Shape: TypeAlias = tuple[int, ...]


class Problem(Protocol):
    """A kernel's work at one size, by all ranks together."""

    @property
    def ranks(self) -> int: ...
    @property
    def exchange(self) -> str:
        """What the ranks exchange: a collective, or "none"."""
        ...

    @property
    def size(self) -> str:
        """As the command line spells it."""
        ...

    @property
    def fields(self) -> Mapping[str, Any]:
        """The size in a file of results."""
        ...

    @property
    def square(self) -> int | None:
        """The one number that the size is, if it is one."""
        ...

    @property
    def flops(self) -> float:
        """Floating-point operations of each rank: additions and multiplications; the mean if ranks differ."""
        ...

    @property
    def link_bytes(self) -> int:
        """Bytes that each rank must send or receive, in bf16."""
        ...

    @property
    def operands(self) -> Sequence[Shape]:
        """The shapes of the arrays that are read: a sharded array's is that of all shards together."""
        ...

    @property
    def result(self) -> Shape: ...
    @property
    def constants(self) -> Mapping[str, int]:
        """The kernel's constants that have no array dimension's size."""
        ...

    @property
    def scalars(self) -> Mapping[str, float]: ...
    @property
    def uneven(self) -> tuple[str, int, int] | None:
        """A dimension that must be divided evenly and is not, with its size and the number of pieces."""
        ...

    def alone(self) -> Problem | None:
        """The same work of each rank without communication; `None` if this is it."""
        ...

    def draw(self, job: Job) -> Case:
        """Random inputs, the same in each run. All ranks must call this."""
        ...


@dataclass(frozen=True)
class Case:
    """A problem with this rank's operands, what its result must be, and the alternatives to pkc."""

    problem: Problem
    inputs: Sequence[Any]
    reference: Reference
    peers: Sequence[Contestant]

    def entrants(self, suffix: str = "") -> list[Entrant]:
        """The peers, `suffix` added to their names."""
        return [Entrant(Contestant(peer.name + suffix, peer.run), self.reference) for peer in self.peers]


def field(case: Case, alone: Case | None) -> list[Entrant]:
    """The peers, and those of the same work without communication, as `..._alone`."""
    return [*case.entrants(), *(alone.entrants("_alone") if alone else [])]


ALONE = ("cublas_alone", "cublas", "cudnn_alone", "cudnn")
"""What a rank's work takes without communication: the first of these that was measured is the machine's limit."""


def alone_ms(found: Mapping[str, Mapping[str, Any]]) -> float | None:
    """The median of the work alone, if it was measured."""
    return next((found[name]["median_ms"] for name in ALONE if "median_ms" in found.get(name, {})), None)
