"""What a family of kernels says of itself: sizes, shapes, the work, the inputs and the peers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from pkc.bench.peers.contest import Contestant, Entrant, Step
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
    def memory_bytes(self) -> int:
        """Bytes that each rank must read from its memory and write there, the mean if ranks differ; 0 if they are not
        counted."""
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

    def alone(self) -> Sequence[Problem]:
        """The same work of each rank without communication, and unfused: one after the other; none if this is it."""
        ...

    def draw(self, job: Job) -> Case:
        """Random inputs, the same in each run. All ranks must call this."""
        ...


class Usual:
    """What most problems say of themselves; a family says what is otherwise."""

    @property
    def square(self) -> int | None:
        return None

    @property
    def memory_bytes(self) -> int:
        return 0

    @property
    def constants(self) -> Mapping[str, int]:
        return {}

    @property
    def scalars(self) -> Mapping[str, float]:
        return {}

    @property
    def uneven(self) -> tuple[str, int, int] | None:
        return None

    def alone(self) -> Sequence[Problem]:
        return ()


def numbers_of(size: str, *counts: int) -> list[int] | None:
    """The numbers of a size such as `16x8192`, from 1 up; `None` unless there are as many as one of `counts`."""
    numbers = [int(number) for number in size.split("x") if number.isdecimal()]
    return numbers if len(numbers) in counts and "x".join(map(str, numbers)) == size and min(numbers) > 0 else None


@dataclass(frozen=True)
class Case:
    """A problem with this rank's operands, what its result must be, and the alternatives to pkc."""

    problem: Problem
    inputs: Sequence[Any]
    reference: Reference
    peers: Sequence[Contestant]


def field(case: Case, alone: Sequence[Case]) -> list[Entrant]:
    """The peers, and those of the work alone, as `..._alone`."""
    return [*_entrants([case]), *_entrants(alone, "_alone")]


def _entrants(cases: Sequence[Case], suffix: str = "") -> Iterator[Entrant]:
    """The peers that all cases have, which they go through in turn; `suffix` is added to their names."""
    steps: dict[str, list[Step]] = {}
    for case in cases:
        for peer in case.peers:
            steps.setdefault(peer.name, []).append(Step(peer.run, case.reference, peer.restore))
    return (Entrant(name + suffix, found) for name, found in steps.items() if len(found) == len(cases))


ALONE = (
    *("cublas_alone", "cublas", "cudnn_alone", "cudnn", "torch_grouped_alone", "torch_grouped"),
    *("scaled_mm_alone", "scaled_mm"),
)
"""What a rank's work takes without communication: the first of these that was measured is the machine's limit."""


def alone_ms(found: Mapping[str, Mapping[str, Any]]) -> float | None:
    """The median of the work alone, if it was measured."""
    return next((found[name]["median_ms"] for name in ALONE if "median_ms" in found.get(name, {})), None)
